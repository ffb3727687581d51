"""The private side of estimators with any loss: data become a span and objectives, and minima become attributes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.core.results import SolverReport
from mercer.core.seeding import as_seed
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.base import KernelEstimator
from mercer.functions import RKHSFunction
from mercer.functions.basis import Centres
from mercer.kernels import Kernel, resolve
from mercer.kernels.objects import is_unproven
from mercer.kernels.overflow import check_kernel_values
from mercer.losses import LOSSES, Loss
from mercer.operators.placement import Placement
from mercer.selection import AlphaPath
from mercer.selection.loss_alpha import LeftOut, fold_numbers, left_out, loss_alphas, select_loss_alpha
from mercer.solvers.basis_blocks import blocks_of
from mercer.solvers.choose import choose_for_loss, landmark_count
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.landmarks import check_landmarks, choose_landmarks
from mercer.solvers.minimise import minimise
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Objective
from mercer.solvers.semidefinite import require_semidefinite
from mercer.solvers.system import SMALLEST_ALPHA

ROUGH = 1e-4
"""The tolerance of fits to folds that compare alphas in whole decades."""

ObjectivesOf = Callable[[Sample, float], list[Objective]]
"""The objectives of some rows for an alpha; their predictions side by side are the columns of the model."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows that have weight, where they are among all, and the functions that a fit searches."""

    data: Sample
    places: Tensor | None
    n_rows: int
    span: Any
    centres: Centres

    def spread(self, values: Tensor) -> Tensor:
        """Values of rows that have weight, with zeros for the others."""
        if self.places is None:
            return values
        full = values.new_zeros(self.n_rows, *values.shape[1:])
        full[self.places.to(values.device)] = values
        return full

    def coefficients(self, minima: list[Minimum]) -> Tensor:
        joined = torch.cat([found.value for found in minima], dim=1)
        return self.span.coefficients(joined) if isinstance(self.span, FewSpan) else self.spread(joined)

    def folds(self) -> Tensor:
        return fold_numbers(self.data.rows, self.data.targets)


class LossModel(KernelEstimator):
    """Parameters and fitted state of estimators that minimise losses, and what their methods share."""

    alpha: Any
    fit_intercept: bool
    solver: str
    device: Any
    dtype: Any
    memory_budget: Any
    random_state: Any
    tol: float
    max_iter: int | None
    n_landmarks: int | None
    landmarks: Any
    verbose: bool

    kernel_: Kernel
    alpha_: float
    alpha_path_: AlphaPath | None
    objective_: float
    solver_report_: SolverReport

    _seen: Seen
    _data: Sample | None  # None where the fit keeps no training rows
    _centres: Centres
    _coef: Tensor
    _intercept: Tensor
    _where: str
    _kinked: bool
    _seed: int

    def _fit(
        self,
        kernel: Kernel,
        whole: Sample,
        objectives_of: ObjectivesOf,
        *,
        scale: float = 1.0,
        criterion: Callable[[Objective, Tensor], float] | None = None,
        need_left_out: bool = False,
    ) -> tuple[Problem, list[Minimum], list[LeftOut] | None]:
        """Fit all columns; gives back predictions for rows left out where the fit had to make them anyway."""
        started = time.perf_counter()
        alpha = checked_loss_alpha(self.alpha)
        whole, problem, reason = self._begin(kernel, whole)
        options = self._options()
        path = out = None
        objectives = objectives_of(problem.data, 1.0 if isinstance(alpha, str) else alpha)
        for objective in objectives:
            objective.check_loss()
        if isinstance(alpha, str):
            kinked = not objectives[0].loss.smooth
            path, minima, out = select_loss_alpha(
                problem.span,
                objectives,
                problem.folds,
                options | {"callback": None, "tol": max(options["tol"], ROUGH) if kinked else options["tol"]},
                loss_alphas(problem.span, scale, coarse=kinked),
                criterion,
            )
            alpha = float(path.alpha[0])
            if kinked:
                pairs = zip(objectives_of(problem.data, alpha), minima, strict=True)
                minima, out = [minimise(problem.span, objective, rough, **options) for objective, rough in pairs], None
        else:
            minima = [minimise(problem.span, objective, **options) for objective in objectives]
        if need_left_out and out is None and self._where == "nystrom":  # later, there are no rows to do it with
            out = self._left_out(problem, minima, objectives_of(problem.data, alpha))
        self._data = None if self._where == "nystrom" else whole
        self.alpha_path_, self.alpha_ = path, alpha
        self._keep(problem, minima, objectives[0].loss, reason, time.perf_counter() - started)
        return problem, minima, out

    def _begin(self, kernel: Kernel, whole: Sample) -> tuple[Sample, Problem, str]:
        """The data as the model keeps them, the problem, and why it is solved where it is."""
        self._seen, self._seed = whole.seen, as_seed(self.random_state)
        m = check_landmarks(self.landmarks, self.n_landmarks)
        n, budget = whole.n_positive, self._budget_if_kept(whole.rows)
        self._where, reason = choose_for_loss(n, self.solver, budget, self._device(), m)
        if self._where != "nystrom":
            whole = replace(whole, rows=self._own(whole.rows))
        data, places = whole.positive()
        self.kernel_ = resolve(kernel.bind(data.rows.names), data.rows, data.weights, seed=self._seed)
        check_kernel_values(self.kernel_, whole.rows)
        return whole, self._problem(data, places, len(whole.rows), whole.rows), reason

    def _problem(self, data: Sample, places: Tensor | None, n_rows: int, all_rows: Points) -> Problem:
        place = self._place()
        if self._where == "nystrom":
            if self.kernel_.domain == "matrix":
                raise InputError("solver='nystrom' chooses landmarks among rows, which a precomputed kernel has not.")
            given, budget = check_landmarks(self.landmarks, self.n_landmarks), self.memory_budget
            most = len(data.rows) if isinstance(self.landmarks, str) else len(self.landmarks)
            m = landmark_count(most, given, "nystrom", budget, place.device)
            chosen = choose_landmarks(self.kernel_, data.rows, m, self.landmarks, self._seed, data.weights, budget)
            centres = Centres(self.kernel_, chosen.points, chosen.note)
            span: Any = FewSpan.of(blocks_of(centres, data, place), centres.penalty(place), self.memory_budget)
            return Problem(data, places, n_rows, span, centres)
        operator = place.gram(self.kernel_, data.rows)
        if is_unproven(self.kernel_):
            require_semidefinite(operator, self._seen.dtype)
        matrix = torch.as_tensor(operator.dense()) if self._where == "dense" else None
        stored = 0 if matrix is None else matrix.nbytes
        span = FullSpan.of(operator, matrix, self._seed, room=resolve_budget(self.memory_budget, place.device) - stored)
        return Problem(data, places, n_rows, span, Centres(self.kernel_, all_rows))

    def _left_out(self, problem: Problem, minima: list[Minimum], objectives: list[Objective]) -> list[LeftOut]:
        options = self._options() | {"callback": None}
        return [
            left_out(problem.span, objective, found, problem.folds, options)
            for objective, found in zip(objectives, minima, strict=True)
        ]

    def _keep(self, problem: Problem, minima: list[Minimum], loss: Loss, reason: str, seconds: float) -> None:
        worst = max(minima, key=lambda found: (not found.converged, found.residual))
        self.objective_ = sum(found.objective for found in minima)
        if not math.isfinite(self.objective_):
            raise InputError(f"The loss {loss.name!r} is {self.objective_} at the minimum found: it must be finite.")
        own = not worst.converged and type(loss) not in LOSSES.values()
        hint = "if the loss has kinks, derive it from mercer.losses.PiecewiseLinear" if own else ""
        words = "; ".join(filter(None, [reason, problem.centres.note, worst.reason, hint]))
        steps = sum(found.iterations for found in minima)
        self.solver_report_ = worst.report(reason=words, seconds=seconds, iterations=steps)
        if not worst.converged:
            warnings.warn(f"{type(self).__name__}: {self.solver_report_}", ConvergenceWarning, stacklevel=5)
        intercept = torch.cat([found.intercept for found in minima])
        self._restore_fit(problem.centres, problem.coefficients(minima), intercept)

    def _restore_fit(self, centres: Centres, coef: Tensor, intercept: Tensor) -> None:
        """The fitted attributes that a model file holds too."""
        seen = self._seen
        self.lambda_ = self.alpha_ / seen.total_weight
        self.n_iter_ = max(1, self.solver_report_.iterations)
        self._centres, self._coef, self._intercept = centres, coef, intercept
        self.dual_coef_ = self._given_back(coef)
        self.intercept_ = self._given_back(intercept.unsqueeze(0)).reshape(-1)
        if len(self.intercept_) == 1:
            self.intercept_ = float(self.intercept_[0])
        rows = centres.points.values
        self.X_fit_ = rows if seen.torch_in or not isinstance(rows, Tensor) else rows.numpy()

    def _given_back(self, values: Tensor) -> Any:
        """As the caller's kind of array, one-dimensional where the model has one column."""
        values = values.squeeze(1) if values.shape[1] == 1 else values
        return values.to(self._seen.device) if self._seen.torch_in else values.detach().cpu().numpy()

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function without its intercept, an element of the RKHS."""
        return RKHSFunction(self.kernel_, Points(self._centres.points.values), self.dual_coef_)

    @property
    def support_(self) -> np.ndarray:
        """The rows with a coefficient other than zero, for a loss with kinks and a coefficient for every row."""
        check_is_fitted(self)
        if not self._kinked:
            raise AttributeError("support_ is for losses with kinks: a smooth one has a coefficient for every row.")
        if self._where == "nystrom":
            raise AttributeError("support_: solver='nystrom' has coefficients for landmarks, the rows of X_fit_.")
        size = self._coef.abs()
        return (size > 1e-9 * size.max()).any(1).nonzero().squeeze(1).cpu().numpy()

    def _columns(self, rows: Points) -> Tensor:
        """Predictions (m, t) with the intercept."""
        operator = self._centres.at(rows, self._place())
        values = operator.matmul(self._coef.to(operator.device)).to(torch.float64)
        return checked_values(values + self._intercept.to(operator.device), "Predictions")

    def _options(self) -> dict[str, Any]:
        callback = _print_residual if self.verbose else None
        return {"tol": float(self.tol), "max_iter": self.max_iter, "callback": callback}

    def _place(self) -> Placement:
        if self.dtype == "auto":
            single = self._where == "pcg" and self._seen.dtype == torch.float32
            dtype = torch.float32 if single else torch.float64
        else:
            dtype = choose_dtype(self.dtype)
        return Placement(self._device(), dtype, self._budget())

    def _device(self) -> torch.device:
        seen = self._seen
        return choose_device(self.device, torch.empty(0, device=seen.device) if seen.torch_in else None)


def checked_loss_alpha(alpha: Any) -> float | str:
    """A number of at least `SMALLEST_ALPHA`, or "auto"."""
    if isinstance(alpha, str) and alpha == "auto":
        return alpha
    number = not isinstance(alpha, bool) and isinstance(alpha, int | float | np.integer | np.floating)
    if not number or not SMALLEST_ALPHA <= alpha < float("inf"):
        raise InputError(f'alpha={alpha!r}: give "auto", or a finite number that is at least {SMALLEST_ALPHA:.2g}.')
    return float(alpha)


def _print_residual(iteration: int, residual: float) -> None:
    print(f"step {iteration}: relative residual {residual:.2e}", flush=True)
