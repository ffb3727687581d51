"""Falkon: Nyström regression on many landmarks by preconditioned conjugate gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.checkpoint import Checkpoint
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.solvers.cholesky import factorise_in_place
from mercer.solvers.conjugate_gradients import conjugate_gradients
from mercer.solvers.nystrom import landmark_matrix
from mercer.solvers.pcg import how_it_ended
from mercer.solvers.products import generator_from
from mercer.solvers.row_blocks import Block, total
from mercer.solvers.system import check_alpha

JITTER = {torch.float64: 1e-10, torch.float32: 1e-6}
"""The first jitter, by the precision of the products: it keeps L^-1 from magnifying their rounding errors."""

MAX_JITTER = 1e-4

LARGEST_FIRST = 1e-2
"""Of the first jitter of float32 products, which grows with alpha."""


@dataclass(frozen=True)
class Falkon:
    r"""Solve the Nyström system on m landmarks,

    .. math:: (K_{nm}^T W K_{nm} + \alpha K_{mm})\, c = K_{nm}^T W y,

    by conjugate gradients in the basis in which the preconditioner is the identity,

    .. math:: c = L^{-T} A^{-T} \beta, \qquad L L^T = K_{mm}, \qquad
              A A^T = \tfrac{1}{s} \textstyle\sum_i w_i\; L^{-1} K_{sm}^T K_{sm} L^{-T} + \alpha I,

    with s rows drawn at random; the classical choice, the landmarks themselves, makes the product L^T L. K_nm is never
    stored: each iteration reads all rows once, block by block, and adds up in float64; both factors are float64. A
    jitter relative to its diagonal makes K_mm a good basis. It is taken out of the penalty again, so that the system
    solved is the one above, and reported only where more than the usual one was needed. The residual is measured in
    the basis of beta, where it is close to the error of the function. Takes two m x m matrices.

    Parameters
    ----------
    tol : largest relative residual.
    max_iter : largest number of iterations.
    sample : rows per landmark that the preconditioner is built from; 0 takes the landmarks, which is cheaper and needs
        more iterations the smaller alpha is. Blocks that have no ``sample(count, generator)`` do that too.
    seed : of the sample.
    warm_start : a first guess of c, of shape (m, t).
    callback : called with the iteration and the largest relative residual; an interrupt ends the solve with the best
        iterate so far.
    checkpoint : keeps the state of the iterations in a file; a solve that finds it goes on from there.

    References: Rudi, Carratino and Rosasco, *FALKON: an optimal large scale kernel method*, 2017; Meanti, Carratino,
    Rosasco and Rudi, *Kernel methods through the roof*, 2020.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers.row_blocks import RowBlocks
    >>> X = Points(torch.linspace(0, 3, 50).unsqueeze(1).double())
    >>> Z, y = X.take(slice(0, 50, 10)), X.values.sin()
    >>> solution = Falkon().solve(RowBlocks(Gaussian(), X, Z, y), Gaussian()(Z.values), alpha=1e-3)
    >>> solution.converged, solution.value.shape
    (True, torch.Size([5, 1]))
    """

    tol: float = 1e-6
    max_iter: int = 100
    sample: int = 10
    seed: int = 0
    warm_start: Tensor | None = field(default=None, repr=False, compare=False)
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)
    checkpoint: Checkpoint | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.tol < 1:
            raise InputError(f"Falkon(tol={self.tol}): must be a number > 0 and < 1.")
        if self.max_iter < 1:
            raise InputError(f"Falkon(max_iter={self.max_iter}): must be at least 1.")
        if self.sample < 0:
            raise InputError(f"Falkon(sample={self.sample}): must be at least 0.")

    def solve(self, blocks: Iterable[Block], K_mm: Any, alpha: float | Tensor) -> Solution:
        """Coefficients c (m, t) from blocks of rows that can be read again and again; one alpha or one per target."""
        started = time.perf_counter()
        first = total(blocks, _first_pass)
        weight, cross, dtype = float(first["weight"]), first["cross"], first["precision"].dtype
        if weight <= 0:
            raise InputError("There are no rows with weight to learn from.")
        check_finite(cross, "The sum of kernel values times targets")
        alphas = check_alpha(alpha, cross.shape[1]).expand(cross.shape[1]).to(cross.device)
        if not bool((alphas > 0).all()):
            raise InputError(f"alpha={float(alphas.min()):g}: Falkon needs alpha > 0.")
        start = None if self.warm_start is None else self.warm_start.to(cross)
        if start is not None and start.shape != cross.shape:
            raise InputError(f"warm_start has shape {tuple(start.shape)}; expected {tuple(cross.shape)}.")
        rows = self._sample(blocks, len(cross))
        basis = FalkonBasis.of(K_mm, rows, weight, alphas, dtype, cross)

        def product(beta: Tensor, columns: Tensor) -> Tensor:
            half = basis.solve_transposed(beta, columns)
            c = basis.coefficients(half)
            image = total(blocks, _image, c)["image"].to(c)
            image -= alphas[columns] * basis.added * c
            return basis.solve(basis.project(image) + alphas[columns] * half, columns)

        everything = torch.arange(cross.shape[1], device=cross.device)
        found = conjugate_gradients(
            product,
            basis.solve(basis.project(cross), everything),
            lambda R, _: R.clone(),
            tol=self.tol,
            max_iter=self.max_iter,
            precision=torch.finfo(dtype).eps,
            start=None if start is None else basis.coordinates(start, everything),
            callback=self.callback,
            checkpoint=self.checkpoint,
        )
        residual = float(found.residual.max())
        return Solution(
            solver="falkon",
            converged=residual <= self.tol,
            residual=residual,
            iterations=found.iterations,
            seconds=time.perf_counter() - started,
            jitter=basis.jitter,
            reason=how_it_ended(found, self.max_iter, str(dtype).removeprefix("torch.")),
            value=basis.coefficients(basis.solve_transposed(found.value, everything)),
        )

    def _sample(self, blocks: Any, m: int) -> Block | None:
        if self.sample == 0 or not hasattr(blocks, "sample"):
            return None
        return blocks.sample(self.sample * m, generator_from(self.seed))


@dataclass(frozen=True, eq=False)
class FalkonBasis:
    """The factors L of K_mm with `added` on its diagonal, and A for each distinct alpha, `group` by column.

    `jitter` is zero where the first one worked.
    """

    L: Tensor
    A: list[Tensor]
    group: Tensor
    added: Tensor
    jitter: float

    @classmethod
    def of(
        cls, K_mm: Any, rows: Block | None, weight: float, alphas: Tensor, dtype: torch.dtype, like: Tensor
    ) -> FalkonBasis:
        L, added, jitter = _factor(K_mm, _first_jitter(dtype, float(alphas.min()) / weight, len(like)), like)
        inner = torch.mm(L.T, L).div_(len(L)) if rows is None or rows.weight <= 0 else _sampled(L, rows)
        distinct, group = alphas.unique(return_inverse=True)
        factors = []
        for alpha in distinct:
            shifted = inner * weight
            shifted.diagonal().add_(alpha)
            if not factorise_in_place(shifted):
                raise NotPositiveDefiniteError(
                    f"alpha={float(alpha):g} is too small beside the kernel: use a larger one."
                )
            factors.append(shifted.mT)
        return cls(L, factors, group, added.unsqueeze(1), jitter)

    def coefficients(self, half: Tensor) -> Tensor:
        """L^-T u."""
        return torch.linalg.solve_triangular(self.L.T, half, upper=True)

    def project(self, V: Tensor) -> Tensor:
        """L^-1 v."""
        return torch.linalg.solve_triangular(self.L, V, upper=False)

    def solve(self, V: Tensor, columns: Tensor) -> Tensor:
        """A^-1 v, with the A of each column."""
        return self._each(V, columns, lambda A, part: torch.linalg.solve_triangular(A, part, upper=False))

    def solve_transposed(self, V: Tensor, columns: Tensor) -> Tensor:
        """A^-T v, with the A of each column."""
        return self._each(V, columns, lambda A, part: torch.linalg.solve_triangular(A.T, part, upper=True))

    def coordinates(self, c: Tensor, columns: Tensor) -> Tensor:
        """beta = A^T L^T c."""
        return self._each(self.L.T @ c, columns, lambda A, part: A.T @ part)

    def _each(self, V: Tensor, columns: Tensor, apply: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        if len(self.A) == 1:
            return apply(self.A[0], V)
        result = torch.empty_like(V)
        for index, A in enumerate(self.A):
            members = self.group[columns] == index
            if bool(members.any()):
                result[:, members] = apply(A, V[:, members])
        return result


def _first_pass(blocks: Iterable[Block]) -> dict[str, Tensor]:
    """The sum of the weights, K_nm^T W y, and a zero in the precision of the products."""
    weight, cross, dtype = 0.0, None, torch.float64
    for block in blocks:
        dtype = block.kernel.dtype
        if block.weights is not None and not bool((block.weights >= 0).all()):
            raise InputError("Weights must be >= 0.")
        part = block.cross()
        weight += block.weight
        cross = part if cross is None else cross + part
    if cross is None:
        raise InputError("There are no rows with weight to learn from.")
    return {
        "weight": torch.tensor(weight, dtype=torch.float64),
        "cross": cross,
        "precision": torch.zeros((), dtype=dtype),
    }


def _image(blocks: Iterable[Block], c: Tensor) -> dict[str, Tensor]:
    """K_nm^T W K_nm c."""
    return {"image": sum((block.gram(c) for block in blocks), torch.zeros_like(c))}


def _sampled(L: Tensor, rows: Block) -> Tensor:
    """The mean of L^-1 k k^T L^-T over some rows."""
    total = L.new_zeros(L.shape)
    for K, _, w in rows.parts():
        half = torch.linalg.solve_triangular(L, K.T.to(L), upper=False)
        total.addmm_(half if w is None else half * w.to(L), half.T)
    return total.div_(rows.weight)


def _first_jitter(dtype: torch.dtype, ridge: float, m: int) -> float:
    """What rounding errors ask for; with float32 products more, as far as the ridge alpha / n hides the difference.

    Eigenvectors of K_mm with eigenvalues below m alpha / n hardly take part in the solution: their share of the data
    term, n mu^2 / m, is less than that of the penalty, alpha mu. They would magnify rounding errors all the same.
    """
    return JITTER[dtype] if dtype == torch.float64 else min(max(JITTER[dtype], ridge * m), LARGEST_FIRST)


def _factor(K_mm: Any, first: float, like: Tensor) -> tuple[Tensor, Tensor, float]:
    """L with L L^T = K_mm + jitter diag(K_mm), what was added to the diagonal, and the jitter, zero for the first one.

    A landmark with k(z, z) = 0 is zero everywhere; a one on the diagonal keeps it apart.
    """
    jitter = first
    while jitter <= max(first, MAX_JITTER) * 1.001:
        matrix, _ = landmark_matrix(K_mm, like)
        matrix = matrix.contiguous()
        added = torch.where(matrix.diagonal() == 0, 1.0, jitter * matrix.diagonal())
        matrix.diagonal().add_(added)
        if factorise_in_place(matrix):
            return matrix.mT, added, jitter if jitter > first else 0.0
        jitter *= 10
    raise NotPositiveDefiniteError(
        f"The Gram matrix of the landmarks is not positive definite, even with a jitter of {jitter / 10:g}: the kernel "
        "may not be positive semi-definite. Test it with mercer.testing.check_kernel."
    )
