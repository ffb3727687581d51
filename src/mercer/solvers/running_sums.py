"""The sums of a ridge fit on few functions, landmarks or random features, which any further rows can join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.results import Solution
from mercer.data.checkpoint import Checkpoint, State
from mercer.data.engines import Arrays
from mercer.functions.basis import Basis, Centres, Features
from mercer.operators.placement import Placement
from mercer.solvers.basis_blocks import StreamedBlocks
from mercer.solvers.error_bound import Functions
from mercer.solvers.nystrom import NystromEquations, NystromSpectrum, NystromSums, sums_over
from mercer.solvers.orthonormal import Orthonormal, well_conditioned
from mercer.solvers.row_blocks import Block
from mercer.solvers.spread_blocks import SpreadBlocks
from mercer.solvers.whitening import rounding_of, whitening


@dataclass(eq=False)
class RunningSums:
    """The sums of a fit on few functions, of the `working` ones, and the `whitener` that makes their penalty one.

    The working functions are those of the basis, or orthonormal ones where these are close to dependent. `coarse`
    where their values are float32. With an `intercept`, solutions have one.
    """

    basis: Centres | Features
    working: Basis
    penalty: Tensor | None
    whitener: Tensor | None
    functions: Functions | None = None
    sums: NystromSums | None = None
    coarse: bool = False
    intercept: bool = False

    @classmethod
    def begin(
        cls, basis: Centres | Features, place: Placement, saved: State | None = None, *, intercept: bool = False
    ) -> RunningSums:
        """No sums yet; those `saved` in a checkpoint, which `add` will go on from, are of the functions named there."""
        penalty = basis.penalty(place)
        if penalty is None:
            return cls(basis, basis, None, None, intercept=intercept)
        known = None if saved is None else saved[1].get("basis")
        rounding = rounding_of(place.dtype, len(penalty))
        whitener = whitening(penalty, rounding) if known is None else known.to(penalty)
        give_back()  # what the eigendecomposition took
        functions = Functions(whitener, penalty.diagonal(), torch.finfo(place.dtype).eps, rounding)
        if well_conditioned(whitener) or whitener.shape[1] == 0:
            return cls(basis, basis, penalty, whitener, functions, intercept=intercept)
        working, coarse = Orthonormal(basis, whitener), place.dtype != torch.float64
        return cls(basis, working, None, None, functions, coarse=coarse, intercept=intercept)

    def to_arrays(self) -> Arrays:
        """The sums and what they are sums of, which a file can hold."""
        assert self.sums is not None
        return self.sums.to_arrays() | self._of_what()

    def _of_what(self) -> Arrays:
        return {"basis": self.working.coordinates} if isinstance(self.working, Orthonormal) else {}

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
        return self.sums.prepare(self.penalty, self.whitener, self.functions, intercept=self.intercept)

    def solve(self, alpha: float | Tensor) -> Solution:
        """The coefficients of the basis for all rows so far."""
        assert self.sums is not None
        options: dict[str, Any] = {"basis": self.whitener, "functions": self.functions, "intercept": self.intercept}
        return self.in_basis(self.sums.solve(self.penalty, alpha, **options))

    def least(self, alpha: float | Tensor) -> float:
        """The least value of the objective, summed over targets."""
        assert self.sums is not None
        equations = NystromEquations.of(self.sums, self.penalty, self.whitener, self.functions, self.intercept)
        explained = (equations.cross * equations.solve(alpha).value).sum()
        return max(0.0, float(equations.moments.second.sum() - explained))

    def in_basis(self, solution: Solution) -> Solution:
        """A solution for the working functions in coefficients of the basis."""
        if not isinstance(self.working, Orthonormal):
            return solution
        m, rank = self.working.coordinates.shape
        words = [f"{rank} of {m} landmarks are independent to rounding"] if rank < m else []
        if self.coarse:
            times = float(self.working.coordinates.norm(dim=0).max())
            words.append(f"the rounding of float32 kernel values is magnified up to {times:,.0f} times")
        reason = "; ".join(filter(None, [*words, solution.reason]))
        return replace(solution, value=self.working.coordinates @ solution.value, reason=reason)
