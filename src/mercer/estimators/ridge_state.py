"""KernelRidge as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.expansion import Centres, Features
from mercer.estimators.saved_params import GIVEN
from mercer.estimators.state import (
    PATH_ARRAYS,
    POINTS,
    REPORT,
    SEEN,
    checked_params,
    float_array,
    nothing_left,
    plain_names,
    plain_objects,
    plain_seen,
    read_params,
    read_path,
    read_points,
    read_seen,
    read_training_data,
    remember_features,
)
from mercer.files.kinds import ANY_TABLE, FLAG, TEXT, Either, Several, Table, number, one_of, optional, whole
from mercer.kernels import from_dict, to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.selection import Tuned
from mercer.solvers import SOLVERS
from mercer.solvers.choose import LANDMARK_SOLVERS
from mercer.solvers.random_features import FourierFeatures

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge

ALPHA = Several(number(0), 1)

TUNING = Table(
    {
        "kernel": ANY_TABLE,
        "alpha": Either((number(0), ALPHA)),
        "error": number(finite=False),
        "start_error": number(finite=False),
        "history": Several(number(finite=False)),
        "message": TEXT,
        "rows_used": whole(1),
    }
)

RIDGE = Table(
    POINTS
    | {
        "params": ANY_TABLE,
        "kernel": ANY_TABLE,
        "solver": one_of(*SOLVERS, *LANDMARK_SOLVERS, "random_features"),
        "alpha": ALPHA,
        "alpha_shared": FLAG,
        "report": REPORT,
        "seen": SEEN,
        "criterion": one_of(None, "loo", "gcv"),
        "tuning": optional(TUNING),
    }
)


def ridge_state(model: KernelRidge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `ridge_from_state` makes an equal model."""
    seen, path, expansion = model._seen, model.alpha_path_, model._expansion
    points = expansion.points if isinstance(expansion, Centres) else Points([])
    meta = {
        "params": checked_params(model),
        "kernel": to_dict(model.kernel_),
        "solver": model._solver,
        "alpha": np.atleast_1d(model.alpha_).tolist(),
        "alpha_shared": isinstance(model.alpha_, float),
        "report": asdict(model.solver_report_),
        "seen": plain_seen(seen),
        "names": plain_names(model),
        "objects": plain_objects(points),
        "criterion": None if path is None else path.criterion,
        "tuning": None if model.tuning_ is None else _plain_tuning(model.tuning_),
    }
    if not isinstance(model.landmarks, str):
        meta["params"]["landmarks"] = GIVEN
    arrays: dict[str, Any] = {"coef": model._coef}
    if isinstance(expansion, Features):
        arrays |= expansion.features.to_arrays()
    if points.is_tensor:
        arrays["X"] = points.values
    if model._data is not None:
        arrays["targets"] = model._data.targets
        if model._data.weights is not None:
            arrays["weights"] = model._data.weights
    if model._loo is not None:
        arrays["loo"] = model._loo
    if path is not None:
        arrays |= {f"path_{name}": getattr(path, name) for name in PATH_ARRAYS}
    return meta, arrays


def ridge_from_state(cls: type[KernelRidge], meta: dict[str, Any], arrays: dict[str, Tensor]) -> KernelRidge:
    """The model that `ridge_state` described."""
    RIDGE.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    seen = model._seen = read_seen(meta["seen"])
    model._solver, model._seed, model._sums = meta["solver"], 0, None
    model.tuning_ = None if meta["tuning"] is None else _tuning(meta["tuning"])
    model.solver_report_ = SolverReport(**meta["report"])
    if model.solver_report_.solver != model._solver:
        raise ModelFileError(f"the report is of the solver {model.solver_report_.solver!r:.60}, not {model._solver!r}")
    model.alpha_path_ = read_path(meta["criterion"], arrays, seen.n_targets)
    model._loo = float_array(arrays, "loo", (seen.n_rows, seen.n_targets)) if "loo" in arrays else None
    expansion, d = _expansion(meta, arrays)
    model.kernel_ = expansion.kernel if isinstance(expansion, Centres) else from_dict(meta["kernel"])
    model._data = None
    if model._solver in SOLVERS and isinstance(expansion, Centres):
        model._data = read_training_data(expansion.points, seen, seen.n_targets, arrays)
    remember_features(model, d, meta["names"])
    coef = float_array(arrays, "coef", (expansion.size, seen.n_targets))
    model._restore_fit(expansion, coef, _alpha(meta, seen.n_targets))
    if model.landmarks == GIVEN and isinstance(expansion, Centres):
        model.landmarks = model.X_fit_
    nothing_left(arrays, "KernelRidge")
    return model


# Out


def _plain_tuning(tuning: Tuned) -> dict[str, Any]:
    values = {f.name: getattr(tuning, f.name) for f in fields(tuning)}
    alpha = values["alpha"]
    return values | {
        "kernel": to_dict(tuning.kernel),
        "alpha": alpha.tolist() if isinstance(alpha, Tensor) else alpha,
        "history": list(tuning.history),
    }


# In


def _expansion(meta: dict[str, Any], arrays: dict[str, Tensor]) -> tuple[Centres | Features, int | None]:
    """What the function is a sum of, and the number of the columns of X."""
    if meta["solver"] == "random_features":
        features = FourierFeatures.from_arrays(arrays)
        return Features(features), features.frequencies.shape[1]
    points = read_points(meta, arrays)
    kernel = from_dict_at(meta["kernel"], points)
    return Centres(kernel, points), points.values.shape[1] if points.is_tensor else None


def _alpha(meta: dict[str, Any], n_targets: int) -> float | Tensor:
    values, shared = meta["alpha"], meta["alpha_shared"]
    if len(values) != (1 if shared else n_targets):
        raise ModelFileError(f"alpha is {values!r:.60}, expected {1 if shared else n_targets} numbers")
    return float(values[0]) if shared else torch.tensor(values, dtype=torch.float64)


def _tuning(values: dict[str, Any]) -> Tuned:
    alpha = values["alpha"]
    found = {
        "kernel": from_dict(values["kernel"]),
        "alpha": torch.tensor(alpha, dtype=torch.float64) if isinstance(alpha, list) else float(alpha),
        "history": tuple(values["history"]),
    }
    return Tuned(**values | found)
