"""The functions kernel formulas are written with: on tensors they compute, on symbols they record."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.formula.operations import OPERATIONS
from mercer.formula.symbols import Symbol


def exp(x: Any) -> Any:
    """Exponential."""
    return apply("exp", x)


def sqrt(x: Any) -> Any:
    """Square root whose derivative at zero is zero, so that coincident points have finite gradients."""
    return apply("sqrt", x)


def power(x: Any, exponent: float | Tensor) -> Any:
    """A power of a non-negative number, with derivative zero at zero."""
    return apply("pow", x, literal=exponent)


def minimum(x: Any, z: Any) -> Any:
    """The smaller of two values; the second may be a number."""
    return apply("minimum", x, z)


def less(x: Any, z: Any) -> Any:
    """One where x < z, else zero."""
    return apply("less", x, z)


def where(chosen: Any, x: Any, z: Any) -> Any:
    """x where `chosen` is one, z where it is zero."""
    return apply("where", chosen, x, z)


def asin(x: Any) -> Any:
    """The arc sine, with derivative zero at one and minus one."""
    return apply("asin", x)


def angle(versine: Any) -> Any:
    """The angle t in [0, pi] of a versine h = 1 - cos t, accurate also where t is small; derivative zero at both ends.

    >>> import torch
    >>> angle(torch.tensor([0.0, 1.0, 2.0]))
    tensor([0.0000, 1.5708, 3.1416])
    """
    return apply("angle", versine)


def versine_sine(versine: Any) -> Any:
    """sin t of a versine h = 1 - cos t, accurate also where t is small; derivative zero at both ends.

    >>> import torch
    >>> versine_sine(torch.tensor([0.0, 1.0, 2.0]))
    tensor([0., 1., 0.])
    """
    return apply("versine_sine", versine)


def matern(scaled: Any, nu: float) -> Any:
    """The Bessel form 2^(1-nu)/Gamma(nu) u^nu K_nu(u) of the Matern family at u, with value one at zero."""
    return apply("matern", scaled, literal=nu)


def apply(op: str, x: Any, *others: Any, literal: Any = None) -> Any:
    """An operation of formulas by its name; `literal` is a number that the step carries, where it has one.

    >>> import torch
    >>> apply("sqrt", torch.tensor(4.0))
    tensor(2.)
    """
    if isinstance(x, Symbol):
        return x.apply(op, *others, value=None if literal is None else float(literal))
    return OPERATIONS[op].tensor(x, *others, *(() if literal is None else (literal,)))
