"""Ridge regression on few functions: landmarks or random features."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import require
from mercer.core.progress import counted
from mercer.core.results import Solution
from mercer.data.checkpoint import Checkpoint
from mercer.data.engines import Engine
from mercer.data.rows import RowSource
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.parts import blocks_in_parts, checkpoint_of, where_read
from mercer.estimators.dials import CENTRED_ON, FEATURE_MATRICES, FREE_SHARE, MOST_EXACT, N_FEATURES, SHOWN_ROWS
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import with_idle
from mercer.estimators.ridge.plan import RidgePlan, own_features
from mercer.functions.basis import Centres, Features
from mercer.functions.fourier import FourierFeatures
from mercer.selection import AlphaPath, Tuned
from mercer.selection.few import loo_predictions_of_few, select_alpha_of_few
from mercer.selection.left_out import LeftOutPredictions
from mercer.solvers.basis_blocks import blocks_of
from mercer.solvers.centring import centred
from mercer.solvers.choose import landmark_count
from mercer.solvers.landmarks import choose_landmarks
from mercer.solvers.running_sums import RunningSums
from mercer.solvers.spread_blocks import SpreadBlocks
from mercer.solvers.traits import OWN_FEATURES


def solve_few(plan: RidgePlan, sample: Sample, tuning: Tuned | None = None) -> RidgeFit:
    """Fit to rows in memory."""
    started = time.perf_counter()
    data, places = sample.positive()
    basis = choose_basis(plan, data)
    sums = None if plan.traits.iterates else _begun(plan, basis)
    blocks: Any = blocks_of(basis if sums is None else sums.working, data, plan.place)
    if sums is None:
        found = _iterated(plan, basis, blocks, data)
    else:
        size = len(data)
        shown = counted(blocks, size, "sums", shown=plan.settings.verbose, size=lambda block: len(block.targets))
        found = _summed(plan, sums.add(shown), blocks, streamed=False)
    fit = finished(plan, sample.seen, basis, *found, seconds=time.perf_counter() - started, tuning=tuning)
    if plan.traits.keeps_rows:
        fit = replace(fit, sample=replace(sample, rows=sample.rows.owned()))
    else:
        fit = replace(fit, some=_shown(data))
    if places is None or fit.loo is None:
        return fit
    loo = fit.loo.new_zeros(len(sample), fit.loo.shape[1])
    loo[places.to(loo.device)] = fit.loo
    return replace(fit, loo=with_idle(fit, sample, loo))


def solve_source(
    plan: RidgePlan, source: RowSource, some: Sample, engine: Engine | None, tuning: Tuned | None = None
) -> RidgeFit:
    """Fit to rows that are read in parts, here or by an engine; landmarks are chosen among `some` of them."""
    started = time.perf_counter()
    settings, place = plan.settings, plan.place
    basis = choose_basis(plan, some.positive()[0])
    checkpoint = checkpoint_of(settings, source, basis)
    saved = None if checkpoint is None else checkpoint.load()  # one of another fit is refused before any work
    sums = None if plan.traits.iterates else _begun(plan, basis, saved)
    working = basis if sums is None else sums.working
    blocks = blocks_in_parts(settings, working, source, place, engine, normal_equations=sums is not None)
    if sums is None:
        found = _iterated(plan, basis, blocks, some, checkpoint)
    else:
        found = _summed(plan, _all_added(plan, sums, blocks, checkpoint), blocks, streamed=True)
    if not blocks.total_weight > 0:
        raise InputError("All sample weights are zero: there are no rows to learn from.")
    if checkpoint is not None:
        checkpoint.finish()
    seen = replace(some.seen, n_rows=source.n_rows, total_weight=blocks.total_weight)
    plan = replace(plan, reason=f"{plan.reason}; {where_read(source, engine)}")
    fit = finished(plan, seen, basis, *found, seconds=time.perf_counter() - started, tuning=tuning)
    return replace(fit, some=_shown(some.positive()[0]))


def with_more(fit: RidgeFit | None, plan: RidgePlan, sample: Sample) -> RidgeFit:
    """A fit to the rows so far and these; the first rows choose the functions that it is a sum of."""
    started = time.perf_counter()
    data, seen = sample.positive()[0], sample.seen
    if fit is None or fit.sums is None:
        sums = _begun(plan, choose_basis(plan, data))
    else:
        sums, seen = fit.sums, fit.seen.with_more(seen)
    sums = sums.add(blocks_of(sums.working, data, plan.place))
    assert not isinstance(plan.alpha, str)
    plan = replace(plan, reason="rows were added in parts")
    solution = sums.solve(plan.alpha)
    seconds = time.perf_counter() - started
    shown = _shown(data) if fit is None else fit.some
    more = finished(plan, seen, sums.basis, solution, plan.alpha, None, None, sums, seconds=seconds)
    return replace(more, some=shown)


def left_out_of_few(fit: RidgeFit, some: Sample) -> LeftOutPredictions | None:
    """Predictions for some training rows by the fit without the row: exact where the sums are there and not large.

    Else residuals are divided by the share of the weight that coefficients leave; None where they leave less than half.
    """
    sums, size, where = fit.sums, len(fit.function.coef), f"at {len(some):,} of {fit.seen.n_rows:,} rows"
    where = where if len(some) < fit.seen.n_rows else "at all rows"
    if sums is not None and size <= MOST_EXACT:
        blocks = blocks_of(sums.working, some, fit.plan.place)
        out = loo_predictions_of_few(sums.spectrum(), blocks, fit.alpha, fit.plan.settings.memory_budget)
        return LeftOutPredictions.of(out, some.targets, some.weights, f"leave-one-out {where}")
    free = 1.0 - size / fit.seen.n_rows
    if free < FREE_SHARE:
        return None
    found = fit.values(some.rows).reshape(len(some), -1).cpu().to(some.targets)
    out = some.targets - (some.targets - found) / free
    return LeftOutPredictions.of(out, some.targets, some.weights, f"training errors, corrected, {where}")


def _shown(data: Sample) -> Sample:
    """Some rows for the report, in memory of their own."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:SHOWN_ROWS].sort().values
    some = data.take(order)
    return replace(some, rows=some.rows.owned())


def _begun(plan: RidgePlan, basis: Centres | Features, saved: Any = None) -> RunningSums:
    return RunningSums.begin(basis, plan.place, saved, intercept=plan.settings.fit_intercept)


def sums_of_rows(fit: RidgeFit) -> RunningSums:
    """The sums of a fit, found again where a model file does not hold them."""
    if fit.sums is not None:
        return fit.sums
    data = fit.all_rows("The sums").positive()[0]
    sums = _begun(fit.plan, choose_basis(fit.plan, data))
    return sums.add(blocks_of(sums.working, data, fit.plan.place))


def choose_basis(plan: RidgePlan, data: Sample) -> Centres | Features:
    """The landmarks or features that the settings ask for; `data` are all rows, or some of them."""
    settings, place = plan.settings, plan.place
    if plan.traits.sums_of == OWN_FEATURES:
        return _own_features(plan, data)
    if plan.traits.sums_of == "features":
        count = _feature_count(settings.n_features, plan.landmark_budget)
        features = FourierFeatures.draw(plan.kernel, data.rows, count, settings.seed)
        return Features(features, f"{features.n_features:,} random features")
    if plan.kernel.domain == "matrix":
        raise InputError(
            f"solver={plan.solver!r} chooses landmarks among rows, which a precomputed kernel does not have."
        )
    given, budget, how = settings.n_landmarks, plan.landmark_budget, settings.landmarks
    m = landmark_count(plan.n_rows if isinstance(how, str) else len(how), given, plan.solver, budget, place.device)
    here = budget if place.device.type == "cpu" else settings.memory_budget
    chosen = choose_landmarks(plan.kernel, data.rows, m, how, settings.seed, data.weights, here)
    return Centres(plan.kernel, chosen.points, chosen.note)


def _own_features(plan: RidgePlan, data: Sample) -> Features:
    features = own_features(plan.kernel, data, plan.landmark_budget, plan.place.device)
    if features is None:
        raise InputError(
            f"solver='primal' needs a kernel with finitely many features, few enough for the memory budget; "
            f"{plan.kernel!r} has none, or too many. Use solver='auto'."
        )
    if plan.settings.fit_intercept:
        features = features.centred(data.rows.take(slice(0, CENTRED_ON)))
    return Features(features, f"{features.n_features:,} features of the kernel")


def finished(
    plan: RidgePlan,
    seen: Seen,
    basis: Centres | Features,
    solution: Solution,
    alpha: float | Tensor,
    path: AlphaPath | None,
    loo: Tensor | None,
    sums: RunningSums | None,
    *,
    seconds: float,
    tuning: Tuned | None = None,
) -> RidgeFit:
    """A solution as a fit."""
    reason = "; ".join(filter(None, [plan.reason, basis.note, solution.reason]))
    report = solution.report(solver=plan.solver, reason=reason, seconds=seconds)
    function, constant = basis.sum(solution.value), solution.intercept
    constant = solution.value.new_zeros(solution.value.shape[1]) if constant is None else constant
    constant = constant - basis.lost(solution.value)
    return RidgeFit(plan, seen, function, constant, alpha, report, path or plan.path, tuning, loo=loo, sums=sums)


def _feature_count(given: Any, budget: int) -> Any:
    """How many random features to draw: as many as given, else 1,000, fewer where memory is short."""
    fitting = math.isqrt(budget // (8 * FEATURE_MATRICES))
    if given is None:
        return max(2, min(N_FEATURES, fitting))
    if isinstance(given, int | np.integer):
        what = f"n_features={given:,}, which takes {FEATURE_MATRICES} matrices of that size,"
        require(8 * FEATURE_MATRICES * int(given) ** 2, budget, what, f"At most {fitting:,} features fit.")
    return given


Found = tuple[Solution, Any, AlphaPath | None, Tensor | None, RunningSums | None]
"""A solution, its alpha, the path of alphas, leave-one-out predictions and the sums."""


def _iterated(
    plan: RidgePlan, basis: Centres | Features, blocks: Any, some: Sample, checkpoint: Checkpoint | None = None
) -> Found:
    shift = centred(some.targets, some.weights)[0] if plan.settings.fit_intercept else None
    solution = plan.ready(shift=shift, checkpoint=checkpoint).solve(blocks, basis.penalty(plan.place), plan.alpha)
    return solution, plan.alpha, None, None, None


def _summed(plan: RidgePlan, sums: RunningSums, blocks: Iterable[Any], *, streamed: bool) -> Found:
    """Solve from sums over all rows; a path of alphas reads them once more."""
    if not isinstance(plan.alpha, str):
        return sums.solve(plan.alpha), plan.alpha, None, None, sums
    spectrum, budget = sums.spectrum(), plan.settings.memory_budget
    path = select_alpha_of_few(spectrum, blocks, plan.settings.alphas, plan.alpha, budget)
    loo = None if streamed else loo_predictions_of_few(spectrum, blocks, path.alpha, budget)
    return sums.in_basis(spectrum.solve(path.alpha)), path.alpha, path, loo, sums


def _all_added(plan: RidgePlan, sums: RunningSums, blocks: Any, checkpoint: Checkpoint | None) -> RunningSums:
    again = isinstance(plan.alpha, str)
    if isinstance(blocks, SpreadBlocks):
        return sums.add_spread(blocks, checkpoint, again=again)
    if checkpoint is not None:
        return sums.add_with_checkpoint(blocks, checkpoint, plan.settings.verbose, again=again)
    for block in blocks:  # the same sums of sums as with a checkpoint, to the last bit
        sums = sums.add([block])
    return sums
