"""`RKHSFunction`: f = sum_i c_i k(x_i, .), with the arithmetic and the geometry of its space."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, as_points, checked_values, promote, restore
from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.data.equal import Kinds
from mercer.files.fields import Array, Field, Fields, Rows, read, written
from mercer.files.kinds import ANY_TABLE, FLAG, TEXTS, Made, optional
from mercer.files.persistence import register, save
from mercer.formula.maths import sqrt
from mercer.functions.centres import check_alike, joined
from mercer.functions.dials import ROUNDING
from mercer.functions.inclusion import norm_kernel
from mercer.functions.products import gradients, times
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.kernels.serialize import check_at, from_dict, to_dict

FIELDS: Fields = {
    "kernel": Field(Made(ANY_TABLE, from_dict, to_dict), at="_kernel"),
    "names": Field(optional(TEXTS), at="_centres.names"),
    "rows": Rows(at="_centres"),
    "torch": Field(FLAG, at="_torch"),
    "coef": Array("m or m t", dtype=None),
}
"""What is saved of a function."""


@register
class RKHSFunction:
    r"""A function in the reproducing kernel Hilbert space of a kernel, given by centres and coefficients,

    .. math:: f = \sum_i c_i\, k(x_i, \cdot), \qquad \langle f, g \rangle = a^\top K(X, Z)\, b,
        \qquad f(x) = \langle f, k(x, \cdot) \rangle.

    Functions of one kernel add, subtract and scale. `coef` has shape (n,), or (n, t) for t functions at once: then
    values have shape (m, t), and inner products, norms and distances are arrays of t numbers. Those are of the kind of
    `coef`: floats and numpy arrays, or tensors, through which gradients flow. The noise of a `WhiteNoise` kernel
    belongs to the rows of a sample, not to points, and takes no part.

    References: Aronszajn, *Theory of reproducing kernels*, 1950.

    >>> from mercer.kernels import Gaussian
    >>> f = RKHSFunction(Gaussian(length_scale=1.0), [[0.0], [1.0]], [1.0, -1.0])
    >>> f([[0.0], [0.25]]).round(4)
    array([0.3935, 0.2144])
    >>> g = 2 * f - f
    >>> g.n_centres, g.distance(f), round(f.norm(), 4)
    (4, 0.0, 0.8871)
    """

    __array_ufunc__ = None  # np.float64(2) * f asks f, and arrays times f are refused

    def __init__(self, kernel: Kernel, X: Any, coef: Any) -> None:
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"kernel={kernel!r}: expected a kernel such as mercer.kernels.Gaussian().")
        self._kernel = kernel
        self._centres = kernel.points(X, "X").owned()
        if len(self._centres) == 0:
            raise InputError("X has no rows; a function needs at least one centre.")
        self._weights, self._single = _weights(coef, self._centres)
        self._torch = isinstance(coef, Tensor)
        first = self._centres if self._ready_gram else self._centres.take(slice(0, 1))
        kernel.on(DiagonalPair(first))  # a kernel that does not fit is refused here, not at first use

    @property
    def kernel(self) -> Kernel:
        """The kernel k."""
        return self._kernel

    @property
    def X(self) -> Any:
        """The centres, in rows, or a list of objects."""
        return self._given(self._centres.values) if self._centres.is_tensor else list(self._centres.values)

    @property
    def coef(self) -> Any:
        """The coefficients, of shape (n,) or (n, t)."""
        return self._given(self._weights[:, 0] if self._single else self._weights)

    @property
    def n_centres(self) -> int:
        """Number of centres."""
        return len(self._centres)

    @property
    def n_outputs(self) -> int:
        """Number t of functions held together; 1 for coefficients of shape (n,)."""
        return self._weights.shape[1]

    # Values

    def __call__(self, X: Any, *, memory_budget: Any = None) -> Any:
        """Values f(x) at the rows of X, (m,) or (m, t); the kernel matrix is never formed beyond the memory budget.

        A tensor gives a tensor; one that requires gradients goes through the dense, differentiable kernel matrix.
        """
        return self._values(times(self._kernel, self._points(X), self._centres, self._weights, memory_budget), X)

    def gradient(self, X: Any, *, memory_budget: Any = None) -> Any:
        """Gradients of f at the rows of X, (m, d), or (m, t, d) for t functions.

        At a centre where the kernel has a kink (Laplace), that centre's term counts zero.

        >>> from mercer.kernels import Linear
        >>> RKHSFunction(Linear(), [[1.0, 2.0]], [3.0]).gradient([[0.0, 0.0]])
        array([[3., 6.]])
        """
        x = self._points(X)
        if not x.is_tensor or self._ready_gram:
            raise InputTypeError(
                "A function of objects or of a precomputed Gram matrix has no gradient; use a kernel of vectors."
            )
        return self._values(gradients(self._kernel, x, self._centres, self._weights, memory_budget), X)

    def bound(self, X: Any, g: RKHSFunction | None = None) -> Any:
        r"""The pointwise bound :math:`|f(x) - g(x)| \le \sqrt{k(x, x)}\, \|f - g\|` at the rows of X, g zero if None.

        >>> from mercer.kernels import Gaussian
        >>> f = RKHSFunction(Gaussian(), [[0.0]], [2.0])
        >>> f.bound([[0.0], [9.0]])
        array([2., 2.])
        """
        scale = sqrt(self._kernel.on(DiagonalPair(self._points(X))))
        size = self._norm() if g is None else self._distance(g)
        return self._values(scale.unsqueeze(1) * size.to(scale), X)

    # Arithmetic

    def __add__(self, other: Any) -> RKHSFunction:
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        self._check_space(other)
        weights, keep = promote(self._weights, other._weights), self._torch or other._torch
        if self._ready_gram:
            return self._with(self._centres, weights[0] + weights[1], keep)
        return self._with(joined(self._centres, other._centres), torch.cat(weights), keep)

    def __radd__(self, other: Any) -> RKHSFunction:
        return self if isinstance(other, numbers.Real) and other == 0 else NotImplemented  # for sum()

    def __sub__(self, other: Any) -> RKHSFunction:
        return self + (-other) if isinstance(other, RKHSFunction) else NotImplemented

    def __neg__(self) -> RKHSFunction:
        return self._with(self._centres, -self._weights)

    def __mul__(self, factor: Any) -> RKHSFunction:
        if isinstance(factor, Tensor) and factor.ndim == 0:
            return self._with(self._centres, self._weights * factor)
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        if not math.isfinite(factor):
            raise InputError(f"A function cannot be multiplied by {factor!r}.")
        return self._with(self._centres, self._weights * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> RKHSFunction:
        if not isinstance(divisor, numbers.Real | Tensor):
            return NotImplemented
        if isinstance(divisor, numbers.Real) and (divisor == 0 or not math.isfinite(divisor)):
            raise InputError(f"A function cannot be divided by {divisor!r}.")
        return self * (1.0 / divisor)

    def simplify(self) -> RKHSFunction:
        """The same function with equal centres merged into one that carries the sum of their coefficients.

        >>> from mercer.kernels import Gaussian
        >>> RKHSFunction(Gaussian(), [[0.0], [1.0], [0.0]], [1.0, 5.0, 2.0]).simplify().coef
        array([3., 5.])
        """
        if self._ready_gram:
            return self
        kinds = Kinds.of(self._centres).as_they_come()
        if len(kinds) == self.n_centres:
            return self
        return self._with(self._centres.take(kinds.first), kinds.sums(self._weights))

    # Geometry

    def inner(self, g: RKHSFunction) -> Any:
        r"""The inner product :math:`\langle f, g \rangle = a^\top K(X, Z)\, b`, in float64.

        >>> from mercer.kernels import Linear
        >>> RKHSFunction(Linear(), [[1.0, 2.0]], [1.0]).inner(RKHSFunction(Linear(), [[3.0, 4.0]], [1.0]))
        11.0
        """
        self._check_space(g)
        return self._number(self._products(self._kernel, g), self._torch or g._torch)

    def norm(self, kernel: Kernel | None = None) -> Any:
        r"""The norm :math:`\|f\| = \sqrt{c^\top K c}`, or with `kernel` the norm in the space of that kernel.

        A function of a Gaussian kernel belongs to the space of every narrower one (a smaller `length_scale`, also per
        column), with :math:`\|f\|_{s_1} \le (s_2 / s_1)^{d/2} \|f\|_{s_2}` for :math:`s_1 < s_2`. A kernel in whose
        space f is not, or for which no closed form is known, is refused.

        >>> from mercer.kernels import Gaussian
        >>> f = RKHSFunction(Gaussian(length_scale=2.0), [[0.0]], [1.0])
        >>> f.norm(), round(f.norm(kernel=Gaussian(length_scale=1.0)), 4)
        (1.0, 1.2296)
        """
        return self._number(self._norm(kernel), self._torch)

    def distance(self, g: RKHSFunction) -> Any:
        r"""The distance :math:`\|f - g\|`: zero for two ways to write one function with the same centres.

        Where they write it with different centres, cancellation leaves about 1e-8 of the norms.
        """
        return self._number(self._distance(g), self._torch or g._torch)

    def _products(self, kernel: Kernel, g: RKHSFunction) -> Tensor:
        """a^T k(X, Z) b for each output, in float64: terms of both signs cancel."""
        a, b = self._weights.double(), g._weights.double()
        products = (a * times(kernel, self._centres, g._centres, b).to(a)).sum(0)
        if not bool(torch.isfinite(products).all()):
            raise InputError("An inner product overflows; the coefficients or the kernel are too large for float64.")
        return products

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the function to a `.safetensors` file, for `mercer.load`."""
        save(self, path)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        return written(FIELDS, self)

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> RKHSFunction:
        """The object that `to_state` described."""
        found, sizes = read(FIELDS, meta, arrays, "function with its centres")
        names, rows, coef = found["names"], found["rows"], found["coef"]
        if names is not None and (len(names) != sizes.get("d") or len(set(names)) != len(names)):
            raise InputError(f"{len(names)} column names for {sizes.get('d', 'no')} columns.")
        centres = Points(rows.values, None if names is None else tuple(names))
        check_at(found["kernel"], centres)
        return cls(found["kernel"], centres, coef if found["torch"] else coef.numpy())

    def __reduce__(self) -> tuple[Any, ...]:
        centres = Points(_compact(self._centres.values), self._centres.names)
        weights = _compact(self._weights[:, 0] if self._single else self._weights)
        return RKHSFunction, (self._kernel, centres, weights if self._torch else weights.detach().cpu().numpy())

    def __repr__(self) -> str:
        parts = [f"{self.n_centres} centre{'s' * (self.n_centres > 1)}"]
        if self._centres.is_tensor:
            parts[0] += f" in R^{self._centres.values.shape[1]}"
        if not self._single:
            parts.append(f"{self.n_outputs} output{'s' * (self.n_outputs > 1)}")
        return f"RKHSFunction({', '.join(parts)}, kernel={self._kernel!r})"

    # Help

    @property
    def _ready_gram(self) -> bool:
        """Whether X is a Gram matrix, whose columns belong to the centres, instead of points."""
        return self._kernel.domain == "matrix"

    def _with(self, centres: Points, weights: Tensor, torch_out: bool | None = None) -> RKHSFunction:
        """A function of the same kernel."""
        weights = weights[:, 0] if self._single else weights
        keep = self._torch if torch_out is None else torch_out
        return RKHSFunction(self._kernel, centres, weights if keep else weights.detach().cpu().numpy())

    def _points(self, X: Any) -> Points:
        """X as points of the function's domain, under the function's column names."""
        points = self._kernel.points(X, "X")
        check_alike(self._centres, points)
        return Points(points.values, self._centres.names or points.names)

    def _check_space(self, g: Any) -> None:
        if not isinstance(g, RKHSFunction):
            raise InputTypeError(f"Expected an RKHSFunction, got {type(g).__name__}.")
        if self._kernel != g._kernel:
            raise InputError(f"The functions have different kernels, {self._kernel!r} and {g._kernel!r}.")
        if self._weights.shape[1] != g._weights.shape[1] or self._single != g._single:
            raise InputError(f"The functions have {self.n_outputs} and {g.n_outputs} outputs; both need the same.")
        check_alike(self._centres, g._centres)
        if self._ready_gram and not torch.equal(*promote(self._centres.values, g._centres.values)):
            raise InputError(
                "The functions have different Gram matrices; with Precomputed, both need the same one as X."
            )

    def _norm(self, kernel: Kernel | None = None) -> Tensor:
        if kernel is None or kernel == self._kernel:
            kernel = self._kernel
        else:
            n_features = self._centres.values.shape[1] if self._centres.is_tensor else None
            kernel = norm_kernel(self._kernel, kernel, n_features)
        squares = self._products(kernel, self)
        if bool((squares < 0).any()):
            self._check_rounding(kernel, squares)
        result: Tensor = sqrt(squares.clamp(min=0.0))
        return result

    def _check_rounding(self, kernel: Kernel, squares: Tensor) -> None:
        """An error where a squared norm is more negative than rounding explains."""
        section_norms = kernel.on(DiagonalPair(self._centres)).detach().abs().sqrt()
        largest = (self._weights.detach().abs().double().T @ section_norms.double()).square()
        if bool((squares < -ROUNDING * largest).any()):
            raise NotPositiveDefiniteError(
                f"{kernel!r} is not a kernel: the squared norm of f is {squares.min().item():.3g}."
            )

    def _distance(self, g: RKHSFunction) -> Tensor:
        self._check_space(g)
        return (self.simplify() - g.simplify()).simplify()._norm()

    def _values(self, values: Tensor, X: Any) -> Any:
        """One row for each row of X, as the kind of array that X is."""
        values = checked_values(values[:, 0] if self._single else values, "Values of the function")
        return restore(values.to(X.device) if isinstance(X, Tensor) else values, X)

    def _given(self, values: Tensor) -> Any:
        return values if self._torch else values.detach().cpu().numpy()

    def _number(self, values: Tensor, torch_out: bool) -> Any:
        """One number for each output."""
        if torch_out:
            values = values.to(self._weights.dtype)
            return values[0] if self._single else values
        return values.item() if self._single else values.detach().cpu().numpy()


def inner(f: RKHSFunction, g: RKHSFunction) -> Any:
    r"""The inner product :math:`\langle f, g \rangle = a^\top K(X, Z)\, b` of two functions of one kernel.

    >>> from mercer.kernels import Linear
    >>> inner(RKHSFunction(Linear(), [[2.0]], [1.0]), RKHSFunction(Linear(), [[3.0]], [1.0]))
    6.0
    """
    if not isinstance(f, RKHSFunction):
        raise InputTypeError(f"Expected an RKHSFunction, got {type(f).__name__}.")
    return f.inner(g)


def _weights(coef: Any, centres: Points) -> tuple[Tensor, bool]:
    """Coefficients as an (n, t) tensor beside the centres, and whether they came as a vector."""
    array = coef if isinstance(coef, Tensor) else np.asarray(coef)
    if array.ndim not in (1, 2):
        raise InputError(f"coef must have shape (n,) or (n, t), got shape {tuple(array.shape)}.")
    if len(array) != len(centres):
        raise InputError(f"coef has {len(array)} rows but X has {len(centres)}; each centre needs its coefficient.")
    single = array.ndim == 1
    weights = as_points(array.reshape(-1, 1) if single else array, "coef").owned().values
    return weights.to(centres.values.device) if centres.is_tensor else weights, single


def _compact(values: Any) -> Any:
    """The values without the rest of the storage they may be a view of, which a pickle would carry along."""
    return values.detach().clone() if isinstance(values, Tensor) else values
