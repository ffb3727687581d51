"""Training rows in blocks, each with its kernel rows against the landmarks: what the Nyström solvers read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.blocks import LEAST_ROWS, PART_NUMBERS, rows_at_once
from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.data.engines import Arrays
from mercer.kernels.base import Kernel
from mercer.operators import GramOperator, gram
from mercer.solvers.centring import Means
from mercer.solvers.dials import BLOCK_ROWS, LIBRARIES, PART_SHARE, ROW_BLOCKS_TARGET_ARRAYS
from mercer.solvers.drawing import draw_different
from mercer.solvers.products import in_precision


def working_bytes(m: int) -> int:
    """Memory that sums over blocks take on a CPU beside m x m matrices: kernel values, and what is made of them."""
    return 6 * 8 * max(PART_NUMBERS["cpu"], LEAST_ROWS * m) + LIBRARIES


class Block(NamedTuple):
    """Some rows: `kernel` is the operator K(x, landmarks) of shape (b, m), `targets` (b, t), `weights` (b,) or None."""

    kernel: Any
    targets: Tensor
    weights: Tensor | None = None

    def gram(self, V: Tensor) -> Tensor:
        """K^T W K V in float64, with products in the precision of the operator."""
        return self.transposed(in_precision(self.kernel.matmul, V, self.kernel.dtype))

    def cross(self) -> Tensor:
        """K^T W y in float64."""
        return self.transposed(self.targets.to(device=self.kernel.device, dtype=torch.float64))

    def missed(self, V: Tensor, columns: Tensor) -> Tensor:
        """K^T W (y - K V) in float64, for some columns of the targets: what rounding spares of both products."""
        y = self.targets.to(device=self.kernel.device, dtype=torch.float64)[:, columns]
        return self.transposed(y - in_precision(self.kernel.matmul, V, self.kernel.dtype))

    def transposed(self, U: Tensor) -> Tensor:
        """K^T W U in float64."""
        if self.weights is not None:
            U = U * self.weights.to(U).unsqueeze(1)
        return in_precision(self.kernel.T.matmul, U, self.kernel.dtype)

    def trace(self) -> float:
        """The sum of w k(x, x), 0 where it is not known."""
        if not hasattr(self.kernel, "row_diag"):
            return 0.0
        peaks = self.kernel.row_diag()
        return float(peaks.sum() if self.weights is None else self.weights.to(peaks) @ peaks)

    def parts(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Kernel rows, targets and weights, some at a time, at most `most`; none is held while the next is made."""
        step = max(1, self._rows_at_once if most is None else min(self._rows_at_once, most))
        for start in range(0, len(self.targets), step):
            part = slice(start, min(start + step, len(self.targets)))
            w = None if self.weights is None else self.weights[part]
            yield torch.as_tensor(self.kernel.rows(part)), self.targets[part], w

    def accurate(self) -> Block | None:
        """The same rows with kernel values in float64, None where their points are not known."""
        K = self.kernel
        if K.dtype == torch.float64:
            return self
        if not isinstance(K, GramOperator):
            return None
        return self._replace(kernel=gram(K.kernel, K.x, K.z, memory_budget=K.memory_budget, dtype=torch.float64))

    @property
    def _rows_at_once(self) -> int:
        m, budget = self.kernel.shape[1], getattr(self.kernel, "memory_budget", None)
        rows = rows_at_once(m, self.kernel.device)
        return rows if budget is None else min(rows, resolve_budget(budget, self.kernel.device) // (PART_SHARE * 8 * m))

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.targets) if self.weights is None else self.weights.sum())


class CentredBlock:
    """A block of which kernel rows and targets are less their weighted means: what a preconditioner with an intercept
    is built from.
    """

    def __init__(self, block: Block) -> None:
        ones = torch.ones(len(block.targets), 1, dtype=torch.float64, device=block.kernel.device)
        self.block, self.weight = block, block.weight
        targets = block.targets.to(ones)
        share = (ones[:, 0] if block.weights is None else block.weights.to(ones)) / self.weight
        self.means = Means(block.transposed(ones)[:, 0] / self.weight, share @ targets, self.weight)
        self.targets = targets - self.means.targets

    def gram(self, V: Tensor) -> Tensor:
        """The product with V of the sum of w (k - mean)(k - mean)^T."""
        return self.means.image(self.block.gram(V), V)

    def cross(self) -> Tensor:
        """The sum of w (k - mean)(y - mean)^T."""
        return self.block._replace(targets=self.targets).cross()

    def parts(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Kernel rows and targets less their means, and weights, some rows at a time."""
        for K, y, w in self.block.parts():
            yield K.to(self.targets) - self.means.features, y.to(self.targets) - self.means.targets, w

    def accurate(self) -> CentredBlock | None:
        """The same rows with kernel values in float64, None where their points are not known."""
        accurate = self.block.accurate()
        return None if accurate is None else CentredBlock(accurate)


def total(blocks: Any, work: Callable[..., Arrays], *shared: Any) -> Arrays:
    """``work(blocks, *shared)``, where that is a sum over rows.

    Blocks with a method `total` of their own have the work done where their rows are, and the sums added up. So this
    is all that a solver needs to run on a cluster; `work` must be a function that pickle can name.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.arange(5.0).unsqueeze(1).double())
    >>> blocks = RowBlocks(Gaussian(), X, X, torch.ones(5, 1).double(), size=2)
    >>> total(blocks, lambda blocks: {"rows": sum(len(block.targets) for block in blocks)})
    {'rows': 5}
    """
    elsewhere = getattr(blocks, "total", None)
    return work(blocks, *shared) if elsewhere is None else elsewhere(work, *shared)


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The blocks of a sample in memory; can be read as often as needed.

    Anything that gives `Block` after `Block` each time it is iterated can stand in for it: rows from files, rows made
    on the fly, rows on other machines.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.arange(5.0).unsqueeze(1).double())
    >>> blocks = RowBlocks(Gaussian(), X, X.take(slice(0, 2)), torch.ones(5, 1).double(), size=2)
    >>> [block.kernel.shape for block in blocks]
    [(2, 2), (2, 2), (1, 2)]
    """

    kernel: Kernel
    X: Points
    landmarks: Points
    targets: Tensor
    weights: Tensor | None = None
    size: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.targets.ndim != 2 or len(self.targets) != len(self.X):
            raise InputError(f"targets have shape {tuple(self.targets.shape)}; expected ({len(self.X)}, t).")
        if self.weights is not None and self.weights.shape != (len(self.X),):
            raise InputError(f"weights have shape {tuple(self.weights.shape)}; expected ({len(self.X)},).")

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    @cached_property
    def _blocks(self) -> list[Block]:
        """Kept, so that what the operators prepare for their products is prepared once."""
        size = self.size or min(BLOCK_ROWS.get(self._device, BLOCK_ROWS["cpu"]), self._fitting)
        return [self._block(slice(start, start + size)) for start in range(0, len(self.X), size)]

    @property
    def _fitting(self) -> int:
        """Rows of a block whose products with all targets fit the budget.

        A power of two, so that a little more or less free memory does not change the order of the sums.
        """
        budget = resolve_budget(self.options.get("memory_budget"), self._device)
        rows = budget // (PART_SHARE * ROW_BLOCKS_TARGET_ARRAYS * 8 * max(1, self.targets.shape[1]))
        return max(LEAST_ROWS, 1 << rows.bit_length() >> 1)

    @property
    def _device(self) -> str:
        given = self.options.get("device") or (self.X.values.device if self.X.is_tensor else "cpu")
        return torch.device(given).type

    def _block(self, part: slice | Tensor) -> Block:
        kernel = gram(self.kernel, self.X.take(part), self.landmarks, **self.options)
        return Block(kernel, self.targets[part], None if self.weights is None else self.weights[part])

    def sample(self, count: int, generator: torch.Generator) -> Block:
        """`count` rows drawn in proportion to their weights, as one block; what a preconditioner can be built from.

        Their weights are divided by the probabilities with which they were drawn, so that they stand for all rows.
        """
        if self.weights is None:
            return self._block(torch.randperm(len(self.X), generator=generator)[:count].sort().values)
        weighted = self.weights.nonzero().squeeze(1)
        drawn, share = draw_different(self.weights[weighted], count, generator)
        block = self._block(weighted[drawn].cpu())
        assert block.weights is not None
        return block._replace(weights=block.weights / share.to(block.weights))
