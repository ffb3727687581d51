"""A fit with any loss: the functions, and how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.results import SolverReport
from mercer.data.sample import Sample, Seen
from mercer.estimators.by_loss.plan import LossPlan
from mercer.estimators.dials import ZERO
from mercer.estimators.ridge.fit import RidgeFit
from mercer.functions.sums import KernelSum
from mercer.selection import AlphaPath, Tuned
from mercer.selection.calibration import Calibration
from mercer.selection.left_out import LeftOutPredictions
from mercer.selection.loss_alpha import LeftOut


@dataclass(eq=False)
class Later:
    """What is found when it is first asked for: the calibration, and decisions of each problem for rows left out."""

    value: Calibration | None = None
    out: list[LeftOut] | None = None


@dataclass(frozen=True, eq=False)
class LossFit:
    """What a fit knows.

    Attributes
    ----------
    plan : LossPlan
        What was done; its kernel has every parameter found.
    seen : Seen
        What is remembered of the rows.
    function, intercept : KernelSum and Tensor
        The fitted functions, side by side, and what is added to each.
    alpha : float
        The one given or chosen.
    objective : float
        The least value found, summed over separate problems.
    report : SolverReport
        How it was found.
    path : AlphaPath or None
        How alpha was chosen, or None.
    sample : Sample or None
        All rows, where each has a coefficient; else None.
    crossings : int
        Rows at which quantiles crossed.
    calibration : Later
        Probabilities of decisions, for losses that have none of their own.
    order : Tensor or None
        Ranks of the rows in time, where they were given.
    left_out : LeftOutPredictions or None
        Predictions for rows by fits that have not seen them, once they were asked for.
    tuning : Tuned or None
        How the kernel's parameters were found, or None.
    out : list[LeftOut] or None
        The same of each problem for rows with weight, where choosing alpha found them.
    running : RidgeFit or None
        For the squared loss on landmarks the ridge regression that it is, whose sums further rows can join.
    """

    plan: LossPlan
    seen: Seen
    function: KernelSum
    intercept: Tensor
    alpha: float
    objective: float
    report: SolverReport
    path: AlphaPath | None = None
    sample: Sample | None = None
    crossings: int = 0
    calibration: Later = field(default_factory=Later)
    order: Tensor | None = None
    left_out: LeftOutPredictions | None = None
    tuning: Tuned | None = None
    out: list[LeftOut] | None = None
    running: RidgeFit | None = None

    def values(self, rows: Points) -> Tensor:
        """The fitted functions at the rows with their intercepts, (m, t), in float64."""
        accurate = self.plan.settings.dtype == "auto"
        values = self.function.values(rows, self.plan.place, accurate=accurate).to(torch.float64)
        return checked_values(values + self.intercept.to(values.device), "Predictions")

    def to_send(self) -> LossFit:
        """What predictions need, for other machines."""
        alone = Later(self.calibration.value)
        return replace(self, sample=None, order=None, left_out=None, out=None, running=None, calibration=alone)

    def predictions(self, rows: Points) -> Tensor:
        """The values of a regression, (m,), or (m, t) for a list of quantiles: in ascending order at every row."""
        return self.predictions_of(self.values(rows))

    def predictions_of(self, values: Tensor) -> Tensor:
        """Predictions of a regression from the fitted functions."""
        return values.sort(dim=1).values if self.plan.settings.in_columns else values[:, 0]

    @property
    def support(self) -> np.ndarray:
        """The rows with a coefficient other than zero, for a loss with kinks and a coefficient for every row."""
        if not self.plan.settings.kinked:
            raise AttributeError("support_ is for losses with kinks: a smooth one has a coefficient for every row.")
        if not self.plan.keeps_rows:
            raise AttributeError("support_: solver='nystrom' has coefficients for landmarks, the rows of X_fit_.")
        size = self.function.coef.abs()
        return (size > ZERO * size.max()).any(1).nonzero().squeeze(1).cpu().numpy()

    def attributes(self) -> dict[str, Any]:
        """What users see of it, by name."""
        intercept = self._given_back(self.intercept.unsqueeze(0)).reshape(-1)
        return {
            "kernel_": self.plan.kernel,
            "alpha_": self.alpha,
            "lambda_": self.alpha / self.seen.total_weight,
            "alpha_path_": self.path,
            "tuning_": self.tuning,
            "dual_coef_": self._given_back(self.function.coef),
            "intercept_": float(intercept[0]) if len(intercept) == 1 else intercept,
            "X_fit_": self.seen.rows_given_back(self.function.centres),
            "objective_": self.objective,
            "solver_report_": self.report,
            "n_iter_": max(1, self.report.iterations),
        }

    def _given_back(self, values: Tensor) -> Any:
        """As the caller's kind of array, one-dimensional where there is one column."""
        values = values.squeeze(1) if values.shape[1] == 1 else values
        return values.to(self.seen.device) if self.seen.torch_in else values.detach().cpu().numpy()
