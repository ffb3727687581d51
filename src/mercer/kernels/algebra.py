"""Kernels made of kernels: sums, products, scalings and powers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer.core.errors import InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair, function_name
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties, of_power, of_product, of_scaled, of_sum
from mercer.kernels.registry import register
from mercer.kernels.spectral import SpectralMeasure


@dataclass(frozen=True, eq=False, repr=False)
class Binary(Kernel):
    """A kernel made of two."""

    k1: Kernel
    k2: Kernel

    def __post_init__(self) -> None:
        for name in ("k1", "k2"):
            need_kernel(getattr(self, name), type(self).__name__, name)
        object.__setattr__(self, "domain", joint_domain(self.k1, self.k2))


@register
class Sum(Binary):
    """The sum of two kernels, k1(x, z) + k2(x, z), written ``k1 + k2``.

    Its RKHS holds the sums of functions of both.

    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(length_scale=2.0) + Linear()
    Gaussian(length_scale=2.0) + Linear(bias=0.0)
    """

    precedence = 1

    def of(self, pair: Pair) -> Any:
        return self.k1.of(pair) + self.k2.of(pair)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        return self.k1.spectral_measure(n_columns) + self.k2.spectral_measure(n_columns)

    @property
    def properties(self) -> Properties:
        return of_sum(self.k1.properties, self.k2.properties)

    def __repr__(self) -> str:
        return f"{self.k1!r} + {self.k2.within(self.precedence)}"


@register
class Product(Binary):
    """The product of two kernels, k1(x, z) k2(x, z), written ``k1 * k2`` (Schur's theorem: again a kernel).

    >>> from mercer.kernels import Gaussian, Periodic
    >>> Gaussian(length_scale=9.0) * Periodic(period=12.0)
    Gaussian(length_scale=9.0) * Periodic(length_scale=1.0, period=12.0)
    """

    precedence = 2

    def of(self, pair: Pair) -> Any:
        return self.k1.of(pair) * self.k2.of(pair)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        return self.k1.spectral_measure(n_columns) * self.k2.spectral_measure(n_columns)

    @property
    def properties(self) -> Properties:
        return of_product(self.k1.properties, self.k2.properties)

    def __repr__(self) -> str:
        return f"{self.k1.within(self.precedence - 1)} * {self.k2.within(self.precedence)}"


@dataclass(frozen=True, eq=False, repr=False)
class Unary(Kernel):
    """A kernel made of one."""

    kernel: Kernel

    def __post_init__(self) -> None:
        need_kernel(self.kernel, type(self).__name__, "kernel")
        super().__post_init__()
        object.__setattr__(self, "domain", self.kernel.domain)


@register
class Scaled(Unary):
    """A positive multiple of a kernel, factor * k(x, z), written ``2.0 * k``.

    >>> from mercer.kernels import Gaussian
    >>> (2.0 * Gaussian()).diag([[0.0], [5.0]])
    array([2., 2.])
    """

    factor: float = parameter(1.0)
    precedence = 2

    def of(self, pair: Pair) -> Any:
        return self.factor * self.kernel.of(pair)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        return float(self.factor) * self.kernel.spectral_measure(n_columns)

    @property
    def properties(self) -> Properties:
        return of_scaled(self.kernel.properties, self.factor)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {self.kernel.within(self.precedence)}"


@dataclass(frozen=True, eq=False, repr=False)
class FunctionScaled(Unary):
    """A kernel scaled by a function of each point, f(x) k(x, z) f(z), written ``f * k``.

    `function` maps rows of shape (n, d) to n numbers.

    >>> from mercer.kernels import Constant
    >>> k = (lambda X: X[:, 0]) * Constant(1.0)
    >>> k([[2.0], [3.0]])
    array([[4., 6.],
           [6., 9.]])
    """

    function: Callable[..., Any]
    precedence = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        need_function(self.function, "FunctionScaled", "function")
        if self.kernel.domain == "matrix":
            raise InputTypeError(
                f"{self.kernel!r} reads a precomputed Gram matrix; a function of points cannot scale it."
            )

    def of(self, pair: Pair) -> Any:
        left, right = pair.ends(self.function)
        return left * self.kernel.of(pair) * right

    @property
    def properties(self) -> Properties:
        return Properties()

    def __repr__(self) -> str:
        return f"{function_name(self.function)} * {self.kernel.within(self.precedence)}"


@register
class Power(Unary):
    """A positive integer power of a kernel, k(x, z)^p, written ``k ** 3``.

    >>> from mercer.kernels import Linear
    >>> Linear() ** 3
    Linear(bias=0.0) ** 3
    """

    exponent: int = parameter(1, integer=True, tunable=False)
    precedence = 3

    def of(self, pair: Pair) -> Any:
        return self.kernel.of(pair) ** self.exponent

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        return self.kernel.spectral_measure(n_columns) ** self.exponent

    @property
    def properties(self) -> Properties:
        return of_power(self.kernel.properties, self.exponent)

    def __repr__(self) -> str:
        return f"{self.kernel.within(self.precedence)} ** {self.exponent}"


def joint_domain(*kernels: Kernel) -> str:
    """The domain on which all the kernels can be evaluated; a Gram matrix and points do not mix."""
    domains = {k.domain for k in kernels} - {"any"}
    if "matrix" in domains and len(domains) > 1:
        raise InputTypeError(
            f"{' and '.join(map(repr, kernels))} cannot be combined: one reads a precomputed Gram matrix, the other "
            "points."
        )
    return "objects" if "objects" in domains else domains.pop() if domains else "any"


def need_kernel(value: Any, owner: str, name: str) -> None:
    """Raise an error unless `value` is a kernel."""
    if not isinstance(value, Kernel):
        raise InputTypeError(f"{owner}({name}={value!r}): {name} must be a kernel.")


def need_function(value: Any, owner: str, name: str) -> None:
    """Raise an error unless `value` is a function that can be part of a hashable kernel."""
    if not callable(value):
        raise InputTypeError(f"{owner}({name}={value!r}): {name} must be a function.")
    if getattr(value, "__hash__", None) is None:
        raise InputTypeError(f"{owner}({name}={value!r}): {name} must be hashable; use a function or a frozen class.")
