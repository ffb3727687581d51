"""Norms in another kernel's space: which functions belong to it, and the closed form of their norm."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Kernel, Scaled


def norm_kernel(source: Kernel, target: Kernel, n_features: int | None) -> Kernel:
    r"""The kernel e of the norm that functions of the source kernel k have in the space of the target kernel q,

    .. math:: \Big\|\sum_i c_i\, k(x_i, \cdot)\Big\|_q^2 = \sum_{ij} c_i c_j\, e(x_i, x_j).

    Its Fourier transform is :math:`\hat k^2 / \hat q`. For Gaussians of widths s (source) and l (target) that is, in
    each coordinate,

    .. math:: e = \frac{s^2}{l \tau} \exp\left(-\frac{r^2}{2\tau^2}\right), \qquad \tau^2 = 2 s^2 - l^2.

    It exists for :math:`l < \sqrt 2\, s`. For l <= s the whole space of k lies in that of q, with
    :math:`\|f\|_q \le (s / l)^{d/2} \|f\|_k`. Multiples of one kernel and multiples of Gaussians are known here.

    References: Steinwart and Christmann, *Support Vector Machines*, 2008, section 4.4.

    >>> norm_kernel(Gaussian(length_scale=5.0), Gaussian(length_scale=1.0), n_features=1)
    3.571428571428571 * Gaussian(length_scale=7.0)
    """
    if not isinstance(target, Kernel):
        raise InputTypeError(f"kernel={target!r}: must be a kernel, in whose space the norm is taken.")
    a, k = _without_factor(source)
    b, q = _without_factor(target)
    if k == q:
        return Scaled(k, a**2 / b)
    if not (isinstance(k, Gaussian) and isinstance(q, Gaussian)) or n_features is None:
        raise InputError(
            f"The norm of a function of {source!r} in the space of {target!r} is not known. It is known for Gaussian "
            f"kernels and for multiples of one kernel."
        )
    s, l = _widths(k, n_features), _widths(q, n_features)
    tau2 = 2 * s**2 - l**2
    if bool((tau2 <= 0).any()):
        raise InputError(
            f"The function is not in the space of {target!r}: that kernel is wider than sqrt(2) times {source!r}, "
            "and its space has smoother functions only. Choose a narrower kernel."
        )
    tau = tau2.sqrt()
    factor = float(torch.exp((2 * s.log() - l.log() - tau.log()).sum())) * a**2 / b
    if not 0 < factor < float("inf"):
        raise InputError(f"The norm in the space of {target!r} overflows: it is too narrow for {n_features} columns.")
    return Scaled(Gaussian(length_scale=tau[0].item() if len(set(tau.tolist())) == 1 else tuple(tau.tolist())), factor)


def _without_factor(kernel: Kernel) -> tuple[float, Kernel]:
    """(a, k) with kernel = a k, where k is no multiple."""
    factor = 1.0
    while isinstance(kernel, Scaled):
        factor, kernel = factor * float(kernel.factor), kernel.kernel
    return factor, kernel


def _widths(kernel: Gaussian, n_features: int) -> Tensor:
    """The length scale of each column, in float64."""
    widths = kernel.length_scale
    if isinstance(widths, str):
        raise InputError(f"{kernel!r}: its length_scale must be a number or one per column for a norm.")
    widths = torch.as_tensor(widths, dtype=torch.float64).detach()
    if widths.ndim == 1 and len(widths) != n_features:
        raise InputError(f"{kernel!r} has {len(widths)} length scales but the function has {n_features} columns.")
    return widths.expand(n_features)
