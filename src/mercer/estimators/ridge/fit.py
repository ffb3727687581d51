"""A fitted ridge regression: the function, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.results import SolverReport
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.account import Account
from mercer.estimators.ridge.plan import RidgePlan
from mercer.functions.sums import FeatureSum, KernelSum
from mercer.selection import AlphaPath, Tuned
from mercer.selection.left_out import LeftOutPredictions
from mercer.solvers.flow import Flowing, StoppingTime
from mercer.solvers.running_sums import RunningSums


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """What a fit knows.

    Attributes
    ----------
    plan : RidgePlan
        What was done; its kernel has every parameter found.
    seen : Seen
        What is remembered of the rows.
    function, intercept : KernelSum or FeatureSum and Tensor
        The fitted function, and what is added for each target, (t,).
    alpha : float or Tensor
        One, or one per target.
    report : SolverReport
        How the system was solved.
    path, tuning : AlphaPath or None and Tuned or None
        How alpha and the kernel's parameters were found, or None.
    sample : Sample or None
        All rows, where each has a coefficient; else None.
    loo : Tensor or None
        Leave-one-out predictions (n, t) of rows with weight, where the fit needed them.
    order : Tensor or None
        Ranks of the rows in time, where they were given.
    left_out : LeftOutPredictions or None
        Predictions for rows by fits that have not seen them, once they were asked for.
    sums : RunningSums or None
        What further rows can be added to.
    some : Sample or None
        Some of the rows, for reports of fits that do not keep all; not in files.
    told : Account or None
        What the report of such a fit read from a file says of these rows.
    stop, flowing : StoppingTime or None and Flowing or None
        The time at which gradient flow stopped, and its system, decomposed, once other times are asked for.
    """

    plan: RidgePlan
    seen: Seen
    function: KernelSum | FeatureSum
    intercept: Tensor
    alpha: float | Tensor
    report: SolverReport
    path: AlphaPath | None = None
    tuning: Tuned | None = None
    sample: Sample | None = None
    loo: Tensor | None = None
    order: Tensor | None = None
    left_out: LeftOutPredictions | None = None
    sums: RunningSums | None = None
    some: Sample | None = None
    told: Account | None = None
    stop: StoppingTime | None = None
    flowing: Flowing | None = None

    def values(self, rows: Points) -> Tensor:
        """The predictions at the rows, of shape (m,) or (m, t)."""
        values = self.function.values(rows, self.plan.place, accurate=self.plan.settings.dtype == "auto")
        values = values + self.intercept.to(values)
        return values.reshape(len(values)) if self.seen.one_target else values

    def all_rows(self, what: str) -> Sample:
        """The training rows, or an error that says why there are none for `what`."""
        solver = self.report.solver
        if self.sample is None:
            raise InputError(f"{what} needs every training row, but solver={solver!r} does not keep them.")
        if self.plan.traits.stops_early:
            raise InputError(
                f"{what} is not available with early stopping, solver={solver!r}: it has no closed form there."
            )
        return self.sample

    @property
    def given_alpha(self) -> Any:
        """Alpha as users see it: a number, or an array of one per target."""
        if isinstance(self.alpha, float):
            return self.alpha
        return float(self.alpha[0]) if self.seen.one_target else self.alpha.cpu().numpy()

    @property
    def given_intercept(self) -> Any:
        """The intercept as users see it: a number, or an array of one per target."""
        values = self.seen.given_back(self.intercept.unsqueeze(0)).reshape(-1)
        return float(values[0]) if self.seen.one_target else values

    def to_send(self) -> RidgeFit:
        """What predictions need, for other machines."""
        return replace(self, sample=None, loo=None, order=None, left_out=None, sums=None, some=None, flowing=None)
