"""Cholesky in float32 with refinement in float64: half of the memory, for well-conditioned systems only."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.core.results import Solution
from mercer.solvers.dials import (
    CHOLESKY_TOLERANCE,
    MIXED_GOOD_ENOUGH,
    MIXED_JITTER,
    MIXED_REFINEMENTS,
    PARTS,
    UNSOLVED,
)
from mercer.solvers.factor import factorise
from mercer.solvers.products import Products
from mercer.solvers.registry import register
from mercer.solvers.scaling import column_norms
from mercer.solvers.system import System, check_alpha, near_one, right_hand_sides
from mercer.solvers.traits import Traits


@register("mixed_cholesky")
@dataclass(frozen=True)
class MixedCholesky:
    r"""Solve (A + alpha I) X = B by a float32 factor and residuals in float64,

    .. math:: L L^T \approx D (A + \alpha I) D, \qquad x \leftarrow x + D L^{-T} L^{-1} D\, (b - (A + \alpha I)\, x),

    with D scaling the diagonal to one. The factor takes half of the memory of a float64 one, and the matrix is written
    into it some rows at a time. Each refinement gains as many digits as float32 has left after the condition number:
    above about 1e6 nothing is gained, and the report says so instead of pretending. A jitter that the factor needed
    is refined away like its rounding.

    References: Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, chapter 12; Carson and Higham,
    *Accelerating the solution of linear systems by iterative refinement in three precisions*, 2018.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double())
    >>> MixedCholesky().solve(A, torch.tensor([1.0, 0.0]), alpha=1.0).value
    tensor([ 0.3750, -0.1250], dtype=torch.float64)
    """

    traits: ClassVar[Traits] = Traits(matrices=0.75)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution:
        """Solve for B (n,) or (n, t) with one alpha or one per column; each distinct alpha is factorised once."""
        started = time.perf_counter()
        products = Products.of(A)
        rhs, scale = near_one(right_hand_sides(B, products.n).to(products.device))
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(products.device)
        value, missed = torch.zeros_like(rhs), torch.zeros_like(alphas)
        worst, steps, jitter = 0.0, 0, 0.0
        for distinct in alphas.unique():
            columns = alphas == distinct
            part = self._solve(products, rhs[:, columns], float(distinct))
            value[:, columns] = part.value
            missed[columns], worst = part.missed, max(worst, part.residual)
            steps, jitter = max(steps, part.steps), max(jitter, part.jitter)
        converged = worst <= CHOLESKY_TOLERANCE and float(missed.max()) <= UNSOLVED
        return Solution(
            solver="mixed_cholesky",
            converged=converged,
            residual=worst,
            iterations=steps,
            seconds=time.perf_counter() - started,
            jitter=jitter,
            reason="" if converged else _worry(products),
            value=(value * scale).reshape(B.shape),
            missed=missed,
        )

    def _solve(self, products: Products, rhs: Tensor, alpha: float) -> _Refined:
        factor, scale, norm, jitter = _factorise(products, alpha)
        value = torch.zeros_like(rhs)
        best = _Refined(value, torch.inf, torch.full_like(rhs[0], torch.inf), 0, jitter)
        for step in range(MIXED_REFINEMENTS + 1):
            residual = rhs - products.matmul(value) - alpha * value
            size = norm * column_norms(value) + rhs.norm(dim=0)
            error = torch.where(size > 0, residual.norm(dim=0) / size, 0.0).nan_to_num(torch.inf, torch.inf)
            improved = float(error.max()) < 0.5 * best.residual
            if float(error.max()) < best.residual:
                missed = torch.where(rhs.norm(dim=0) > 0, residual.norm(dim=0) / rhs.norm(dim=0), 0.0)
                best = _Refined(value.clone(), float(error.max()), missed, max(0, step - 1), jitter)
            if best.residual <= MIXED_GOOD_ENOUGH or not improved:
                break
            value = value + scale * _apply(factor, scale * residual)
        return best


@dataclass(frozen=True, eq=False)
class _Refined:
    value: Tensor
    residual: float
    missed: Tensor
    steps: int
    jitter: float


def _worry(products: Products) -> str:
    """Why refinement did not arrive."""
    if products.precision > torch.finfo(torch.float64).eps:
        return (
            f"the products are {products.precision_name}, and refinement cannot see what they round away: use float64 "
            "products, which keep the float32 factor, or solver='cholesky'"
        )
    return (
        "the condition number is too large for a float32 factor (about 1e6 is the limit): use solver='cholesky' or a "
        "larger alpha"
    )


def _factorise(products: Products, alpha: float) -> tuple[Tensor, Tensor, float, float]:
    """A float32 factor of the scaled matrix, the scaling, a bound of the norm of the matrix, and the jitter needed."""
    diagonal = products.diag + alpha
    scale = torch.where(diagonal > 0, diagonal, 1.0).rsqrt().unsqueeze(1)
    norms = [0.0]

    def scaled() -> Tensor:
        matrix = new_matrix(products.n, products.n, torch.float32, products.device)
        for part in torch.arange(products.n, device=products.device).split(max(1, products.rows_at_once // PARTS)):
            rows = products.rows(part)
            norms.append(float(torch.linalg.vector_norm(rows, ord=1, dim=1).max()) + alpha)
            rows[torch.arange(len(part), device=part.device), part] += alpha
            matrix[part] = rows.mul_(scale[part]).mul_(scale.T).to(torch.float32)
        return matrix

    found = factorise(
        scaled,
        largest=MIXED_JITTER,
        what=f"A of {products.n} rows plus alpha={alpha:g}, rounded to float32 and scaled to a unit diagonal,",
        advice="use solver='cholesky', or a larger alpha",
    )
    return found.L, scale, max(norms), found.jitter


def _apply(factor: Tensor, residual: Tensor) -> Tensor:
    """L^-T L^-1 r in float32, with each column brought near one first."""
    size = residual.abs().amax(0).clamp(min=torch.finfo(torch.float64).tiny)
    half = torch.linalg.solve_triangular(factor, (residual / size).to(torch.float32), upper=False)
    result: Tensor = torch.linalg.solve_triangular(factor.mT, half, upper=True).to(torch.float64) * size
    return result
