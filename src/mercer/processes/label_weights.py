"""How much each observation counts in a prediction of a process."""

from __future__ import annotations

from torch import Tensor

from mercer.core.arrays import Points
from mercer.processes.exact_posterior import ExactPosterior
from mercer.solvers.decompose import pinv


def label_weights(posterior: ExactPosterior, X: Points) -> Tensor:
    r"""The weights w, (m, n), with which the mean at the points is w y, up to what the mean function has of its own,

    .. math:: w = k A^{-1} + (h - k A^{-1} H)\, (H^\top A^{-1} H)^{-1} H^\top A^{-1},

    for k = k(x, D) and the functions h of the mean whose coefficients are found from the data.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, sections 2.6 and 2.7.
    """
    cross = posterior.cross(X)
    direct = posterior.solve(cross.mT).mT
    mean = posterior.mean_function.mean
    here, rows = mean.basis(X), mean.basis(posterior.data.X)
    if here is None or rows is None:
        return direct
    H = rows.to(direct)
    solved = posterior.solve(H)
    return direct + (here.to(direct) - direct @ H) @ pinv(H.mT @ solved, "The normal matrix of the mean") @ solved.mT
