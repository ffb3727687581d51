"""Preconditioned conjugate gradients: the exact solver when the Gram matrix does not fit in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import give_back, resolve_budget
from mercer.core.results import Solution
from mercer.solvers import conjugate_gradients as cg
from mercer.solvers.dials import (
    ALLOWED,
    BEING_MADE,
    COLUMN_ARRAYS,
    ENOUGH,
    FACTOR_SHARE,
    LARGEST_BLOCK,
    LEAST_SHARE,
    PCG_RANK,
    PCG_TARGET_ARRAYS,
    REFINABLE,
    SMALLEST_RANK,
)
from mercer.solvers.preconditioners import Identity, Preconditioner, nystrom_preconditioner, pivoted_preconditioner
from mercer.solvers.products import Products
from mercer.solvers.registry import register
from mercer.solvers.system import System, check_alpha, check_count, check_tol, near_one, right_hand_sides
from mercer.solvers.traits import Traits

UNSEEN = 0.1 * ALLOWED  # where rounding of float32 products may hide so much, float64 products look once


@register("pcg")
@dataclass(frozen=True)
class PCG:
    r"""Solve (A + alpha I) X = B by conjugate gradients on

    .. math:: P^{-1} (A + \alpha I)\, x = P^{-1} b, \qquad P = F F^T + D,

    where D is alpha and what the low-rank copy F F^T leaves out of A. It takes products A V alone: the matrix is never
    stored. All right-hand sides share each product, with one alpha or one per column, and those that have converged are
    dropped. It stops on the true residual |b - (A + alpha I) x| / |b|, computed anew every 10 iterations; scalars and
    vectors are float64 also where products are float32, and a solve that float32 cannot bring to `tol` ends with the
    best it reached and says so.

    Parameters
    ----------
    tol : float
        Largest relative residual.
    max_iter : int
        Largest number of iterations.
    preconditioner : str or Preconditioner or None
        "pivoted" (randomly pivoted Cholesky), "nystrom" (random sketch), None, or an object with ``apply(R, alpha)``
        and ``note``.
    rank : int or None
        Columns of F; by default 12 sqrt(n) but at least 200, fewer where memory is short.
    warm_start : Tensor or None
        A first guess of the shape of B; ignored for columns where zero is a better one.
    seed : int
        Of the random pivots or the sketch.
    memory_budget : int or str or None
        Bytes or text such as "2GiB"; half of what is free by default. It bounds the rank, and columns that do not fit
        beside the preconditioner are solved one group after the other.
    accurate : System or None
        The same system with float64 products. Where float32 products cannot bring the residual to `tol`, the solve goes
        on with true residuals from these, at the price of a few slow products; where float32 is too coarse for the
        system altogether, every product is one of these if `switch` is true, and otherwise the solve ends.
    callback : callable or None
        Called with the iteration, counted on from group to group, and the largest relative residual. An interrupt from
        the keyboard, there or anywhere, ends the solve with the best iterate so far.

    References
    ----------
    Hestenes and Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952; Díaz, Epperly,
    Frangella, Tropp and Webber, *Robust, randomized preconditioning for kernel ridge regression*, 2023; Frangella,
    Tropp and Udell, *Randomized Nyström preconditioning*, 2021.

    Examples
    --------
    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double())
    >>> solution = PCG().solve(A, torch.tensor([4.0, 4.0]), alpha=1.0)
    >>> solution.value.round(decimals=6), solution.converged
    (tensor([1., 1.], dtype=torch.float64), True)
    """

    traits: ClassVar[Traits] = Traits(iterates=True, zero_alpha=False)

    tol: float = 1e-6
    max_iter: int = 1000
    preconditioner: str | Preconditioner | None = "pivoted"
    rank: int | None = None
    warm_start: Tensor | None = field(default=None, repr=False, compare=False)
    seed: int = 0
    memory_budget: int | str | None = None
    accurate: System | None = field(default=None, repr=False, compare=False)
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)
    switch: bool = True

    def __post_init__(self) -> None:
        check_tol("PCG", self.tol)
        check_count("PCG", "max_iter", self.max_iter)
        if self.rank is not None:
            check_count("PCG", "rank", self.rank)
        if isinstance(self.preconditioner, str) and self.preconditioner not in ("pivoted", "nystrom"):
            raise InputError(f"PCG(preconditioner={self.preconditioner!r}): must be 'pivoted', 'nystrom' or None.")
        if not isinstance(self.preconditioner, str | None) and not hasattr(self.preconditioner, "apply"):
            raise InputTypeError(f"PCG(preconditioner={self.preconditioner!r}): an object needs apply(R, alpha).")

    def prepare(self, A: System, smallest_alpha: float = 0.0) -> PreparedPCG:
        """Build the preconditioner once, to solve for many right-hand sides and for every alpha from that one up."""
        started = time.perf_counter()
        products = Products.of(A)
        preconditioner = self.preconditioner_of(A, products, smallest_alpha)
        give_back()  # what its columns were made of
        return PreparedPCG(self, products, preconditioner, time.perf_counter() - started)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution:
        """Solve for B (n,) or (n, t) with one alpha or one per column."""
        return self.prepare(A, float(check_alpha(alpha).min())).solve(B, alpha)

    def preconditioner_of(self, A: System, products: Products, smallest_alpha: float) -> Preconditioner:
        """The preconditioner of a system, for every alpha from that one up."""
        if self.preconditioner is None:
            return Identity()
        if not isinstance(self.preconditioner, str):
            return self.preconditioner
        rank = self.rank or automatic_rank(products.n, resolve_budget(self.memory_budget, products.device))
        if self.preconditioner == "nystrom":
            return nystrom_preconditioner(A, rank, self.seed)
        return pivoted_preconditioner(A, rank, self.seed, ENOUGH * smallest_alpha)


@dataclass(frozen=True, eq=False)
class PreparedPCG:
    """A system with its preconditioner; solves many times."""

    options: PCG
    products: Products
    preconditioner: Preconditioner
    seconds: float = 0.0

    def solve(self, B: Tensor, alpha: float | Tensor) -> Solution:
        """X of (A + alpha I) X = B for B of shape (n,) or (n, t); alpha is one number or one per column."""
        started = time.perf_counter()
        options, products = self.options, self.products
        rhs = right_hand_sides(B, products.n).to(products.device)
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(products.device)
        accurate = None if options.accurate is None else Products.of(options.accurate)
        if accurate is not None and accurate.n != products.n:
            raise InputError(f"accurate has {accurate.n} rows but the system has {products.n}.")
        start = _start(options.warm_start, rhs)
        value, residual, missed = torch.zeros_like(rhs), torch.ones_like(alphas), torch.ones_like(alphas)
        fate = torch.full_like(alphas, cg.INTERRUPTED, dtype=torch.long)
        iterations, before, second = 0, 0, None
        for columns in self._groups(alphas):
            first_guess = None if start is None else start[:, columns]
            group = _Group(self, rhs[:, columns], alphas[columns], before)
            found, judge = group.search(first_guess, 0, products, None, self.preconditioner), products
            refinable = not options.switch or bool((found.residual <= REFINABLE).all())
            unclear = self._goes_on(found) or bool((group.unseen(found.value, judge) > UNSEEN).any())
            if accurate is not None and unclear and refinable:
                found = group.search(found.value, found.iterations, products, accurate, self.preconditioner)
                judge = accurate
            if accurate is not None and options.switch and self._goes_on(found):
                if second is None:
                    second = self._preconditioner_of(accurate, float(alphas.min()))
                found = group.search(found.value, found.iterations, accurate, None, second)
                judge = accurate
            value[:, columns], residual[columns], fate[columns] = found.value, found.residual, found.fate
            missed[columns] = found.residual + group.unseen(found.value, judge)
            iterations, before = max(iterations, found.iterations), before + found.iterations
            if bool((found.fate == cg.INTERRUPTED).any()):
                break
        P, switched = self.preconditioner, ""
        if accurate is not None and second is not None:
            P = second
            switched = f"{products.precision_name} products are too coarse, {accurate.precision_name} ones took over"
        ending = self._ending(cg.Iterates(value, residual, fate, iterations))
        largest = float(residual.max()) if len(residual) else 0.0
        return Solution(
            solver="pcg",
            converged=largest <= options.tol,
            residual=largest,
            iterations=iterations,
            seconds=self.seconds + time.perf_counter() - started,
            reason="; ".join(filter(None, [ending, switched, getattr(P, "note", "")])),
            value=value.reshape(B.shape),
            missed=missed,
        )

    def _groups(self, alphas: Tensor) -> list[Tensor]:
        """Columns to solve together, neighbours in alpha: as many as there is room for beside the preconditioner."""
        n, t = self.products.n, len(alphas)
        budget = resolve_budget(self.options.memory_budget, self.products.device)
        F = getattr(self.preconditioner, "F", torch.empty(0, 0))
        factor = F.shape[1] ** 2  # each alpha has its own
        room = max(budget // LEAST_SHARE, budget - 8 * (F.numel() + factor + PCG_TARGET_ARRAYS * n * t))
        order = alphas.argsort(stable=True)
        is_new = torch.ones_like(order)
        is_new[1:] = alphas[order].diff() > 0
        size = 8 * (COLUMN_ARRAYS * n + factor * is_new)
        group = (size.cumsum(0) - size) // max(1, room)
        return [order[group == g].sort().values for g in group.unique()]

    def _preconditioner_of(self, accurate: Products, smallest_alpha: float) -> Preconditioner:
        """One from float64 rows, where there is room for a second."""
        options, used = self.options, 8 * getattr(self.preconditioner, "F", torch.empty(0)).numel()
        fitting = automatic_rank(accurate.n, max(0, resolve_budget(options.memory_budget, accurate.device) - used))
        if fitting < automatic_rank(accurate.n, 2**62) or not isinstance(options.preconditioner, str):
            return self.preconditioner
        return options.preconditioner_of(accurate.system, accurate, smallest_alpha)

    def _goes_on(self, found: cg.Iterates) -> bool:
        """Whether some column cannot go further with products of this precision, and there are iterations left."""
        fates = set(found.fate.tolist())
        stuck = cg.INTERRUPTED not in fates and bool(fates & {cg.STAGNATED, cg.INDEFINITE, cg.DIVERGING})
        return stuck and found.iterations < self.options.max_iter

    def _ending(self, found: cg.Iterates) -> str:
        judged_by = self.products if self.options.accurate is None else Products.of(self.options.accurate)
        return how_it_ended(found, self.options.max_iter, judged_by.precision_name)


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns that are solved together, after `before` iterations for others."""

    owner: PreparedPCG
    rhs: Tensor
    alphas: Tensor
    before: int

    def search(self, start: Tensor | None, taken: int, fast: Products, judge: Products | None, P: Any) -> cg.Iterates:
        """Go on from `start`, after `taken` iterations."""
        options, alphas = self.owner.options, self.alphas
        rhs, scale = near_one(self.rhs)
        found = cg.conjugate_gradients(
            lambda V, columns: fast.matmul(V) + alphas[columns] * V,
            rhs,
            lambda R, columns: P.apply(R, alphas[columns]),
            tol=options.tol,
            max_iter=options.max_iter - taken,
            precision=fast.precision,
            accurate=None if judge is None else lambda V, columns: judge.matmul(V) + alphas[columns] * V,
            start=None if start is None else start / scale,
            callback=None if options.callback is None else _counting_on(options.callback, self.before + taken),
        )
        return replace(found, value=found.value * scale, iterations=taken + found.iterations)

    def unseen(self, value: Tensor, judge: Products) -> Tensor:
        """What residuals of these products do not see, as a share of the right-hand sides."""
        rhs, scale = near_one(self.rhs)
        norms = rhs.norm(dim=0)
        return torch.where(norms > 0, judge.unseen(value / scale) / norms, 0.0)


def _counting_on(callback: cg.Progress, taken: int) -> cg.Progress:
    return lambda iteration, residual: callback(taken + iteration, residual)


def automatic_rank(n: int, budget: int) -> int:
    """12 sqrt(n) columns but at least 200, never more than n or than fit most of the budget, with those being made.

    >>> automatic_rank(100, 2**30), automatic_rank(40_000, 2**34), automatic_rank(10**6, 2**34)
    (100, 2400, 1354)
    """
    wanted = max(int(PCG_RANK * n**0.5), SMALLEST_RANK)
    columns = int(FACTOR_SHARE * budget / (8 * n))
    fitting = max(columns - BEING_MADE * LARGEST_BLOCK, 4 * columns // (4 + BEING_MADE))
    return max(1, min(wanted, fitting, n))


def how_it_ended(found: cg.Iterates, max_iter: int, precision: str) -> str:
    """Why some right-hand side did not converge, in words; empty when all did."""
    close = bool((found.residual[found.fate == cg.INTERRUPTED] < 1).all())
    endings = {
        cg.INTERRUPTED: f"interrupted after {found.iterations} iterations, "
        + ("this is the best iterate so far" if close else "none of which is closer to the solution than zero"),
        cg.INDEFINITE: "a direction of negative curvature was found: the kernel is not positive semi-definite, or "
        "alpha is below the rounding error of the products",
        cg.DIVERGING: "the residuals grew or stopped being finite: use a larger alpha",
        cg.STAGNATED: f"this is the best residual that {precision} products reach: use a larger alpha"
        + ("" if precision == "float64" else " or float64 data"),
        cg.RUNNING: f"stopped after max_iter={max_iter} iterations; increase max_iter, or use a larger alpha",
    }
    seen = set(found.fate.tolist())
    return next((words for fate, words in endings.items() if fate in seen), "")


def _start(warm_start: Any, rhs: Tensor) -> Tensor | None:
    if warm_start is None:
        return None
    start = torch.as_tensor(warm_start).to(rhs)
    start = start.reshape(len(start), -1) if start.ndim else start
    if start.shape != rhs.shape:
        raise InputError(f"warm_start has shape {tuple(start.shape)} but the right-hand side {tuple(rhs.shape)}.")
    if not bool(torch.isfinite(start).all()):
        raise InputError("warm_start contains NaN or infinity.")
    return start
