"""The Matern profile of general order through SciPy's Bessel function, with its derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special
import torch
from torch import Tensor


def matern_profile(u: Tensor, nu: float) -> Tensor:
    r"""Value of :math:`\frac{2^{1-\nu}}{\Gamma(\nu)} u^\nu K_\nu(u)` for :math:`u \ge 0`, differentiable in u."""
    return _MaternProfile.apply(u, float(nu))


class _MaternProfile(torch.autograd.Function):
    """d/du [u^nu K_nu(u)] = -u^nu K_{nu-1}(u), which is again a Matern profile times a power of u."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, nu: float) -> Tensor:
        ctx.save_for_backward(u)
        ctx.nu = nu
        return _bessel_form(u, nu, nu, 1.0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (u,) = ctx.saved_tensors
        slope = -_bessel_form(u, ctx.nu, ctx.nu - 1.0, 0.0)
        return grads[0] * slope, None


def _bessel_form(u: Tensor, nu: float, order: float, at_zero: float) -> Tensor:
    """2^(1-nu)/Gamma(nu) u^nu K_order(u) in float64, through logarithms so that large nu does not overflow."""
    x = u.detach().to("cpu", torch.float64).numpy()
    safe = np.where(x > 0, x, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = scipy.special.kve(order, safe)
        log_constant = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        value = np.exp(log_constant + nu * np.log(safe) - safe + np.log(scaled))
    value = np.where((x > 0) & np.isfinite(value), value, at_zero)
    return torch.from_numpy(np.asarray(value)).to(u)
