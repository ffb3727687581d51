"""Posterior functions: prior functions that are moved to go through the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.errors import InputError
from mercer.processes.dials import FEATURE_TILE
from mercer.processes.means import FittedMean
from mercer.processes.posterior import Posterior
from mercer.processes.prior_functions import PriorFunctions


class Functions:
    """Functions drawn from a Gaussian process: ``f(X)`` gives their values at the rows of X, of shape (count, m).

    They are the same functions at every call. For a torch tensor that requires gradients these flow through.
    Points are taken in parts, so that the cost grows linearly with their number.
    """

    def __init__(self, count: int, as_rows: Callable[[Any], Points], values: Callable[[Points], Tensor]) -> None:
        self.count, self._as_rows, self._values = count, as_rows, values

    def __call__(self, X: Any) -> Any:
        """Values (count, m), or (count, m, t) for several targets."""
        rows = self._as_rows(X)
        values = self._values(rows)
        values = values.to(rows.values.dtype) if rows.is_tensor else values
        checked_values(values.transpose(0, 1), "Values of the functions")
        return restore(values, X)

    def __len__(self) -> int:
        return self.count


class PosteriorFunctions:
    r"""Functions of the posterior by Matheron's rule,

    .. math:: f(x) = m(x) + g(x) + k(x, D)\, A^{-1} (y - m_D - g_D - \varepsilon),

    with g drawn from the prior and :math:`\varepsilon` from the noise. The update is exact; g consists of random
    features.

    References: Wilson, Borovitskiy, Terenin, Mostowsky and Deisenroth, *Efficiently sampling functions from Gaussian
    process posteriors*, 2020.
    """

    def __init__(self, posterior: Posterior, prior: PriorFunctions, seed: int) -> None:
        self.posterior, self.prior = posterior, prior
        t = posterior.data.n_targets
        drawn = torch.cat([prior(part) for part in in_parts(posterior.centres, prior)])
        normal = torch.randn(drawn.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        self.count = drawn.shape[1] // t
        update = posterior.update(drawn.to(posterior.data.Y), normal).to(posterior.weights)
        self.weights = posterior.weights.repeat(1, self.count) - update  # columns: sample by sample, target by target

    def __call__(self, X: Points) -> Tensor:
        """Values (count, m, t) of shape (m, count * t) as columns."""
        posterior = self.posterior
        parts = [self._part(part) for part in in_parts(X, self.prior)]
        values = torch.cat(parts).reshape(len(X), self.count, -1)
        return (values + posterior.mean_function(X).to(values).unsqueeze(1)).movedim(1, 0)

    def _part(self, X: Points) -> Tensor:
        posterior, drawn = self.posterior, self.prior(X)
        if posterior.differentiable(X):
            return drawn + posterior.cross(X).to(drawn) @ self.weights.to(drawn)
        place = posterior.place
        product = place.gram(posterior.kernel, X, posterior.centres).matmul(self.weights.to(place.device))
        return drawn + product.to(drawn)


def prior_values(prior: PriorFunctions, mean: FittedMean, X: Points, n_targets: int) -> Tensor:
    """Values (count, m, t) of functions of the prior."""
    values = torch.cat([prior(part) for part in in_parts(X, prior)])
    values = values.reshape(len(X), -1, n_targets)
    return (values + mean(X).to(values).unsqueeze(1)).movedim(1, 0)


def in_parts(X: Points, prior: PriorFunctions) -> list[Points]:
    """X in parts whose features are not too many."""
    if len(X) == 0:
        raise InputError("X has no rows: functions need at least one point.")
    size = max(1, FEATURE_TILE // (8 * len(prior.weights)))
    return [X.take(slice(start, start + size)) for start in range(0, len(X), size)]
