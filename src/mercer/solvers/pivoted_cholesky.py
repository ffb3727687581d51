"""Partial Cholesky factors F F^T of a kernel matrix, from its diagonal and a few of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.seeding import generator_from
from mercer.solvers.dials import LARGEST_BLOCK, NOISE, PIVOTED_NUMBERS
from mercer.solvers.drawing import draw_independently
from mercer.solvers.products import Products
from mercer.solvers.system import System

HOW = ("random", "greedy")


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """A factor `F` (n, r) with F F^T close to A, exact on the rows `pivots`; `left` is the diagonal of A - F F^T."""

    F: Tensor
    pivots: Tensor
    left: Tensor

    @property
    def rank(self) -> int:
        return len(self.pivots)


def pivoted_cholesky(
    A: System,
    rank: int,
    *,
    how: str = "random",
    seed: int | torch.Generator = 0,
    enough: float = 0.0,
    block: int | None = None,
) -> PivotedCholesky:
    r"""A partial Cholesky factor of `rank` columns,

    .. math:: A \approx F F^T, \qquad F_{k+1} = \frac{(A - F F^T)\, e_s}{\sqrt{(A - F F^T)_{ss}}},

    from `rank` rows of A and O(n rank^2) multiplications. With ``how="random"`` the pivot s is drawn with probability
    proportional to the diagonal of what is left, A - F F^T, with ``how="greedy"`` it is the largest entry of it.
    Random pivots are proposed in blocks and thinned by rejection, which leaves their law as it is and makes the work
    matrix products. Stops early when the trace of what is left is at most `enough`, or is rounding error.

    References: Chen, Epperly, Tropp and Webber, *Randomly pivoted Cholesky*, 2023; Epperly, Tropp and Webber, *Embrace
    rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky*, 2024.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> factor = pivoted_cholesky(MatrixSystem(torch.ones(5, 5)), rank=3)
    >>> factor.rank, torch.allclose(factor.F @ factor.F.T, torch.ones(5, 5).double())
    (1, True)
    """
    if rank < 1:
        raise InputError(f"rank={rank}: a partial Cholesky factor needs at least one column.")
    if how not in HOW:
        raise InputError(f"how={how!r}: choose pivots by 'random' or 'greedy'.")
    products, generator = Products.of(A), generator_from(seed)
    rank = min(rank, products.n)
    size = 1 if how == "greedy" else block or max(1, min(LARGEST_BLOCK, rank // 4))
    noise = NOISE * products.entry_precision * products.diag
    left = torch.where(products.diag > noise, products.diag, 0.0)
    columns = torch.empty(rank, products.n, dtype=torch.float64, device=products.device)
    pivots: list[Tensor] = []
    k = 0
    while k < rank and float(left.sum()) > enough:
        count = min(size, rank - k)
        proposed = left.argmax().reshape(1) if how == "greedy" else draw_independently(left, count, generator)
        rows = products.rows(proposed)
        rows.addmm_(columns[:k, proposed].T, columns[:k], alpha=-1.0)
        accepted, corner = _accept(rows[:, proposed].cpu(), noise[proposed].cpu(), generator)
        if len(accepted) == 0:
            left[proposed] = 0.0
            continue
        new, after = columns[k : k + len(accepted)], left.clone()
        torch.index_select(rows, 0, accepted.to(rows.device), out=new)
        chosen = proposed[accepted.to(proposed.device)]
        del rows
        width = max(1, PIVOTED_NUMBERS[new.device.type] // len(new))
        for part, some in zip(new.split(width, dim=1), after.split(width), strict=True):
            solved = torch.linalg.solve_triangular(corner.to(part), part, upper=False)
            part.copy_(solved)
            some.sub_(solved.square_().sum(0))
        if not _is_definite(after, products):
            if k and products.entry_precision > torch.finfo(torch.float64).eps:
                break  # rounding, which small pivots have magnified: the factor ends before it
            raise _indefinite(after)
        left = after
        left[chosen] = 0.0
        left[left <= noise] = 0.0
        pivots.append(chosen)
        k += len(new)
    found = torch.cat(pivots) if pivots else torch.empty(0, dtype=torch.long, device=products.device)
    return PivotedCholesky(columns[:k].T, found, left)


def _accept(corner: Tensor, noise: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Which of a block of proposals to keep, and the Cholesky factor of their corner of A - F F^T.

    Each is kept with the probability that the earlier ones of the block leave it: what is left of its diagonal entry,
    divided by what there was.
    """
    wanted = (torch.rand(len(corner), generator=generator, dtype=torch.float64) * corner.diagonal()).numpy()
    left, least = corner.clone().numpy(), noise.numpy()
    accepted: list[int] = []
    columns: list[np.ndarray] = []
    for i in range(len(left)):
        pivot = left[i, i]
        if not (pivot > least[i] and (not accepted or pivot >= wanted[i])):
            continue
        column = left[:, i] / pivot**0.5
        left -= np.outer(column, column)
        accepted.append(i)
        columns.append(column)
    kept = torch.tensor(accepted, dtype=torch.long)
    factor = torch.from_numpy(np.stack(columns, axis=1))[kept].tril() if columns else corner.new_zeros(0, 0)
    return kept, factor


def _is_definite(left: Tensor, products: Products) -> bool:
    return bool(float(left.min()) >= -(products.entry_precision**0.5) * float(products.diag.max()))


def _indefinite(left: Tensor) -> NotPositiveDefiniteError:
    return NotPositiveDefiniteError(
        f"A pivoted Cholesky factor left the diagonal entry {float(left.min()):.3g}: the kernel is not positive "
        "semi-definite. Test it with mercer.testing.check_kernel."
    )
