"""Ridge regression with a coefficient for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mercer.core.results import Solution
from mercer.estimators.data import TrainingData
from mercer.estimators.expansion import Centres, Expansion
from mercer.kernels.objects import is_unproven
from mercer.selection import AlphaPath, loo_predictions, select_alpha
from mercer.solvers import Eigh, ridge_solve
from mercer.solvers.semidefinite import require_semidefinite

if TYPE_CHECKING:
    from mercer.estimators.ridge_model import RidgeModel


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A fitted sum: coefficients (m, t) of an expansion, with alpha and how they were found.

    `loo` are leave-one-out predictions where the fit needed them, `sums` what further rows can be added to.
    """

    expansion: Expansion
    coef: Tensor
    alpha: float | Tensor
    solution: Solution
    path: AlphaPath | None = None
    loo: Tensor | None = None
    sums: Any = None


def fit_rows(model: RidgeModel, data: TrainingData, alpha: Any, alphas: Tensor | None, solver: str) -> RidgeFit:
    """Solve the full system over `data`, all rows; those without weight get the coefficient zero."""
    system = model._system()
    if is_unproven(model.kernel_):
        require_semidefinite(system.operator)
    path = loo = spectrum = None
    if isinstance(alpha, str):
        spectrum = Eigh().prepare(system.operator)
        some = system.data
        path = select_alpha(spectrum, some.targets, some.weights, alphas, criterion=alpha)
        alpha = path.alpha
        loo = system.spread(loo_predictions(spectrum, some.targets, some.weights, alpha))
    if spectrum is not None and solver == "eigh":
        solution = spectrum.solve(system.rhs, alpha)
    else:
        options = model._options(solver, len(system.data.rows))
        if solver == "pcg" and model.dtype == "auto" and system.operator.dtype == torch.float32:
            options["accurate"] = model._system(torch.float64).operator
        solution = ridge_solve(system.operator, system.rhs, alpha, solver, **options)
    expansion = Centres(model.kernel_, data.rows)
    return RidgeFit(expansion, system.coefficients(solution.value), alpha, solution, path, loo)
