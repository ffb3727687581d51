"""What the estimators' model files share: parameters, points and arrays as plain data, checked when read back."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.devices import DTYPES
from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.data import Seen
from mercer.kernels import Kernel, from_dict, to_dict

SEEN: dict[str, Any] = {
    "n_rows": int,
    "n_targets": int,
    "total_weight": (int, float),
    "one_target": bool,
    "torch_in": bool,
}
"""What is remembered of the training data, and its kinds."""

# Out


def plain_params(estimator: Any) -> dict[str, Any]:
    """The constructor's parameters as JSON can hold them."""
    return {name: _plain_param(name, value) for name, value in estimator.get_params(deep=False).items()}


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
    return {name: getattr(seen, name) for name in SEEN} | {"dtype": dtype}


def _plain_param(name: str, value: Any) -> Any:
    if isinstance(value, Kernel):
        return to_dict(value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, torch.device | torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "client":
        return None  # a connection is of now and here
    if name == "random_state" and not isinstance(value, int | None):
        return None  # a generator has no lasting meaning once it was used
    if callable(value) and not isinstance(value, type):
        raise InputError(f"{name} is a Python function, which does not fit a model file. Use pickle instead.")
    return value


# In


def typed(meta: dict[str, Any], name: str, kind: Any) -> Any:
    """An entry, which must be of a kind."""
    value = meta[name]
    if not isinstance(value, kind):
        raise ModelFileError(f"the entry {name!r} is {value!r:.60}")
    return value


def read_params(meta: dict[str, Any]) -> dict[str, Any]:
    """The constructor's parameters."""
    return {name: _read_param(name, value) for name, value in typed(meta, "params", dict).items()}


def _read_param(name: str, value: Any) -> Any:
    if name.endswith("kernel") and isinstance(value, dict):
        return from_dict(value)
    if isinstance(value, dict):
        raise ModelFileError(f"the parameter {name!r:.60} is an object")
    return value


def read_seen(values: dict[str, Any]) -> Seen:
    """What `plain_seen` wrote."""
    for name, kind in SEEN.items():
        value: Any = values.get(name)
        if not isinstance(value, kind) or (kind is not bool and not value > 0):
            raise ModelFileError(f"the entry {name!r} is {value!r:.60}")
    if values["one_target"] and values["n_targets"] != 1:
        raise ModelFileError(f"the entry 'n_targets' is {values['n_targets']}, expected 1")
    if values.get("dtype") not in (None, *DTYPES):
        raise ModelFileError(f"the entry 'dtype' is {values.get('dtype')!r:.60}")
    dtype = None if values["dtype"] is None else DTYPES[values["dtype"]]
    return Seen(**{name: values[name] for name in SEEN}, dtype=dtype, device=torch.device("cpu"))


KINDS: dict[str, Any] = {
    "str": str,
    "bool": bool,
    "float": (int, float),
    "int": int,
    "float | None": (int, float, type(None)),
}


def read_report(values: dict[str, Any]) -> SolverReport:
    """The account of a solver."""
    kinds = KINDS
    for f in fields(SolverReport):
        if not isinstance(values.get(f.name), kinds[str(f.type)]):
            raise ModelFileError(f"the entry {f.name!r} of the report is {values.get(f.name)!r:.60}")
    return SolverReport(**values)


def float_array(arrays: dict[str, Tensor], name: str, shape: tuple[int | None, ...]) -> Tensor:
    """An array, taken out, which must be float64 and of that shape, where None is any length."""
    array = arrays.pop(name)
    fits = array.ndim == len(shape) and all(s in (None, got) for s, got in zip(shape, array.shape, strict=True))
    if array.dtype != torch.float64 or not fits:
        wanted = str(shape).replace("None", "*")
        raise ModelFileError(f"array {name!r} is {array.dtype} {tuple(array.shape)}, expected float64 {wanted}")
    return array


def read_names(meta: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of the features."""
    names = meta["names"]
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the entry 'names' is not a list of strings")
    return tuple(names)


def read_points(meta: dict[str, Any], arrays: dict[str, Tensor], names: tuple[str, ...] | None) -> Points:
    """A sample: the array X, or the strings of the entry `objects`."""
    objects = meta["objects"]
    if objects is not None:
        if not isinstance(objects, list) or not all(isinstance(item, str) for item in objects):
            raise ModelFileError("the entry 'objects' is not a list of strings")
        return Points(objects)
    X = arrays.pop("X")
    if X.ndim != 2 or 0 in X.shape or X.dtype not in (torch.float32, torch.float64):
        raise ModelFileError(f"array 'X' is {X.dtype} {tuple(X.shape)}")
    return Points(X, names)


def remember_features(estimator: Any, n_features: int | None, names: tuple[str, ...] | None) -> None:
    """Set what scikit-learn knows of the features: their number, None for objects, and their names."""
    if n_features is not None:
        estimator.n_features_in_ = n_features
        if names is not None and len(names) != n_features:
            raise ModelFileError(f"the entry 'names' is not a list of {n_features} strings")
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def nothing_left(arrays: dict[str, Tensor], name: str) -> None:
    """Every array of the file must have been used."""
    if arrays:
        raise ModelFileError(f"the arrays {sorted(arrays)} do not belong to a {name}")
