"""Landmarks: the few points whose kernels span the functions of a Nyström fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import resolve_budget
from mercer.core.seeding import generator_from
from mercer.data.equal import distinct_rows
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators import Weighted, gram
from mercer.solvers.dials import LOOKED_AT, POOL, POOL_MATRICES
from mercer.solvers.leverage import leverage_sample
from mercer.solvers.pivoted_cholesky import pivoted_cholesky

HOW = ("uniform", "pivoted", "leverage")

_EXPECTED = "give 'uniform', 'pivoted', 'leverage' or an array of points"


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The chosen points, their rows in the data (None for points that were given) and what was done, in words."""

    points: Points
    index: Tensor | None
    note: str

    def __len__(self) -> int:
        return len(self.points)


def choose_landmarks(
    kernel: Kernel,
    X: Points,
    m: int,
    how: Any = "uniform",
    seed: int | torch.Generator = 0,
    weights: Tensor | None = None,
    memory_budget: Any = None,
) -> Landmarks:
    """At most m landmarks among the distinct rows of X that have weight.

    Parameters
    ----------
    how : str or array-like of shape (m, d)
        "uniform" draws them without replacement. "pivoted" takes the pivots of a randomly pivoted Cholesky factor of 30
        m rows, which covers the data and stops when the rank of the kernel matrix is reached: best when the spectrum
        decays fast. "leverage" draws by approximate ridge leverage scores of 30 m rows, which favours rows that no
        others can stand in for. An array or `Points` is taken as it is, without its repetitions.
    seed : int or torch.Generator
        Of the draw; the same rows of numbers, repeated or in another order, give the same landmarks.
    weights : Tensor or None
        Of the rows; an integer weight equals that many repetitions.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB", for what "pivoted" and "leverage" compute; where it is short they choose among
        fewer than 30 m rows. By default half of what is free.

    References
    ----------
    Williams and Seeger, *Using the Nyström method to speed up kernel machines*, 2001; Chen, Epperly, Tropp
    and Webber, *Randomly pivoted Cholesky*, 2023; Musco and Musco, *Recursive sampling for the Nyström method*, 2017.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.tensor([[0.0], [0.0], [1.0], [2.0]]))
    >>> chosen = choose_landmarks(Gaussian(), X, m=10)
    >>> len(chosen), chosen.note
    (3, 'all 3 distinct rows are landmarks')
    """
    check_landmarks(how)
    _refuse_noise(kernel, X)
    if not isinstance(how, str):
        return _given(how, kernel, X)
    if m < 1:
        raise InputError(f"n_landmarks={m}: must be at least 1.")
    generator = generator_from(seed)
    rows, counts = distinct_rows(X, weights)
    if len(rows) == 0:
        raise InputError("All sample weights are zero: there are no rows to choose landmarks from.")
    if len(rows) <= m:
        words = "distinct rows are landmarks" if len(rows) < len(X) else "rows are landmarks"
        return Landmarks(X.take(rows), rows, f"all {len(rows):,} {words}")
    if how == "uniform":
        chosen = rows[_draw(len(rows), m, generator)]
        return Landmarks(X.take(chosen), chosen, f"{m:,} landmarks drawn uniformly from {len(rows):,} distinct rows")
    pool = _draw(len(rows), min(len(rows), _pool_size(m, X, memory_budget)), generator)
    kept, note = _choose_from(kernel, X.take(rows[pool]), counts[pool], m, how, generator, memory_budget)
    chosen = rows[pool[kept]]
    return Landmarks(X.take(chosen), chosen, note)


def check_landmarks(how: Any, n_landmarks: Any = None) -> int | None:
    """How many landmarks are asked for, by their number or as points; None where neither is given.

    >>> check_landmarks("uniform"), check_landmarks("pivoted", 7), check_landmarks([[0.0], [1.0]])
    (None, 7, 2)
    """
    if isinstance(how, str):
        if how not in HOW:
            raise InputError(f"landmarks={how!r}: {_EXPECTED}.")
    elif not hasattr(how, "__len__") or getattr(how, "shape", None) == ():
        raise InputTypeError(f"landmarks={how!r}: {_EXPECTED}.")
    m = n_landmarks
    if m is not None and (isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1):
        raise InputError(f"n_landmarks={m!r}: must be an integer >= 1, or None to choose.")
    if isinstance(how, str):
        return None if m is None else int(m)
    if m is not None and m != len(how):
        raise InputError(f"n_landmarks={m} but {len(how)} landmarks are given as points: leave n_landmarks out.")
    return len(how)


def _refuse_noise(kernel: Kernel, X: Points) -> None:
    """Raise an error for a kernel that differs between a row paired with itself and with an equal row of other data.

    Kernels that are known to be smooth do not.
    """
    if kernel.smoothness:
        return
    for i in range(min(LOOKED_AT, len(X))):
        row = X.take(slice(i, i + 1))
        one, two = (float(kernel.on(DensePair(row, other))) for other in (None, row))
        if abs(one - two) > 1e-12 * abs(one):
            raise InputError(
                f"{kernel!r} has white noise, which belongs to rows and not to landmarks: leave it out of the kernel. "
                f"Without sample weights, adding {one - two:.3g} to alpha has the same effect."
            )


def _pool_size(m: int, X: Points, memory_budget: Any) -> int:
    """POOL rows per landmark, as far as some matrices of m times that many float64 numbers fit the memory budget."""
    budget = resolve_budget(memory_budget, X.values.device if X.is_tensor else "cpu")
    return max(m, min(POOL * m, budget // (8 * POOL_MATRICES * m)))


def _draw(n: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=generator)[:count].sort().values


def _choose_from(
    kernel: Kernel, pool: Points, counts: Tensor, m: int, how: str, generator: torch.Generator, memory_budget: Any
) -> tuple[Tensor, str]:
    """The places of at most m landmarks in a pool of rows, and what was done."""
    weighted = Weighted(gram(kernel, pool, memory_budget=memory_budget), counts.sqrt())
    if how == "leverage":
        drawn = leverage_sample(weighted, m, generator).cpu()
        return drawn, f"{len(drawn):,} landmarks drawn by ridge leverage scores of {len(pool):,} rows"
    pivots = pivoted_cholesky(weighted, m, seed=generator).pivots.cpu()
    words = f"{len(pivots):,} landmarks chosen by randomly pivoted Cholesky from {len(pool):,} rows"
    return pivots, words if len(pivots) == m else f"{words}, whose kernel matrix has no larger rank"


def _given(how: Any, kernel: Kernel, X: Points) -> Landmarks:
    points = kernel.points(how, "landmarks").owned()
    if points.is_tensor and X.is_tensor:
        if points.values.shape[1] != X.values.shape[1]:
            raise InputError(f"landmarks have {points.values.shape[1]} columns but X has {X.values.shape[1]}.")
        if points.names is not None and X.names is not None and points.names != X.names:
            raise InputError(f"The columns of landmarks are {list(points.names)} but those of X are {list(X.names)}.")
        points = Points(points.values.to(X.values), X.names)
    if len(points) == 0:
        raise InputError("landmarks is empty: give at least one point.")
    rows = distinct_rows(points)[0].sort().values
    repeated = len(points) - len(rows)
    note = f"{len(rows):,} landmarks were given" + (f", and {repeated} repetitions left out" if repeated else "")
    return Landmarks(points.take(rows) if repeated else points, None, note)
