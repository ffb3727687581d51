"""Newton steps with a coefficient for every row: the span of the kernels at the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.operators import Stored
from mercer.solvers.conjugate_gradients import conjugate_gradients
from mercer.solvers.objective import BlockRoot, DiagonalRoot, Objective, Root, Step
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.products import Products
from mercer.solvers.symmetric import add_gram

DIRECT_ROWS = 3000
"""Rows of a Newton system up to which it is factorised; larger ones are solved by conjugate gradients."""

RANK = 4
"""The preconditioner has this many times sqrt(n) columns."""

MOST_STEPS = 500

PART_ROWS = 2048
"""Rows of the factor that are weighted at a time: memory that stays in the cache."""


@dataclass(eq=False)
class FullSpan:
    r"""Functions f = sum_i c_i k(x_i, .). With S S^T = H a Newton step is c+ = r + S v, where

    .. math:: (S^T K S + 2 \alpha I)\, v = S^T (f - K r - b^+), \qquad r = -g / (2 \alpha),

    and the new intercept makes the coefficients sum to zero. Rows without curvature drop out of the system. It is
    factorised where the matrix is stored and at most `direct` rows are left, and else solved by conjugate gradients
    with the preconditioner S F F^T S + D, where F is a randomly pivoted Cholesky factor of K, found once.
    """

    products: Products
    matrix: Tensor | None
    seed: int = 0
    direct: int = DIRECT_ROWS
    rank: int | None = None
    inner_steps: int = 0
    _factor: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, A: Any, matrix: Tensor | None = None, seed: int = 0, **options: Any) -> FullSpan:
        """The span of a Gram operator, or of its `matrix`, where that is in memory."""
        system = A if matrix is None else Stored(matrix)
        return cls(Products.of(system), matrix, seed, **options)

    @property
    def n(self) -> int:
        return self.products.n

    @property
    def m(self) -> int:
        return self.products.n

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
        return self.products.matmul(c)

    def inner(self, c: Tensor, other: Tensor, other_values: Tensor) -> float:
        return float((c * other_values).sum())

    @property
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
        return dual, values + self._image(change) if bool(change.any()) else values

    def dual_square(self, dual: Tensor, values: Tensor) -> float:
        """The squared norm of that function."""
        return float((dual * values).sum())

    @property
    def factor(self) -> tuple[Tensor, Tensor]:
        """F and what F F^T leaves of the diagonal."""
        if self._factor is None:
            rank = self.rank or min(self.n, max(100, int(RANK * self.n**0.5)))
            found = pivoted_cholesky(self.products.system, rank, seed=self.seed)
            self._factor = found.F, found.left
        return self._factor

    def coarse(self) -> FullSpan | None:
        """The span of F F^T + mean(left) in the place of K, where products cost little; None where steps are direct."""
        if self.matrix is not None and self.n <= self.direct:
            return None
        F, left = self.factor
        products = Products(_Copy(F, float(left.mean())), self.products.diag, F.dtype)
        return FullSpan(products, None, self.seed, direct=0, _factor=self.factor)

    def newton(self, objective: Objective, c: Tensor, f: Tensor, tol: float, at: Tensor | None = None) -> Step:
        shift, before = 2 * objective.alpha, self.inner_steps
        gradient, root = objective.linearised(f, at)
        base = gradient / -shift - c
        moved = self._moved(base, root)
        columns = [root.transposed(-moved)]
        t = f.shape[1]
        if objective.intercept:
            columns += [root.transposed(unit.expand_as(f)) for unit in torch.eye(t).to(f)]
        solved = self._solve(
            root, columns, shift, min(tol, 1e-5) if objective.intercept and objective.loss.joint else tol
        )
        v, b = solved[0], f.new_zeros(t)
        if objective.intercept:
            sums = torch.stack([root.apply(column).sum(0) for column in solved[1:]], dim=1)
            wanted = (c + base + root.apply(v)).sum(0)
            if float(sums.abs().max()) <= 1e-14 * max(1.0, float(wanted.abs().max())):  # nothing has curvature
                b = objective.best_intercept(f + self._image(base))
            else:
                b = _intercept(sums, wanted, objective.loss.joint)
            v = v - sum(b[k] * column for k, column in enumerate(solved[1:]))
        d = base + root.apply(v)
        return Step(d, self._image(d) + b, b, exact=self.inner_steps == before)

    def _moved(self, base: Tensor, root: Root) -> Tensor:
        """K base, at least in the rows that have curvature: those that a step needs."""
        if self.matrix is None or not isinstance(root, DiagonalRoot):
            return self._image(base)
        rows, used = root.s.any(1), base.any(1)
        if 4 * int(rows.sum()) > self.n or 4 * int(used.sum()) > self.n:
            return self._image(base)
        moved = torch.zeros_like(base)
        moved[rows] = self.corner(rows, used) @ base[used]
        return moved

    def corner(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The entries of the stored matrix in these rows and columns, in float64."""
        assert self.matrix is not None
        rows = rows.nonzero().squeeze(1) if rows.dtype == torch.bool else rows
        columns = columns.nonzero().squeeze(1) if columns.dtype == torch.bool else columns
        return self.matrix[rows.unsqueeze(1), columns].to(torch.float64)

    def _image(self, lift: Tensor) -> Tensor:
        """K times a vector, of which few entries may differ from zero."""
        used = lift.any(1)
        count = int(used.sum())
        if self.matrix is None or 4 * count > self.n or self.matrix.dtype != torch.float64:
            return self.values(lift)
        return self.matrix[used].mT @ lift[used]

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
        if self.matrix is None or len(active) > self.direct:
            return self._iterate(DiagonalRoot(s.unsqueeze(1)), columns, shift, tol)
        t = columns[0].shape[1]
        L = self.active_factor(s, active, shift)
        solved = torch.cholesky_solve(torch.cat(columns, dim=1)[active], L)
        full = s.new_zeros(self.n, solved.shape[1])
        full[active] = solved
        return list(full.split(t, dim=1))

    def active_factor(self, s: Tensor, active: Tensor, shift: float) -> Tensor:
        """L with L L^T = S K S + shift over the active rows."""
        some = s[active]
        system = self.corner(active, active).mul_(some).mul_(some.unsqueeze(1))
        system.diagonal().add_(shift)
        L, failed = torch.linalg.cholesky_ex(system)
        if int(failed):
            raise NotPositiveDefiniteError(
                f"A Newton system with alpha={shift / 2:g} is not positive definite: the kernel is not positive "
                "semi-definite (test it with mercer.testing.check_kernel), or alpha is too small."
            )
        return L

    def _iterate(self, root: Root, columns: list[Tensor], shift: float, tol: float) -> list[Tensor]:
        shape = columns[0].shape
        inverse = _Woodbury.of(*self.factor, root, shift, shape)

        def product(V: Tensor, _: Tensor) -> Tensor:
            stack = V.T.reshape(-1, *shape)
            lifted = torch.cat([root.apply(v) for v in stack], dim=1)
            images = self.values(lifted).split(shape[1], dim=1)
            found = torch.stack([root.transposed(image).reshape(-1) for image in images], dim=1)
            return found + shift * V

        found = conjugate_gradients(
            product,
            torch.stack([column.reshape(-1) for column in columns], dim=1),
            lambda R, _: inverse.apply(R),
            tol=tol,
            max_iter=MOST_STEPS,
            precision=self.products.precision,
        )
        self.inner_steps += found.iterations
        return [column.reshape(shape) for column in found.value.T]


@dataclass(frozen=True, eq=False)
class _Copy:
    """The matrix F F^T + tail I as a system, of which only products are used."""

    F: Tensor
    tail: float

    def matmul(self, V: Tensor) -> Tensor:
        return self.F @ (self.F.T @ V) + self.tail * V


@dataclass(frozen=True, eq=False)
class _Woodbury:
    """The inverse of S F F^T S + D, with D = shift + tail s^2, for each column of the values."""

    F: Tensor
    s: Tensor
    D: Tensor
    cores: list[Tensor]
    shape: torch.Size

    @classmethod
    def of(cls, F: Tensor, left: Tensor, root: Root, shift: float, shape: torch.Size) -> _Woodbury:
        assert isinstance(root, DiagonalRoot | BlockRoot)
        s = root.scale
        D = shift + float(left.mean()) * s.square()
        cores = []
        for weight in (s.square() / D).T:
            core = torch.eye(F.shape[1]).to(F)
            for part, root_weight in zip(F.split(PART_ROWS), weight.sqrt().split(PART_ROWS), strict=True):
                add_gram(core, part * root_weight.unsqueeze(1))
            cores.append(torch.linalg.cholesky(core))
        return cls(F, s, D, cores, shape)

    def apply(self, R: Tensor) -> Tensor:
        """P^-1 R for R of shape (n t, q)."""
        stack = R.reshape(*self.shape, -1)
        result = torch.empty_like(stack)
        for k in range(self.shape[1]):
            core = self.cores[min(k, len(self.cores) - 1)]
            s, D = self.s[:, min(k, len(self.cores) - 1), None], self.D[:, min(k, len(self.cores) - 1), None]
            scaled = stack[:, k] / D
            inside = torch.cholesky_solve(self.F.T @ (s * scaled), core)
            result[:, k] = scaled - (s / D) * (self.F @ inside)
        return result.reshape(R.shape)


def _intercept(sums: Tensor, wanted: Tensor, joint: bool) -> Tensor:
    """The change of b that makes the new coefficients sum to zero."""
    if joint:  # a constant added to all classes changes nothing
        sums = (sums + sums.T) / 2
        sums = sums - sums.mean(0) - sums.mean(1, keepdim=True) + sums.mean()
        return torch.linalg.pinv(sums, rtol=1e-9, hermitian=True) @ (wanted - wanted.mean())
    diagonal = sums.diagonal()
    return torch.where(diagonal > 0, wanted / torch.where(diagonal > 0, diagonal, 1.0), 0.0)
