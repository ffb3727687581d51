"""The linear system of a Newton step, solved by conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.solvers.conjugate_gradients import conjugate_gradients
from mercer.solvers.decompose import pinv
from mercer.solvers.dials import NEWTON_ITERATIONS, NEWTON_PART_ROWS
from mercer.solvers.factor import cholesky
from mercer.solvers.objective import Root
from mercer.solvers.products import Products
from mercer.solvers.symmetric import add_gram


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """A = S^T K S + shift over values (n, t), with a preconditioner from a factor of K."""

    products: Products
    inverse: Woodbury
    root: Root
    shift: float
    shape: torch.Size

    @classmethod
    def of(
        cls, products: Products, F: Tensor, left: Tensor, root: Root, shift: float, shape: torch.Size
    ) -> NewtonSystem:
        """The system of K, of which F F^T leaves `left` of the diagonal."""
        return cls(products, Woodbury.of(F, left, root, shift, shape), root, shift, shape)

    def solve(self, columns: list[Tensor], tol: float) -> tuple[list[Tensor], int]:
        """A^-1 of each right-hand side (n, t), and the number of steps."""
        found = conjugate_gradients(
            lambda V, _: self.product(V),
            torch.stack([column.reshape(-1) for column in columns], dim=1),
            lambda R, _: self.inverse.apply(R),
            tol=tol,
            max_iter=NEWTON_ITERATIONS,
            precision=self.products.precision,
        )
        return [column.reshape(self.shape) for column in found.value.T], found.iterations

    def solve_with_sums(self, right: Tensor, sums: Tensor, tol: float) -> tuple[Tensor, Tensor, int]:
        r"""v (n, t) and b (t,), in the span of what S does not lose, such that the rows of S v have given `sums`:

        .. math:: A v + B b = \text{right}, \qquad B^T v = \text{sums}, \qquad B = S^T (1 \otimes I).

        Conjugate gradients among the v without sums, in which residuals and directions are projected.

        References: Gould, Hribar and Nocedal, *On the solution of equality constrained quadratic programming problems
        arising in optimization*, 2001.
        """
        units = torch.eye(self.shape[1]).to(right)
        B = torch.stack([self.root.transposed(unit.expand_as(right)).reshape(-1) for unit in units], dim=1)
        lifted = self.inverse.apply(B)
        small, inner = _pinv(B.T @ lifted), _pinv(B.T @ B)
        begun = lifted @ (small @ sums.unsqueeze(1))
        missing = right.reshape(-1, 1) - self.product(begun)

        def precondition(R: Tensor, _: Tensor) -> Tensor:
            Z = self.inverse.apply(R)
            return Z - lifted @ (small @ (B.T @ Z))

        def project(R: Tensor) -> Tensor:
            return R - B @ (inner @ (B.T @ R))

        found = conjugate_gradients(
            lambda V, _: project(self.product(V)),
            project(missing),
            precondition,
            tol=tol,
            max_iter=NEWTON_ITERATIONS,
            precision=self.products.precision,
        )
        b = inner @ (B.T @ (missing - self.product(found.value)))
        return (begun + found.value).reshape(self.shape), b.squeeze(1), found.iterations

    def product(self, V: Tensor) -> Tensor:
        """A V for columns of length n t."""
        stack = V.T.reshape(-1, *self.shape)
        lifted = torch.cat([self.root.apply(v) for v in stack], dim=1)
        images = self.products.matmul(lifted).split(self.shape[1], dim=1)
        found = torch.stack([self.root.transposed(image).reshape(-1) for image in images], dim=1)
        return found + self.shift * V


@dataclass(frozen=True, eq=False)
class Woodbury:
    """The inverse of S F F^T S + D, with D = shift + tail s^2, for each column of the values."""

    F: Tensor
    s: Tensor
    D: Tensor
    cores: list[Tensor]
    shape: torch.Size

    @classmethod
    def of(cls, F: Tensor, left: Tensor, root: Root, shift: float, shape: torch.Size) -> Woodbury:
        s = root.scale
        D = shift + float(left.mean()) * s.square()
        cores = []
        for weight in (s.square() / D).T:
            core = torch.eye(F.shape[1]).to(F)
            for part, root_weight in zip(F.split(NEWTON_PART_ROWS), weight.sqrt().split(NEWTON_PART_ROWS), strict=True):
                add_gram(core, part * root_weight.unsqueeze(1))
            cores.append(cholesky(core, "The core of a preconditioner", "use a larger alpha"))
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


def _pinv(M: Tensor) -> Tensor:
    """The inverse on the range of a symmetric matrix: a constant added to all classes changes nothing."""
    return pinv((M + M.T) / 2, "A Newton system", rtol=1e-9)
