"""What the model files of estimators share: a declaration for each class, and the kinds of values that many save."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.devices import DTYPES
from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.saved_parameters import checked_params, read_params
from mercer.files.fields import Array, Entry, Field, Fields, File, Where, read, written
from mercer.files.kinds import (
    ANY_TABLE,
    FLAG,
    TEXT,
    TEXTS,
    Either,
    Kind,
    Made,
    Pairs,
    Record,
    Several,
    number,
    one_of,
    optional,
    whole,
)
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import from_dict, to_dict
from mercer.kernels.serialize import check_at
from mercer.selection import AlphaPath, Tuned
from mercer.selection.calibration import Calibration
from mercer.selection.search import CANDIDATES

KERNEL = Made(ANY_TABLE, from_dict, to_dict)
REPORT = Record(SolverReport)
VECTOR = Made(
    Several(number(0, finite=False), 1), lambda v: torch.tensor(v, dtype=torch.float64), lambda a: a.cpu().tolist()
)
ALPHA = Made(
    Either((number(0), Several(number(0), 1))),
    lambda v: torch.tensor(v, dtype=torch.float64) if isinstance(v, list) else float(v),
    lambda a: a.tolist() if isinstance(a, Tensor) else a,
)
DTYPE = Made(
    one_of(None, *DTYPES),
    lambda name: None if name is None else DTYPES[name],
    lambda dtype: None if dtype is None else str(dtype).removeprefix("torch."),
)
JUDGED = Made(Several(number(finite=False)), tuple, list)
COMPARED = Made(Pairs(TEXT, number(finite=False)), lambda errors: tuple(errors.items()), dict)


def _seen(seen: Seen) -> Seen:
    if seen.one_target and seen.n_targets != 1:
        raise ModelFileError(f"seen.n_targets is {seen.n_targets}, expected 1")
    return seen


def _tuned(found: Tuned) -> Tuned:
    if len(found.judged) not in (0, len(CANDIDATES)):
        raise ModelFileError(
            f"the tuning was judged by {len(found.judged)} numbers, expected {len(CANDIDATES)} or none"
        )
    return found


def _itself(value: Any) -> Any:
    return value


SAVED_SEEN = {
    "n_rows": whole(1),
    "n_targets": whole(1),
    "total_weight": number(above=0),
    "dtype": DTYPE,
    "device": None,
}
SEEN = Field(Made(Record(Seen, SAVED_SEEN), _seen, _itself), sizes=lambda seen: {"n": seen.n_rows, "t": seen.n_targets})
"""What is remembered of the training data."""

TUNED = {
    "kernel": KERNEL,
    "alpha": ALPHA,
    "rows_used": whole(1),
    "tune": one_of(*CANDIDATES),
    "judged": JUDGED,
    "compared": COMPARED,
}
TUNING = Field(optional(Made(Record(Tuned, TUNED), _tuned, _itself)), at="tuning", lacking=None)
"""The account of tuning."""

ORDER = Array("n", at="order", least=0, may_lack=True, dtype=torch.int64)
"""The ranks of rows in time, where they were given."""

DATA: dict[str, Entry] = {
    "targets": Array("n t", "sample.targets", may_lack=True),
    "weights": Array("n", "sample.weights", least=0.0, may_lack=True),
    "units": Array("n", "sample.units", least=0.0, may_lack=True),
}
"""Of a model that keeps all rows; `sample_of` makes the sample of them."""


def _drawn(name: str) -> Any:
    """One of the arrays of random features, where a fit has such."""

    def found(fit: Any) -> Any:
        features = getattr(getattr(fit, "function", fit), "features", None)
        return features.to_arrays()[name] if isinstance(features, FourierFeatures) else None

    return found


FOURIER: Fields = {
    "frequencies": Array("p d", at=_drawn("frequencies"), may_lack=True),
    "offset": Array("o", at=_drawn("offset"), may_lack=True),
    "masses": Array("2", at=_drawn("masses"), may_lack=True),
}
"""Random Fourier features, where a fit has such."""


def random_features(found: Any) -> FourierFeatures:
    """The map of `FOURIER`."""
    return FourierFeatures.from_arrays(
        {name: getattr(found, name) for name in FOURIER if getattr(found, name) is not None}
    )


def calibration(at: str, *names: str) -> Fields:
    """The slope and the shift of a calibration, by their names in the file."""
    slope, shift = (f"{at}.{name}" for name in ("slope", "shift"))
    return {names[0]: Array("1", slope, least=0.0, may_lack=True), names[1]: Array("1", shift, may_lack=True)}


PATH = {
    "alphas": Array("k", least=0.0),
    "errors": Array("k t", least=0.0),
    "alpha": Array("t", least=0.0),
    "at_edge": Array("t", dtype=torch.bool),
    "constant": Array("t", least=0.0, may_lack=True),
}


@dataclass(frozen=True)
class Path:
    """The errors along a path of alphas, by one of some criteria, or None; alphas without a finite error are left out.

    A fit to one row has none: nothing is left when it is left out.
    """

    criteria: tuple[str, ...]
    at: Where = ""

    def write(self, name: str, value: AlphaPath | None, file: File) -> None:
        file.meta |= {"criterion": None, "path_rows": ""}
        if value is not None and not bool((known := torch.isfinite(value.errors).all(1)).all()):
            value = replace(value, alphas=value.alphas[known], errors=value.errors[known]) if known.any() else None
        if value is not None:
            file.meta |= {"criterion": value.criterion, "path_rows": value.rows}
            for part, array in PATH.items():
                array.write(f"path_{part}", getattr(value, part), file)

    def read(self, name: str, file: File) -> AlphaPath | None:
        criterion = Field(one_of(None, *self.criteria)).read("criterion", file)
        rows = Field(TEXT, lacking="").read("path_rows", file)
        if criterion is None:
            return None
        found: dict[str, Any] = {part: array.read(f"path_{part}", file) for part, array in PATH.items()}
        if not len(found["alphas"]):
            raise ModelFileError("the path of alphas is empty")
        return AlphaPath(**found, criterion=criterion, rows=rows)


LABELS: dict[str, tuple[Kind, Any]] = {
    "b": (FLAG, bool),
    "i": (number(-(2.0**63), below=2.0**63), np.int64),
    "u": (number(0, below=2.0**64), np.uint64),
    "f": (number(), np.float64),
    "U": (TEXT, None),
    "O": (Either((FLAG, number(), TEXT)), object),
}
"""Labels by the letter of their dtype, and that dtype."""


@dataclass(frozen=True)
class Classes:
    """Labels and the letter of their dtype: sorted, each once; None where there are none and there `may` be none."""

    at: Where = ""
    may_lack: bool = False

    def write(self, name: str, value: np.ndarray | None, file: File) -> None:
        if value is None:
            return
        labels, letter = value.tolist(), value.dtype.kind
        if letter not in LABELS or not all(isinstance(label, str | int | float) for label in labels):
            raise InputError(f"classes of type {value.dtype} do not fit a model file. Use pickle instead.")
        file.meta |= {"classes": labels, "class_kind": letter}

    def read(self, name: str, file: File) -> np.ndarray | None:
        if self.may_lack and not file.meta.keys() & {"classes", "class_kind"}:
            return None
        kind, dtype = LABELS[Field(one_of(*LABELS)).read("class_kind", file)]
        labels = Field(Several(kind, 2)).read("classes", file)
        classes = np.asarray(labels, dtype=dtype)
        if len({type(label) for label in labels}) > 1 or np.unique(classes).tolist() != labels:
            raise ModelFileError(f"classes is {labels!r:.60}, expected sorted labels of one type, each once")
        file.sizes["c"] = 1 if len(classes) == 2 else len(classes)
        return classes


@dataclass(frozen=True)
class Saved:
    """How an estimator is saved: the fields of its fit, and the function that makes a fit of a model and their values.

    The model has its parameters and the names of its columns by then, and its kernels were tried at its rows.
    """

    fields: Fields
    restored: Callable[[Any, Any], Any]

    def state(self, model: Any, fit: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays from which `model` makes an equal one."""
        names = getattr(model, "feature_names_in_", None)
        meta, arrays = written(self.fields, fit)
        return {"params": checked_params(model), "names": None if names is None else list(names)} | meta, arrays

    def model(self, cls: Any, meta: dict[str, Any], arrays: dict[str, Tensor]) -> tuple[Any, Any, dict[str, Any]]:
        """The model that `state` described, its fit, and what scikit-learn knows of its columns."""
        values, sizes = read({**COMMON, **self.fields}, meta, arrays, cls.__name__)
        rows, names, d = values.get("rows"), values["names"], sizes.get("d")
        if rows is not None:
            as_given = values.get("torch_in", getattr(values.get("seen"), "torch_in", False)) or not rows.is_tensor
            model = read_params(cls, values["params"], rows.values if as_given else rows.values.numpy())
        else:
            model = read_params(cls, values["params"])
        columns = _columns(d, names)
        if rows is not None and names is not None:
            values["rows"] = Points(rows.values, tuple(names))
        found = SimpleNamespace(**values, sizes=sizes)
        for name in ("kernel", "start_kernel"):
            if values.get(name) is not None:
                points = Points(torch.zeros(1, d or 1, dtype=torch.float64)) if rows is None else found.rows
                check_at(values[name], points)
        return model, self.restored(model, found), columns


COMMON: dict[str, Entry] = {"params": Field(ANY_TABLE), "names": Field(optional(TEXTS))}
"""What all files of estimators have beside their own fields."""


def sample_of(found: Any, kept: bool) -> Sample | None:
    """The rows of a model that has a coefficient for each; None where it keeps none."""
    given = (found.targets, found.weights, found.units)
    if not kept:
        if any(part is not None for part in given):
            raise ModelFileError("there are targets or weights, but the solver keeps no rows")
        return None
    seen, (targets, weights, units) = found.seen, given
    if found.rows is None or len(found.rows) != seen.n_rows or targets is None:
        raise ModelFileError(f"there are not {seen.n_rows} rows with their targets")
    if weights is not None and not bool((weights > 0).any()):
        raise ModelFileError("array 'weights' is zero")
    square = found.kernel.domain == "matrix"
    return Sample(found.rows, targets, weights, seen.one_target, seen.torch_in, square, units)


def calibration_of(slope: Tensor | None, shift: Tensor | None) -> Calibration | None:
    """A calibration that was read."""
    if slope is None or shift is None:
        if slope is not shift:
            raise ModelFileError("a calibration has a slope and a shift")
        return None
    return Calibration(slope, shift)


def check_codes(codes: Tensor, classes: int) -> None:
    """Codes of classes are whole numbers from 0 on."""
    if bool((codes != codes.floor()).any()) or not 0 <= float(codes.min()) <= float(codes.max()) < classes:
        raise ModelFileError("array 'targets' does not hold codes of classes")


def _columns(d: int | None, names: list[str] | None) -> dict[str, Any]:
    """What scikit-learn knows of the columns: their number, not that of objects, and their names."""
    if names is not None and (len(names) != d or len(set(names)) != d):
        raise ModelFileError(f"names is {names!r:.60}, expected {d} different ones")
    known = {} if d is None else {"n_features_in_": d}
    return known if names is None else known | {"feature_names_in_": np.asarray(names, dtype=object)}
