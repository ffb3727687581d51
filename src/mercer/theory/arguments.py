"""What the arguments of the functions of theory may be: one table, looked at before any work."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.core.errors import InputError, InputTypeError
from mercer.core.rules import (
    FLAG,
    SCALE,
    SEED,
    Rule,
    Rules,
    check_arguments,
    is_number,
    number,
    of_kind,
    one_of,
    whole,
)
from mercer.kernels import Kernel
from mercer.plots.canvas import numbers, vector
from mercer.theory.dials import LARGEST_TARGET, LARGEST_VALUE, MOST_ROWS

POSITIVE = number(lambda value: value > 0, "a finite number > 0")
SHARE = Rule(is_number, lambda value: 0 < value < 1, "a number between 0 and 1")
NOT_HUGE = number(lambda value: 0 <= float(value) <= LARGEST_VALUE, f"a number from 0 to {LARGEST_VALUE:g}")
FUNCTION = of_kind(callable, "a function of an array of rows")
DEGREE = whole(0, 10_000)

RULES: Rules = {
    "alpha": NOT_HUGE,
    "d": whole(2, 10**9),
    "degree": DEGREE,
    "dimension": POSITIVE,
    "draws": whole(1, 10**8),
    "error": Rule(is_number, lambda value: 0 <= value <= 1, "a number between 0 and 1, the error of predicting zero"),
    "f": FUNCTION,
    "intercept": FLAG,
    "k": DEGREE,
    "kernel": of_kind(lambda value: isinstance(value, Kernel), "a kernel, such as mercer.kernels.Gaussian(1.0)"),
    "kmax": DEGREE,
    "level": SHARE,
    "measure": one_of("RMSE", "Brier score"),
    "n": number(lambda value: value >= 1, "a finite number >= 1"),
    "noise": NOT_HUGE,
    "radius": POSITIVE,
    "random_state": SEED,
    "repeats": whole(1, 10**6),
    "smoothness": POSITIVE,
    "tail": SCALE,
    "terms": whole(1, 10**6),
}


def check(**given: object) -> None:
    """Raise an error that names the first argument that cannot be what it is."""
    check_arguments(RULES, **given)


def rows_counts(n: Any, name: str = "n", most: float = MOST_ROWS) -> np.ndarray:
    """Numbers of rows, one or more whole numbers from 1 on, as an array of integers.

    >>> rows_counts([10, 20.0])
    array([10, 20])
    """
    found = np.atleast_1d(numbers(n, name)).reshape(-1)
    if not found.size or (found < 1).any() or (found > most).any() or (found % 1 != 0).any():
        raise InputError(f"{name}={n!r}: must be whole numbers of rows from 1 to {most:,.0f}.")
    return found.astype(int)


def square(matrix: Any, name: str = "gram") -> np.ndarray:
    """A symmetric matrix of numbers."""
    K = numbers(matrix, name)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
        raise InputError(f"{name} has shape {K.shape}; expected a square matrix, (n, n).")
    if not np.abs(K).max() <= LARGEST_VALUE:
        raise InputError(f"{name} has values up to {np.abs(K).max():.2g}, whose squares overflow: rescale it.")
    difference = np.abs(K - K.T)
    if difference.max() > 1e-5 * np.abs(K).max():
        i, j = (int(place) for place in np.unravel_index(difference.argmax(), K.shape))
        raise InputError(f"{name} is not symmetric: [{i}, {j}] is {K[i, j]:g} but [{j}, {i}] is {K[j, i]:g}.")
    return K


def table(X: Any, name: str = "X", fewest: int = 1) -> np.ndarray:
    """Rows of numbers."""
    found = numbers(X, name)
    if found.ndim != 2 or len(found) < fewest or not found.shape[1]:
        raise InputError(
            f"{name} has shape {found.shape}; expected (n, d) with at least {fewest} row{'s' * (fewest > 1)} and a "
            "column. One column is X.reshape(-1, 1)."
        )
    return found


def values_of(f: Any, X: Any, name: str) -> np.ndarray:
    """What a user's function gives for rows, one number for each."""
    if not callable(f):
        raise InputTypeError(f"{name}={f!r}: must be {FUNCTION.words}.")
    return vector(f(X), f"{name}(X)", len(X))


def columns_of(targets: Any, n: int) -> np.ndarray:
    """Targets as columns, (n, t)."""
    found = numbers(targets, "targets")
    if found.ndim not in (1, 2) or len(found) != n or not found.size:
        raise InputError(f"targets have shape {found.shape}; expected ({n},) or ({n}, t), one row for each of gram.")
    largest = float(np.abs(found).max())
    if not (largest == 0 or 1 / LARGEST_TARGET <= largest <= LARGEST_TARGET):
        raise InputError(f"targets have values up to {largest:.2g}, whose squares float64 cannot hold: rescale them.")
    return found.reshape(n, -1)
