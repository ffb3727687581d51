"""The Matern profile of general order through SciPy's Bessel function, with derivatives of every order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special
import torch
from torch import Tensor

LARGE_ORDER = 50.0
"""From here on the Bessel function can overflow at ordinary arguments and Debye's expansion is exact to 1e-11."""


def matern_profile(u: Tensor, nu: float) -> Tensor:
    r"""Value of :math:`\frac{2^{1-\nu}}{\Gamma(\nu)} u^\nu K_\nu(u)` for :math:`u \ge 0`, differentiable in u."""
    result: Tensor = _PowerBessel.apply(u, float(nu), float(nu), float(nu))
    return result


class _PowerBessel(torch.autograd.Function):
    """c_nu u^a K_b(u) with c_nu = 2^(1-nu)/Gamma(nu).

    d/du [u^a K_b] = (a - b) u^(a-1) K_b - u^a K_(b-1): sums of the same kind, so any derivative follows.
    At zero the value is the limit of the profile, one for a = b = nu, and zero by convention otherwise.
    At infinity it is zero.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, a: float, b: float, nu: float) -> Tensor:
        ctx.save_for_backward(u)
        ctx.orders = a, b, nu
        x = u.detach().to("cpu", torch.float64).numpy()
        inside = np.where((x > 0) & (x < np.inf), x, 1.0)
        log_constant = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        value = np.exp(log_constant + a * np.log(inside) + _log_bessel_k(b, inside))
        at_zero = 1.0 if a == b == nu else 0.0
        edge = np.where(x == np.inf, 0.0, np.where(np.isnan(x), np.nan, at_zero))
        return torch.from_numpy(np.where((x > 0) & (x < np.inf), value, edge)).to(u)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (u,) = ctx.saved_tensors
        a, b, nu = ctx.orders
        slope = -_PowerBessel.apply(u, a, b - 1.0, nu)
        if a != b:
            slope = slope + (a - b) * _PowerBessel.apply(u, a - 1.0, b, nu)
        return grads[0] * slope, None, None, None


def _log_bessel_k(order: float, u: np.ndarray) -> np.ndarray:
    """The logarithm of K_order(u) for u > 0; its limits where SciPy's function overflows or gives up."""
    order = abs(order)
    if order >= LARGE_ORDER:
        return _debye(order, u)
    with np.errstate(divide="ignore", over="ignore"):
        value = np.log(scipy.special.kve(order, u)) - u
    near_zero = math.lgamma(order) + (order - 1.0) * math.log(2.0) - order * np.log(u) if order > 0 else value
    far = 0.5 * np.log(math.pi / (2.0 * u)) - u
    return np.asarray(np.where(np.isfinite(value), value, np.where(u < 1, near_zero, far)))


def _debye(order: float, u: np.ndarray) -> np.ndarray:
    """The logarithm of K by the expansion for large orders, uniform in u (Abramowitz and Stegun, 9.7.8)."""
    z = u / order
    root = np.hypot(1.0, z)
    t = 1.0 / root
    t2 = t * t
    series = 1.0 - (3 - 5 * t2) * t / (24 * order)
    series += (81 - 462 * t2 + 385 * t2**2) * t2 / (1152 * order**2)
    series -= (30375 - 369603 * t2 + 765765 * t2**2 - 425425 * t2**3) * t * t2 / (414720 * order**3)
    series += (
        (4465125 - 94121676 * t2 + 349922430 * t2**2 - 446185740 * t2**3 + 185910725 * t2**4)
        * t2**2
        / (39813120 * order**4)
    )
    eta = root + np.log(z / (1.0 + root))
    return 0.5 * np.log(math.pi * t / (2 * order)) - order * eta + np.log(series)
