"""Regressions on Z whose errors at each row come from the other rows, and the same for new noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Kernel, Laplace
from mercer.kernels.pair import DensePair
from mercer.operators import gram
from mercer.solvers.decompose import eigh
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.stats.dials import LEAVES, MOST_FEATURES, REGRESSED_LEFT_OUT, REGRESSED_WIDTHS, TREES, WIDTHS_OF_LEAVES
from mercer.stats.families import column_scales

RIDGES = np.logspace(-8, 0, 17)
"""Ridges over n."""


@dataclass(frozen=True, eq=False)
class RegressedOut:
    r"""Features less their kernel ridge regression on Z, at each row from the other rows: R = S C with

    .. math:: S = \operatorname{diag}(I - H)^{-1} (I - H), \qquad H = K_Z (K_Z + \alpha I)^{-1}.

    Attributes
    ----------
    errors : Tensor
        R (n, r).
    smoother : Tensor
        S, so that noise E in place of the features would have left S E.
    explained : float
        The share of the variance of the features that Z explains.
    """

    errors: Tensor
    smoother: Tensor
    explained: float

    @property
    def noise(self) -> Tensor:
        """The errors as noise of the right size: each row divided by what the smoother makes of one unit of it."""
        return self.errors / self.smoother.square().sum(1, keepdim=True).sqrt()


def features(kernel: Kernel, points: Points) -> Tensor:
    """At most 50 columns C whose products are nearly the Gram matrix, less their means."""
    if kernel.domain == "matrix":
        values, vectors = eigh(points.values.double().cpu())
        F = (vectors * values.clamp(min=0.0).sqrt())[:, -MOST_FEATURES:]
    else:
        operator = gram(kernel, points, dtype="float64")
        enough = REGRESSED_LEFT_OUT * float(torch.as_tensor(operator.diag()).sum())
        F = pivoted_cholesky(operator, min(len(points), MOST_FEATURES), how="greedy", enough=enough).F.cpu()
    return F - F.mean(0)


def regressed_out(C: Tensor, kernels: Iterator[Tensor]) -> RegressedOut:
    """The regression on one of the Gram matrices of Z, with one of the ridges, whose leave-one-out error is smallest.

    >>> z = torch.linspace(-1.0, 1.0, 30, dtype=torch.float64).unsqueeze(1)
    >>> regressed_out(z - z.mean(0), gram_matrices_of_z(Points(z), z)).explained > 0.99
    True
    """
    n, best = len(C), (float("inf"), torch.empty(0), torch.empty(0))
    for K in kernels:
        values, U = eigh(K, "The Gram matrix of Z")
        values, projected, squares = values.clamp(min=0.0), U.T @ C, U.square()
        for ridge in n * RIDGES:
            shrink = ridge / (values + ridge)
            errors = (U @ (shrink.unsqueeze(1) * projected)) / (squares @ shrink).unsqueeze(1)
            size = float(errors.square().sum())
            if size < best[0]:
                best = (size, U, shrink)
    size, U, shrink = best
    kept = (U * shrink) @ U.T
    smoother = kept / kept.diagonal().unsqueeze(1)
    total = float(C.square().sum())
    return RegressedOut(smoother @ C, smoother, 1.0 - size / total if total > 0 else 0.0)


def gram_matrices_of_z(points: Points, C: Tensor) -> Iterator[Tensor]:
    """Gaussian kernels for smooth dependence of C on Z, Laplace kernels for rough, and Gaussian kernels within the
    leaves of trees where C jumps.
    """
    z, median = _scaled(points)
    for width in REGRESSED_WIDTHS:
        yield Gaussian(width * median).on(DensePair(z)).double()
    for width in REGRESSED_WIDTHS:
        yield Laplace(width * median).on(DensePair(z)).double()
    together = same_leaf(z.values.numpy(), C.numpy())
    for width in WIDTHS_OF_LEAVES:
        yield Gaussian(width * median).on(DensePair(z)).double() * together


def same_leaf(z: np.ndarray, C: np.ndarray) -> Tensor:
    """The share of trees in which two rows lie in one leaf; each tree has seen some of the rows.

    >>> z = np.linspace(-1.0, 1.0, 40).reshape(-1, 1)
    >>> same = same_leaf(z, np.sign(z))
    >>> float(same[0, 1]), float(same[0, 39])
    (1.0, 0.0)
    """
    n, rng = len(z), np.random.default_rng(0)
    found = torch.zeros(n, n, dtype=torch.float64)
    for _ in range(TREES):
        rows = rng.permutation(n)[: 2 * n // 3]
        tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=max(5, n // 40), random_state=0)
        leaves = torch.from_numpy(tree.fit(z[rows], C[rows]).apply(z))
        found += (leaves.unsqueeze(1) == leaves) / TREES
    return found.clamp(max=1.0)


def near_in_z(points: Points) -> Tensor:
    """A kernel of rows that are close in Z, which sees what smooth regressions leave."""
    z, median = _scaled(points)
    return Laplace(median / 8).on(DensePair(z)).double()


def _scaled(points: Points) -> tuple[Points, float]:
    """The rows with each column in units of its deviation, and their median distance."""
    values = points.values.double().cpu() / column_scales(points.values)
    distances = torch.nn.functional.pdist(values)
    positive = distances[distances > 0]
    return Points(values), float(positive.median()) if len(positive) else 1.0
