"""KernelRidge as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.data.sample import Seen
from mercer.estimators.common.account import PLAIN, Account
from mercer.estimators.common.saved_params import GIVEN
from mercer.estimators.common.state import (
    POINTS,
    REPORT,
    SEEN,
    checked_params,
    float_array,
    nothing_left,
    path_arrays,
    plain_names,
    plain_objects,
    plain_seen,
    read_order,
    read_params,
    read_path,
    read_points,
    read_seen,
    read_training_data,
    remember_features,
)
from mercer.estimators.common.tuning_state import TUNING, plain_tuning, read_tuning
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.plan import RidgePlan, place_of
from mercer.estimators.ridge.report import account_of
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.files.kinds import ANY_TABLE, FLAG, TEXT, Several, Table, number, one_of, optional, whole
from mercer.functions.basis import Centres, Features
from mercer.functions.fourier import FourierFeatures
from mercer.functions.sums import FeatureSum, KernelSum
from mercer.kernels import Kernel, from_dict, to_dict
from mercer.kernels.explicit import ExplicitFeatures
from mercer.kernels.serialize import from_dict_at
from mercer.solvers.flow import Flow, StoppingTime, power_of
from mercer.solvers.registry import RIDGE_SOLVERS, traits_of

if TYPE_CHECKING:
    from mercer.estimators.ridge.kernel_ridge import KernelRidge

MOST_COLUMNS = 2**20

CHOSEN = one_of("given", "gcv", "held_out")

STOP = Table({"t": Several(number(0, finite=False), 1), "criterion": CHOSEN, "held_out": whole()})

RIDGE = Table(
    POINTS
    | {
        "params": ANY_TABLE,
        "kernel": ANY_TABLE,
        "solver": one_of(*RIDGE_SOLVERS),
        "alpha": Several(number(0), 1),
        "alpha_shared": FLAG,
        "report": REPORT,
        "seen": SEEN,
        "criterion": one_of(None, "loo", "gcv"),
        "path_rows": TEXT,
        "tuning": optional(TUNING),
        "columns": optional(whole(1)),
        "told": PLAIN,
        "stop": optional(STOP),
    },
    may_lack=("told", "path_rows", "stop"),
)


def ridge_state(model: KernelRidge, fit: RidgeFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `ridge_from_state` makes an equal model."""
    path, function, sample = fit.path, fit.function, fit.sample
    points = function.centres if isinstance(function, KernelSum) else Points([]) if sample is None else sample.rows
    meta = {
        "params": checked_params(model),
        "kernel": to_dict(fit.plan.kernel),
        "solver": fit.plan.solver,
        "alpha": np.atleast_1d(fit.given_alpha).tolist(),
        "alpha_shared": isinstance(fit.given_alpha, float),
        "report": asdict(fit.report),
        "seen": plain_seen(fit.seen),
        "names": plain_names(model),
        "objects": plain_objects(points),
        "criterion": None if path is None else path.criterion,
        "path_rows": "" if path is None else path.rows,
        "tuning": None if fit.tuning is None else plain_tuning(fit.tuning),
        "columns": getattr(function.features, "n_columns", None) if isinstance(function, FeatureSum) else None,
    }
    if sample is None:
        meta["told"] = account_of(fit).plain()
    if fit.stop is not None:
        meta["stop"] = {"t": fit.stop.t.tolist(), "criterion": fit.stop.criterion, "held_out": fit.stop.held_out}
    if not isinstance(model.landmarks, str):
        meta["params"]["landmarks"] = GIVEN
    arrays: dict[str, Any] = {"coef": function.coef, "intercept": fit.intercept}
    if isinstance(function, FeatureSum):
        arrays |= function.features.to_arrays()
    if points.is_tensor:
        arrays["X"] = points.values
    if sample is not None:
        arrays["targets"] = sample.targets
        if sample.weights is not None:
            arrays["weights"] = sample.weights
    if fit.loo is not None:
        arrays["loo"] = fit.loo
    if fit.order is not None:
        arrays["order"] = fit.order
    if fit.stop is not None and fit.stop.times is not None:
        arrays |= {"stop_times": fit.stop.times, "stop_errors": fit.stop.errors}
    return meta, arrays | path_arrays(path)


def ridge_from_state(
    cls: type[KernelRidge], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[KernelRidge, RidgeFit]:
    """The model that `ridge_state` described, and its fit."""
    RIDGE.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    seen, solver, report = read_seen(meta["seen"]), meta["solver"], SolverReport(**meta["report"])
    if report.solver != solver:
        raise ModelFileError(f"the report is of the solver {report.solver!r:.60}, not {solver!r}")
    path = read_path(meta["criterion"], arrays, seen.n_targets, meta.get("path_rows", ""))
    loo = float_array(arrays, "loo", (seen.n_rows, seen.n_targets)) if "loo" in arrays else None
    basis, kernel, points, d = _basis(meta, arrays)
    sample = None
    if points is not None and traits_of(solver).keeps_rows:
        sample = read_training_data(points, seen, seen.n_targets, arrays)
        sample = replace(sample, square=kernel.domain == "matrix")
    if path is not None and not path.rows and loo is None and sample is not None and not traits_of(solver).stops_early:
        raise ModelFileError("array 'loo' is missing")
    remember_features(model, d, meta["names"])
    function = basis.sum(float_array(arrays, "coef", (basis.size, seen.n_targets)))
    intercept = float_array(arrays, "intercept", (seen.n_targets,))
    if model.landmarks == GIVEN and isinstance(basis, Centres):
        model.landmarks = seen.rows_given_back(basis.points)
    order, stop = read_order(arrays, seen.n_rows), _stop(meta.get("stop"), arrays, seen)
    if stop is not None and isinstance(model.solver, Flow):
        stop = replace(stop, power=power_of(model.solver.space))
    if (stop is not None) != (solver == "flow"):
        raise ModelFileError(f"a stopping time goes with the solver 'flow', and the solver is {solver!r}")
    nothing_left(arrays, "KernelRidge")
    settings = RidgeSettings.of(model.get_params(deep=False))
    alpha, place = _alpha(meta, seen.n_targets), place_of(settings, solver, seen, settings.memory_budget)
    plan = RidgePlan(settings, kernel, alpha, solver, report.reason, place, seen.n_rows)
    tuning = None if meta["tuning"] is None else read_tuning(meta["tuning"])
    told = Account.of_plain(meta.get("told"))
    fit = RidgeFit(plan, seen, function, intercept, alpha, report, path, tuning, sample, loo, order)
    return model, replace(fit, told=told, stop=stop)


# In


def _basis(
    meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[Centres | Features, Kernel, Points | None, int | None]:
    """What the function is a sum of, the kernel, its points, and the number of the columns of X."""
    if meta["solver"] == "random_features":
        drawn = FourierFeatures.from_arrays(arrays)
        return Features(drawn), from_dict(meta["kernel"]), None, drawn.frequencies.shape[1]
    if meta["solver"] == "primal" and "X" not in arrays:
        kernel, d = from_dict(meta["kernel"]), _columns(meta)
        return Features(_own(kernel, Points(torch.zeros(1, d, dtype=torch.float64)), arrays)), kernel, None, d
    points = read_points(meta, arrays)
    kernel = from_dict_at(meta["kernel"], points)
    if meta["solver"] == "primal":
        return Features(_own(kernel, points, arrays)), kernel, points, points.values.shape[1]
    return Centres(kernel, points), kernel, points, points.values.shape[1] if points.is_tensor else None


def _columns(meta: dict[str, Any]) -> int:
    columns = meta["columns"]
    if columns is None or columns > MOST_COLUMNS:
        raise ModelFileError(f"columns is {columns!r}, expected their number")
    return int(columns)


def _own(kernel: Kernel, points: Points, arrays: dict[str, Tensor]) -> ExplicitFeatures:
    features = ExplicitFeatures.of(kernel, points, len(arrays["coef"]) if "coef" in arrays else 0)
    if features is None:
        raise ModelFileError(f"the kernel {kernel!r:.60} does not have the features of the coefficients")
    return features


def _stop(meta: dict[str, Any] | None, arrays: dict[str, Tensor], seen: Seen) -> StoppingTime | None:
    if meta is None:
        return None
    t = torch.tensor(meta["t"], dtype=torch.float64)
    if len(t) != seen.n_targets:
        raise ModelFileError(f"t is {meta['t']!r:.60}, expected {seen.n_targets} numbers")
    if meta["criterion"] == "given":
        return StoppingTime(t, seen.total_weight, "given")
    times = float_array(arrays, "stop_times", (None,), 0.0)
    errors = float_array(arrays, "stop_errors", (len(times), seen.n_targets), 0.0)
    return StoppingTime(t, seen.total_weight, meta["criterion"], times, errors, meta["held_out"])


def _alpha(meta: dict[str, Any], n_targets: int) -> float | Tensor:
    values, shared = meta["alpha"], meta["alpha_shared"]
    if len(values) != (1 if shared else n_targets):
        raise ModelFileError(f"alpha is {values!r:.60}, expected {1 if shared else n_targets} numbers")
    return float(values[0]) if shared else torch.tensor(values, dtype=torch.float64)
