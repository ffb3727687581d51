"""Ridge regression with a coefficient for every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mercer.core.memory import resolve_budget
from mercer.core.results import Solution
from mercer.estimators.data import TrainingData
from mercer.estimators.expansion import Centres, Expansion
from mercer.estimators.ridge_system import RidgeSystem
from mercer.kernels.objects import is_unproven
from mercer.operators import Stored
from mercer.selection import AlphaPath, loo_predictions, select_alpha
from mercer.solvers import Eigh, ridge_solve
from mercer.solvers.error_bound import Moments, far_words, row_bound, too_far
from mercer.solvers.ridge import ITERATIVE
from mercer.solvers.semidefinite import require_semidefinite
from mercer.solvers.system import near_one

if TYPE_CHECKING:
    from mercer.estimators.ridge_model import RidgeModel

EVALUATED_ONCE = 2**22
"""Bytes up to which iterations keep the Gram matrix: as large as one of the tiles that their products work on."""


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
    system, note = model._system(), ""
    if is_unproven(model.kernel_):
        system, note = _looked_at(model, system, solver)
    elif solver in ITERATIVE:
        system = _kept_where_small(model, system)
    path = loo = spectrum = None
    if isinstance(alpha, str):
        spectrum = Eigh().prepare(system.operator)
        some = system.data
        path = select_alpha(spectrum, some.targets, some.weights, alphas, alpha, model._budget())
        alpha = path.alpha
        loo = system.spread(loo_predictions(spectrum, some.targets, some.weights, alpha))
    if spectrum is not None and solver == "eigh":
        solution = spectrum.solve(system.rhs, alpha)
    else:
        solution = solve_rows(model, system, system.rhs, alpha, solver)
    solution = _judged(solution, system.data, model.tol if solver in ITERATIVE else 0.0)
    expansion = Centres(model.kernel_, data.rows, note)
    return RidgeFit(expansion, system.coefficients(solution.value), alpha, solution, path, loo)


def solve_rows(model: RidgeModel, system: RidgeSystem, rhs: Tensor, alpha: Any, solver: str) -> Solution:
    """Solve the full system with the options of the model."""
    options = model._options(solver, len(system.data.rows))
    if solver == "pcg" and model.dtype == "auto" and system.operator.dtype == torch.float32:
        options["accurate"] = model._system(torch.float64).operator
    return ridge_solve(system.operator, rhs, alpha, solver, **options)


def _judged(solution: Solution, data: TrainingData, tol: float) -> Solution:
    """A solution with a bound of its error at the rows; one that may be too far off has not converged."""
    if solution.missed is None:
        return solution
    targets, _ = near_one(data.targets)
    bound = row_bound(Moments.of(targets, data.weights), solution.missed)
    if not too_far(bound, tol):
        return replace(solution, error_bound=bound)
    words = "; ".join(filter(None, [solution.reason, far_words(bound)]))
    return replace(solution, error_bound=bound, converged=False, reason=words)


def _kept_where_small(model: RidgeModel, system: RidgeSystem) -> RidgeSystem:
    """The system with a matrix that is evaluated once, where it is no larger than a tile and fits the budget."""
    place, matrix = model._place(), 8 * len(system.data.rows) ** 2
    if matrix > EVALUATED_ONCE or 2 * matrix > resolve_budget(place.memory_budget, place.device):
        return system
    return replace(system, operator=Stored(system.operator.dense()))


def _looked_at(model: RidgeModel, system: RidgeSystem, solver: str) -> tuple[RidgeSystem, str]:
    """The system of a kernel that users bring, after a test that it is positive semi-definite, and what to say.

    The test evaluates the whole matrix. Solvers that would evaluate it again and again are given it, where there is
    room for another one.
    """
    place, n = model._place(), len(system.data.rows)
    budget, matrix = resolve_budget(place.memory_budget, place.device), 8 * n * n
    if matrix > budget:
        return system, "the kernel was not tested for positive semi-definiteness: its matrix does not fit"
    if solver in ITERATIVE and 2 * matrix <= budget:
        system = replace(system, operator=Stored(system.operator.dense(), system.operator.given))
    require_semidefinite(system.operator, model._seen.dtype)
    return system, ""
