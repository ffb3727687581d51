"""Ridge regression on few functions: landmarks or random features, with sums that any further rows can join."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import require
from mercer.core.progress import counted
from mercer.core.results import Solution
from mercer.data.checkpoint import Checkpoint, State
from mercer.data.engines import Arrays, Engine
from mercer.data.rows import RowSource
from mercer.estimators.data import TrainingData
from mercer.estimators.expansion import Centres, Expansion, Features, Placement, StreamedBlocks
from mercer.estimators.orthonormal import Orthonormal, well_conditioned
from mercer.estimators.ridge_rows import RidgeFit
from mercer.estimators.spread import SpreadBlocks
from mercer.estimators.state import plain_params
from mercer.selection.few import loo_predictions_of_few, select_alpha_of_few
from mercer.solvers.choose import landmark_count
from mercer.solvers.error_bound import Functions
from mercer.solvers.falkon import Falkon
from mercer.solvers.landmarks import choose_landmarks
from mercer.solvers.nystrom import NystromSpectrum, NystromSums, sums_over
from mercer.solvers.random_features import FourierFeatures
from mercer.solvers.row_blocks import Block
from mercer.solvers.whitening import rounding_of, whitening

if TYPE_CHECKING:
    from mercer.estimators.ridge_model import RidgeModel

N_FEATURES = 1000
FEATURE_MATRICES = 7
"""p x p float64 matrices at the peak of a fit on p features."""
SUMS = "rows and targets"
"""What a checkpoint holds sums of: one with other sums is of another fit."""
HARMLESS = ("checkpoint", "verbose", "memory_budget", "device", "client")
"""Parameters that do not change what is computed."""


def choose_expansion(model: RidgeModel, data: TrainingData, solver: str, n: int | None = None) -> Expansion:
    """The landmarks or features that the model's parameters ask for; `data` are all n rows, or some of them."""
    place = model._place()
    if solver == "random_features":
        count = _feature_count(model.n_features, model._left_beside_rows())
        features = FourierFeatures.draw(model.kernel_, data.rows, count, model._seed)
        return Features(features, f"{features.n_features:,} random features")
    if model.kernel_.domain == "matrix":
        raise InputError(f"solver={solver!r} chooses landmarks among rows, which a precomputed kernel does not have.")
    given, budget = model._checked_landmarks(), model._left_beside_rows()
    most = (n or len(data.rows)) if isinstance(model.landmarks, str) else len(model.landmarks)
    m = landmark_count(most, given, solver, budget, place.device)
    here = budget if place.device.type == "cpu" else model.memory_budget
    chosen = choose_landmarks(model.kernel_, data.rows, m, model.landmarks, model._seed, data.weights, here)
    return Centres(model.kernel_, chosen.points, chosen.note)


def _feature_count(given: Any, budget: int) -> Any:
    """How many random features to draw: as many as given, else 1,000, fewer where memory is short."""
    fitting = math.isqrt(budget // (8 * FEATURE_MATRICES))
    if given is None:
        return max(2, min(N_FEATURES, fitting))
    if isinstance(given, int | np.integer):
        what = f"n_features={given:,}, which takes {FEATURE_MATRICES} matrices of that size,"
        require(8 * FEATURE_MATRICES * int(given) ** 2, budget, what, f"At most {fitting:,} features fit.")
    return given


def fit_few(model: RidgeModel, data: TrainingData, alpha: Any, alphas: Tensor | None, solver: str) -> RidgeFit:
    """Fit to rows in memory on landmarks or features."""
    expansion, place = choose_expansion(model, data, solver), model._place()
    sums = None if solver == "falkon" else RunningSums.begin(expansion, place)
    blocks = (expansion if sums is None else sums.working).blocks(data, place)
    return fit_blocks(model, expansion, sums, blocks, len(data.rows), alpha, alphas)


def fit_source(
    model: RidgeModel,
    source: RowSource,
    some: TrainingData,
    alpha: Any,
    alphas: Tensor | None,
    solver: str,
    engine: Engine | None = None,
) -> RidgeFit:
    """Fit to rows that are read in parts, here or by an engine; landmarks are chosen among `some` of them."""
    expansion, place = choose_expansion(model, some, solver, source.n_rows), model._place()
    checkpoint, saved = None, None
    if model.checkpoint is not None:
        parameters = {name: value for name, value in plain_params(model).items() if name not in HARMLESS}
        checkpoint = Checkpoint(
            model.checkpoint,
            {
                "sums": SUMS,
                "rows": source.identity(),
                "parameters": parameters,
                "kernel and landmarks": expansion.digest(),
            },
        )
        saved = checkpoint.load()  # one of another fit is refused before any work
    sums = None if solver == "falkon" else RunningSums.begin(expansion, place, saved)
    working = expansion if sums is None else sums.working
    blocks: StreamedBlocks | SpreadBlocks
    if engine is None:
        blocks = StreamedBlocks(working, source, place, model.verbose)
    else:
        blocks = SpreadBlocks(
            working,
            source,
            place,
            engine,
            device=model.device,
            normal_equations=sums is not None,
            verbose=model.verbose,
        )
    fitted = fit_blocks(model, expansion, sums, blocks, source.n_rows, alpha, alphas, checkpoint)
    if not blocks.total_weight > 0:
        raise InputError("There are no rows with weight to learn from.")
    if checkpoint is not None:
        checkpoint.finish()
    model._seen = replace(model._seen, total_weight=blocks.total_weight)
    return fitted


def fit_blocks(
    model: RidgeModel,
    expansion: Expansion,
    sums: RunningSums | None,
    blocks: Any,
    n: int,
    alpha: Any,
    alphas: Tensor | None,
    checkpoint: Checkpoint | None = None,
) -> RidgeFit:
    """Fit an expansion by one pass over the blocks of n rows, which fills the sums, or by Falkon's iterations."""
    if sums is None:
        falkon = Falkon(**model._options("falkon", n), checkpoint=checkpoint)
        solution = falkon.solve(blocks, expansion.penalty(model._place()), alpha)
        return RidgeFit(expansion, solution.value, alpha, solution)
    if isinstance(blocks, SpreadBlocks):
        sums.add_spread(blocks, checkpoint, again=isinstance(alpha, str))
    elif checkpoint is not None:
        sums.add_with_checkpoint(blocks, checkpoint, model.verbose, again=isinstance(alpha, str))
    elif isinstance(blocks, StreamedBlocks):
        for block in blocks:  # the same sums of sums as with a checkpoint, to the last bit
            sums = sums.add([block])
    else:
        sums = sums.add(counted(blocks, n, "sums", shown=model.verbose, size=lambda block: len(block.targets)))
    if isinstance(alpha, str):
        spectrum = sums.spectrum()
        path = select_alpha_of_few(spectrum, blocks, alphas, alpha, model.memory_budget)
        alpha = path.alpha
        streamed = isinstance(blocks, StreamedBlocks | SpreadBlocks)
        loo = None if streamed else loo_predictions_of_few(spectrum, blocks, alpha, model.memory_budget)
        return sums.fit(spectrum.solve(alpha), alpha, path, loo)
    return sums.solve(alpha)


@dataclass(eq=False)
class RunningSums:
    """The sums of a fit on few functions, of the `working` ones, and the basis that makes their penalty the identity.

    The working functions are those of the expansion, or orthonormal ones where these are close to dependent. `coarse`
    where their values are float32.
    """

    expansion: Expansion
    working: Expansion
    penalty: Tensor | None
    basis: Tensor | None
    functions: Functions | None = None
    sums: NystromSums | None = None
    coarse: bool = False

    @classmethod
    def begin(cls, expansion: Expansion, place: Placement, saved: State | None = None) -> RunningSums:
        """No sums yet; those `saved` in a checkpoint, which `add` will go on from, are of the functions named there."""
        penalty = expansion.penalty(place)
        if penalty is None:
            return cls(expansion, expansion, None, None)
        known = None if saved is None else saved[1].get("basis")
        rounding = rounding_of(place.dtype, len(penalty))
        basis = whitening(penalty, rounding) if known is None else known.to(penalty)
        functions = Functions(basis, penalty.diagonal(), torch.finfo(place.dtype).eps, rounding)
        if well_conditioned(basis) or basis.shape[1] == 0:
            return cls(expansion, expansion, penalty, basis, functions)
        working, coarse = Orthonormal(expansion, basis), place.dtype != torch.float64
        return cls(expansion, working, None, None, functions, coarse=coarse)

    def to_arrays(self) -> Arrays:
        """The sums and what they are sums of, which a file can hold."""
        assert self.sums is not None
        return self.sums.to_arrays() | self._of_what()

    def _of_what(self) -> Arrays:
        return {"basis": self.working.basis} if isinstance(self.working, Orthonormal) else {}

    def add(self, blocks: Iterable[Block]) -> RunningSums:
        """The sums with more rows; these stay as they are."""
        more = NystromSums.of(blocks)
        return replace(self, sums=more if self.sums is None else more.merge(self.sums))

    def add_with_checkpoint(
        self, blocks: StreamedBlocks, checkpoint: Checkpoint, verbose: bool, again: bool = False
    ) -> RunningSums:
        """The sums over a source, in a fixed order, from where a checkpoint left off; kept if rows are read `again`."""
        done, whole = 0, True
        saved = checkpoint.load()
        if saved is not None:
            done, self.sums = saved[0], NystromSums.from_arrays(saved[1], blocks.place.device)
        before = 0 if self.sums is None else self.sums.rows
        if before and verbose:
            print(f"going on after {before:,} rows from {checkpoint.path}", flush=True)
        remaining = blocks.after(done, 0.0 if self.sums is None else self.sums.weight)
        try:
            for block in remaining:
                part = NystromSums.of([block])
                whole = False
                self.sums = part if self.sums is None else self.sums.merge(part)
                done, whole = done + 1, True
                checkpoint.offer(done, self.to_arrays)
        except BaseException:
            if self.sums is not None and whole:
                checkpoint.save(done, self.to_arrays())
            raise
        if again and self.sums is not None:
            checkpoint.save(done, self.to_arrays())
        if self.sums is None:
            raise InputError("There are no rows to learn from.")
        return self

    def add_spread(self, blocks: SpreadBlocks, checkpoint: Checkpoint | None, again: bool = False) -> RunningSums:
        """The sums over rows that an engine works on, from where a checkpoint left off, if there is one."""
        saved, device = None if checkpoint is None else checkpoint.load(), blocks.place.device
        done, start = 0, None
        if saved is not None:
            done, self.sums = saved[0], NystromSums.from_arrays(saved[1], device)
            start = self.sums.to_arrays()

        def tell(parts: int, total: Arrays) -> None:
            nonlocal done
            done, self.sums = parts, NystromSums.from_arrays(total, device)
            if checkpoint is not None:
                checkpoint.offer(done, self.to_arrays)

        try:
            self.sums = NystromSums.from_arrays(blocks.total_after(done, start, tell, sums_over), device)
        except BaseException:
            if checkpoint is not None and self.sums is not None:
                checkpoint.save(done, self.to_arrays())
            raise
        blocks.total_weight = self.sums.weight
        if again and checkpoint is not None:
            checkpoint.save(done, self.to_arrays())
        return self

    def spectrum(self) -> NystromSpectrum:
        assert self.sums is not None
        return self.sums.prepare(self.penalty, self.basis, self.functions)

    def solve(self, alpha: float | Tensor) -> RidgeFit:
        """The fit to all rows so far."""
        assert self.sums is not None
        return self.fit(self.sums.solve(self.penalty, alpha, self.basis, self.functions), alpha)

    def fit(self, solution: Solution, alpha: Any, path: Any = None, loo: Tensor | None = None) -> RidgeFit:
        """A solution for the working functions as a fit with the expansion's."""
        coef = solution.value
        if isinstance(self.working, Orthonormal):
            coef = self.working.basis @ coef
            m, rank = self.working.basis.shape
            words = [f"{rank} of {m} landmarks are independent to rounding"] if rank < m else []
            if self.coarse:
                times = float(self.working.basis.norm(dim=0).max())
                words.append(f"the rounding of float32 kernel values is magnified up to {times:,.0f} times")
            solution = replace(solution, reason="; ".join(filter(None, [*words, solution.reason])))
        return RidgeFit(self.expansion, coef, alpha, solution, path, loo, self)
