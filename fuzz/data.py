"""Random samples and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Rng = np.random.Generator
ROWS = (1, 2, 3, 5, 10, 10, 25, 25, 40, 40, 60, 60, 90)
COLUMNS = (1, 1, 1, 2, 2, 3, 3, 8, 40, 500)


def _put(X: Any, rng: Rng, value: Any) -> Any:
    """A copy with one entry replaced."""
    X = np.array(X)
    X[int(rng.integers(len(X))), int(rng.integers(X.shape[1]))] = value
    return X


def _duplicated(X: Any, rng: Rng) -> Any:
    return X[rng.integers(max(1, len(X) // 3), size=len(X))]


def _nearly_duplicated(X: Any, rng: Rng) -> Any:
    twin = X[rng.integers(max(1, len(X) // 2), size=len(X))]
    return twin * (1.0 + 1e-9 * rng.normal(size=X.shape))


def _collinear(X: Any, rng: Rng) -> Any:
    return X[:, :1] * rng.normal(size=(1, X.shape[1]))


def _one_constant_column(X: Any, rng: Rng) -> Any:
    X = np.array(X)
    X[:, int(rng.integers(X.shape[1]))] = 3.0
    return X


def _read_only(X: Any, rng: Rng) -> Any:
    X = np.array(X)
    X.flags.writeable = False
    return X


PATHOLOGIES: dict[str, Callable[[Any, Rng], Any]] = {
    "duplicates": _duplicated,
    "near duplicates": _nearly_duplicated,
    "all rows equal": lambda X, rng: np.repeat(X[:1], len(X), axis=0),
    "a constant column": _one_constant_column,
    "zeros": lambda X, rng: np.zeros_like(X),
    "collinear": _collinear,
    "sorted grid": lambda X, rng: np.repeat(np.linspace(0, 1, len(X))[:, None], X.shape[1], 1),
    "times 1e200": lambda X, rng: X * 1e200,
    "times 1e-200": lambda X, rng: X * 1e-200,
    "times 1e8": lambda X, rng: X * 1e8,
    "times 1e-8": lambda X, rng: X * 1e-8,
    "offset 1e6": lambda X, rng: X + 1e6,
    "offset 1e12": lambda X, rng: X + 1e12,
    "one outlier": lambda X, rng: _put(X, rng, 1e6),
    "one huge value": lambda X, rng: _put(X, rng, 1e300),
    "columns of many scales": lambda X, rng: X * 10.0 ** rng.integers(-8, 9, X.shape[1]),
    "positive": lambda X, rng: np.abs(X),
    "NaN": lambda X, rng: _put(X, rng, np.nan),
    "inf": lambda X, rng: _put(X, rng, np.inf),
    "no rows": lambda X, rng: X[:0],
    "no columns": lambda X, rng: X[:, :0],
    "one dimension": lambda X, rng: X[:, 0],
    "text": lambda X, rng: [f"{value:.1f}" for value in X[:, 0]],
    "complex": lambda X, rng: X + 1j,
    "three dimensions": lambda X, rng: X[:, :, None],
}
"""What can be wrong with the numbers of X."""

HOSTILE = {"NaN", "inf", "no rows", "no columns", "one dimension", "text", "complex", "three dimensions"}

CONTAINERS: dict[str, Callable[[Any, Rng], Any]] = {
    "float32": lambda X, rng: X.astype(np.float32),
    "float16": lambda X, rng: X.astype(np.float16),
    "integers": lambda X, rng: np.round(10 * X).astype(int),
    "uint8": lambda X, rng: np.abs(np.round(10 * X)).astype(np.uint8),
    "bool": lambda X, rng: X > 0,
    "object": lambda X, rng: X.astype(object),
    "Fortran": lambda X, rng: np.asfortranarray(X),
    "strided": lambda X, rng: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X, rng: X[::-1],
    "read only": _read_only,
    "list": lambda X, rng: X.tolist(),
    "torch": lambda X, rng: torch.tensor(X),
    "torch float32": lambda X, rng: torch.tensor(X, dtype=torch.float32),
    "big endian": lambda X, rng: X.astype(">f8"),
    "longdouble": lambda X, rng: X.astype(np.longdouble),
}
"""What X can come in; applied last, to rows of numbers."""

TARGETS: dict[str, Callable[[Any, Rng], Any]] = {
    "constant y": lambda y, rng: np.full_like(y, 2.0),
    "zero y": lambda y, rng: np.zeros_like(y),
    "y times 1e100": lambda y, rng: y * 1e100,
    "y times 1e-100": lambda y, rng: y * 1e-100,
    "y times 1e200": lambda y, rng: y * 1e200,
    "y offset 1e8": lambda y, rng: y + 1e8,
    "an outlier in y": lambda y, rng: np.where(np.arange(len(y)) == 0, 1e9, y),
    "NaN in y": lambda y, rng: np.where(np.arange(len(y)) == 0, np.nan, y),
    "inf in y": lambda y, rng: np.where(np.arange(len(y)) == 0, np.inf, y),
    "float32 y": lambda y, rng: y.astype(np.float32),
    "integer y": lambda y, rng: np.round(3 * y).astype(int),
    "object y": lambda y, rng: y.astype(object),
    "text y": lambda y, rng: np.array([f"{value:.1f}" for value in y]),
    "short y": lambda y, rng: y[:-1],
    "column y": lambda y, rng: y[:, None],
    "two targets": lambda y, rng: np.c_[y, np.cos(y)],
    "two targets of two scales": lambda y, rng: np.c_[y, 1e6 * np.cos(y)],
    "three targets, one constant": lambda y, rng: np.c_[y, -y, np.ones_like(y)],
}

WEIGHTS: dict[str, Callable[[int, Rng], Any]] = {
    "weights": lambda n, rng: rng.uniform(0.5, 2.0, n),
    "some zero weights": lambda n, rng: rng.integers(0, 2, n).astype(float),
    "zero weights": lambda n, rng: np.zeros(n),
    "huge weights": lambda n, rng: 10.0 ** rng.uniform(0, 12, n),
    "weights of 1e150": lambda n, rng: np.full(n, 1e150),
    "weights of 1e-150": lambda n, rng: np.full(n, 1e-150),
    "weights of many scales": lambda n, rng: 10.0 ** rng.uniform(-8, 8, n),
    "one weight": lambda n, rng: np.eye(n)[0],
    "negative weights": lambda n, rng: -np.ones(n),
    "NaN weights": lambda n, rng: np.full(n, np.nan),
    "integer weights": lambda n, rng: rng.integers(1, 4, n),
    "a number as weights": lambda n, rng: 2.0,
}


ORDERS: dict[str, Callable[[int, Rng], Any]] = {
    "numbers in order": lambda n, rng: np.arange(n),
    "random numbers": lambda n, rng: rng.normal(size=n),
    "a few moments": lambda n, rng: rng.integers(0, 3, n),
    "dates": lambda n, rng: np.datetime64("2024-01-01") + rng.integers(0, 99, n).astype("timedelta64[D]"),
    "text": lambda n, rng: [f"{i:03d}" for i in rng.permutation(n)],
    "gaps in order": lambda n, rng: np.where(np.arange(n) == 0, np.nan, np.arange(n)),
    "mixed order": lambda n, rng: [[1, "a", None][i % 3] for i in range(n)],
    "short order": lambda n, rng: np.arange(n - 1),
    "order in columns": lambda n, rng: np.arange(2 * n).reshape(n, 2),
    "a word as order": lambda n, rng: "x",
    "infinite order": lambda n, rng: np.full(n, np.inf),
}
"""How rows may follow each other."""


def random_order(rng: Rng, sample: Sample) -> Any:
    """One of these, added to the words of the sample."""
    name = str(rng.choice(list(ORDERS), p=[0.3, 0.2, *[0.5 / (len(ORDERS) - 2)] * (len(ORDERS) - 2)]))
    sample.words.append(name)
    return ORDERS[name](int(sample.words[0].split(" x ")[0]), rng)


@dataclass
class Sample:
    """Rows, targets, weights, new rows, and what is wrong with them in words."""

    X: Any
    y: Any
    weights: Any
    new: Any
    words: list[str]
    parts: int = 0  # rows at once of a stream, 0 for arrays

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and new rows in float64."""
        return np.asarray(self.X, dtype=np.float64), np.asarray(self.new, dtype=np.float64)


def random_sample(rng: Rng, pathologies: int, weighted: bool) -> Sample:
    """A smooth function with noise at random rows, with up to so many pathologies and a container."""
    n, d = int(rng.choice(ROWS)), int(rng.choice(COLUMNS))
    both = rng.normal(size=(n + 5, d))
    words = [f"{n} x {d}"]
    shares = np.array([0.3 if name in HOSTILE else 1.0 for name in PATHOLOGIES])
    names = list(rng.choice(list(PATHOLOGIES), size=pathologies, replace=False, p=shares / shares.sum()))
    X, new = both[:n], both[n:]
    for name in sorted(names, key=lambda name: name in HOSTILE):  # those that are no rows of numbers come last
        X = PATHOLOGIES[name](X, rng)
        new = new if name in HOSTILE - {"one dimension"} else PATHOLOGIES[name](new, rng)
        words.append(name)
        if name in HOSTILE:
            break
    y = np.sin(both[:n, 0]) + 0.1 * rng.normal(size=n)
    if rng.random() < 0.3:
        name = str(rng.choice(list(TARGETS)))
        y, words = TARGETS[name](y, rng), [*words, name]
    weights = None
    if weighted and rng.random() < 0.3:
        name = str(rng.choice(list(WEIGHTS)))
        weights, words = WEIGHTS[name](n, rng), [*words, name]
    if rng.random() < 0.3 and not HOSTILE & set(words):
        name = str(rng.choice(list(CONTAINERS)))
        with np.errstate(all="ignore"):
            X, new, words = CONTAINERS[name](X, rng), CONTAINERS[name](new, rng), [*words, name]
    return Sample(X, y, weights, new, words)


def random_labels(rng: Rng, n: int) -> tuple[Any, str]:
    """Labels of two or more classes, of several kinds."""
    kinds: dict[str, Callable[[], Any]] = {
        "two classes": lambda: rng.integers(0, 2, n),
        "text classes": lambda: rng.choice(["no", "yes"], n),
        "three classes": lambda: rng.integers(0, 3, n),
        "one class": lambda: np.zeros(n, dtype=int),
        "a class of one row": lambda: (np.arange(n) == 0).astype(int),
        "bool classes": lambda: rng.random(n) < 0.5,
        "as many classes as rows": lambda: np.arange(n),
        "classes of floats": lambda: rng.choice([0.5, 1.5], n),
        "NaN class": lambda: np.where(np.arange(n) == 0, np.nan, 1.0),
        "object classes": lambda: np.array(rng.choice(["a", "b"], n), dtype=object),
        "mixed classes": lambda: np.array([["a", 1][i % 2] for i in range(n)], dtype=object),
        "None class": lambda: np.array([[None, "a"][i % 2] for i in range(n)], dtype=object),
    }
    weights = np.array([6, 3, 4] + [1] * (len(kinds) - 3), dtype=float)
    kind = str(rng.choice(list(kinds), p=weights / weights.sum()))
    return kinds[kind](), kind
