"""`SteinKernel`: a kernel whose functions have mean zero under a distribution known up to its constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.formula.evaluate import evaluate
from mercer.kernels import Kernel
from mercer.kernels.algebra import need_function, need_kernel
from mercer.kernels.pair import Pair, vectors
from mercer.kernels.properties import Properties
from mercer.stats.base_formula import BaseFormula, Term, at, base_formula
from mercer.stats.dials import NEAR
from mercer.stats.scores import score_rows


@dataclass(frozen=True, eq=False, repr=False)
class SteinKernel(Kernel):
    r"""The Stein kernel of a base kernel k and a score :math:`s = \nabla \log p`,

    .. math:: k_p(x, y) = \nabla_x \cdot \nabla_y k + s_x \cdot \nabla_y k + s_y \cdot \nabla_x k + (s_x \cdot s_y) k,

    whose mean under p is zero in either argument. It is an ordinary kernel: one formula, written from the slopes of the
    base's formula, on every back end.

    Parameters
    ----------
    base : Kernel
        A kernel that is a smooth function of squared distances and inner products, also per column, of some columns,
        and sums, products and powers of such.
    score : callable or None
        A function from rows (n, d) to the gradients of log p there. None: points are rows [x | s] of 2 d columns that
        carry their score, which is evaluated once then.

    References
    ----------
    Liu, Lee and Jordan, *A kernelized Stein discrepancy for goodness-of-fit tests*, 2016; Gorham and
    Mackey, *Measuring sample quality with kernels*, 2017.

    Examples
    --------
    >>> from mercer.kernels import InverseMultiquadric
    >>> k = SteinKernel(InverseMultiquadric(1.0), lambda X: -X)
    >>> k([[0.0], [1.0]]).round(4)
    array([[ 1.    , -0.5303],
           [-0.5303,  2.    ]])
    """

    base: Kernel
    score: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        need_kernel(self.base, "SteinKernel", "base")
        if self.score is not None:
            need_function(self.score, "SteinKernel", "score")

    def of(self, pair: Pair) -> Any:
        both = pair if self.score is None else pair.warped(WithScores(self.score))
        d, odd = divmod(both.columns(), 2)
        if odd:
            raise InputError(f"Points of a SteinKernel without a score are rows [x | s]; got {2 * d + 1} columns.")
        return _stein(base_formula(self.base, d), both, d)

    def tunable(self) -> dict[str, Any]:
        """None: widths are found before, since slopes are those of a formula with numbers."""
        return {}

    @property
    def properties(self) -> Properties:
        return Properties(stationary=False, is_normalised=False)


@dataclass(frozen=True)
class WithScores:
    """The warp x -> [x | s(x)]."""

    score: Callable[..., Any]

    def __call__(self, points: Points) -> Points:
        x = vectors(points)
        return Points(torch.cat([x, score_rows(self.score, x)], 1))


@dataclass(frozen=True)
class Weighted:
    """The warp [x | s] -> sqrt(w) (a x + b s), of which distances and inner products are the terms of the formula."""

    weights: tuple[float, ...]
    of_x: float
    of_s: float

    def __call__(self, points: Points) -> Points:
        both = vectors(points)
        d = both.shape[1] // 2
        root = torch.tensor(self.weights, dtype=both.dtype, device=both.device).sqrt()
        return Points((self.of_x * both[:, :d] + self.of_s * both[:, d:]) * root)


@dataclass(frozen=True)
class Slant:
    """The function [x | s] -> sum_j w_j x_j s_j of one end."""

    weights: tuple[float, ...]

    def __call__(self, rows: Tensor) -> Tensor:
        d = rows.shape[1] // 2
        weights = torch.tensor(self.weights, dtype=rows.dtype, device=rows.device)
        return (rows[:, :d] * rows[:, d:]) @ weights


def _stein(formula: BaseFormula, pair: Pair, d: int) -> Any:
    ones = (1.0,) * d
    scores = pair.warped(Weighted(ones, 0.0, 1.0)).inner()
    near = NEAR if formula.has_roots else 0.0
    values = {term.statistic: _value(term, pair, near) for term in formula.terms}
    total = scores * (at(formula.value, values) if values else float(evaluate(formula.value, [])))
    for i, program in formula.slopes.items():
        term = formula.terms[i]
        total = total + at(program, values) * (_trace(term) + _scored(term, pair))
    for (i, j), program in formula.seconds.items():
        crossed = _crossed(formula.terms[i], formula.terms[j], pair)
        if crossed is not None:
            total = total + at(program, values) * crossed * (1.0 if i == j else 2.0)  # (i, j) and (j, i)
    return total


def _value(term: Term, pair: Pair, near: float) -> Any:
    if term.is_distance:
        return _distance(pair, term.weights, 1.0, 0.0) + near
    return pair.warped(Weighted(term.weights, 1.0, 0.0)).inner()


def _distance(pair: Pair, weights: tuple[float, ...], of_x: float, of_s: float) -> Any:
    """The weighted squared distance, by weights of size one, so that kernels that differ in width alone share it."""
    largest = max(weights)
    shape = tuple(float(f"{w / largest:.12g}") for w in weights)
    return pair.warped(Weighted(shape, of_x, of_s)).squared_distance(largest**-0.5)


def _trace(term: Term) -> float:
    """The divergence in x and y of the statistic."""
    return (-2.0 if term.is_distance else 1.0) * sum(term.weights)


def _scored(term: Term, pair: Pair) -> Any:
    """s_x . grad_y u + s_y . grad_x u; of a distance it is -2 (s_x - s_y) . W (x - y), from three distances."""
    if not term.is_distance:
        left, right = pair.ends(Slant(term.weights))
        return left + right
    both, of_x, of_s = (_distance(pair, term.weights, a, b) for a, b in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)))
    return of_x + of_s - both


def _crossed(a: Term, b: Term, pair: Pair) -> Any:
    """grad_x u_b . grad_y u_a, for two kinds of statistics without the sign; None where they share no column."""
    weights = tuple(u * v for u, v in zip(a.weights, b.weights, strict=True))
    if not any(weights):
        return None
    if not (a.is_distance or b.is_distance):
        return pair.warped(Weighted(weights, 1.0, 0.0)).inner()
    distance = _distance(pair, weights, 1.0, 0.0)
    return -4.0 * distance if a.is_distance and b.is_distance else distance
