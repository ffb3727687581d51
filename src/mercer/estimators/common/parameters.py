"""What a parameter of an estimator may be: one table for all of them, looked at before a fit does anything."""

from __future__ import annotations

import inspect
import math
import numbers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.core.memory import parse_budget
from mercer.estimators.common.alpha import ALPHA, CRITERIA
from mercer.kernels import as_kernel
from mercer.solvers.landmarks import check_landmarks


@dataclass(frozen=True)
class Rule:
    """Values of `kind` for which this holds, in words; booleans are numbers only where `kind` says so."""

    kind: Callable[[Any], bool]
    holds: Callable[[Any], bool]
    words: str

    def check(self, name: str, value: Any, optional: bool) -> None:
        words = f"{name}={value!r}: must be {self.words}{', or None' * optional}."
        if not self.kind(value):
            raise InputTypeError(words)
        if not self.holds(value):
            raise InputError(words)


@dataclass(frozen=True)
class Reader:
    """Values that a function can read; its errors say what is wrong."""

    read: Callable[[Any], Any]

    def check(self, name: str, value: Any, optional: bool) -> None:
        try:
            self.read(value)
        except MercerError as error:
            if name in str(error):
                raise
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(f"{name}={value!r}: {error}") from None


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _is_flag(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not _is_flag(value)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_numbers(value: Any) -> bool:
    """Whether a value is a number, or an array or sequence of numbers."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value).dtype.kind in "fiu"
    except (TypeError, ValueError):
        return False


def _all_finite(value: Any) -> bool:
    values = np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value, dtype=np.float64)
    return bool(values.size and np.isfinite(values).all() and (values >= 0).all())


def _whole(least: int) -> Rule:
    return Rule(_is_integer, lambda value: value >= least, f"an integer >= {least}")


def _one_of(*names: str) -> Rule:
    return Rule(lambda value: isinstance(value, str), lambda value: value in names, " or ".join(map(repr, names)))


def _of_kind(kind: Callable[[Any], bool], words: str) -> Rule:
    return Rule(kind, lambda value: True, words)


FLAG = _of_kind(_is_flag, "True or False")
BY_NAME = _of_kind(lambda value: isinstance(value, Mapping), 'a dictionary by parameter, such as {"noise": ...}')
SCALE = Rule(_is_number, lambda value: _is_finite(value) and value >= 0, "a finite number >= 0")
RIDGE = Rule(
    lambda value: value in CRITERIA if isinstance(value, str) else _is_numbers(value),
    lambda value: isinstance(value, str) or _all_finite(value),
    ALPHA,
)

RULES: dict[str, Rule | Reader] = {
    "bias_scale": SCALE,
    "bounds": BY_NAME,
    "center": FLAG,
    "checkpoint": _of_kind(lambda value: isinstance(value, str | os.PathLike), "the path of a file"),
    "class_weight": Rule(
        lambda value: isinstance(value, str | Mapping),
        lambda value: not isinstance(value, str) or value == "balanced",
        '"balanced" or a dictionary of classes',
    ),
    "degree": _whole(0),
    "delta": Rule(_is_number, lambda value: _is_finite(value) and value > 0, "a finite number > 0"),
    "device": Reader(choose_device),
    "dtype": Reader(choose_dtype),
    "epsilon": SCALE,
    "fit_intercept": FLAG,
    "inverse_alpha": RIDGE,
    "inverse_kernel": Reader(as_kernel),
    "landmarks": Reader(check_landmarks),
    "max_iter": _whole(1),
    "memory_budget": Reader(parse_budget),
    "n_components": _whole(1),
    "n_features": _whole(1),
    "n_landmarks": _whole(1),
    "n_learn": _whole(2),
    "n_restarts": _whole(0),
    "tune": FLAG,
    "pre_image": _one_of("ridge", "fixed_point"),
    "priors": BY_NAME,
    "random_state": Rule(
        lambda value: _is_integer(value) or isinstance(value, np.random.RandomState | np.random.Generator),
        lambda value: not _is_integer(value) or value >= 0,
        "None, an integer >= 0, a numpy RandomState or a numpy Generator",
    ),
    "standardize": FLAG,
    "tol": Rule(_is_number, lambda value: 0 < value < 1, "a number > 0 and < 1"),
    "verbose": _of_kind(lambda value: isinstance(value, numbers.Integral | np.bool_), "True, False or an integer"),
    "weight_scale": SCALE,
}
"""The parameters that mean the same for all estimators; the others are checked where they are used."""


def check_parameters(estimator: BaseEstimator) -> None:
    """Raise an error that names the first parameter that cannot be what it is; None where the signature allows it.

    >>> from mercer import KernelPCA
    >>> check_parameters(KernelPCA(tol="x"))
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: tol='x': must be a number > 0 and < 1.
    """
    for name, parameter in inspect.signature(type(estimator).__init__).parameters.items():
        value = getattr(estimator, name, None)
        optional = parameter.default is None or "None" in str(parameter.annotation)
        if name in RULES and not (value is None and optional):
            RULES[name].check(name, value, optional and name != "random_state")
