"""What a fitted function is a sum of: kernels at points, or random features."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.rows import Chunk, Part, RowSource, read_ahead, sample_rows
from mercer.estimators.data import TrainingData, check_kernel_values
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.solvers.random_features import FeatureRows, FourierFeatures, feature_block
from mercer.solvers.row_blocks import Block, RowBlocks


class Expansion(Protocol):
    """Functions b_j of which a fit searches the best sum, f = c_1 b_1 + ... + c_m b_m."""

    @property
    def note(self) -> str:
        """How they were chosen, in words."""

    @property
    def size(self) -> int:
        """Their number m."""

    def at(self, rows: Points, place: Placement) -> Any:
        """The operator of the values b_j(x_i)."""

    def blocks(self, data: TrainingData, place: Placement) -> Any:
        """The values at the training rows, block by block."""

    def penalty(self, place: Placement) -> Tensor | None:
        """The matrix of inner products of the b_j; None for the identity."""

    def digest(self) -> str:
        """Text that other functions would change."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Kernels at points: b_j = k(z_j, .)."""

    kernel: Kernel
    points: Points
    note: str = ""

    @property
    def size(self) -> int:
        return len(self.points)

    def at(self, rows: Points, place: Placement) -> Any:
        return place.gram(self.kernel, rows, self.points)

    def blocks(self, data: TrainingData, place: Placement) -> RowBlocks:
        options = {"memory_budget": place.memory_budget, "device": place.device, "dtype": place.dtype}
        return RowBlocks(self.kernel, data.rows, self.points, data.targets, data.weights, options=options)

    def penalty(self, place: Placement) -> Tensor:
        return torch.as_tensor(place.gram(self.kernel, self.points, dtype=torch.float64).dense()).to(place.device)

    def digest(self) -> str:
        points = self.points.values
        return _digest(repr(self.kernel), points.cpu() if isinstance(points, Tensor) else torch.empty(0))


@dataclass(frozen=True, eq=False)
class Features:
    """Random Fourier features: b_j are cosines and sines, and their penalty is the sum of squares."""

    features: FourierFeatures
    note: str = ""

    @property
    def size(self) -> int:
        return self.features.n_features

    def at(self, rows: Points, place: Placement) -> FeatureRows:
        return FeatureRows(self.features, rows, place.device)

    def blocks(self, data: TrainingData, place: Placement) -> list[Block]:
        return [feature_block(self.features, data.rows, data.targets, data.weights, place.device)]

    def penalty(self, place: Placement) -> None:
        return None

    def digest(self) -> str:
        return _digest("", *self.features.to_arrays().values())


class StreamedBlocks:
    """The values of an expansion at the rows of a source, part by part; the next part is read meanwhile.

    `total_weight` is known after the first pass.
    """

    def __init__(
        self,
        expansion: Expansion,
        source: RowSource,
        place: Placement,
        verbose: bool = False,
        parts: list[Part] | None = None,
    ) -> None:
        self.expansion, self.source, self.place, self.verbose = expansion, source, place, verbose
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
                if isinstance(self.expansion, Centres):
                    rows = Points(chunk.X, self.source.names)
                    check_kernel_values(self.expansion.kernel, rows, part.before)
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
        return Block(self.expansion.at(Points(X, self.source.names), self.place), targets, weights)


def _digest(text: str, *arrays: Tensor) -> str:
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(array.contiguous().numpy().tobytes())
    return digest.hexdigest()
