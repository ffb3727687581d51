"""What can be wrong with a fit, one small function each: plain facts in, a sentence or nothing out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from mercer.core.errors import InputError
from mercer.estimators.dials import (
    ALIKE,
    CHANCE,
    CLEARLY,
    COPIES,
    FALLING,
    FAR,
    FEW_ROWS,
    GOOD,
    LITTLE,
    NEARLY,
    NO_BETTER,
    NOTHING,
    UNITS,
    WORSE,
)


def no_better_than_constant(skill: float, words: str, constant: str) -> str | None:
    """The model knows no more than a constant.

    >>> no_better_than_constant(-0.2, "R2 -0.2", "the mean of y")
    'the model predicts no better than the mean of y (R2 -0.2): the columns may say nothing about y, or the kernel is \
wrong'
    """
    if not skill < NO_BETTER:
        return None
    why = "the columns may say nothing about y, or the kernel is wrong"
    return f"the model predicts no better than {constant} ({words}): {why}"


def worse_than_linear(
    losses: np.ndarray, linear: np.ndarray, constant: float, weights: np.ndarray, clearly: float = CLEARLY
) -> bool:
    """Whether a linear model has clearly smaller losses for the same rows, beside the mean loss of a constant."""
    if not constant > 0:
        return False
    more = (losses - linear) / constant
    mean = float(np.average(more, weights=weights))
    error = float(np.sqrt(np.average((more - mean) ** 2, weights=weights) / len(more)))
    return mean > max(clearly, CHANCE * error)


def linear_is_better(measure: str, own: float, linear: float, given: bool) -> str:
    """What to do where a linear model is better; `given` tells that alpha was not chosen by the data.

    >>> linear_is_better("R2", 0.5, 0.8, given=True)
    "a linear model predicts better (R2 0.8 against 0.5): use alpha='auto', or a kernel with a linear part"
    """
    pair = f"{measure} {linear:.3g} against {own:.3g}"
    way = "use alpha='auto', or" if given else "use"
    return f"a linear model predicts better ({pair}): {way} a kernel with a linear part"


def unlike_units(names: Sequence[str], spreads: np.ndarray) -> str | None:
    """Columns in units too different for one length scale of all.

    >>> unlike_units(["area", "ph"], np.array([3000.0, 0.01]))
    "columns differ too much in units for one length scale ('area' spreads by 3000, 'ph' by 0.01): use \
length_scale='auto', or scale them"
    """
    moving = np.flatnonzero(spreads > 0)
    if len(moving) < 2:
        return None
    high, low = moving[np.argmax(spreads[moving])], moving[np.argmin(spreads[moving])]
    if not spreads[high] > UNITS * spreads[low]:
        return None
    pair = f"'{names[high]}' spreads by {spreads[high]:.4g}, '{names[low]}' by {spreads[low]:.4g}"
    return f"columns differ too much in units for one length scale ({pair}): use length_scale='auto', or scale them"


def no_intercept(mean: float, spread: float) -> str | None:
    """Targets far from zero, for a model without an intercept that predicts badly.

    >>> no_intercept(1000.0, 10.0)
    'y is far from zero (mean 1000, deviation 10) and the model has no intercept: use fit_intercept=True'
    """
    if not abs(mean) > FAR * spread:
        return None
    far = f"y is far from zero (mean {mean:.4g}, deviation {spread:.4g})"
    return f"{far} and the model has no intercept: use fit_intercept=True"


def at_falling_edge(errors: np.ndarray, constant: float) -> str | None:
    """The error along ascending alphas is least at an end and still falls there, beside that of the constant.

    >>> at_falling_edge(np.array([0.2, 0.5, 0.9]), 1.0)
    'alpha is the smallest of its path and the error still falls there: give smaller ones with alphas='
    >>> at_falling_edge(np.array([1e-9, 2e-9, 0.9]), 1.0)
    """
    if len(errors) < 2 or not 0 < constant < np.inf:
        return None
    least = int(np.argmin(errors))
    for end, next_, word in ((0, 1, "smallest"), (len(errors) - 1, len(errors) - 2, "largest")):
        if least == end and np.isfinite(errors[end]) and errors[next_] - errors[end] > FALLING * constant:
            more = word.replace("est", "er")
            return f"alpha is the {word} of its path and the error still falls there: give {more} ones with alphas="
    return None


def kernel_values(similarities: np.ndarray, skill: float) -> str | None:
    """All rows look alike, or none like another; `similarities` are correlations k(x, z) of pairs of different rows.

    >>> kernel_values(np.zeros(10), skill=0.0)
    'the kernel is zero between different rows: the length scale is too short'
    """
    if not len(similarities) or skill >= GOOD:
        return None
    if np.abs(similarities).max() < NOTHING:
        return "the kernel is zero between different rows: the length scale is too short"
    if similarities.min() > 1.0 - ALIKE:
        return "the kernel is the same for all pairs of rows: the length scale is too long, or a column dominates"
    return None


def forecasts_are_worse(forecast: float, left_out: float) -> str | None:
    """Later rows are predicted worse than rows that have others before and after them.

    >>> forecasts_are_worse(0.2, 0.9)
    'later rows are predicted worse than rows left out (R2 0.2 against 0.9): the columns must say what changes with \
time, or the kernel needs a linear or periodic part'
    """
    if not forecast < left_out - WORSE:
        return None
    pair = f"R2 {forecast:.3g} against {left_out:.3g}"
    way = "the columns must say what changes with time, or the kernel needs a linear or periodic part"
    return f"later rows are predicted worse than rows left out ({pair}): {way}"


def never_predicted(classes: Sequence[object], counts: np.ndarray, predicted: np.ndarray) -> str | None:
    """Classes with rows that no row left out is assigned to.

    >>> never_predicted(["a", "b"], np.array([90, 10]), np.array([100, 0]))
    "class 'b' (10 rows) is never predicted: it may need class_weight='balanced' or other columns"
    """
    never = [i for i in range(len(classes)) if counts[i] >= FEW_ROWS and predicted[i] == 0]
    if not never:
        return None
    shown = ", ".join(f"{classes[i]!r} ({int(counts[i]):,} rows)" for i in never[:3])
    shown += ", ..." * (len(never) > 3)
    words = ("class", "is", "it") if len(never) == 1 else ("classes", "are", "they")
    return (
        f"{words[0]} {shown} {words[1]} never predicted: {words[2]} may need class_weight='balanced' or other columns"
    )


def repeated(copies: int, rows: int) -> str | None:
    """Rows that repeat others.

    >>> repeated(30, 100)
    '30 of 100 rows repeat others in X and y, which makes errors at rows left out look too small: remove them if they \
are one record'
    """
    if copies < FEW_ROWS or copies < COPIES * rows:
        return None
    return (
        f"{copies:,} of {rows:,} rows repeat others in X and y, which makes errors at rows left out look too small: "
        "remove them if they are one record"
    )


def nearly_known(names: Sequence[str], shares: np.ndarray) -> str | None:
    """One column explains nearly all of the target, and no other a part that matters.

    >>> nearly_known(["age", "net"], np.array([0.1, 0.979]))
    "column 'net' alone explains 97.9% of y, and no other column more than 10%: is it known when predictions are made?"
    """
    order = np.argsort(shares)[::-1]
    if len(order) < 2 or shares[order[0]] < NEARLY or shares[order[1]] > LITTLE:
        return None
    return (
        f"column {names[order[0]]!r} alone explains {shares[order[0]]:.1%} of y, and no other column more than "
        f"{shares[order[1]]:.0%}: is it known when predictions are made?"
    )


def leaks(names: Sequence[str]) -> str | None:
    """Columns from which alone the target is known.

    >>> leaks(["price_eur"])
    "column 'price_eur' alone determines y: is it known when predictions are made?"
    """
    if not len(names):
        return None
    shown = ", ".join(f"'{name}'" for name in names[:3]) + ", ..." * (len(names) > 3)
    what = "column" if len(names) == 1 else "each of the columns"
    return f"{what} {shown} alone determines y: is it known when predictions are made?"


def looks_like_classes(y: np.ndarray) -> str | None:
    """Targets of a regression that look like labels: two values, or as many rows of each of the numbers 0, 1, 2, ...

    >>> looks_like_classes(np.array([0.0, 1.0, 1.0, 0.0]))
    'y has only the values 0, 1: for classes use KernelClassifier, which predicts probabilities'
    """
    values, counts = np.unique(y, return_counts=True)
    k = len(values)
    if not 2 <= k <= 20 or len(y) <= k:
        return None
    codes = values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(k))
    if k > 2 and not (codes and counts.min() >= max(FEW_ROWS, len(y) / (4 * k))):
        return None
    shown = ", ".join(f"{v:g}" for v in values[:4]) + ", ..." * (k > 4)
    return f"y has only the values {shown}: for classes use KernelClassifier, which predicts probabilities"


MOMENTS = (date, timedelta, np.datetime64, np.timedelta64)


def refuse_text(y: object) -> None:
    """Raise an error for targets of a regression that are text, dates or durations.

    As numbers, dates would be counts of some unit, and so would their gaps.
    """
    values = np.asarray(y, dtype=object).ravel() if not hasattr(y, "dtype") else np.asarray(y)
    if values.dtype.kind not in "OUSMm":
        return
    for label in values.astype(object).ravel().tolist():
        if values.dtype.kind in "Mm" or isinstance(label, MOMENTS):
            raise InputError(f"y contains dates or durations ({label}); give numbers, such as days since the first.")
        if isinstance(label, str) and not _is_number(label):
            words = f"y contains text ({label!r}), but this estimator predicts numbers"
            raise InputError(f"{words}: use KernelClassifier for classes.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
