"""Joint samples of a Gaussian process at some points."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.errors import InputTypeError, NotPositiveDefiniteError
from mercer.core.memory import require, resolve_budget
from mercer.processes.dials import NEGATIVE_VARIANCE
from mercer.solvers.decompose import eigh
from mercer.solvers.factor import factorise


def joint_samples(mean: Tensor, cov: Tensor, count: int, seed: int, prior: Tensor) -> Tensor:
    r"""Samples :math:`\mu + L z` with :math:`L L^T` the covariance and normal z, of shape (m, t, count).

    `mean` is (m, t); the t targets are independent and share `cov`. A covariance that is singular to rounding is given
    a jitter of at least 1e-10 of its diagonal. `prior` are the variances before any data, (m,): differences of numbers
    of their size may leave negative eigenvalues, which count as zero.

    >>> samples = joint_samples(torch.zeros(2, 1).double(), torch.ones(2, 2).double(), 1000, 0, torch.ones(2))
    >>> bool((samples[0] - samples[1]).abs().max() < 1e-3)
    True
    """
    if cov.requires_grad:
        raise InputTypeError("X requires grad, but joint samples have no gradient: pass X.detach().")
    m, t = mean.shape
    require(16 * m * t * count, resolve_budget(device=cov.device), f"{count:,} samples at {m:,} rows")
    z = torch.randn(m, t * count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(cov.device)
    diagonal = cov.diagonal()
    if not float(diagonal.max()) > 0:
        return mean.unsqueeze(-1).repeat(1, 1, count)
    size = diagonal.clamp(min=1e-10 * float(diagonal.max()))
    try:
        root = factorise(cov.clone, size).L
    except NotPositiveDefiniteError:
        values, root = eigh(cov)
        if float(values[0]) < -NEGATIVE_VARIANCE * m * max(float(prior.max()), float(diagonal.max())):
            raise
        root = root * values.clamp(min=0.0).sqrt()
    return mean.unsqueeze(-1) + (root @ z).reshape(m, t, count).to(mean)
