"""Mean embeddings of normal distributions in the RKHS of a Gaussian kernel, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.pair import as_scale
from mercer.solvers.decompose import eigvalsh
from mercer.solvers.factor import factorise


@dataclass(frozen=True, eq=False)
class GaussianMeasure:
    r"""The distribution N(m, S), whose embedding with a Gaussian kernel of width l is

    .. math:: \mu(x) = |I + S/l^2|^{-1/2} \exp\left(-\tfrac12 (x - m)^\top (l^2 I + S)^{-1} (x - m)\right).

    >>> measure = GaussianMeasure.of((np.zeros(1), np.eye(1)))
    >>> round(float(measure.values(Gaussian(1.0), torch.zeros(1, 1).double())[0]), 4)
    0.7071
    """

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, distribution: Any) -> GaussianMeasure:
        """From a pair (mean, covariance), or a normal distribution of torch or SciPy."""
        mean, covariance = _moments(distribution)
        m = torch.as_tensor(np.asarray(mean, dtype=np.float64)).reshape(-1)
        S = torch.as_tensor(np.asarray(covariance, dtype=np.float64))
        S = torch.diag(S) if S.ndim == 1 and len(S) == len(m) else S.reshape(len(m), len(m))
        smallest = float(eigvalsh(0.5 * (S + S.T), "The covariance")[0])
        if smallest < -1e-10 * float(S.abs().max()):
            raise InputError(f"The covariance must be positive semi-definite; its smallest eigenvalue is {smallest:g}.")
        return cls(m, 0.5 * (S + S.T))

    def values(self, kernel: Kernel, x: Tensor) -> Tensor:
        """The embedding at some rows."""
        return self._bell(kernel, x.double() - self.mean, self.covariance)

    def inner(self, kernel: Kernel, other: GaussianMeasure) -> float:
        """The inner product of the embeddings of two normal distributions."""
        difference = (self.mean - other.mean).unsqueeze(0)
        return float(self._bell(kernel, difference, self.covariance + other.covariance)[0])

    def _bell(self, kernel: Kernel, difference: Tensor, S: Tensor) -> Tensor:
        if not isinstance(kernel, Gaussian):
            raise InputError(f"kernel={kernel!r}: embeddings of normal distributions are known for Gaussian kernels.")
        if difference.shape[1] != len(self.mean):
            raise InputError(f"The distribution has {len(self.mean)} columns but the other side {difference.shape[1]}.")
        scale = as_scale(kernel.length_scale, difference)
        scale = scale if isinstance(scale, Tensor) else torch.full_like(self.mean, scale)
        factor = factorise(lambda: torch.eye(len(scale), dtype=torch.float64) + S / torch.outer(scale, scale))
        z = factor.half_solve((difference / scale).T)
        return torch.exp(-0.5 * z.square().sum(0) - 0.5 * factor.log_det())


def _moments(distribution: Any) -> tuple[Any, Any]:
    if isinstance(distribution, tuple) and len(distribution) == 2:
        return distribution
    if isinstance(distribution, torch.distributions.MultivariateNormal):
        return distribution.loc.numpy(), distribution.covariance_matrix.numpy()
    if isinstance(distribution, torch.distributions.Normal):
        return distribution.loc.reshape(-1).numpy(), distribution.variance.reshape(-1).numpy()
    name = type(distribution).__name__
    if name == "multivariate_normal_frozen":
        return distribution.mean, distribution.cov
    if getattr(getattr(distribution, "dist", None), "name", "") == "norm":
        return [float(distribution.mean())], [[float(distribution.var())]]
    raise InputTypeError(
        f"No closed form is known for {name}: give (mean, covariance), a normal distribution of torch.distributions or "
        "scipy.stats, or embed a sample with MeanEmbedding(kernel).fit(X)."
    )
