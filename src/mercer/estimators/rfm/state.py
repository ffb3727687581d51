"""What is saved of recursive feature machines, and how a fit is made of it again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from mercer.core.errors import ModelFileError
from mercer.estimators.common.account import ACCOUNT
from mercer.estimators.common.state import KERNEL, SEEN, Classes, Saved, calibration, calibration_of
from mercer.estimators.rfm.fit import RFMFit
from mercer.estimators.rfm.search import Choice, Machine
from mercer.estimators.rfm.settings import RFMSettings
from mercer.estimators.ridge import KernelRidge
from mercer.features.lens import Lens
from mercer.files.fields import Array, Field, Fields, Model
from mercer.files.kinds import FLAG, TEXT, Made, Several, Table, number, optional, whole

if TYPE_CHECKING:
    from mercer.estimators.rfm.base import FeatureMachine

SHARE = Made(
    optional(number(0)),
    lambda value: math.nan if value is None else float(value),
    lambda value: None if math.isnan(value) else value,
)
"""A number that may not be known, NaN."""

PATH = Made(
    Table({"kernel": KERNEL, "diagonal": FLAG, "errors": Several(number(0), 1)}),
    lambda path: (Machine(path["kernel"], path["diagonal"]), tuple(path["errors"])),
    lambda path: {"kernel": path[0].kernel, "diagonal": path[0].diagonal, "errors": list(path[1])},
)

FIELDS: Fields = {
    "seen": SEEN,
    "classes": Classes(may_lack=True),
    "machine": Model(KernelRidge),
    "kernel": Field(KERNEL, at="choice.machine.kernel"),
    "diagonal": Field(FLAG, at="choice.machine.diagonal"),
    "n_rounds": Field(whole(), at="choice.n_rounds"),
    "ridge": Field(number(above=0), at="choice.ridge"),
    "relative_error": Field(SHARE, at="choice.error"),
    "paths": Field(Several(PATH)),
    "judged": Field(TEXT),
    "accuracy": Field(SHARE),
    "told": Field(optional(ACCOUNT), lacking=None),
    "centre": Array("d", at="lens.centre"),
    "spread": Array("d", at="lens.spread"),
    "root": Array("d or d d", at="lens.root"),
    "shift": Array("t"),
    "error": Array("t", at=lambda fit: fit.error if bool(fit.error.isfinite().all()) else None, least=0, may_lack=True),
    **calibration("calibration", "slope", "offset"),
}


def _restored(model: FeatureMachine, found: Any) -> RFMFit:
    seen, machine, classes = found.seen, found.machine, found.classes
    if not bool((found.spread > 0).all()):
        raise ModelFileError("array 'spread' has entries that are not positive")
    if getattr(machine, "n_features_in_", None) != len(found.centre):
        raise ModelFileError("the machine sees another number of columns than the file has weights for")
    if classes is not None and seen.n_targets != found.sizes["c"]:
        raise ModelFileError(f"there are {seen.n_targets} functions for {len(classes)} classes")
    return RFMFit(
        RFMSettings.of(model.get_params(deep=False)),
        seen,
        Lens(found.centre, found.spread, found.root),
        machine,
        found.shift,
        Choice(Machine(found.kernel, found.diagonal), found.n_rounds, found.ridge, found.relative_error),
        tuple(found.paths),
        torch.full_like(found.shift, torch.nan) if found.error is None else found.error,
        found.judged,
        calibration_of(found.slope, found.offset),
        found.accuracy,
        classes,
        told=found.told,
    )


MACHINE = Saved(FIELDS, _restored)
