"""The functions kernel formulas are written with: on tensors they compute, on symbols they record."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.formula.operations import OPERATIONS
from mercer.formula.symbols import Symbol


def exp(x: Any) -> Any:
    """Exponential."""
    return _apply("exp", x)


def sqrt(x: Any) -> Any:
    """Square root whose derivative at zero is zero, so that coincident points have finite gradients."""
    return _apply("sqrt", x)


def power(x: Any, exponent: float | Tensor) -> Any:
    """A power of a non-negative number, with derivative zero at zero."""
    return _apply("pow", x, literal=exponent)


def minimum(x: Any, z: Any) -> Any:
    """The smaller of two values; the second may be a number."""
    return _apply("minimum", x, z)


def matern(scaled: Any, nu: float) -> Any:
    """The Bessel form 2^(1-nu)/Gamma(nu) u^nu K_nu(u) of the Matern family at u, with value one at zero."""
    return _apply("matern", scaled, literal=nu)


def _apply(op: str, x: Any, *others: Any, literal: Any = None) -> Any:
    if isinstance(x, Symbol):
        return x.apply(op, *others, value=None if literal is None else float(literal))
    return OPERATIONS[op].tensor(x, *others, *(() if literal is None else (literal,)))
