"""What a parameter of an estimator may be: one table for all of them, looked at before a fit does anything."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from functools import cache

import numpy as np
from sklearn.base import BaseEstimator

from mercer.core.devices import choose_device, choose_dtype
from mercer.core.memory import parse_budget
from mercer.core.rules import (
    FLAG,
    SCALE,
    SEED,
    TUNE,
    Reader,
    Rule,
    Rules,
    all_hold,
    is_finite,
    is_integer,
    is_number,
    is_numbers,
    name_or,
    number,
    of_kind,
    one_of,
    whole,
)
from mercer.estimators.common.alpha import ALPHA, CRITERIA, POSITIVE_ALPHA
from mercer.estimators.dials import MOST_RESTARTS, SMALLEST_VARIANCE
from mercer.kernels import as_kernel
from mercer.kernels.activations import FUNCTIONS
from mercer.losses import Loss
from mercer.losses.registry import names_for
from mercer.processes.means import ConstantMean, FunctionMean, LinearMean, ZeroMean
from mercer.solvers.landmarks import check_landmarks
from mercer.solvers.system import SMALLEST_ALPHA, is_alpha

BY_NAME = of_kind(lambda value: isinstance(value, Mapping), 'a dictionary by parameter, such as {"noise": ...}')


def _ridge(least: float, words: str) -> Rule:
    """A criterion, or numbers of which each can be an alpha."""
    return Rule(
        lambda value: isinstance(value, str) or is_numbers(value),
        lambda value: (
            value in CRITERIA if isinstance(value, str) else all_hold(lambda a: is_alpha(a) & (a >= least))(value)
        ),
        words,
    )


def loss_rule(what: str) -> Rule:
    """A loss for "classes" or "numbers" by its name, or any loss."""
    return Rule(
        lambda value: isinstance(value, str | Loss),
        lambda value: not isinstance(value, str) or value in names_for(what),
        f"{', '.join(map(repr, names_for(what)))} or a mercer.losses.Loss",
    )


MEANS = (ConstantMean, FunctionMean, LinearMean, ZeroMean)
MEAN_NAMES = ("auto", "zero", "constant", "linear")
RIDGE = _ridge(0.0, ALPHA)
POSITIVE_RIDGE = _ridge(SMALLEST_ALPHA, POSITIVE_ALPHA)

RULES: Rules = {
    "activation": name_or(tuple(FUNCTIONS), callable, "a function of a tensor"),
    "alpha": RIDGE,
    "alphas": Rule(
        is_numbers,
        all_hold(is_alpha),
        f"an array of one or more finite numbers, each 0 or at least {SMALLEST_ALPHA:.2g}",
    ),
    "bias_scale": SCALE,
    "bounds": BY_NAME,
    "center": FLAG,
    "checkpoint": of_kind(lambda value: isinstance(value, str | os.PathLike), "the path of a file"),
    "class_weight": name_or(
        ("balanced",), lambda value: isinstance(value, Mapping), "a dictionary of weights by class"
    ),
    "degree": whole(0),
    "delta": number(lambda value: value > 0, "a finite number > 0"),
    "device": Reader(choose_device),
    "dtype": Reader(choose_dtype),
    "epsilon": SCALE,
    "fit_intercept": FLAG,
    "inverse_alpha": RIDGE,
    "inverse_kernel": Reader(as_kernel),
    "kernel": Reader(as_kernel),
    "landmarks": Reader(check_landmarks),
    "max_iter": whole(1),
    "mean": Rule(
        lambda value: isinstance(value, (str, *MEANS)) or is_number(value) or callable(value),
        lambda value: value in MEAN_NAMES if isinstance(value, str) else not is_number(value) or is_finite(value),
        "'zero', 'constant', 'linear', 'auto', a finite number or a function of rows",
    ),
    "memory_budget": Reader(parse_budget),
    "n_components": whole(1),
    "n_features": whole(1),
    "n_landmarks": whole(1),
    "n_learn": whole(2),
    "n_restarts": whole(0, MOST_RESTARTS),
    "noise": Rule(
        lambda value: isinstance(value, str) or is_numbers(value),
        lambda value: (
            value == "learn"
            if isinstance(value, str)
            else all_hold(lambda v: (v == 0) | (v >= SMALLEST_VARIANCE))(value)
        ),
        f'"learn", a finite variance, 0 or at least {SMALLEST_VARIANCE:g}, or one for each row',
    ),
    "pre_image": one_of("ridge", "fixed_point"),
    "priors": BY_NAME,
    "quantiles": Rule(
        is_numbers,
        lambda value: (
            np.ndim(value) <= 1 and all_hold(lambda q: (q > 0) & (q < 1) & (np.diff(q, append=1.0) > 0))(value)
        ),
        "a number between 0 and 1, or several in ascending order",
    ),
    "random_state": SEED,
    "standardize": FLAG,
    "tol": Rule(is_number, lambda value: 0 < value < 1, "a number > 0 and < 1"),
    "tune": TUNE,
    "verbose": of_kind(lambda value: is_integer(value) or FLAG.kind(value), "True, False or an integer"),
    "weight_scale": SCALE,
}
"""The parameters that mean the same for all estimators; a class has rules of its own for the others, in `own_rules`."""


def check_parameters(estimator: BaseEstimator, own_rules: Rules = RULES) -> None:
    """Raise an error that names the first parameter that cannot be what it is; None where the signature allows it.

    `own_rules` are those of the class, which come before those of the table.

    >>> from mercer import KernelPCA
    >>> check_parameters(KernelPCA(tol="x"))
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: tol='x': must be a number > 0 and < 1.
    """
    owner: type = type(estimator)
    for name, parameter in _parameters(owner).items():
        value = getattr(estimator, name, None)
        if value is parameter.default:
            continue
        rule = own_rules.get(name) or RULES.get(name)
        optional = parameter.default is None or "None" in str(parameter.annotation)
        if rule is not None and not (value is None and optional):
            rule.check(name, value, optional and name != "random_state")


@cache
def _parameters(estimator: type) -> dict[str, inspect.Parameter]:
    """The parameters of a class of estimators, with their defaults, which need no look."""
    return dict(inspect.signature(estimator).parameters)
