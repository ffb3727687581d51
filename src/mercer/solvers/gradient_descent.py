"""Gradient descent from zero: regression without an inverse, regularised by when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.results import Solution
from mercer.core.seeding import generator_from
from mercer.solvers.decompose import eigh
from mercer.solvers.dials import LANCZOS_ROUNDING, LANCZOS_STEPS
from mercer.solvers.early_stopping import (
    NO_GAIN,
    BestSoFar,
    held_out_rows,
    held_out_words,
    largest_relative,
    relative_error,
)
from mercer.solvers.products import Products
from mercer.solvers.registry import register
from mercer.solvers.system import System, check_alpha, check_count, check_tol, each_alpha, right_hand_sides
from mercer.solvers.traits import Traits


@register("gd")
@dataclass(frozen=True)
class GradientDescent:
    r"""Approach (A + alpha I) X = B by gradient descent on the squared error in function space, from zero,

    .. math:: c_{k+1} = c_k + \eta\, (b - (A + \alpha I)\, c_k) + \mu\, (c_k - c_{k-1}), \qquad
              c_k = \frac{1 - (1 - \eta \lambda)^k}{\lambda}\, b \quad
              \text{in each eigendirection of } A + \alpha I \text{ for } \mu = 0.

    No inverse is formed, and the function stays in the span of the data. Directions of large eigenvalues are learned
    first, so stopping after k steps acts like a ridge of about alpha + (1 - mu) / (eta k): with `validation`, that
    share of the rows is held out and decides when. Their coefficients are zero, and the residual reported is of the
    others.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.
    tol : float
        Relative residual at which to stop.
    step : float or None
        Eta; by default one over the largest eigenvalue.
    momentum : float
        Mu, at least 0 and below 1. The more of it, the faster directions of small eigenvalues are learned: about
        1 / (1 - mu) times, until those of large ones swing.
    validation : float
        Share of rows to hold out, 0 for none.
    patience : int
        Stop when this many steps, and a fifth of those done, have not lowered the validation error by a thousandth.
    seed : int
        Of the rows held out.
    callback : callable or None
        Called with the step and the validation error, or the relative residual without validation. An interrupt from
        the keyboard ends the descent with the best iterate so far.

    References
    ----------
    Yao, Rosasco and Caponnetto, *On early stopping in gradient descent learning*, 2007; Raskutti,
    Wainwright and Yu, *Early stopping and non-parametric regression*, 2014; Polyak, *Some methods of speeding up the
    convergence of iteration methods*, 1964.

    Examples
    --------
    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.diag(torch.tensor([1.0, 0.5])).double())
    >>> GradientDescent(max_iter=2, step=1.0).solve(A, torch.tensor([1.0, 1.0])).value
    tensor([1.0000, 1.5000], dtype=torch.float64)
    """

    traits: ClassVar[Traits] = Traits(iterates=True, stops_early=True)

    max_iter: int = 1000
    tol: float = 1e-6
    step: float | None = None
    momentum: float = 0.0
    validation: float = 0.0
    patience: int = 20
    seed: int = 0
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_tol("GradientDescent", self.tol)
        check_count("GradientDescent", "max_iter", self.max_iter)
        check_count("GradientDescent", "patience", self.patience)
        if self.step is not None and not self.step > 0:
            raise InputError(f"GradientDescent(step={self.step}): must be a number > 0, or None to choose.")
        if not 0 <= self.momentum < 1:
            raise InputError(f"GradientDescent(momentum={self.momentum}): must be a number >= 0 and < 1.")

    def solve(self, A: System, B: Tensor, alpha: float | Tensor = 0.0) -> Solution:
        """Descend for B (n,) or (n, t) with one alpha or one per column."""
        started = time.perf_counter()
        products, generator = Products.of(A), generator_from(self.seed)
        rhs = right_hand_sides(B, products.n).to(products.device)
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(products.device)
        train, held_out = (part.to(products.device) for part in held_out_rows(products.n, self.validation, generator))
        largest = largest_eigenvalue(products, generator) if self.step is None else 0.0

        def solve(columns: Tensor, alpha: float) -> Solution:  # a step is as long as the largest alpha allows
            step = self.step or (1.0 / (largest + alpha) if largest + alpha > 0 else 1.0)
            best, taken, ending = self._descend(products, columns, alpha, step, train, held_out)
            residual = largest_relative(self._residual(products, columns, alpha, best.value)[train], columns[train])
            return Solution(
                solver="gd",
                converged=residual <= self.tol or (ending == "stopped" and best.step > 0),
                residual=residual,
                iterations=taken,
                reason=self._account(best, alpha, step, ending, len(held_out)),
                value=best.value,
                missed=None if len(held_out) else columns.new_full(columns.shape[1:], residual),
            )

        solution = each_alpha(solve, rhs, alphas)
        return replace(solution, seconds=time.perf_counter() - started, value=solution.value.reshape(B.shape))

    def _descend(
        self, products: Products, rhs: Tensor, alpha: float, step: float, train: Tensor, held_out: Tensor
    ) -> tuple[BestSoFar, int, str]:
        c, residual, taken = torch.zeros_like(rhs), rhs, 0
        change = torch.zeros_like(rhs[train])
        best = BestSoFar(c)
        try:
            for taken in range(self.max_iter + 1):
                if taken:
                    change = self.momentum * change + step * residual[train]
                    c[train] += change
                    residual = self._residual(products, rhs, alpha, c)
                fit = largest_relative(residual[train], rhs[train])
                error = relative_error(residual[held_out], rhs) if len(held_out) else fit
                best.offer(taken, error, c)
                if self.callback is not None and taken:
                    self.callback(taken, error)
                if not fit < 1e8:
                    return best, taken, "diverged"
                if fit <= self.tol:
                    return best, taken, "arrived"
                if len(held_out) and taken - best.progress > max(self.patience, taken // 5):
                    return best, taken, "stopped"
        except KeyboardInterrupt:
            return best, taken, "interrupted"
        return best, taken, "spent"

    @staticmethod
    def _residual(products: Products, rhs: Tensor, alpha: float, c: Tensor) -> Tensor:
        return rhs - products.matmul(c) - alpha * c

    def _account(self, best: BestSoFar, alpha: float, step: float, ending: str, held_out: int) -> str:
        words = f"{best.step} steps of {step:.2g}"
        if best.step and ending != "arrived":
            words += f", like a ridge of about {alpha + (1.0 - self.momentum) / (step * best.step):.2g}"
        if held_out:
            words += f", validation error {best.error:.3g}" if best.step else f", {NO_GAIN}"
            words += f"; {held_out_words(held_out)}"
        return words + {
            "diverged": f"; the residuals grew: step={step:.2g} is too long",
            "spent": f"; stopped after max_iter={self.max_iter} epochs; increase max_iter to fit more closely",
            "interrupted": "; interrupted, this is the best iterate so far",
        }.get(ending, "")


def largest_eigenvalue(products: Products, generator: torch.Generator) -> float:
    """An upper estimate of the largest eigenvalue by Lanczos, with the size of its residual added.

    References: Golub and Van Loan, *Matrix Computations*, 2013, section 10.1.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = Products.of(MatrixSystem(torch.diag(torch.arange(1.0, 9.0)).double()))
    >>> round(largest_eigenvalue(A, torch.Generator().manual_seed(0)), 6)
    8.0
    """
    v = torch.randn(products.n, 1, generator=generator, dtype=torch.float64).to(products.device)
    V, diagonal, off = [v / v.norm()], [], []
    for _ in range(min(LANCZOS_STEPS, products.n)):
        w = products.matmul(V[-1])
        diagonal.append(float((w * V[-1]).sum()))
        basis = torch.cat(V, dim=1)
        w = w - basis @ (basis.T @ w)
        w = w - basis @ (basis.T @ w)
        off.append(float(w.norm()))
        if off[-1] <= LANCZOS_ROUNDING * products.precision * max(map(abs, diagonal)):
            break
        V.append(w / off[-1])
    beside = torch.diag(torch.tensor(off[:-1], dtype=torch.float64), 1)
    T = torch.diag(torch.tensor(diagonal, dtype=torch.float64)) + beside + beside.T
    values, vectors = eigh(T, "A Krylov space of the Gram matrix")
    return float(values[-1]) + off[-1] * abs(float(vectors[-1, -1]))
