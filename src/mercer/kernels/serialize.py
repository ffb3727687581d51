"""Kernels as plain data for model files, and back: only classes that registered themselves, every value checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, MercerError, ModelFileError
from mercer.kernels.base import Kernel
from mercer.kernels.dials import MAX_DEPTH, MAX_ENTRIES, SERIALIZE_SMALLEST
from mercer.kernels.pair import DensePair, DiagonalPair
from mercer.kernels.registry import PARTS, SAVED


def to_dict(kernel: Kernel) -> dict[str, Any]:
    """The kernel as nested plain data that JSON can hold.

    >>> from mercer.kernels import Gaussian
    >>> to_dict(Gaussian(2.0))
    {'class': 'Gaussian', 'params': {'length_scale': 2.0}}
    """
    return _saved(kernel, 0)


def from_dict(data: Any) -> Kernel:
    """The kernel that `to_dict` wrote; raises ModelFileError for anything else.

    >>> from_dict({"class": "Gaussian", "params": {"length_scale": 2.0}})
    Gaussian(length_scale=2.0)
    """
    kernel: Kernel = _loaded(data, 0, SAVED)
    return kernel


def check_at(kernel: Kernel, points: Points) -> None:
    """Raise an error unless a kernel gives finite numbers at some of the points it is to be used with.

    >>> import torch
    >>> from mercer.kernels import Gaussian
    >>> check_at(Gaussian((1.0, 2.0)), Points(torch.ones(4, 3)))
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: The kernel in the model file does not fit its points: ...
    """
    points = points.double()
    ready, some = kernel.domain == "matrix", points.take(slice(0, 2))
    try:
        pairs: list[Any] = [DiagonalPair(points)] if ready else [DiagonalPair(some), DensePair(some)]
        values = [torch.as_tensor(kernel.on(pair)) for pair in pairs]
    except (MercerError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"The kernel in the model file does not fit its points: {error}") from error
    if not all(bool(torch.isfinite(v).all()) for v in values):
        raise ModelFileError(f"The kernel in the model file is not finite at its points: {_short(kernel)}.")


def _saved(kernel: Any, depth: int) -> dict[str, Any]:
    """A kernel, or a part of one, as plain data."""
    name = type(kernel).__name__
    known: Mapping[str, type] = SAVED if isinstance(kernel, Kernel) else PARTS
    if known.get(name) is not type(kernel):
        raise InputError(
            f"The kernel {kernel!r} cannot be saved in a model file: {name} holds a Python function, or is not "
            "registered (see mercer.kernels.register); use pickle."
        )
    if depth > MAX_DEPTH:
        raise InputError(
            f"The kernel cannot be saved in a model file: it is nested deeper than {MAX_DEPTH}; use pickle."
        )
    params: dict[str, Any] = {}
    entries: Any = kernel
    for f in fields(entries):
        value = getattr(kernel, f.name)
        if isinstance(value, Tensor):
            raise InputError(
                f"The kernel {kernel!r} cannot be saved in a model file: {f.name} is a tensor; use a number or pickle."
            )
        if callable(value) and not _nested(value):
            raise InputError(
                f"The kernel {kernel!r} cannot be saved in a model file: {f.name} is a Python function; use pickle."
            )
        params[f.name] = _plain(value, depth)
    return {"class": name, "params": params}


def _nested(value: Any) -> bool:
    return isinstance(value, Kernel) or PARTS.get(type(value).__name__) is type(value)


def _plain(value: Any, depth: int) -> Any:
    if _nested(value):
        return _saved(value, depth + 1)
    if isinstance(value, tuple):
        return [_saved(entry, depth + 1) if _nested(entry) else entry for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _loaded(data: Any, depth: int, classes: Mapping[str, type]) -> Any:
    """The kernel, or the part of one, that plain data describe, of one of these classes."""
    if depth > MAX_DEPTH:
        raise ModelFileError(f"The kernel in the model file is nested deeper than {MAX_DEPTH}.")
    if not isinstance(data, dict) or set(data) != {"class", "params"}:
        raise ModelFileError(f'A kernel in a model file has the keys "class" and "params", got {_short(data)}.')
    name, params = data["class"], data["params"]
    if not isinstance(name, str) or name not in classes:
        raise ModelFileError(
            f"The model file names an unknown kernel {_short(name)}. If it is one of your own, register it before "
            "loading: see mercer.kernels.register."
        )
    if not isinstance(params, dict):
        raise ModelFileError(f"The parameters of {name} in the model file are not a table: {_short(params)}.")
    cls: Any = classes[name]
    known = {f.name for f in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is MISSING}
    if not needed <= set(params) <= known:
        raise ModelFileError(
            f"{name} has the parameters {sorted(known)}, but the model file gives {_short(sorted(map(str, params)))}."
        )
    absent = {f.name for f in fields(cls) if f.default is None and params.get(f.name, 0) is None}
    values = {key: _value(value, f"{name}.{key}", depth) for key, value in params.items() if key not in absent}
    try:
        return cls(**values)
    except MercerError as error:
        raise ModelFileError(f"The model file contains an invalid kernel: {error}") from error


def _value(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, dict):
        return _loaded(value, depth + 1, SAVED | PARTS)
    if isinstance(value, list):
        if len(value) > MAX_ENTRIES:
            raise ModelFileError(
                f"{where} in the model file has {len(value)} entries; at most {MAX_ENTRIES} are allowed."
            )
        if not all(isinstance(entry, int | float | str | dict) for entry in value):
            raise ModelFileError(f"{where} in the model file must list numbers or names, got {_short(value)}.")
        return tuple(_value(entry, where, depth) for entry in value)
    if isinstance(value, str):
        return math.inf if value == "inf" else value
    if isinstance(value, float) and 0 < abs(value) < SERIALIZE_SMALLEST:
        raise ModelFileError(f"{where} in the model file is {value}, too small for float64 to compute with.")
    if isinstance(value, bool | int | float):
        return value
    raise ModelFileError(f"{where} in the model file is {_short(value)}, which cannot be a parameter of a kernel.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
