"""What the estimators' model files share: parameters, points and arrays as plain data, checked when read back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer import losses
from mercer.core.arrays import Points
from mercer.core.devices import DTYPES
from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.saved_params import PARAMS, PLACE
from mercer.files.kinds import (
    ANYTHING,
    FLAG,
    TEXT,
    TEXTS,
    Either,
    Kind,
    Several,
    Table,
    number,
    of_dataclass,
    one_of,
    optional,
    whole,
)
from mercer.kernels import Kernel, from_dict, to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.losses import Loss
from mercer.processes.priors import PRIORS
from mercer.selection import AlphaPath
from mercer.solvers import registry as solvers
from mercer.solvers.registry import RIDGE_SOLVERS

SEEN = Table(
    {
        "n_rows": whole(1),
        "n_targets": whole(1),
        "total_weight": number(above=0),
        "one_target": FLAG,
        "torch_in": FLAG,
        "dtype": one_of(None, *DTYPES),
    }
)
"""What is remembered of the training data."""

REPORT = of_dataclass(SolverReport)
POINTS = {"names": optional(TEXTS), "objects": optional(TEXTS)}
"""Of a sample: the names of its columns, and its strings where it is no table."""

PAIRS = ("bounds", "class_weight", "priors")
"""Parameters that are dictionaries."""

PATH_ARRAYS = ("alphas", "errors", "alpha", "at_edge", "constant")

CLASS_KINDS: dict[str, Kind] = {
    letter: Several(kind, 2)
    for letter, kind in {
        "b": FLAG,
        "i": number(-(2.0**63), below=2.0**63),
        "u": number(0, below=2.0**64),
        "f": number(),
        "U": TEXT,
        "O": Either((FLAG, number(), TEXT)),
    }.items()
}
"""Labels by the letter of their dtype."""
CLASS_TYPES: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "U": None, "O": object}

CLASSES = {"classes": ANYTHING, "class_kind": one_of(*CLASS_KINDS)}
"""Labels, which `read_classes` checks, and the letter of their dtype."""

# Out


def plain_params(estimator: Any) -> dict[str, Any]:
    """The constructor's parameters that belong to the model, as JSON can hold them."""
    return {
        name: plain_param(name, value) for name, value in estimator.get_params(deep=False).items() if name not in PLACE
    }


def checked_params(estimator: Any) -> dict[str, Any]:
    """The same, as long as they can be read back: a parameter may have been set to anything after `fit`."""
    params = plain_params(estimator)
    for name, value in params.items():
        try:
            PARAMS[name].check(value, name)
        except ModelFileError as error:
            raise InputError(f"{error}; it does not fit a model file.") from None
    return params


def plain_names(estimator: Any) -> list[str] | None:
    """The names of the features seen in `fit`."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


def plain_objects(points: Points) -> list[str] | None:
    """The strings of a sample of strings; None for a table, which is an array of the file."""
    if points.is_tensor:
        return None
    for i, item in enumerate(points.values):
        if not isinstance(item, str):
            raise InputError(
                f"X[{i}] is a {type(item).__name__}: only strings and numbers fit a model file. Use pickle instead."
            )
    return list(points.values)


def plain_seen(seen: Seen) -> dict[str, Any]:
    """What is remembered of the training data."""
    dtype = None if seen.dtype is None else str(seen.dtype).removeprefix("torch.")
    return {name: getattr(seen, name) for name in SEEN.fields} | {"dtype": dtype}


def plain_classes(classes: np.ndarray) -> dict[str, Any]:
    """Labels and their type."""
    if classes.dtype.kind not in CLASS_TYPES or not all(isinstance(c, str | int | float) for c in classes.tolist()):
        raise InputError(f"classes of type {classes.dtype} do not fit a model file. Use pickle instead.")
    return {"classes": classes.tolist(), "class_kind": classes.dtype.kind}


def plain_param(name: str, value: object) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Kernel):
        return to_dict(value)
    if isinstance(value, Loss):
        return losses.to_dict(value)
    if type(value) in RIDGE_SOLVERS.values():
        return solvers.to_dict(value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_param("", entry) for entry in value]
    if isinstance(value, dict):
        return [[plain_param("", key), plain_param(f"{name}[{key!r}]", entry)] for key, entry in value.items()]
    if PRIORS.get(type(value).__name__) is type(value):
        return {"prior": type(value).__name__} | asdict(value)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "random_state" and not isinstance(value, int | None):
        return None  # a generator has no lasting meaning once it was used
    if callable(value) and not isinstance(value, type):
        raise InputError(f"{name} is a Python function, which does not fit a model file. Use pickle instead.")
    return value


# In


def read_params(cls: Any, params: dict[str, Any]) -> Any:
    """An unfitted estimator with the parameters that `checked_params` gave."""
    placed = [name for name in PLACE if name in params]
    if placed:
        raise ModelFileError(
            f"it contains the parameter {placed[0]!r}, which a model file must not set (files of earlier versions "
            "do: fit and save the model again)"
        )
    kinds = {name: PARAMS[name] for name in cls._get_param_names() if name not in PLACE}
    Table(kinds, may_lack=kinds).check(params, "params")
    return cls(**{name: _read_param(name, value) for name, value in params.items()})


def _read_param(name: str, value: object) -> Any:
    if name.endswith("kernel") and isinstance(value, dict):
        return from_dict(value)
    if name == "loss" and isinstance(value, dict):
        return losses.from_dict(value)
    if name == "solver" and isinstance(value, dict):
        return solvers.from_dict(value)
    if name in PAIRS and isinstance(value, list):
        return {key: _read_prior(entry) if name == "priors" else entry for key, entry in value}
    return value


def _read_prior(values: dict[str, Any]) -> Any:
    return PRIORS[values["prior"]](**{name: value for name, value in values.items() if name != "prior"})


def read_seen(values: dict[str, Any]) -> Seen:
    """What `plain_seen` wrote, once it was checked."""
    if values["one_target"] and values["n_targets"] != 1:
        raise ModelFileError(f"seen.n_targets is {values['n_targets']}, expected 1")
    dtype = None if values["dtype"] is None else DTYPES[values["dtype"]]
    return Seen(**{**values, "dtype": dtype}, device=torch.device("cpu"))


def read_classes(meta: dict[str, Any]) -> np.ndarray:
    """The labels that `plain_classes` wrote: sorted, each once."""
    values, kind = meta["classes"], meta["class_kind"]
    labels = CLASS_KINDS[kind].check(values, "classes")
    classes = np.asarray(labels, dtype=CLASS_TYPES[kind])
    if len({type(label) for label in labels}) > 1 or np.unique(classes).tolist() != labels:
        raise ModelFileError(f"classes is {values!r:.60}, expected sorted labels of one type, each once")
    return classes


def check_codes(codes: Tensor, classes: int) -> None:
    """Codes of classes are whole numbers from 0 on."""
    if bool((codes != codes.floor()).any()) or not 0 <= float(codes.min()) <= float(codes.max()) < classes:
        raise ModelFileError("array 'targets' does not hold codes of classes")


def float_array(
    arrays: dict[str, Tensor], name: str, shape: tuple[int | None, ...], least: float = -float("inf")
) -> Tensor:
    """An array, taken out, which must be float64, of that shape, where None is any length, and not below `least`."""
    if name not in arrays:
        raise ModelFileError(f"array {name!r} is missing")
    array = arrays.pop(name)
    fits = array.ndim == len(shape) and all(s in (None, got) for s, got in zip(shape, array.shape, strict=True))
    if array.dtype != torch.float64 or not fits:
        wanted = str(shape).replace("None", "*")
        raise ModelFileError(f"array {name!r} is {array.dtype} {tuple(array.shape)}, expected float64 {wanted}")
    if bool((array < least).any()):
        raise ModelFileError(f"array {name!r} has entries below {least:g}")
    return array


def read_points(meta: dict[str, Any], arrays: dict[str, Tensor]) -> Points:
    """A sample: the array X, or the strings of the entry `objects`; with names for its columns."""
    objects, names = meta["objects"], meta["names"]
    if objects is not None:
        if names is not None or not objects:
            raise ModelFileError("objects have no names of columns, and there is at least one")
        return Points(objects)
    if "X" not in arrays:
        raise ModelFileError("array 'X' is missing")
    X = arrays.pop("X")
    if X.ndim != 2 or 0 in X.shape or X.dtype not in (torch.float32, torch.float64):
        raise ModelFileError(f"array 'X' is {X.dtype} {tuple(X.shape)}")
    return Points(X, None if names is None else tuple(names))


def remember_features(estimator: Any, n_features: int | None, names: list[str] | None) -> None:
    """Set what scikit-learn knows of the features: their number, None for objects, and their names."""
    if names is not None and (len(names) != n_features or len(set(names)) != n_features):
        raise ModelFileError(f"names is {names!r:.60}, expected {n_features} different ones")
    if n_features is not None:
        estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def read_training_data(points: Points, seen: Seen, n_targets: int, arrays: dict[str, Tensor]) -> Sample:
    """The rows that a model keeps because each has a coefficient, with targets and weights."""
    n = seen.n_rows
    if len(points) != n:
        raise ModelFileError(f"there are {len(points)} points but {n} rows")
    targets = float_array(arrays, "targets", (n, n_targets))
    weights = float_array(arrays, "weights", (n,), least=0.0) if "weights" in arrays else None
    if weights is not None and not bool((weights > 0).any()):
        raise ModelFileError("array 'weights' is zero")
    return Sample(points, targets, weights, seen.one_target, seen.torch_in)


def read_path(criterion: Any, arrays: dict[str, Tensor], n_targets: int, rows: str = "") -> AlphaPath | None:
    """The errors along a path of alphas."""
    if criterion is None:
        return None
    alphas = float_array(arrays, "path_alphas", (None,), least=0.0)
    at_edge = arrays.pop("path_at_edge", None)
    if not len(alphas) or at_edge is None or at_edge.dtype != torch.bool or at_edge.shape != (n_targets,):
        raise ModelFileError("the arrays of the path of alphas do not fit together")
    errors = float_array(arrays, "path_errors", (len(alphas), n_targets), least=0.0)
    constant = float_array(arrays, "path_constant", (n_targets,), least=0.0) if "path_constant" in arrays else None
    chosen = float_array(arrays, "path_alpha", (n_targets,), least=0.0)
    return AlphaPath(alphas, errors, chosen, at_edge, criterion, constant=constant, rows=rows)


def path_arrays(path: AlphaPath | None) -> dict[str, Tensor]:
    """What `read_path` reads."""
    names = [] if path is None else [name for name in PATH_ARRAYS if getattr(path, name) is not None]
    return {f"path_{name}": getattr(path, name) for name in names}


def read_order(arrays: dict[str, Tensor], n_rows: int) -> Tensor | None:
    """The ranks of rows in time, where they were given."""
    order = arrays.pop("order", None)
    if order is not None and (order.dtype != torch.int64 or order.shape != (n_rows,) or bool((order < 0).any())):
        raise ModelFileError(f"array 'order' must hold {n_rows} ranks")
    return order


def read_kernel(estimator: Any, meta: dict[str, Any], points: Points | None = None) -> Kernel:
    """A kernel for points like those, or for rows like those that were fitted."""
    d = points.values.shape[1] if points is not None and points.is_tensor else None
    if points is not None and d != getattr(estimator, "n_features_in_", None):
        raise ModelFileError(f"the points have {d} columns, expected those of n_features")
    if points is None:
        points = Points(torch.zeros(1, estimator.n_features_in_, dtype=torch.float64))
    return from_dict_at(meta["kernel"], points)


def nothing_left(arrays: dict[str, Tensor], name: str) -> None:
    """Every array of the file must have been used."""
    if arrays:
        raise ModelFileError(f"the arrays {sorted(arrays)} do not belong to a {name}")
