"""The values of a basis at rows, block by block: of a sample in memory, or of a source that is read in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.rows import Chunk, Part, RowSource, read_ahead, sample_rows
from mercer.data.sample import Sample
from mercer.functions.basis import Basis, Centres, Features
from mercer.kernels.overflow import check_kernel_values
from mercer.operators.placement import Placement
from mercer.solvers.orthonormal import Orthonormal, OrthonormalBlocks
from mercer.solvers.random_features import feature_block
from mercer.solvers.row_blocks import Block, RowBlocks


def blocks_of(basis: Basis, sample: Sample, place: Placement) -> Any:
    """The values at the rows of a sample."""
    if isinstance(basis, Orthonormal):
        return OrthonormalBlocks(blocks_of(basis.of, sample, place), basis.coordinates)
    if isinstance(basis, Features):
        return [feature_block(basis.features, sample.rows, sample.targets, sample.weights, place.device)]
    assert isinstance(basis, Centres)
    options = {"memory_budget": place.memory_budget, "device": place.device, "dtype": place.dtype}
    return RowBlocks(basis.kernel, sample.rows, basis.points, sample.targets, sample.weights, options=options)


class StreamedBlocks:
    """The values at the rows of a source, part by part; the next part is read meanwhile.

    `total_weight` is known after the first pass.
    """

    def __init__(
        self,
        basis: Basis,
        source: RowSource,
        place: Placement,
        verbose: bool = False,
        parts: list[Part] | None = None,
    ) -> None:
        self.basis, self.source, self.place, self.verbose = basis, source, place, verbose
        self.parts = source.parts() if parts is None else parts
        self.total_weight, self.passes = 0.0, 0

    def __iter__(self) -> Iterator[Block]:
        return self.after(0)

    def after(self, done: int, weight: float = 0.0) -> Iterator[Block]:
        """The blocks after the first so many parts, which have that weight."""
        parts = self.parts
        before = sum(map(len, parts[:done]))
        self.passes += 1
        with Progress(self.source.n_rows, f"pass {self.passes}", done=before, shown=self.verbose) as progress:
            for part, chunk in read_ahead(self.source.read, parts[done:]):
                if isinstance(self.basis, Centres):
                    check_kernel_values(self.basis.kernel, Points(chunk.X, self.source.names), part.before)
                block = self.block(chunk)
                weight += block.weight
                yield block
                del chunk, block
                give_back()
                progress.advance(len(part))
        self.total_weight = weight

    def sample(self, count: int, generator: torch.Generator) -> Block:
        """`count` rows drawn without replacement, as one block; what a preconditioner can be built from."""
        return self.block(sample_rows(self.source, count, generator))

    def block(self, chunk: Chunk) -> Block:
        """The values at the rows of a chunk that have weight."""
        X, targets, weights = chunk
        assert targets is not None
        if weights is not None and bool((weights == 0).any()):
            X, targets, weights = (values[weights > 0] for values in (X, targets, weights))
        return Block(self.basis.at(Points(X, self.source.names), self.place), targets, weights)
