"""Ridge regression on few functions: landmarks or random features, with sums that any further rows can join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mercer.core.checkpoint import Checkpoint
from mercer.core.errors import InputError
from mercer.core.rows import RowSource
from mercer.estimators.data import TrainingData
from mercer.estimators.expansion import Centres, Expansion, Features, Placement, StreamedBlocks, counted
from mercer.estimators.ridge_rows import RidgeFit
from mercer.estimators.state import plain_params
from mercer.selection.few import loo_predictions_of_few, select_alpha_of_few
from mercer.solvers.choose import landmark_count
from mercer.solvers.falkon import Falkon
from mercer.solvers.landmarks import choose_landmarks
from mercer.solvers.nystrom import NystromSpectrum, NystromSums, whitening
from mercer.solvers.random_features import FourierFeatures
from mercer.solvers.row_blocks import Block

if TYPE_CHECKING:
    from mercer.estimators.ridge_model import RidgeModel

N_FEATURES = 1000
HARMLESS = ("checkpoint", "verbose", "memory_budget", "device")
"""Parameters that do not change what is computed."""


def choose_expansion(model: RidgeModel, data: TrainingData, solver: str, n: int | None = None) -> Expansion:
    """The landmarks or features that the model's parameters ask for; `data` are all n rows, or some of them."""
    place = model._place()
    if solver == "random_features":
        count = N_FEATURES if model.n_features is None else model.n_features
        features = FourierFeatures.draw(model.kernel_, data.rows, count, model._seed)
        return Features(features, f"{features.n_features:,} random features")
    if model.kernel_.domain == "matrix":
        raise InputError(f"solver={solver!r} chooses landmarks among rows, which a precomputed kernel does not have.")
    m = landmark_count(n or len(data.rows), model.n_landmarks, solver, model.memory_budget, place.device)
    chosen = choose_landmarks(model.kernel_, data.rows, m, model.landmarks, model._seed, data.weights)
    return Centres(model.kernel_, chosen.points, chosen.note)


def fit_few(model: RidgeModel, data: TrainingData, alpha: Any, alphas: Tensor | None, solver: str) -> RidgeFit:
    """Fit to rows in memory on landmarks or features."""
    expansion = choose_expansion(model, data, solver)
    return fit_blocks(model, expansion, expansion.blocks(data, model._place()), len(data.rows), alpha, alphas, solver)


def fit_source(
    model: RidgeModel, source: RowSource, some: TrainingData, alpha: Any, alphas: Tensor | None, solver: str
) -> RidgeFit:
    """Fit to rows that are read in parts; landmarks are chosen among `some` of them."""
    expansion = choose_expansion(model, some, solver, source.n_rows)
    blocks = StreamedBlocks(expansion, source, model._place())
    checkpoint = None
    if model.checkpoint is not None:
        parameters = {name: value for name, value in plain_params(model).items() if name not in HARMLESS}
        checkpoint = Checkpoint(model.checkpoint, {"rows": source.identity(), "parameters": parameters})
    fitted = fit_blocks(model, expansion, blocks, source.n_rows, alpha, alphas, solver, checkpoint)
    if checkpoint is not None:
        checkpoint.finish()
    model._seen = replace(model._seen, total_weight=blocks.total_weight)
    return fitted


def fit_blocks(
    model: RidgeModel,
    expansion: Expansion,
    blocks: Any,
    n: int,
    alpha: Any,
    alphas: Tensor | None,
    solver: str,
    checkpoint: Checkpoint | None = None,
) -> RidgeFit:
    """Fit an expansion by one pass over the blocks of n rows or, for "falkon", by iterations over them."""
    place = model._place()
    if solver == "falkon":
        falkon = Falkon(**model._options(solver, n), checkpoint=checkpoint)
        solution = falkon.solve(blocks, expansion.penalty(place), alpha)
        return RidgeFit(expansion, solution.value, alpha, solution)
    sums = RunningSums.begin(expansion, place)
    if checkpoint is None:
        sums.add(counted(blocks, n, model.verbose))
    else:
        sums.add_with_checkpoint(blocks, checkpoint, model.verbose)
    if isinstance(alpha, str):
        spectrum = sums.spectrum()
        path = select_alpha_of_few(spectrum, blocks, alphas, alpha)
        alpha = path.alpha
        solution = spectrum.solve(alpha)
        loo = None if isinstance(blocks, StreamedBlocks) else loo_predictions_of_few(spectrum, blocks, alpha)
        return RidgeFit(expansion, solution.value, alpha, solution, path, loo, sums)
    return sums.solve(alpha)


@dataclass(eq=False)
class RunningSums:
    """The sums of a fit on few functions, and the basis that makes their penalty the identity."""

    expansion: Expansion
    penalty: Tensor | None
    basis: Tensor | None
    sums: NystromSums | None = None

    @classmethod
    def begin(cls, expansion: Expansion, place: Placement) -> RunningSums:
        penalty = expansion.penalty(place)
        basis = None if penalty is None else whitening(penalty, torch.finfo(torch.float64).eps)
        return cls(expansion, penalty, basis)

    def add(self, blocks: Iterable[Block]) -> RunningSums:
        """The sums with more rows."""
        more = NystromSums.of(blocks)
        self.sums = more if self.sums is None else self.sums.merge(more)
        return self

    def add_with_checkpoint(self, blocks: StreamedBlocks, checkpoint: Checkpoint, verbose: bool) -> RunningSums:
        """The sums over a source, in a fixed order, from where a checkpoint left off."""
        done, whole = 0, True
        saved = checkpoint.load()
        if saved is not None:
            done, self.sums = saved[0], NystromSums.from_arrays(saved[1], blocks.place.device)
        before = 0 if self.sums is None else self.sums.rows
        if before and verbose:
            print(f"going on after {before:,} rows from {checkpoint.path}", flush=True)
        remaining = blocks.after(done, 0.0 if self.sums is None else self.sums.weight)
        try:
            for block in counted(remaining, blocks.source.n_rows, verbose, before):
                part = NystromSums.of([block])
                whole = False
                self.sums = part if self.sums is None else self.sums.merge(part)
                done, whole = done + 1, True
                checkpoint.offer(done, self.sums.to_arrays)
        except KeyboardInterrupt:
            if self.sums is not None and whole:
                checkpoint.save(done, self.sums.to_arrays())
            raise
        if self.sums is None:
            raise InputError("There are no rows to learn from.")
        return self

    def spectrum(self) -> NystromSpectrum:
        assert self.sums is not None
        return self.sums.prepare(self.penalty, self.basis)

    def solve(self, alpha: float | Tensor) -> RidgeFit:
        """The fit to all rows so far."""
        assert self.sums is not None
        solution = self.sums.solve(self.penalty, alpha, self.basis)
        return RidgeFit(self.expansion, solution.value, alpha, solution, sums=self)
