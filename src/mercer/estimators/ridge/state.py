"""What is saved of KernelRidge, and how a fit is made of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.estimators.common.account import ACCOUNT
from mercer.estimators.common.state import (
    DATA,
    FOURIER,
    KERNEL,
    ORDER,
    REPORT,
    SEEN,
    TUNING,
    VECTOR,
    Path,
    Saved,
    random_features,
    sample_of,
)
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.plan import RidgePlan, place_of
from mercer.estimators.ridge.report import account_of
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.files.fields import Array, Field, Fields, Rows
from mercer.files.kinds import FLAG, Plain, Several, Table, number, one_of, optional, whole
from mercer.functions.basis import Centres, Features
from mercer.functions.sums import KernelSum
from mercer.kernels.explicit import ExplicitFeatures
from mercer.solvers.flow import Flow, StoppingTime, power_of
from mercer.solvers.registry import RIDGE_SOLVERS, traits_of

if TYPE_CHECKING:
    from mercer.estimators.ridge.kernel_ridge import KernelRidge

MOST_COLUMNS = 2**20
COLUMNS = Plain("a number of columns", lambda d: type(d) is int and 1 <= d <= MOST_COLUMNS)
STOP = Table({"t": VECTOR, "criterion": one_of("given", "gcv", "held_out"), "held_out": whole()})


def _rows(fit: RidgeFit) -> Points | None:
    if isinstance(fit.function, KernelSum):
        return fit.function.centres
    return None if fit.sample is None else fit.sample.rows


def _finite_loo(fit: RidgeFit) -> Tensor | None:
    """Leave-one-out predictions, where none overflows at a row without weight."""
    return None if fit.loo is None or not bool(fit.loo.isfinite().all()) else fit.loo


FIELDS: Fields = {
    "seen": SEEN,
    "columns": Field(
        optional(COLUMNS),
        at=lambda fit: getattr(getattr(fit.function, "features", None), "n_columns", None),
        sizes=lambda d: {} if d is None else {"d": d},
    ),
    "rows": Rows(at=_rows, may_lack=True),
    "kernel": Field(KERNEL, at="plan.kernel"),
    "solver": Field(one_of(*RIDGE_SOLVERS), at="plan.solver"),
    "alpha": Field(Several(number(0), 1), at=lambda fit: np.atleast_1d(fit.given_alpha).tolist()),
    "alpha_shared": Field(FLAG, at=lambda fit: isinstance(fit.given_alpha, float)),
    "report": Field(REPORT),
    "path": Path(("loo", "gcv")),
    "tuning": TUNING,
    "told": Field(optional(ACCOUNT), at=lambda fit: account_of(fit) if fit.sample is None else None, lacking=None),
    "stop": Field(optional(STOP), at=lambda fit: None if fit.stop is None else vars(fit.stop), lacking=None),
    "stop_times": Array("s", at="stop.times", least=0.0, may_lack=True),
    "stop_errors": Array("s t", at="stop.errors", least=0.0, may_lack=True),
    **FOURIER,
    "coef": Array("f t", at="function.coef"),
    "intercept": Array("t"),
    **DATA,
    "loo": Array("n t", at=_finite_loo, may_lack=True),
    "order": ORDER,
}


def _restored(model: KernelRidge, found: Any) -> RidgeFit:
    seen, solver, kernel, path = found.seen, found.solver, found.kernel, found.path
    traits = traits_of(solver)
    if found.report.solver != solver:
        raise ModelFileError(f"the report is of the solver {found.report.solver!r:.60}, not {solver!r}")
    basis = _basis(found)
    if basis.size != len(found.coef):
        raise ModelFileError(f"array 'coef' has {len(found.coef)} rows, expected {basis.size}")
    sample = sample_of(found, kept=traits.keeps_rows and found.rows is not None)
    settings, alpha = RidgeSettings.of(model.get_params(deep=False)), _alpha(found)
    place = place_of(settings, solver, seen, settings.memory_budget)
    plan = RidgePlan(settings, kernel, alpha, solver, found.report.reason, place, seen.n_rows)
    return RidgeFit(
        plan,
        seen,
        basis.sum(found.coef),
        found.intercept,
        alpha,
        found.report,
        path,
        found.tuning,
        sample,
        found.loo,
        found.order,
        told=found.told,
        stop=_stop(model, found),
    )


RIDGE = Saved(FIELDS, _restored)


def _basis(found: Any) -> Centres | Features:
    """What the function is a sum of."""
    if found.solver == "random_features":
        if found.rows is not None:
            raise ModelFileError("random features keep no rows")
        return Features(random_features(found))
    if any(getattr(found, name) is not None for name in FOURIER):
        raise ModelFileError(f"random features do not belong to solver={found.solver!r}")
    if found.solver == "primal":
        return Features(_own(found))
    if found.rows is None:
        raise ModelFileError("array 'X' is missing")
    return Centres(found.kernel, found.rows)


def _own(found: Any) -> ExplicitFeatures:
    d = found.columns if found.rows is None else found.sizes.get("d")
    if d is None:
        raise ModelFileError("columns is None, expected their number")
    points = Points(torch.zeros(1, d, dtype=torch.float64)) if found.rows is None else found.rows
    features = ExplicitFeatures.of(found.kernel, points, len(found.coef))
    if features is None:
        raise ModelFileError(f"the kernel {found.kernel!r:.60} does not have the features of the coefficients")
    return features


def _stop(model: KernelRidge, found: Any) -> StoppingTime | None:
    stop, seen = found.stop, found.seen
    if (stop is not None) != (found.solver == "flow"):
        raise ModelFileError(f"a stopping time goes with the solver 'flow', and the solver is {found.solver!r}")
    tried = (found.stop_times, found.stop_errors)
    searched = stop is not None and stop["criterion"] != "given"
    if any((array is not None) != searched for array in tried):
        raise ModelFileError("the stopping times that were tried do not go with the stopping time")
    if stop is None:
        return None
    if len(stop["t"]) != seen.n_targets:
        raise ModelFileError(f"t has {len(stop['t'])} numbers, expected {seen.n_targets}")
    power = power_of(model.solver.space) if isinstance(model.solver, Flow) else 1
    return StoppingTime(stop["t"], seen.total_weight, stop["criterion"], *tried, stop["held_out"], power)


def _alpha(found: Any) -> float | Tensor:
    values, wanted = found.alpha, 1 if found.alpha_shared else found.seen.n_targets
    if len(values) != wanted:
        raise ModelFileError(f"alpha is {values!r:.60}, expected {wanted} numbers")
    return float(values[0]) if found.alpha_shared else torch.tensor(values, dtype=torch.float64)
