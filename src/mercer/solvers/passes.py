"""Minima over rows that are read in parts: searches that ask for sums, and passes that answer all of them at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.engines import Arrays
from mercer.solvers.dials import (
    INNER,
    LAST,
    NEWTON_ROUNDING,
    PASSES_FIRST,
    PASSES_LINEAR,
    PASSES_MOST,
    PASSES_NARROWER,
    PATIENCE,
    STEP_SHARES,
)
from mercer.solvers.journal import Journal
from mercer.solvers.loss_sums import Aim, Kinks, Round, Slopes, Trial, answers_of, sums_at
from mercer.solvers.newton import Minimum
from mercer.solvers.row_blocks import total
from mercer.solvers.sampled_curvature import SampledCurvature

Search: TypeAlias = Generator[Any, Arrays, Minimum]
"""Asks with a `Trial`, is told the answer, and ends with a minimum."""

Tell = Callable[[int, float], None]


def minima(searches: Sequence[Search], blocks: Any, basis: Tensor, journal: Journal) -> list[Minimum]:
    """What searches over the same rows end with; each pass answers the questions of all that have not ended."""
    found: dict[int, Minimum] = {}
    asked: dict[int, Trial] = {i: next(search) for i, search in enumerate(searches)}
    while asked:
        trials = list(asked.values())
        answers = journal.answer(partial(_pass, trials, blocks, basis))
        for place, i in enumerate(list(asked)):
            own = {n.split("/", 1)[1]: v.to(basis) for n, v in answers.items() if n.startswith(f"{place}/")}
            try:
                asked[i] = searches[i].send(own)
            except StopIteration as end:
                found[i] = end.value
                del asked[i]
    return [found[i] for i in range(len(searches))]


def smooth_search(
    aim: Aim, curvature: SampledCurvature, u: Tensor, b: Tensor, tol: float, max_iter: int | None, tell: Tell | None
) -> Search:
    """L-BFGS from a function nearby, with the curvature of a sample of the rows where the method wants a first guess.

    The sample knows most of the curvature, differences of gradients the rest: a pass takes the error down about ten
    times, and none adds up second derivatives. It ends when the decrease that a step promises is `PASSES_LINEAR` times
    `tol` of the objective, because its last step does not square the error as Newton's does.

    References: Byrd, Chin, Neveitt and Nocedal, *On the use of stochastic Hessian information in optimization methods
    for machine learning*, 2011; Nocedal and Wright, *Numerical Optimization*, 2006, chapter 7.
    """
    started, steps, ending, residual = time.perf_counter(), 0, "", math.inf
    pairs: list[tuple[Tensor, Tensor, float]] = []
    here = yield Slopes(aim, u, b)
    most = PASSES_MOST if max_iter is None else max_iter
    while True:
        gradient = _packed(here["uphill"], here["slope"], aim)
        direction = -_inverse_product(gradient, pairs, lambda g: _solved(curvature, g, aim))
        slope = float((gradient * direction).sum())
        if not slope < 0:
            ending = "" if residual <= tol or abs(slope) <= NEWTON_ROUNDING else "no direction leads down"
            residual = min(residual, abs(slope))
            break
        value = float(here["value"])
        residual = -slope / 2 / max(abs(value), torch.finfo(torch.float64).tiny)
        if residual <= PASSES_LINEAR * tol:
            break
        if steps == most:
            ending = f"stopped after max_iter={most} iterations; increase max_iter, or use a larger alpha"
            break
        s = 1.0
        while True:
            d, shift = _unpacked(s * direction, aim)
            there = yield Slopes(aim, u + d, b + shift)
            reached = float(there["value"])
            if reached <= value + 1e-4 * s * slope + NEWTON_ROUNDING * abs(value):
                break
            s = _shorter(s, value, slope, reached)
            if s < 1e-8:
                break
        if s < 1e-8:
            ending = "" if residual <= tol else "no step lowers the objective"
            break
        steps += 1
        change = _packed(there["uphill"], there["slope"], aim) - gradient
        curved = float((s * direction * change).sum())
        if curved > 0:
            pairs.append((s * direction, change, curved))
        u, b, here = u + d, b + shift, there
        if tell is not None:
            tell(steps, residual)
    if aim.loss.joint and aim.intercept:
        b = b - b.mean()
    words = [ending, "" if aim.loss.convex else "a local solution: the loss is not convex"]
    return _minimum("newton", not ending, residual, steps, started, words, u, b, float(here["value"]))


def kinked_search(
    aim: Aim, scale: float, u: Tensor, b: Tensor, tol: float, max_iter: int | None, tell: Tell | None
) -> Search:
    """The rounds of `Dual`, with dual variables that are found again from the functions of all rounds.

    `scale` is the mean of k(x, x).
    """
    started, steps, ending, stuck = time.perf_counter(), 0, "", 0
    delta = scale * PASSES_FIRST
    rounds: tuple[Round, ...] = (Round(u, b, delta),)
    best: tuple[float, Tensor, Tensor, float] = (math.inf, u, b, math.inf)
    most = 3 * PASSES_MOST if max_iter is None else max_iter
    while best[0] > tol and not ending:
        here = yield Kinks(aim, u, b, delta, rounds)
        before = best[0]
        for _ in range(PASSES_MOST):
            best = _better(best, here, u, b)
            value, promised = float(here["value"][0]), float(here["promised"])
            residual = promised / max(abs(value), torch.finfo(torch.float64).tiny)
            if best[0] <= tol or residual <= INNER:
                break
            if steps >= most:
                ending = f"stopped after max_iter={most} iterations; increase max_iter, or use a larger alpha or tol"
                break
            d, shift = here["step"], here["shift"]
            there = yield Kinks(aim, u + d, b + shift, delta, rounds, (u, b))
            if not float(there["value"][0]) <= value - 2e-4 * promised + NEWTON_ROUNDING * abs(value):
                s = STEP_SHARES[int(there["value"].nan_to_num(torch.inf, torch.inf).argmin())]
                if not float(there["value"].min()) < value:
                    break
                d, shift = s * d, s * shift
                there = yield Kinks(aim, u + d, b + shift, delta, rounds, (u, b))
            u, b, here, steps = u + d, b + shift, there, steps + 1
            if tell is not None:
                tell(steps, best[0])
        stuck = 0 if best[0] < 0.9 * before else stuck + 1
        if stuck >= PATIENCE:
            ending = "this is the smallest duality gap that rounding allows: use a larger alpha or tol"
        rounds += (Round(u, b, delta),)
        delta = max(delta * PASSES_NARROWER, scale * LAST)
    gap, u, b, value = best
    return _minimum("dual", gap <= tol, gap, steps, started, [ending if gap > tol else ""], u, b, value)


def _pass(trials: Sequence[Trial], blocks: Any, basis: Tensor) -> Arrays:
    found = total(blocks, sums_at, tuple(trials), basis)
    if "cross" not in found:
        raise InputError("All sample weights are zero: there are no rows to learn from.")
    return answers_of(trials, {name: value.to(basis) for name, value in found.items()}, basis)


def _better(best: tuple[float, Tensor, Tensor, float], here: Arrays, u: Tensor, b: Tensor) -> Any:
    primal, bound = float(here["primal"]), float(here["bound"])
    gap = max(0.0, (primal - bound) / max(abs(primal), abs(bound), torch.finfo(torch.float64).tiny))
    return (gap, u, b, primal) if gap < best[0] else best


def _inverse_product(g: Tensor, pairs: list[tuple[Tensor, Tensor, float]], first: Callable[[Tensor], Tensor]) -> Tensor:
    """The inverse second derivative times g, as L-BFGS knows it."""
    q, shares = g.clone(), []
    for s, y, curved in reversed(pairs):
        share = float((s * q).sum()) / curved
        q = q - share * y
        shares.append(share)
    r = first(q)
    for (s, y, curved), share in zip(pairs, reversed(shares), strict=True):
        r = r + s * (share - float((y * r).sum()) / curved)
    return r


def _packed(uphill: Tensor, slope: Tensor, aim: Aim) -> Tensor:
    return torch.cat([uphill, slope.unsqueeze(0)]) if aim.intercept else uphill


def _unpacked(step: Tensor, aim: Aim) -> tuple[Tensor, Tensor]:
    return (step[:-1], step[-1]) if aim.intercept else (step, step.new_zeros(step.shape[1]))


def _solved(curvature: SampledCurvature, g: Tensor, aim: Aim) -> Tensor:
    return _packed(*curvature.solve(*_unpacked(g, aim)), aim)


def _shorter(s: float, value: float, slope: float, reached: float) -> float:
    """The least point of the parabola through what is known, between a tenth and a half of the step."""
    if not math.isfinite(reached):
        return s / 10
    bend = reached - value - s * slope
    return min(max(-slope * s * s / (2 * bend), s / 10), s / 2) if bend > 0 else s / 2


def _minimum(
    solver: str,
    converged: bool,
    residual: float,
    steps: int,
    started: float,
    words: Sequence[str],
    u: Tensor,
    b: Tensor,
    value: float,
) -> Minimum:
    return Minimum(
        solver=solver,
        converged=converged,
        residual=residual,
        iterations=steps,
        seconds=time.perf_counter() - started,
        reason="; ".join(filter(None, words)),
        value=u,
        intercept=b,
        fitted=u.new_empty(0, u.shape[1]),
        objective=value,
    )
