"""What a fitted function is a sum of: kernels at points, or random features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.rows import Chunk, RowSource, read_ahead, sample_rows
from mercer.estimators.data import TrainingData
from mercer.kernels import Kernel
from mercer.operators import gram
from mercer.solvers.random_features import FeatureRows, FourierFeatures, feature_block
from mercer.solvers.row_blocks import Block, RowBlocks


@dataclass(frozen=True)
class Placement:
    """Where and in which precision products run, and the memory they may take."""

    device: torch.device
    dtype: torch.dtype
    memory_budget: Any = None

    def gram(self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None) -> Any:
        return gram(kernel, X, Z, memory_budget=self.memory_budget, device=self.device, dtype=dtype or self.dtype)


class Expansion(Protocol):
    """Functions b_j of which a fit searches the best sum, f = c_1 b_1 + ... + c_m b_m."""

    @property
    def note(self) -> str:
        """How they were chosen, in words."""

    def at(self, rows: Points, place: Placement) -> Any:
        """The operator of the values b_j(x_i)."""

    def blocks(self, data: TrainingData, place: Placement) -> Any:
        """The values at the training rows, block by block."""

    def penalty(self, place: Placement) -> Tensor | None:
        """The matrix of inner products of the b_j; None for the identity."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Kernels at points: b_j = k(z_j, .)."""

    kernel: Kernel
    points: Points
    note: str = ""

    def at(self, rows: Points, place: Placement) -> Any:
        return place.gram(self.kernel, rows, self.points)

    def blocks(self, data: TrainingData, place: Placement) -> RowBlocks:
        options = {"memory_budget": place.memory_budget, "device": place.device, "dtype": place.dtype}
        return RowBlocks(self.kernel, data.rows, self.points, data.targets, data.weights, options=options)

    def penalty(self, place: Placement) -> Tensor:
        return torch.as_tensor(place.gram(self.kernel, self.points, dtype=torch.float64).dense()).to(place.device)


@dataclass(frozen=True, eq=False)
class Features:
    """Random Fourier features: b_j are cosines and sines, and their penalty is the sum of squares."""

    features: FourierFeatures
    note: str = ""

    def at(self, rows: Points, place: Placement) -> FeatureRows:
        return FeatureRows(self.features, rows, place.device)

    def blocks(self, data: TrainingData, place: Placement) -> list[Block]:
        return [feature_block(self.features, data.rows, data.targets, data.weights, place.device)]

    def penalty(self, place: Placement) -> None:
        return None


class StreamedBlocks:
    """The values of an expansion at the rows of a source, part by part; the next part is read meanwhile.

    `total_weight` is known after the first pass.
    """

    def __init__(self, expansion: Expansion, source: RowSource, place: Placement) -> None:
        self.expansion, self.source, self.place = expansion, source, place
        self.total_weight = 0.0

    def __iter__(self) -> Iterator[Block]:
        return self.after(0)

    def after(self, done: int, weight: float = 0.0) -> Iterator[Block]:
        """The blocks after the first so many parts, which have that weight."""
        for _, chunk in read_ahead(self.source.read, self.source.parts()[done:]):
            block = self._block(chunk)
            weight += block.weight
            yield block
        self.total_weight = weight

    def sample(self, count: int, generator: torch.Generator) -> Block:
        """`count` rows drawn without replacement, as one block; what a preconditioner can be built from."""
        return self._block(sample_rows(self.source, count, generator))

    def _block(self, chunk: Chunk) -> Block:
        X, targets, weights = chunk
        assert targets is not None
        if weights is not None and bool((weights == 0).any()):
            X, targets, weights = (values[weights > 0] for values in (X, targets, weights))
        return Block(self.expansion.at(Points(X, self.source.names), self.place), targets, weights)


def counted(blocks: Iterable[Block], n: int, verbose: bool, done: int = 0) -> Iterator[Block]:
    """The blocks, with a line of progress after each."""
    for block in blocks:
        yield block
        done += len(block.targets)
        if verbose:
            print(f"{done:,} of {n:,} rows", flush=True)
