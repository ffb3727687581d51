"""The functions kernel formulas are written with: on tensors they compute, on symbols they record."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.core.symbols import Symbol
from mercer.kernels.bessel import matern_profile


def exp(x: Any) -> Any:
    """Exponential."""
    return x.apply("exp") if isinstance(x, Symbol) else torch.exp(x)


def sqrt(x: Any) -> Any:
    """Square root whose derivative at zero is zero, so that coincident points have finite gradients."""
    if isinstance(x, Symbol):
        return x.apply("sqrt")
    if not x.requires_grad:
        return torch.sqrt(x)
    zero = x == 0
    return torch.sqrt(x.masked_fill(zero, 1.0)).masked_fill(zero, 0.0)


def power(x: Any, exponent: float | Tensor) -> Any:
    """A power of a non-negative number, with derivative zero at zero."""
    if isinstance(x, Symbol):
        return x.apply("pow", value=float(exponent))
    if not (x.requires_grad or isinstance(exponent, Tensor)):
        return torch.pow(x, exponent)
    zero = x == 0
    return torch.pow(x.masked_fill(zero, 1.0), exponent).masked_fill(zero, 0.0)


def minimum(x: Any, z: Any) -> Any:
    """The smaller of two values."""
    return x.apply("minimum", z) if isinstance(x, Symbol) else torch.minimum(x, z)


def matern(scaled: Any, nu: float) -> Any:
    """The Bessel form 2^(1-nu)/Gamma(nu) u^nu K_nu(u) of the Matern family at u, with value one at zero."""
    return scaled.apply("matern", value=float(nu)) if isinstance(scaled, Symbol) else matern_profile(scaled, nu)
