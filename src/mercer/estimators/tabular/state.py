"""TabularEstimator as plain data and arrays, for model files."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.state import checked_params, nothing_left, read_params
from mercer.estimators.tabular.encoder import KINDS, TableEncoder
from mercer.estimators.tabular.treatments import Category, LeftOut, Moment, Number
from mercer.files.kinds import ANY_TABLE, TEXT, TEXTS, Pairs, Several, Table, of_dataclass, one_of, optional, whole
from mercer.files.persistence import class_named, rebuilt, state_of

if TYPE_CHECKING:
    from mercer.estimators.tabular.estimator import TabularEstimator

T = TypeVar("T", bound="TabularEstimator")

TREATMENTS: dict[str, Any] = {cls.kind: cls for cls in (Number, Category, Moment, LeftOut)}

TABULAR = Table(
    {
        "class": TEXT,
        "params": ANY_TABLE,
        "inner": ANY_TABLE,
        "columns": optional(Pairs(TEXT, one_of(*KINDS))),
        "max_levels": whole(1),
        "rare": whole(1),
        "treatments": Several(ANY_TABLE, 1),
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
    return {
        "class": type(inner).__name__,
        "params": checked_params(model.inner),
        "inner": meta,
        "columns": None if model.columns is None else [[name, kind] for name, kind in model.columns.items()],
        "max_levels": int(model.max_levels),
        "rare": int(model.rare),
        "treatments": [{"kind": t.kind} | _plain(t) for t in model.encoder_.treatments],
        "names": None if names is None else list(names),
    }, arrays


def tabular_from_state(cls: type[T], meta: dict[str, Any], arrays: dict[str, Tensor]) -> T:
    """The model that `tabular_state` described."""
    TABULAR.check(meta, "meta")
    kind = class_named(meta["class"])
    if not issubclass(kind, KernelEstimator):
        raise ModelFileError(f"meta.class is {meta['class']!r:.60}, expected an estimator")
    inner: Any = rebuilt(kind, meta["inner"], dict(arrays))
    columns = None if meta["columns"] is None else dict(meta["columns"])
    model = cls(read_params(kind, meta["params"]), columns=columns, max_levels=meta["max_levels"], rare=meta["rare"])
    encoder = TableEncoder(tuple(_treatment(entry, i) for i, entry in enumerate(meta["treatments"])))
    if inner.n_features_in_ != len(encoder.columns):
        raise ModelFileError(f"the columns make {len(encoder.columns)} features, the estimator has others")
    names = meta["names"]
    seen = [t.name for t in encoder.treatments]
    if len(set(seen)) < len(seen) or (names is not None and names != seen):
        raise ModelFileError("the names of the columns are not those of their treatments")
    model.encoder_, model.estimator_, model.n_features_in_ = encoder, inner, len(seen)
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    nothing_left({}, cls.__name__)
    return model


def _plain(treatment: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(treatment).items()}


def _treatment(entry: dict[str, Any], i: int) -> Any:
    values = dict(entry)
    cls = TREATMENTS.get(values.pop("kind", None))
    if cls is None:
        raise ModelFileError(f"treatments[{i}] has no kind that is known")
    of_dataclass(cls).check(values, f"treatments[{i}]")
    found = cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    if any(getattr(found, f.name, 1.0) <= 0 for f in fields(cls) if f.name == "spread"):
        raise ModelFileError(f"treatments[{i}].spread must be positive")
    if isinstance(found, Category) and (not found.levels or len(found.shares) != len(found.states)):
        raise ModelFileError(f"treatments[{i}] needs levels, and a share for each state")
    return found
