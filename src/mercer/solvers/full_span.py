"""Newton steps with a coefficient for every row: the span of the kernels at the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.core.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.losses import Multinomial
from mercer.operators import Stored
from mercer.solvers.decompose import pinv
from mercer.solvers.dials import (
    DIRECT_ROWS,
    FEW_ROWS,
    FULL_SPAN_PART_ROWS,
    FULL_SPAN_RANK,
    JOINT_MATRICES,
    MANY_STEPS,
    MOST_NUMBERS,
    NEARLY_ALL,
    ROUGH,
)
from mercer.solvers.excess import excess_of_rows
from mercer.solvers.factor import factorise_in_place, solve_factored
from mercer.solvers.joint_inverse import JointInverse
from mercer.solvers.newton_system import NewtonSystem
from mercer.solvers.objective import DiagonalRoot, Objective, Root, Step, Terms
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.products import Products
from mercer.solvers.semidefinite import why_indefinite


@dataclass(eq=False)
class FullSpan:
    r"""Functions f = sum_i c_i k(x_i, .). With S S^T = H a Newton step is c+ = r + S v, where

    .. math:: (S^T K S + 2 \alpha I)\, v = S^T (f - K r - b^+), \qquad r = -g / (2 \alpha),

    and the new intercept makes the coefficients sum to zero. Rows without curvature drop out of the system. It is
    factorised where the matrix is stored and at most `direct` rows are left, and else solved by conjugate gradients
    with the preconditioner S F F^T S + D, where F is a randomly pivoted Cholesky factor of K, found once. Systems of
    several classes are factorised where the rows are few, or where the iterations of the last step were many. All that
    is stored besides the matrix fits in `room` bytes.
    """

    products: Products
    matrix: Tensor | None
    seed: int = 0
    direct: int = DIRECT_ROWS
    rank: int | None = None
    room: float = math.inf
    inner_steps: int = 0
    last_steps: int = 0
    n: int = field(init=False)
    m: int = field(init=False)
    _factor: Any = field(default=None, repr=False)
    _space: Tensor | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.n = self.m = self.products.n

    @classmethod
    def of(cls, A: Any, matrix: Tensor | None = None, seed: int = 0, **options: Any) -> FullSpan:
        """The span of a Gram operator, or of its `matrix`, where that is in memory."""
        system = A if matrix is None else Stored(matrix)
        return cls(Products.of(system), matrix, seed, **options)

    @property
    def device(self) -> torch.device:
        return self.products.device

    @property
    def note(self) -> str:
        if not self.inner_steps:
            return ""
        rank = self.factor[0].shape[1]
        return f"{self.inner_steps} products in conjugate gradients with a preconditioner of rank {rank}"

    def values(self, c: Tensor) -> Tensor:
        """K c; sums over few rows of a stored matrix are in float64, whatever the precision of its entries."""
        used = c.any(1).nonzero().squeeze(1)
        if self.matrix is None or len(used) > NEARLY_ALL * self.n:
            return self.products.matmul(c)
        found = torch.zeros_like(c)
        for some in used.split(FULL_SPAN_PART_ROWS):
            found += self.matrix[some].to(c.dtype).mT @ c[some]
        return found

    predictions = values

    def excess(self, objective: Objective, c: Tensor, f: Tensor) -> Tensor:
        return excess_of_rows(objective, c, f, self.products.diag)

    def inner(self, c: Tensor, other: Tensor, other_values: Tensor) -> float:
        return float((c * other_values).sum())

    @cached_property
    def mean_diag(self) -> float:
        """The mean of k(x, x), a scale of the kernel."""
        mean = float(self.products.diag.mean())
        return mean if mean > 0 else 1.0

    def dual_variables(self, c: Tensor) -> Tensor:
        """Dual variables are the coefficients."""
        return c

    def from_dual(self, dual: Tensor, c: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients and values of the function of dual variables: these are the coefficients."""
        change = dual - c
        return dual, values + self.values(change) if bool(change.any()) else values

    def dual_square(self, dual: Tensor, values: Tensor) -> float:
        """The squared norm of that function."""
        return float((dual * values).sum())

    @property
    def factor(self) -> tuple[Tensor, Tensor]:
        """F and what F F^T leaves of the diagonal."""
        if self._factor is None:
            rank = self.rank or self._fitting_rank
            found = pivoted_cholesky(self.products.system, rank, seed=self.seed)
            self._factor = found.F, found.left
        result: tuple[Tensor, Tensor] = self._factor
        return result

    @cached_property
    def _fitting_rank(self) -> int:
        """Half of the room is for the factor, the other for what is made of it."""
        wanted = min(self.n, max(100, int(FULL_SPAN_RANK * self.n**0.5)))
        return max(1, int(min(wanted, self.room / (2 * 8 * self.n))))

    @cached_property
    def direct_rows(self) -> int:
        """Rows of a Newton system that is factorised, at most: there must be room for it beside F."""
        spare = self.room - 8 * self.n * self._fitting_rank
        return int(min(self.direct, max(spare, 0.0) ** 0.5 / 8**0.5))

    def coarse(self) -> FullSpan | None:
        """The span of F F^T + mean(left) in the place of K, where products cost little; None where steps are direct."""
        if self.matrix is not None and self.n <= self.direct_rows:
            return None
        F, left = self.factor
        products = Products(_Copy(F, float(left.mean())), self.products.diag, F.dtype)
        return FullSpan(products, None, self.seed, direct=0, _factor=self.factor)

    def descended(self, objective: Objective, start: Any, tell: Any = None) -> None:
        return None

    def newton(self, terms: Terms, c: Tensor, tol: float, at: Tensor | None = None) -> Step:
        objective, f, before = terms.objective, terms.f, self.inner_steps
        shift, touching = 2 * objective.alpha, terms.touching(at)
        base = touching.gradient / -shift - c
        if self._joins(objective):
            step = self._joint_step(objective, c, base, f if at is None else at)
            if step is not None:
                return step
        root = touching.root
        base, direct = self._shallow(base, root, shift)
        moved = self._moved(base, root)
        right, b = root.transposed(-moved) + direct, f.new_zeros(f.shape[1])
        if not objective.intercept:
            v = self._solve(root, [right], shift, tol)[0]
        elif objective.loss.joint:
            v, b = self._solve_with_sums(root, right, -(c + base).sum(0), shift, tol)
        else:
            v, upwards = self._solve(root, [right, root.transposed(torch.ones_like(f))], shift, tol)
            sums, wanted = root.apply(upwards).sum(0), (c + base + root.apply(v)).sum(0)
            unit = min(1.0, 1.0 / self.mean_diag)
            if float(sums.max()) <= 1e-14 * max(unit, float(wanted.abs().max())):  # nothing has curvature
                b = objective.best_intercept(f + self.values(base))
            else:
                b = torch.where(sums > 0, wanted / torch.where(sums > 0, sums, 1.0), 0.0)
            v = v - b * upwards
        d = base + root.apply(v)
        return Step(d, self.values(d) + b, b, exact=self.inner_steps == before)

    def _shallow(self, base: Tensor, root: Root, shift: float) -> tuple[Tensor, Tensor]:
        r"""r without the rows whose coefficients would cancel against it, and what S v then solves for on top.

        With r' zero where :math:`s_i^2 k(x_i, x_i) > 2 \alpha`, (S^T K S + 2 alpha) v gets 2 alpha (r - r') / s more.
        """
        if not isinstance(root, DiagonalRoot) or self.matrix is None or self.n > self.direct_rows:
            return base, torch.zeros_like(base)
        steep = root.s.square() * self.products.diag.unsqueeze(1) > shift
        direct = torch.where(steep, shift * base / torch.where(steep, root.s, 1.0), 0.0)
        return torch.where(steep, 0.0, base), direct

    def _joins(self, objective: Objective) -> bool:
        """Whether a step for several classes is found from factors."""
        if not isinstance(objective.loss, Multinomial) or self.matrix is None or self.n > self.direct:
            return False
        numbers = (objective.outputs + JOINT_MATRICES) * self.n**2
        if objective.outputs * self.n**2 > MOST_NUMBERS or 8 * numbers > self.room:
            return False
        return self.n <= FEW_ROWS or self.last_steps > MANY_STEPS * self.n

    def _joint_step(self, objective: Objective, c: Tensor, base: Tensor, at: Tensor) -> Step | None:
        r"""The step from factors for all classes, with R of `JointInverse` for K / (2 alpha),

        .. math:: 2 \alpha\, S v = R (-K r - b), \qquad r = \text{base};

        None where that is not accurate: alpha is very small, or the kernel not positive semi-definite.
        """
        assert self.matrix is not None
        shift = 2 * objective.alpha
        try:
            joint = JointInverse.of(self.matrix.to(torch.float64) / shift, torch.softmax(at, 1) * objective.w)
        except (NotPositiveDefiniteError, NotFiniteError):
            return None
        lift = joint.reduce(self.values(-base).T.unsqueeze(2)).squeeze(2).T
        b = at.new_zeros(at.shape[1])
        if objective.intercept:
            units = torch.eye(len(b)).to(at).unsqueeze(1).expand(len(b), self.n, len(b))
            upwards = joint.reduce(units)
            wanted = lift.sum(0) + shift * (c + base).sum(0)
            b = pinv(upwards.sum(1), "A Newton system", rtol=1e-10) @ wanted
            lift = lift - (upwards @ b).T
        d = base + lift / shift
        moved = self.values(d) + b
        missed = base - d - joint.weigh(moved.T.unsqueeze(2) / shift).squeeze(2).T
        accurate = float(missed.norm()) <= ROUGH * float(base.norm())
        return Step(d, moved, b, exact=True) if accurate else None

    def _moved(self, base: Tensor, root: Root) -> Tensor:
        """K base, at least in the rows that have curvature: those that a step needs."""
        if self.matrix is None or not isinstance(root, DiagonalRoot):
            return self.values(base)
        rows, used = root.s.any(1), base.any(1)
        if 4 * int(rows.sum()) > self.n or 4 * int(used.sum()) > self.n:
            return self.values(base)
        moved = torch.zeros_like(base)
        moved[rows] = self.corner(rows, used) @ base[used]
        return moved

    def corner(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The entries of the stored matrix in these rows and columns, in float64."""
        assert self.matrix is not None
        rows = rows.nonzero().squeeze(1) if rows.dtype == torch.bool else rows
        columns = columns.nonzero().squeeze(1) if columns.dtype == torch.bool else columns
        return self.matrix[rows.unsqueeze(1), columns].to(torch.float64)

    def _solve(self, root: Root, columns: list[Tensor], shift: float, tol: float) -> list[Tensor]:
        """(S^T K S + shift)^-1 of each right-hand side (n, t)."""
        if isinstance(root, DiagonalRoot):
            if bool((root.s == root.s[:, :1]).all()):
                return self._solve_diagonal(root.s[:, 0], columns, shift, tol)
            each = [
                self._solve_diagonal(root.s[:, k], [column[:, k : k + 1] for column in columns], shift, tol)
                for k in range(root.s.shape[1])
            ]
            return [torch.cat([part[j] for part in each], dim=1) for j in range(len(columns))]
        return self._iterate(root, columns, shift, tol)

    def _solve_diagonal(self, s: Tensor, columns: list[Tensor], shift: float, tol: float) -> list[Tensor]:
        active = (s > 0).nonzero().squeeze(1)
        if not len(active):
            return [torch.zeros_like(column) for column in columns]
        if self.matrix is None or len(active) > self.direct_rows:
            return self._iterate(DiagonalRoot(s.unsqueeze(1)), columns, shift, tol)
        t = columns[0].shape[1]
        L = self.active_factor(s, active, shift)
        solved = solve_factored(L, torch.cat(columns, dim=1)[active])
        full = s.new_zeros(self.n, solved.shape[1])
        full[active] = solved
        return list(full.split(t, dim=1))

    def active_factor(self, s: Tensor, active: Tensor, shift: float) -> Tensor:
        """L with L L^T = S K S + shift over the active rows, in memory that the next one takes over."""
        assert self.matrix is not None
        some, system = s[active], self._system(len(active))
        for part, rows in zip(active.split(FULL_SPAN_PART_ROWS), system.split(FULL_SPAN_PART_ROWS), strict=True):
            torch.mul(self.corner(part, active), some, out=rows)
        system.mul_(some.unsqueeze(1)).diagonal().add_(shift)
        if not factorise_in_place(system):
            why = why_indefinite(float(self.matrix.diagonal()[active].max()), shift / 2)
            raise NotPositiveDefiniteError(f"A Newton system is not positive definite: {why}")
        return system.mT

    def _system(self, rows: int) -> Tensor:
        """A square matrix of any numbers: the same memory each time."""
        if self._space is None or len(self._space) < rows**2:
            self._space = None  # makes room for the new one
            self._space = new_matrix(rows, rows, torch.float64, self.device).view(-1)
        return self._space[: rows**2].view(rows, rows)

    def _iterate(self, root: Root, columns: list[Tensor], shift: float, tol: float) -> list[Tensor]:
        found, steps = NewtonSystem.of(self.products, *self.factor, root, shift, columns[0].shape).solve(columns, tol)
        self._count(steps)
        return found

    def _solve_with_sums(
        self, root: Root, right: Tensor, sums: Tensor, shift: float, tol: float
    ) -> tuple[Tensor, Tensor]:
        system = NewtonSystem.of(self.products, *self.factor, root, shift, right.shape)
        v, b, steps = system.solve_with_sums(right, sums, tol)
        self._count(steps)
        return v, b

    def _count(self, steps: int) -> None:
        self.inner_steps += steps
        self.last_steps = steps


@dataclass(frozen=True, eq=False)
class _Copy:
    """The matrix F F^T + tail I as a system, of which only products are used."""

    F: Tensor
    tail: float

    def matmul(self, V: Tensor) -> Tensor:
        return self.F @ (self.F.T @ V) + self.tail * V
