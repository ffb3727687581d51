"""What the regressor and the classifier of recursive feature machines share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.rules import Reader, Rule, Rules, is_finite, is_number, one_of, whole
from mercer.data.given import Alpha, Axes, Budget, Device, Landmarks, Precision, Rows, Seed
from mercer.data.rows import RowSource
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.samples import check_features, checked_rows
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.rfm.fit import RFMFit
from mercer.estimators.rfm.report import account_of, column_names, machine_report
from mercer.estimators.rfm.settings import MATRICES, candidates
from mercer.estimators.rfm.state import MACHINE
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike
from mercer.plots.features import column_weights, gradient_matrix, rounds_path
from mercer.solvers.registry import RIDGE_SOLVERS, SolverLike


class FeatureMachine(ScoreMixin, KernelEstimator):
    """A recursive feature machine: parameters, attributes and pictures."""

    saved = MACHINE
    own_rules: ClassVar[Rules] = {
        "alpha": Rule(
            lambda value: isinstance(value, str) or is_number(value),
            lambda value: value == "auto" if isinstance(value, str) else is_finite(value) and value > 0,
            '"auto" or a finite number > 0',
        ),
        "kernel": Reader(candidates),
        "matrix": one_of(*MATRICES),
        "max_iter": whole(1, 1000),
        "n_folds": whole(2),
        "solver": solver_rule(RIDGE_SOLVERS),
    }
    kernel_: Kernel
    _fit: RFMFit

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        alpha: Alpha = "auto",
        matrix: str = "auto",
        max_iter: int = 6,
        n_folds: int = 5,
        n_learn: int = 4000,
        solver: SolverLike = "auto",
        n_landmarks: int | None = None,
        landmarks: Landmarks = "uniform",
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.matrix = matrix
        self.max_iter = max_iter
        self.n_folds = n_folds
        self.n_learn = n_learn
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return machine_report(self._fit, self._names())

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the importances of the columns, the largest first."""
        check_is_fitted(self)
        return column_weights(self._names(), self.feature_importances_, ax=ax)

    def plot_agop(self, ax: Axes | None = None) -> Any:
        """Draw M as an image; its diagonal where only that was learned."""
        check_is_fitted(self)
        agop = np.asarray(self.agop_)
        return gradient_matrix(self._names(), np.diag(agop) if agop.ndim == 1 else agop, ax=ax)

    def plot_rounds(self, ax: Axes | None = None) -> Any:
        """Draw the cross-fitted error by the number of rounds, for each machine compared on all folds."""
        check_is_fitted(self)
        if not self._fit.paths:
            raise InputError("plot_rounds() has nothing to draw: there were too few rows to compare machines.")
        named = {machine.words: errors for machine, errors in self._fit.paths}
        return rounds_path(named, self._fit.choice.n_rounds, ax=ax)

    def _names(self) -> list[str]:
        return column_names(getattr(self, "feature_names_in_", None), self.n_features_in_)

    def _values(self, X: Rows) -> Tensor:
        """The fitted functions at rows, (m, t)."""
        check_is_fitted(self)
        rows = checked_rows(self, self.kernel_, X)
        values = self._fit.values(rows)
        return checked_values(values.to(rows.values.dtype) if rows.is_tensor else values, "Predictions")

    def _source_values(self, source: RowSource) -> Tensor:
        check_is_fitted(self)
        check_features(self, source)
        if len(source) == 0:
            raise InputError("The source has no rows to predict at.")
        return self._fit.values_of(source)

    def _remember(self, fit: RFMFit, *, warn: bool = True) -> None:
        """Make a fit the state of the estimator."""
        machine = fit.machine
        if warn:
            warn_if_not_converged(type(self).__name__, machine.solver_report_)
        self._fit, self.kernel_, self.solver_report_ = fit, machine.kernel_, machine.solver_report_
        self.alpha_, self.n_iter_ = fit.choice.ridge, max(1, fit.choice.n_rounds)
        self.agop_, self.feature_importances_ = (self._given(part) for part in (fit.lens.matrix, fit.importances))

    def _given(self, values: Tensor) -> Any:
        like = torch.empty(0) if self._fit.seen.torch_in else None
        return restore(values, like)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """With what the report says of rows that the file does not have."""
        check_is_fitted(self)
        return self.saved.state(self, replace(self._fit, told=account_of(self._fit, self._names())))
