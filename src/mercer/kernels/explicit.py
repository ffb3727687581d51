"""Kernels with finitely many features: the one formula, run on features, says what they are."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp
from mercer.core.errors import InputError, MercerError, NotTraceable
from mercer.kernels.base import Kernel
from mercer.kernels.dials import EXPLICIT_LOOKED_AT, MOST_COUNTED
from mercer.kernels.pair import Pair, row_values, vectors


class NoFeatures(NotTraceable):
    """The formula is not an inner product of finitely many features, or of more than are wanted."""


class Bilinear:
    r"""A value of the form :math:`\sum_j a_j(x)\, b_j(z)`, as the rows of a and of b.

    Sums put the columns side by side, products multiply each column with each: the formula of a kernel stays as it is.
    """

    __slots__ = ("left", "most", "right")
    __array_ufunc__ = None

    def __init__(self, left: Tensor, right: Tensor, most: int) -> None:
        if left.shape[1] > most:
            raise NoFeatures(f"there are more than {most:,} features")
        self.left, self.right, self.most = left, right, most

    def _both(self, make: Callable[[Tensor], Tensor]) -> Bilinear:
        left = make(self.left)
        return Bilinear(left, left if self.right is self.left else make(self.right), self.most)

    def __add__(self, other: Bilinear | float) -> Bilinear:
        if isinstance(other, Bilinear):
            left = torch.cat([self.left, other.left], dim=1)
            same = self.right is self.left and other.right is other.left
            return Bilinear(left, left if same else torch.cat([self.right, other.right], dim=1), self.most)
        if not isinstance(other, numbers.Real):
            return NotImplemented
        if other == 0:
            return self
        one = self.left.new_ones(len(self.left), 1)
        return self + Bilinear(one, one, self.most) * other

    def __mul__(self, other: Bilinear | float) -> Bilinear:
        if isinstance(other, Bilinear):
            if self.left.shape[1] * other.left.shape[1] > self.most:
                raise NoFeatures(f"there are more than {self.most:,} features")
            left = _products(self.left, other.left)
            same = self.right is self.left and other.right is other.left
            return Bilinear(left, left if same else _products(self.right, other.right), self.most)
        if not isinstance(other, numbers.Real):
            return NotImplemented
        root = math.sqrt(abs(other))
        found = self._both(lambda columns: columns * root)
        return found if other >= 0 else Bilinear(-found.left, found.right, self.most)

    def __pow__(self, exponent: float) -> Bilinear:
        if exponent != int(exponent) or exponent < 1:
            raise NoFeatures(f"the power {exponent:g} of a sum of features is not such a sum")
        width = self.left.shape[1]
        if math.comb(width + int(exponent) - 1, int(exponent)) > self.most:
            raise NoFeatures(f"there are more than {self.most:,} features")
        return self._both(lambda columns: _monomials(columns, int(exponent)))

    def __neg__(self) -> Bilinear:
        return self * -1.0

    def __sub__(self, other: Bilinear | float) -> Bilinear:
        return self + (-other)

    def __rsub__(self, other: float) -> Bilinear:
        return (-self) + other

    def __truediv__(self, other: float) -> Bilinear:
        return self * (1.0 / other)

    __radd__ = __add__
    __rmul__ = __mul__


class FeaturePair(Pair):
    """A pair of points that answers with features, of which an inner product is made; distances have none."""

    def __init__(self, x: Points, most: int) -> None:
        self.x, self.most = x, most

    def warped(self, warp: Warp) -> FeaturePair:
        return FeaturePair(warp(self.x), self.most)

    def inner(self) -> Bilinear:
        x = vectors(self.x).to(torch.float64)
        return Bilinear(x, x, self.most)

    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Bilinear, Bilinear]:
        values = row_values(function, self.x).to(torch.float64).unsqueeze(1)
        one = torch.ones_like(values)
        return Bilinear(values, one, self.most), Bilinear(one, values, self.most)

    def columns(self) -> int:
        return vectors(self.x).shape[1]

    def squared_distance(self, length_scale: Any = 1.0, *, exact: bool = False) -> Any:
        raise NoFeatures("distances are not inner products of finitely many features")

    def squared_sum(self) -> Any:
        return self.squared_distance()

    def l1_distance(self, length_scale: Any = 1.0) -> Any:
        return self.squared_distance()

    def same(self) -> Any:
        return self.squared_distance()

    def matrix(self, gram: Any, diag: Any) -> Any:
        return self.squared_distance()


@dataclass(frozen=True, eq=False)
class ExplicitFeatures:
    r"""The features of a kernel that has finitely many, less a `shift` where there is one,

    .. math:: k(x, z) = \varphi(x) \cdot \varphi(z), \qquad \varphi(x) \in R^p.

    They are made by the kernel's own formula: inner products are rows, sums put features side by side, products
    multiply them, powers are monomials.

    Attributes
    ----------
    kernel : Kernel
        The kernel, with plain numbers for parameters.
    n_features : int
        p, for rows of `n_columns` columns.

    References
    ----------
    Shawe-Taylor and Cristianini, *Kernel Methods for Pattern Analysis*, 2004, section 9.1.

    Examples
    --------
    >>> from mercer.kernels import Linear, Polynomial
    >>> X = Points(torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double())
    >>> features = ExplicitFeatures.of(Polynomial(degree=2) + 3.0 * Linear(), X, most=100)
    >>> features.n_features
    8
    >>> phi = features(X)
    >>> bool(torch.allclose(phi @ phi.T, features.kernel(X.values)))
    True
    """

    kernel: Kernel
    n_features: int
    n_columns: int
    shift: Tensor | None = None

    @classmethod
    def of(cls, kernel: Kernel, X: Points, most: int) -> ExplicitFeatures | None:
        """The features for rows like those of X; None where the kernel has more than `most`, or not finitely many."""
        if most < 1 or not X.is_tensor or kernel.domain not in ("vectors", "any"):
            return None
        some = X.take(slice(0, EXPLICIT_LOOKED_AT))
        try:
            count = _features(kernel, some, most).shape[1]
        except (MercerError, TypeError, AttributeError, ValueError, IndexError, RuntimeError):
            return None
        return cls(kernel, count, vectors(X).shape[1])

    def __call__(
        self, points: Points, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Tensor:
        """The features (n, p) of some rows, by default in the dtype and on the device of the rows."""
        x = vectors(points)
        if x.shape[1] != self.n_columns:
            raise InputError(f"X has {x.shape[1]} columns, but the feature map expects {self.n_columns}.")
        here = points if device is None else Points(x.to(device), points.names)
        found = _features(self.kernel, here, self.n_features)
        found = found if self.shift is None else found - self.shift.to(found)
        return found.to(x.dtype if dtype is None else dtype)

    def centred(self, X: Points) -> ExplicitFeatures:
        """The features less their mean at some rows, which keeps digits where an intercept takes the mean up."""
        return replace(self, shift=self(X, torch.float64).mean(0))

    @property
    def at_origin(self) -> ExplicitFeatures:
        """The features without a shift."""
        return self if self.shift is None else replace(self, shift=None)

    def shifted_by(self, coef: Tensor) -> Tensor:
        """How much less a sum with these coefficients (p, t) is than that of the features without a shift, (t,)."""
        return coef.new_zeros(coef.shape[1]) if self.shift is None else self.shift.to(coef) @ coef

    @property
    def text(self) -> str:
        """What tells these features from others, beside their arrays."""
        return repr(self.kernel)

    def to_arrays(self) -> dict[str, Tensor]:
        """What the kernel does not say."""
        return {} if self.shift is None else {"shift": self.shift}


def dimension(kernel: Kernel, n_columns: int) -> float | None:
    """The number of independent features of a kernel of rows, infinite where its functions are dense in some space."""
    facts = kernel.properties
    if facts.characteristic or facts.universal:
        return math.inf
    generator = torch.Generator().manual_seed(0)
    rows = torch.rand(MOST_COUNTED, n_columns, dtype=torch.float64, generator=generator) + 0.5
    features = ExplicitFeatures.of(kernel, Points(rows), MOST_COUNTED)
    if features is None:
        return None
    values = features(Points(rows[: features.n_features + 1]))
    return int(torch.linalg.matrix_rank(values))


def _features(kernel: Kernel, X: Points, most: int) -> Tensor:
    """The features of some rows, float64."""
    value = kernel.of(FeaturePair(X, most))
    if isinstance(value, int | float) and value >= 0:
        return torch.full((len(X), 1), math.sqrt(value), dtype=torch.float64, device=vectors(X).device)
    if not isinstance(value, Bilinear):
        raise NoFeatures("the formula gives no inner product")
    if value.left is not value.right and not torch.equal(value.left, value.right):
        raise NoFeatures("both sides have features of their own")
    return value.left


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Each column times each, (n, p q)."""
    return (a.unsqueeze(2) * b.unsqueeze(1)).flatten(1)


def _monomials(columns: Tensor, degree: int) -> Tensor:
    """All products of so many columns, each once, with the roots of their multinomial coefficients."""
    places, roots = _multisets(columns.shape[1], degree)
    found = columns[:, places[0]]
    for place in places[1:]:
        found = found * columns[:, place]
    return found * roots.to(columns)


@lru_cache(maxsize=32)
def _multisets(width: int, degree: int) -> tuple[Tensor, Tensor]:
    """The places (degree, count) of the columns of each product, and the roots of how often it comes."""
    found = list(combinations_with_replacement(range(width), degree))
    counts = [math.prod(math.factorial(some.count(place)) for place in set(some)) for some in found]
    roots = torch.tensor([math.factorial(degree) / count for count in counts], dtype=torch.float64).sqrt()
    return torch.tensor(found).T.contiguous(), roots
