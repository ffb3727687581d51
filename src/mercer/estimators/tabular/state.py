"""What is saved of TabularEstimator, and how it is made again."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.saved_parameters import checked_params, read_params
from mercer.estimators.tabular.encoder import KINDS, TableEncoder
from mercer.estimators.tabular.treatments import Category, LeftOut, Moment, Number
from mercer.files.kinds import ANY_TABLE, TEXT, TEXTS, Kind, Pairs, Record, Several, Table, one_of, optional, whole
from mercer.files.persistence import class_named, rebuilt, state_of

if TYPE_CHECKING:
    from mercer.estimators.tabular.estimator import TabularEstimator

T = TypeVar("T", bound="TabularEstimator")


RECORDS = {cls.kind: Record(cls) for cls in (Number, Category, Moment, LeftOut)}


class Treated(Kind):
    """What becomes of a column: a dataclass by its kind, with its fields."""

    words = "a treatment of a column"

    def read(self, value: Any, where: str) -> Any:
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in RECORDS:
            raise ModelFileError(f"{where} has no kind that is known")
        found = RECORDS[kind].read({name: entry for name, entry in value.items() if name != "kind"}, where)
        if any(getattr(found, f.name) <= 0 for f in fields(found) if f.name == "spread"):
            raise ModelFileError(f"{where}.spread must be positive")
        if isinstance(found, Category) and (not found.levels or len(found.shares) != len(found.states)):
            raise ModelFileError(f"{where} needs levels, and a share for each state")
        return found

    def plain(self, value: Any) -> Any:
        return {"kind": value.kind} | RECORDS[value.kind].plain(value)


TABULAR = Table(
    {
        "class": TEXT,
        "params": ANY_TABLE,
        "inner": ANY_TABLE,
        "columns": optional(Pairs(TEXT, one_of(*KINDS))),
        "max_levels": whole(1),
        "rare": whole(1),
        "treatments": Several(Treated(), 1),
        "names": optional(TEXTS),
    }
)


def tabular_state(model: TabularEstimator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `tabular_from_state` makes an equal model."""
    inner = model.estimator_
    if not isinstance(inner, KernelEstimator):
        raise InputError(f"A {type(inner).__name__} does not fit a model file. Use pickle instead.")
    meta, arrays = state_of(inner)
    names = getattr(model, "feature_names_in_", None)
    values = {
        "class": type(inner).__name__,
        "params": checked_params(model.inner),
        "inner": meta,
        "columns": model.columns,
        "max_levels": int(model.max_levels),
        "rare": int(model.rare),
        "treatments": model.encoder_.treatments,
        "names": names,
    }
    return TABULAR.plain(values), arrays


def tabular_from_state(cls: type[T], meta: dict[str, Any], arrays: dict[str, Tensor]) -> tuple[T, dict[str, Any]]:
    """The model that `tabular_state` described, and what its fit knows, by the names of the attributes."""
    found = TABULAR.read(meta, "meta")
    kind = class_named(found["class"])
    if not issubclass(kind, KernelEstimator):
        raise ModelFileError(f"meta.class is {found['class']!r:.60}, expected an estimator")
    inner: Any = rebuilt(kind, found["inner"], dict(arrays))
    options = {name: found[name] for name in ("columns", "max_levels", "rare")}
    model = cls(read_params(kind, found["params"]), **options)
    encoder = TableEncoder(tuple(found["treatments"]))
    if inner.n_features_in_ != len(encoder.columns):
        raise ModelFileError(f"the columns make {len(encoder.columns)} features, the estimator has others")
    names, seen = found["names"], [t.name for t in encoder.treatments]
    if len(set(seen)) < len(seen) or (names is not None and names != seen):
        raise ModelFileError("the names of the columns are not those of their treatments")
    fitted = {"encoder_": encoder, "estimator_": inner, "n_features_in_": len(seen)}
    return model, fitted if names is None else fitted | {"feature_names_in_": np.asarray(names, dtype=object)}
