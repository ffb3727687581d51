"""Public functions and methods with one or two of their arguments made wrong, odd or large."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from fuzz.data import CONTAINERS, PATHOLOGIES, TARGETS, WEIGHTS, Rng
from fuzz.functions import CALLS, Call
from fuzz.trial import Finding, Trial

WRONG = (-1, 0, 1, 2, 0.5, 1e-300, 1e308, 10**30, float("nan"), float("inf"), "x", "", None, True, (), {}, [1, 2],
         object(), np.float32(0.5), np.array([1.0, 2.0]), torch.tensor(1.0), b"x", 1j)  # fmt: skip
"""What any argument is replaced by."""


def copied(value: Any) -> Any:
    """A copy to compare with, of arrays alone."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if isinstance(value, torch.Tensor) else value


def unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        if before.dtype.kind == "O":
            return before.shape == after.shape and all(map(lambda a, b: a is b, before.flat, after.flat))
        return before.shape == after.shape and before.tobytes() == after.tobytes()
    if isinstance(before, torch.Tensor):
        return bool(torch.equal(torch.nan_to_num(before), torch.nan_to_num(after)))
    return True


def state() -> tuple[Any, ...]:
    """The global generators."""
    words = np.random.get_state()  # noqa: NPY002
    return (random.getstate(), words[1].tobytes(), words[2], torch.get_rng_state().numpy().tobytes())


def numbers_in(value: Any, depth: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of floats in what a function gives: themselves, of tuples and of frozen results."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, float | np.ndarray | np.floating):
        if np.asarray(value).dtype.kind in "fc":
            yield "", np.asarray(value)
    elif isinstance(value, tuple | list) and depth < 3:
        for i, part in enumerate(value):
            yield from ((f"[{i}]{at}", found) for at, found in numbers_in(part, depth + 1))
    elif dataclasses.is_dataclass(value) and depth < 2:
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                part = getattr(value, field.name, None)
                yield from ((f".{field.name}{at}", found) for at, found in numbers_in(part, depth + 1))


def changed(rng: Rng, call: Call, given: dict[str, Any]) -> str:
    """One argument made odd or wrong; what was done, in words."""
    fixed = ("method", "options")
    name = str(rng.choice([name for name in given if name not in fixed or (name == "options" and given[name])]))
    if name == "options":
        inner = str(rng.choice(list(given[name])))
        value = WRONG[int(rng.integers(len(WRONG)))]
        given[name] = given[name] | {inner: value}
        return f"{inner}={value!r:.40}"
    wrong = rng.random() < 0.15
    if not wrong and isinstance(given[name], np.ndarray):
        tables: list[dict[str, Any]] = [TARGETS] if name in call.targets else [PATHOLOGIES, PATHOLOGIES, CONTAINERS]
        table = tables[int(rng.integers(len(tables)))]
        how = str(rng.choice(list(table)))
        value = given[name].copy()
        if value.dtype.kind in "US" and how not in ("short y", "object y", "column y"):
            return ""
        with np.errstate(all="ignore"):
            try:
                given[name] = table[how](value, rng)
            except (IndexError, ValueError, TypeError):
                return ""
        return f"{name} {how}"
    if name in ("sample_weight", "weights_x", "weights", "multiplicities"):
        how = str(rng.choice(list(WEIGHTS)))
        given[name] = WEIGHTS[how](len(given["X"]), rng)
        return f"{name} {how}"
    if name == "Z" and "method" in given and given[name] is None:
        return ""
    value = WRONG[int(rng.integers(len(WRONG)))]
    if name == "Z" and "method" in given and value is None:
        return ""
    given[name] = value
    return f"{name}={value!r:.40}"


INFINITE = (
    "LayerKernel", "gram", "interval", "learning_curve", "jackknife", "samples_needed", "diagnostics", "curve_of",
)  # fmt: skip
"""Calls whose results may hold NaN or inf, which the docs say: too few rows for an interval, no forecast, products with
what is not finite, kernels of networks at 1e300."""


def trials(seed: int, numbers: range) -> Iterator[Trial]:
    """The trials of these numbers; each has a random generator of its own."""
    for number in numbers:
        rng = np.random.default_rng([seed, number, 7])
        name = str(rng.choice(list(CALLS)))
        call = CALLS[name]
        given = call.good(rng)
        words = [changed(rng, call, given) for _ in range(int(rng.choice([0, 1, 1, 1, 1, 2])))]
        yield Trial(number, f"{name}: {'; '.join(w for w in words if w)}", functools.partial(called, name, given))


def called(name: str, given: dict[str, Any]) -> str:
    """Call, and look at the results, at what was given and at the global generators."""
    before, world = {key: copied(value) for key, value in given.items()}, state()
    try:
        found = CALLS[name].call(**given)
        text = repr(found)
        if not text:
            raise Finding("repr is empty")
        if callable(getattr(found, "summary", None)):
            str(found.summary())
    finally:
        if state() != world:
            raise Finding("a global generator has been used")
        if not all(unchanged(value, given[key]) for key, value in before.items()):
            raise Finding("an argument has been changed")
    if not any(word in name for word in INFINITE):
        for at, values in numbers_in(found):
            if not np.isfinite(values).all():
                raise Finding(f"{name}{at}: NaN or inf without a word")
    return "numbers"
