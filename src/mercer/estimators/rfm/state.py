"""Recursive feature machines as plain data and arrays, for model files; everything read back is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.estimators.common.account import PLAIN, Account
from mercer.estimators.common.state import (
    CLASSES,
    SEEN,
    checked_params,
    float_array,
    nothing_left,
    plain_classes,
    plain_names,
    plain_seen,
    read_classes,
    read_params,
    read_seen,
    remember_features,
)
from mercer.estimators.rfm.fit import RFMFit
from mercer.estimators.rfm.report import account_of, column_names
from mercer.estimators.rfm.search import Choice, Machine
from mercer.estimators.rfm.settings import RFMSettings
from mercer.estimators.ridge import KernelRidge
from mercer.features.lens import Lens
from mercer.files.kinds import ANY_TABLE, FLAG, TEXT, TEXTS, Several, Table, number, optional, whole
from mercer.files.persistence import rebuilt, state_of
from mercer.kernels import from_dict, to_dict
from mercer.selection.calibration import Calibration

if TYPE_CHECKING:
    from mercer.estimators.rfm.base import FeatureMachine

    M = TypeVar("M", bound=FeatureMachine)

INNER = "machine."
"""Before the names of the arrays of the ridge regression."""

PATH = Table({"kernel": ANY_TABLE, "diagonal": FLAG, "errors": Several(number(0), 1)})

MACHINE = Table(
    {
        "params": ANY_TABLE,
        "names": optional(TEXTS),
        "seen": SEEN,
        "machine": ANY_TABLE,
        "kernel": ANY_TABLE,
        "diagonal": FLAG,
        "n_rounds": whole(),
        "ridge": number(above=0),
        "relative_error": optional(number(0)),
        "paths": Several(PATH),
        "judged": TEXT,
        "accuracy": optional(number(0)),
        "told": PLAIN,
    }
    | CLASSES,
    may_lack=(*CLASSES, "told"),
)


def machine_state(model: FeatureMachine, fit: RFMFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `machine_from_state` makes an equal model."""
    inner, arrays = state_of(fit.machine)
    choice = fit.choice
    meta: dict[str, Any] = {
        "params": checked_params(model),
        "names": plain_names(model),
        "seen": plain_seen(fit.seen),
        "machine": inner,
        "kernel": to_dict(choice.machine.kernel),
        "diagonal": choice.machine.diagonal,
        "n_rounds": choice.n_rounds,
        "ridge": choice.ridge,
        "relative_error": _known(choice.error),
        "paths": [
            {"kernel": to_dict(machine.kernel), "diagonal": machine.diagonal, "errors": list(errors)}
            for machine, errors in fit.paths
        ],
        "judged": fit.judged,
        "accuracy": _known(fit.accuracy),
        "told": account_of(fit, column_names(plain_names(model), len(fit.lens.centre))).plain(),
    }
    if fit.classes is not None:
        meta |= plain_classes(fit.classes)
    if not isinstance(fit.settings.landmarks, str):
        meta["params"]["landmarks"] = "uniform"  # those of the machine are saved with it
    found = {INNER + name: values for name, values in arrays.items()} | vars(fit.lens)
    found |= {"shift": fit.shift}
    if bool(fit.error.isfinite().all()):
        found["error"] = fit.error
    if fit.calibration is not None:
        found |= {"slope": fit.calibration.slope, "offset": fit.calibration.shift}
    return meta, found


def machine_from_state(cls: type[M], meta: dict[str, Any], arrays: Mapping[str, Tensor]) -> tuple[M, RFMFit]:
    """The model that `machine_state` described, and its fit."""
    MACHINE.check(meta, "meta")
    own = {name: values for name, values in arrays.items() if not name.startswith(INNER)}
    inner = {name.removeprefix(INNER): values for name, values in arrays.items() if name.startswith(INNER)}
    machine = rebuilt(KernelRidge, meta["machine"], inner)
    model, seen = read_params(cls, meta["params"]), read_seen(meta["seen"])
    lens = _lens(own)
    d = len(lens.centre)
    if getattr(machine, "n_features_in_", None) != d:
        raise ModelFileError("the machine sees another number of columns than the file has weights for")
    remember_features(model, d, meta["names"])
    classes = read_classes(meta) if "classes" in meta else None
    t = seen.n_targets
    if classes is not None and t != (1 if len(classes) == 2 else len(classes)):
        raise ModelFileError(f"there are {t} functions for {len(classes)} classes")
    shift = float_array(own, "shift", (t,))
    error = float_array(own, "error", (t,), least=0.0) if "error" in own else torch.full_like(shift, torch.nan)
    calibration = None
    if "slope" in own:
        calibration = Calibration(float_array(own, "slope", (1,), least=0.0), float_array(own, "offset", (1,)))
    nothing_left(own, cls.__name__)
    choice = Choice(
        Machine(from_dict(meta["kernel"]), meta["diagonal"]),
        meta["n_rounds"],
        meta["ridge"],
        _number(meta["relative_error"]),
    )
    paths = tuple(
        (Machine(from_dict(path["kernel"]), path["diagonal"]), tuple(path["errors"])) for path in meta["paths"]
    )
    settings = RFMSettings.of(model.get_params(deep=False))
    found = (
        settings,
        seen,
        lens,
        machine,
        shift,
        choice,
        paths,
        error,
        meta["judged"],
        calibration,
        _number(meta["accuracy"]),
    )
    return model, RFMFit(*found, classes, told=Account.of_plain(meta.get("told")))


def _lens(arrays: dict[str, Tensor]) -> Lens:
    centre = float_array(arrays, "centre", (None,))
    d = len(centre)
    spread = float_array(arrays, "spread", (d,))
    if not bool((spread > 0).all()):
        raise ModelFileError("array 'spread' has entries that are not positive")
    flat = "root" in arrays and arrays["root"].ndim == 1
    return Lens(centre, spread, float_array(arrays, "root", (d,) if flat else (d, d)))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
