"""The basis that Falkon iterates in: orthonormal functions, and the root of a preconditioner in their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.blocks import rows_at_once
from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.seeding import generator_from
from mercer.solvers.conjugate_gradients import Map
from mercer.solvers.decompose import eigh
from mercer.solvers.dials import (
    FALKON_JITTER,
    FALKON_ROUNDING,
    FEW_ALPHAS,
    JITTER,
    LARGEST_FIRST,
    POWER_STEPS,
    SINGULAR,
)
from mercer.solvers.factor import factorise_in_place, independent_functions
from mercer.solvers.row_blocks import Block, CentredBlock
from mercer.solvers.symmetric import add_gram
from mercer.solvers.whitening import landmark_matrix, whitening

Rows = Block | CentredBlock
"""Rows as they are, or less their means."""


@dataclass(frozen=True, eq=False)
class FalkonBasis:
    r"""Coordinates beta of functions on m landmarks with the coefficients

    .. math:: c = E A^{-T} \beta, \qquad E^T (K_{mm} + D)\, E = I, \qquad
              A A^T = \tfrac{1}{s} \textstyle\sum_i w_i\; E^T K_{sm}^T K_{sm} E + \alpha I,

    where s rows stand for all. `roots` are the A of each distinct alpha, triangular or diagonal, `group` says which is
    a column's, and `added` is the diagonal matrix D: zero, or a jitter. `jitter` is zero where the first one worked.
    `squares` is the diagonal of that sum over rows.
    """

    E: Tensor
    roots: list[Tensor]
    group: Tensor
    squares: Tensor
    added: Tensor | None = None
    jitter: float = 0.0

    @classmethod
    def orthonormal(
        cls,
        K_mm: Any,
        rows: Rows | None,
        weight: float,
        alphas: Tensor,
        like: Tensor,
        own: float = 0.0,
        centred: bool = False,
    ) -> FalkonBasis:
        """Of functions that are orthonormal in the RKHS."""
        return cls._preconditioned(orthonormal_functions(K_mm, like), K_mm, rows, weight, alphas, own, centred)

    @classmethod
    def jittered(
        cls,
        K_mm: Any,
        rows: Rows | None,
        weight: float,
        alphas: Tensor,
        like: Tensor,
        own: float = 0.0,
        centred: bool = False,
    ) -> FalkonBasis:
        """Of functions whose norm is that of the RKHS plus a jitter, which magnifies rounding errors less.

        Eigenvectors of K_mm with eigenvalues below m alpha / n hardly take part in the solution: their share of the
        data term, n mu^2 / m, is less than that of the penalty, alpha mu. The jitter goes up to there.
        """
        ridge = float(alphas.min()) / weight
        E, added, jitter = _jittered_factor(K_mm, min(max(JITTER, ridge * len(like)), LARGEST_FIRST), like)
        return cls._preconditioned(E, K_mm, rows, weight, alphas, own, centred, added, jitter)

    @classmethod
    def _preconditioned(
        cls,
        E: Tensor,
        K_mm: Any,
        rows: Rows | None,
        weight: float,
        alphas: Tensor,
        own: float,
        centred: bool,
        added: Tensor | None = None,
        jitter: float = 0.0,
    ) -> FalkonBasis:
        """The landmarks stand for the share `own` of the weight and `rows` for the rest, or the landmarks for all."""
        inner = E.new_zeros(E.shape[1], E.shape[1])
        if rows is None or own > 0:
            _add_landmarks(inner, E, K_mm, weight if rows is None else own * weight, centred)
        if rows is not None:
            _add_rows(inner, E, rows, (1.0 - own) * weight)
        squares = inner.diagonal().clone()
        distinct, group = alphas.unique(return_inverse=True)
        if len(distinct) > FEW_ALPHAS:
            values, vectors = eigh(inner)
            values.clamp_(min=0.0)
            squares = values.clone()
            roots = [(values + alpha).sqrt().unsqueeze(1) for alpha in distinct]
            return cls(E @ vectors, roots, group, squares, added, jitter)
        roots = [_root(inner.clone(), alpha) for alpha in distinct[:-1]]
        return cls(E, [*roots, _root(inner, distinct[-1])], group, squares, added, jitter)

    def functions(self, beta: Tensor, columns: Tensor) -> Tensor:
        """A^-T beta, coefficients of the functions E; with the A of each column."""
        return self._each(beta, columns, lambda A, part: _solve(A.mT, part, upper=True))

    def coefficients(self, u: Tensor) -> Tensor:
        """E u."""
        return self.E @ u

    def project(self, V: Tensor, columns: Tensor) -> Tensor:
        """A^-1 E^T v."""
        return self.solve(self.E.T @ V, columns)

    def solve(self, u: Tensor, columns: Tensor) -> Tensor:
        """A^-1 u."""
        return self._each(u, columns, lambda A, part: _solve(A, part, upper=False))

    def coordinates(self, c: Tensor, K_mm: Any, columns: Tensor) -> Tensor:
        """The beta of the function with coefficients c, or of what the basis can express of it."""
        image = landmark_matrix(K_mm, c)[0] @ c
        u = self.E.T @ (image if self.added is None else image + self.added * c)
        return self._each(u, columns, lambda A, part: A * part if A.shape[1] == 1 else A.mT @ part)

    def product(self, beta: Tensor, columns: Tensor, alphas: Tensor, image: Callable[[Tensor], Tensor]) -> Tensor:
        """A^-1 (E^T K_nm^T W K_nm E + alpha E^T K_mm E) A^-T beta, where `image` is K_nm^T W K_nm."""
        u = self.functions(beta, columns)
        c = self.coefficients(u)
        found = image(c).to(c)
        if self.added is not None:
            found -= alphas[columns] * self.added * c
        return self.solve(self.E.T @ found + alphas[columns] * u, columns)

    def residual(self, beta: Tensor, columns: Tensor, alphas: Tensor, missed: Map) -> Tensor:
        """A^-1 E^T (K_nm^T W (y - K_nm c) - alpha K_mm c), where `missed` is the first term, in a basis without jitter.

        Its rounding error is of the size of y - K_nm c; that of a difference of products is of the size of y.
        """
        u = self.functions(beta, columns)
        c = self.coefficients(u)
        return self.solve(self.E.T @ missed(c, columns) - alphas[columns] * u, columns)

    def residual_error(self, rows: Rows, accurate: Rows, weight: float) -> float:
        """The relative error of the residual that coarse products have, found on some rows that stand for `weight`."""
        columns = torch.arange(rows.targets.shape[1], device=self.E.device)
        rhs = self.project(accurate.cross(), columns)
        c = self.coefficients(self.functions(rhs, columns)) * (weight / rows.weight)
        wrong = rows.gram(c) - accurate.gram(c) - (rows.cross() - accurate.cross())
        return float((self.project(wrong, columns).norm(dim=0) / rhs.norm(dim=0)).nan_to_num(0.0).max())

    def disturbance(self, rows: Rows, accurate: Rows, weight: float) -> float:
        """The norm of the error of a coarse product, in the basis where the product itself is close to the identity."""
        column = (self.group == 0).nonzero()[:1, 0]
        V = torch.randn(self.E.shape[1], 1, dtype=torch.float64, generator=generator_from(0)).to(self.E)
        for _ in range(POWER_STEPS):
            c = self.coefficients(self.functions(V / V.norm(), column)) * (weight / rows.weight)
            V = self.project(rows.gram(c) - accurate.gram(c), column)
            if not bool(V.any()):
                break
        return float(V.norm())

    def _each(self, V: Tensor, columns: Tensor, apply: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        if len(self.roots) == 1:
            return apply(self.roots[0], V)
        result = torch.empty_like(V)
        for index, A in enumerate(self.roots):
            members = self.group[columns] == index
            if bool(members.any()):
                result[:, members] = apply(A, V[:, members])
        return result


def _solve(A: Tensor, V: Tensor, *, upper: bool) -> Tensor:
    """A^-1 v for a triangular A, or a diagonal one that is given as a column or a row."""
    return V / A.reshape(-1, 1) if 1 in A.shape else torch.linalg.solve_triangular(A, V, upper=upper)


def _root(inner: Tensor, alpha: Tensor) -> Tensor:
    """A with A A^T = inner + alpha, in the memory of `inner`; an alpha below the rounding of `inner` counts as that."""
    rounding = 4 * len(inner) * torch.finfo(inner.dtype).eps * inner.diagonal().amax().clamp(min=0.0)
    inner.diagonal().add_(alpha.to(inner).maximum(rounding))
    if not factorise_in_place(inner):
        raise NotPositiveDefiniteError(
            f"alpha={float(alpha):g} is too small compared with the kernel: use a larger one."
        )
    return inner.mT


def _add_rows(total: Tensor, E: Tensor, rows: Rows, weight: float) -> None:
    """Add E^T K^T W K E for some rows that stand for so much weight."""
    for K, _, w in rows.parts():
        shares = torch.ones(len(K)) if w is None else w
        add_gram(total, (K.to(E) @ E).mul_((shares.to(E) * (weight / rows.weight)).sqrt().unsqueeze(1)))


def _add_landmarks(total: Tensor, E: Tensor, K_mm: Any, weight: float, centred: bool) -> None:
    """Add the same for the landmarks as rows."""
    matrix = landmark_matrix(K_mm, E)[0]
    matrix = matrix - matrix.mean(0) if centred else matrix
    for K in matrix.split(rows_at_once(len(E), E.device)):
        add_gram(total, (K @ E).mul_((weight / len(E)) ** 0.5))


def orthonormal_functions(K_mm: Any, like: Tensor) -> Tensor:
    """E (m, r) with E^T K_mm E = I: L^-T of K_mm = L L^T, of r independent landmarks where that is close to singular.

    Factors know directions of K_mm down to the rounding error of its entries; eigenvectors would be lost in that of the
    largest eigenvalue, and cost ten times more.

    >>> K = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]).double()
    >>> orthonormal_functions(K, K)
    tensor([[1.0000, 0.0000],
            [0.0000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    matrix, precision = _fresh(K_mm, like)
    least = FALKON_ROUNDING * precision
    if bool((matrix.diagonal() <= 0).any()):
        whitening(matrix, precision)  # an error, unless these landmarks are zero everywhere
    root = _scale(matrix)
    if factorise_in_place(matrix):
        inverse = _inverse(matrix.mT)
        if least * float(inverse.square().sum()) <= SINGULAR:
            return inverse.mul_(root).mT
        del inverse
    matrix = _fresh(K_mm, like)[0]
    _scale(matrix)
    E = independent_functions(matrix, least)
    return whitening(*landmark_matrix(K_mm, like)) if E is None else E.mul_(root.unsqueeze(1))


def _jittered_factor(K_mm: Any, first: float, like: Tensor) -> tuple[Tensor, Tensor, float]:
    """L^-T with L L^T = K_mm + D, D itself as a column, and the jitter that it is of diag(K_mm): zero for the first."""
    jitter = first
    while jitter <= max(first, FALKON_JITTER) * 1.001:
        matrix, precision = _fresh(K_mm, like)
        diagonal = matrix.diagonal().clone()
        if bool((diagonal <= 0).any()):
            whitening(matrix, precision)  # an error, unless these landmarks are zero everywhere
        root = _scale(matrix)
        matrix.diagonal().add_(jitter)
        if factorise_in_place(matrix):
            E = _inverse(matrix.mT).mul_(root).mT
            return E, (jitter * diagonal).unsqueeze(1), jitter if jitter > first else 0.0
        jitter *= 10
    raise NotPositiveDefiniteError(
        f"The Gram matrix of the landmarks is not positive definite, even with a jitter of {jitter / 10:g}: the kernel "
        "may not be positive semi-definite. Test it with mercer.testing.check_kernel."
    )


def _fresh(K_mm: Any, like: Tensor) -> tuple[Tensor, float]:
    matrix, precision = landmark_matrix(K_mm, like)
    return (matrix.clone() if matrix is K_mm else matrix).contiguous(), precision


def _scale(matrix: Tensor) -> Tensor:
    """Scale K_mm in place to ones on the diagonal, also where it is zero; the factors, which are zero there."""
    diagonal = matrix.diagonal().clone()
    root = torch.where(diagonal > 0, diagonal, torch.inf).rsqrt()
    matrix.mul_(root).mul_(root.unsqueeze(1))
    matrix.diagonal()[root == 0] = 1.0
    return root


def _inverse(L: Tensor) -> Tensor:
    identity = torch.eye(len(L), dtype=L.dtype, device=L.device).mT
    result: Tensor = torch.linalg.solve_triangular(L, identity, upper=False, out=identity)
    return result
