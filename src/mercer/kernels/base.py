"""`Kernel`: a frozen, hashable, composable function k(x, z), written once as `of(pair)`."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp, as_points, promote, restore
from mercer.core.errors import InputError, InputTypeError, MercerError, NotTraceable
from mercer.formula.maths import sqrt
from mercer.formula.symbols import Program, Tape
from mercer.kernels.pair import DensePair, DiagonalPair, Pair, SymbolicPair
from mercer.kernels.parameters import AUTO, MEDIAN, Parameter
from mercer.kernels.properties import Properties
from mercer.kernels.spectral import NoSpectralMeasureError, SpectralMeasure

FoundScale = Callable[[str, tuple[Warp, ...], str], float | tuple[float, ...]]
"""What "auto" or "median" is for warped data in a metric."""


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A positive semi-definite function of two points, with algebra.

    A subclass is a frozen dataclass, which `mercer.kernels.register` makes it; its fields are its parameters, and its
    one method `of(pair)` is its formula: it asks the pair for a distance or an inner product and returns the value.

    `domain` says what the kernel is evaluated on: "vectors" (rows of a table), "objects" (anything, rows of a
    table included), "matrix" (rows of a ready Gram matrix) or "any" (it does not look at the points).

    A kernel of your own, whose formula also runs on fast back ends because it uses `mercer.formula.maths`:

    >>> from mercer.formula.maths import exp
    >>> from mercer.kernels import register
    >>> from mercer.kernels.parameters import length_scale
    >>> @register
    ... class Bump(Kernel):
    ...     length_scale: float = length_scale()
    ...
    ...     def of(self, pair):
    ...         return exp(-pair.squared_distance(self.length_scale))
    >>> 2.0 * Bump(0.5) + 1.0
    2.0 * Bump(length_scale=0.5) + Constant(constant_value=1.0)
    """

    domain: ClassVar[str] = "vectors"
    precedence: ClassVar[int] = 4
    __array_ufunc__ = None  # keeps np.ones(2) * kernel from becoming an array of kernels

    def of(self, pair: Pair) -> Any:
        """The kernel's value on a pair of points."""
        raise InputTypeError(f"{type(self).__name__} does not define of(pair), the formula of the kernel.")

    @property
    def properties(self) -> Properties:
        """What is known of the kernel: see `Properties`."""
        return Properties()

    def dimension(self, n_columns: int) -> float | None:
        """The dimension of the RKHS on rows of so many columns: a number, infinity, or None where it is not known.

        >>> from mercer.kernels import Gaussian, Polynomial
        >>> Polynomial(degree=2).dimension(3), Gaussian().dimension(3)
        (10, inf)
        """
        from mercer.kernels.explicit import dimension

        return dimension(self, n_columns)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """The Fourier transform of a shift-invariant kernel, from which random features are drawn."""
        known = "is not shift-invariant" if self.properties.stationary is False else "has no known spectral measure"
        raise NoSpectralMeasureError(
            f"{self!r} {known}, so it has no random Fourier features; Gaussian, Laplace, Matern and other kernels of "
            f"x - z have them."
        )

    def __post_init__(self) -> None:
        for f in fields(self):
            spec = f.metadata.get("parameter")
            if isinstance(spec, Parameter):
                value = spec.check(getattr(self, f.name), type(self).__name__, f.name)
                object.__setattr__(self, f.name, value)

    # Evaluation

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Gram matrix k(X, Z) of shape (n, m); k(X) is k(X, X) of one sample. Torch in, torch out; else numpy."""
        x = self.points(X, "X")
        z = None if Z is None else self.points(Z, "Z")
        torch_in = next((A for A in (X, Z) if isinstance(A, Tensor)), None)
        if z is not None:
            x, z = _matched(x, z, None if torch_in is None else torch_in.device)
        return restore(self.on(DensePair(x, z)), torch_in)

    def diag(self, X: Any) -> Any:
        """The diagonal k(x_i, x_i) of k(X), without the matrix."""
        return restore(self.on(DiagonalPair(self.points(X, "X"))), X)

    def distance(self, X: Any, Z: Any = None) -> Any:
        r"""Distances of the features of rows, :math:`\sqrt{k(x, x) - 2 k(x, z) + k(z, z)}`, of shape (n, m).

        Digits cancel where points are close: a distance below 1e-8 of the size of the features is rounding.

        >>> from mercer.kernels import Linear
        >>> Linear().distance([[0.0, 0.0]], [[3.0, 4.0]])
        array([[5.]])
        """
        torch_in = next((A for A in (X, Z) if isinstance(A, Tensor)), None)
        x = self.points(X, "X")
        z = None if Z is None else self.points(Z, "Z")
        if z is not None:
            x, z = _matched(x, z, None if torch_in is None else torch_in.device)
        left = self.on(DiagonalPair(x))
        right = left if z is None else self.on(DiagonalPair(z))
        squares = left.unsqueeze(1) + right - 2.0 * self.on(DensePair(x, z))
        if z is None:
            squares = squares.masked_fill(torch.eye(len(squares), dtype=torch.bool, device=squares.device), 0.0)
        return restore(sqrt(squares.clamp(min=0.0)), torch_in)

    def on(self, pair: DensePair | DiagonalPair) -> Tensor:
        """The formula on a pair as a full tensor, in the dtype and on the device of its rows."""
        value = self.of(pair)
        if not isinstance(value, Tensor):
            value = torch.tensor(float(value), dtype=torch.float64)
        if pair.x.is_tensor:
            value = value.to(pair.x.values)
        return value if value.shape == pair.shape else value.expand(pair.shape).clone()

    def points(self, X: Any, name: str = "X") -> Points:
        """X converted to what this kernel works on."""
        return as_points(X, name, objects=self.domain == "objects")

    def program(self, sample: Points) -> Program:
        """The formula as straight-line code for data like `sample`; raises NotTraceable where that is impossible."""
        if any(isinstance(value, Tensor) for value in self.get_params().values()):
            raise NotTraceable("parameters that are tensors cannot enter a program")
        tape = Tape()
        try:
            return tape.program(self.of(SymbolicPair(tape, sample)))
        except MercerError:
            raise
        except (TypeError, AttributeError) as error:
            raise NotTraceable(f"its formula uses what symbols do not have: {error}") from error

    # Algebra

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Sum

        if _is_zero(other):
            return self
        term = _as_term(other)
        return NotImplemented if term is None else Sum(self, term)

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Sum

        if _is_zero(other):
            return self  # so that sum(kernels) works
        term = _as_term(other)
        return NotImplemented if term is None else Sum(term, self)

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import FunctionScaled, Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, numbers.Real):
            return Scaled(self, cast(float, other))
        return FunctionScaled(self, other) if callable(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return self.__mul__(other)

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, exponent)

    # Parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also those of inner kernels, as `k1__length_scale`."""
        params: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            params[f.name] = value
            if deep and isinstance(value, Kernel):
                params.update({f"{f.name}__{key}": inner for key, inner in value.get_params().items()})
        return params

    def replace(self, **changes: Any) -> Kernel:
        """A new kernel with some parameters changed; inner ones by path: `replace(k1__length_scale=2.0)`."""
        own: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        names = {f.name for f in fields(self)}
        for path, value in changes.items():
            name, _, rest = path.partition("__")
            if name not in names:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(self.get_params())}."
                )
            if rest:
                inner.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name, parts in inner.items():
            child = own.get(name, getattr(self, name))
            if not isinstance(child, Kernel):
                raise InputError(f"{type(self).__name__}.{name} is not a kernel and has no parameters {sorted(parts)}.")
            own[name] = child.replace(**parts)
        return replace(self, **own)

    def tunable(self) -> dict[str, Any]:
        """Positive continuous parameters by path, the ones a tuner may move."""
        found: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            spec = f.metadata.get("parameter")
            if isinstance(value, Kernel):
                found.update({f"{f.name}__{path}": v for path, v in value.tunable().items()})
            elif isinstance(spec, Parameter) and spec.tunable and _is_positive(value):
                found[f.name] = value
        return found

    def rounded(self, digits: int = 4) -> Kernel:
        """The kernel with its tunable parameters cut to some digits, for people to read.

        >>> from mercer.kernels import Gaussian
        >>> Gaussian(0.19942082650699525).rounded()
        Gaussian(length_scale=0.1994)
        """
        return self.replace(**{path: _cut(value, digits) for path, value in self.tunable().items()})

    def children(self) -> Iterator[tuple[str, Kernel]]:
        """Inner kernels with the names of their fields."""
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Kernel):
                yield f.name, value

    def resolved(self, found: FoundScale, warps: tuple[Warp, ...] = ()) -> Kernel:
        """A copy in which every "auto" or "median" is what found(it, warps, metric) gives for its data."""
        changes: dict[str, Any] = {name: child.resolved(found, warps) for name, child in self.children()}
        scale = getattr(self, "length_scale", None)
        if isinstance(scale, str) and scale in (AUTO, MEDIAN):
            changes["length_scale"] = found(scale, warps, getattr(self, "metric", "l2"))
        return replace(self, **changes) if changes else self

    def bind(self, names: Sequence[str] | None) -> Kernel:
        """A copy that selects columns by position where this one uses names; `names` are those of the data.

        >>> from mercer.kernels import Gaussian, Subspace
        >>> Subspace(Gaussian(), "age").bind(["height", "age"])
        Subspace(kernel=Gaussian(length_scale=1.0), columns=(1,))
        """
        changes: dict[str, Any] = {name: child.bind(names) for name, child in self.children()}
        return replace(self, **changes) if changes else self

    def uncancelled(self) -> Kernel:
        """The kernel before anything was subtracted from it, to whose size rounding is relative: by default itself."""
        changes: dict[str, Any] = {name: child.uncancelled() for name, child in self.children()}
        return replace(self, **changes) if any(new is not getattr(self, k) for k, new in changes.items()) else self

    # Identity

    def _key(self) -> tuple[Any, ...]:
        values = (getattr(self, f.name) for f in fields(self))
        return (type(self), *(("tensor", id(v)) if isinstance(v, Tensor) else v for v in values))

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Kernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __sklearn_clone__(self) -> Kernel:
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={_text(getattr(self, f.name))}" for f in fields(self))
        return f"{type(self).__name__}({shown})"

    def within(self, precedence: int) -> str:
        """The repr, in parentheses where an operator of that precedence would bind tighter."""
        return f"({self!r})" if self.precedence <= precedence else repr(self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Properties, name):
            return getattr(self.properties, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def _text(value: Any) -> str:
    """A value as it can be written in Python: functions by their names, infinity as a call."""
    if callable(value) and not isinstance(value, Kernel):
        return getattr(value, "__name__", repr(value))
    return "float('inf')" if isinstance(value, float) and math.isinf(value) else repr(value)


def _is_positive(value: Any) -> bool:
    return not isinstance(value, str) and bool((torch.as_tensor(value, dtype=torch.float64) > 0).all())


def _is_zero(other: Any) -> bool:
    return isinstance(other, numbers.Real) and not isinstance(other, bool) and other == 0


def _as_term(other: Any) -> Kernel | None:
    from mercer.kernels.constant import Constant

    if isinstance(other, Kernel):
        return other
    return Constant(cast(float, other)) if isinstance(other, numbers.Real) else None


def _matched(x: Points, z: Points, device: torch.device | None) -> tuple[Points, Points]:
    """Two samples in one dtype on one device, or an error when their columns have different names."""
    if x.names is not None and z.names is not None and x.names != z.names:
        raise InputError(f"The columns of X are {list(x.names)} but those of Z are {list(z.names)}.")
    if not (x.is_tensor and z.is_tensor):
        return x, z
    a, b = promote(x.values if device is None else x.values.to(device), z.values)
    return Points(a, x.names), Points(b, z.names)


def _cut(value: Any, digits: int) -> Any:
    return tuple(_cut(v, digits) for v in value) if isinstance(value, tuple) else float(f"{value:.{digits}g}")
