"""The largest eigenvalues of a symmetric operator and their vectors, from products alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.memory import give_back, resolve_budget
from mercer.core.results import SolverReport
from mercer.core.seeding import generator_from
from mercer.core.threads import on_one_core
from mercer.solvers.decompose import eigh, eigh_in_place
from mercer.solvers.dials import (
    ALLOWED,
    BASIS_BLOCKS,
    DENSE_ROWS,
    DENSE_SHARE,
    EIGENPAIRS_ROUNDED,
    EXTRA,
    FEW_VECTORS,
    MOST_STEPS,
)
from mercer.solvers.eigensolvers import EIGENSOLVERS
from mercer.solvers.one_vector import best_vectors
from mercer.solvers.products import Products
from mercer.solvers.system import System, dense_float64

ADVICE = (
    "values of the kernel are nearly constant over the rows; centre and scale the columns of X, or change the kernel"
)


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenvalues in falling order, their unit vectors in columns, and how they were found."""

    values: Tensor
    vectors: Tensor
    report: SolverReport = field(repr=False)


def top_eigenpairs(
    A: System,
    count: int,
    *,
    solver: str = "auto",
    tol: float = 1e-12,
    max_iter: int = 500,
    scale: float = 0.0,
    seed: int | torch.Generator = 0,
    memory_budget: Any = None,
) -> Eigenpairs:
    r"""The `count` largest eigenpairs of a symmetric positive semi-definite A.

    ``solver="krylov"`` searches the best vectors in a growing space. Each step adds the residuals of the vectors found
    so far, a block at a time, so that the work is products of A with many columns,

    .. math:: A v - \theta v, \qquad \theta = v^T A v,

    until every residual is at most `tol` times the largest eigenvalue. Without rounding this is the block Lanczos
    method; the basis is orthogonalised in full and cut back to its best vectors from time to time. Up to 32 vectors of
    a matrix in memory are found with one column at a time. ``"dense"``
    decomposes the whole matrix. "auto" is dense for few rows or many vectors. `scale` is the size of what A was
    computed from, where that is larger than A: no residual needs to be below its rounding error.

    References: Golub and Van Loan, *Matrix Computations*, 2013, section 10.3; Stathopoulos and Saad, *Restarting
    techniques for the (Jacobi-)Davidson symmetric eigenvalue methods*, 1998.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.diag(torch.arange(50.0).double()))
    >>> top_eigenpairs(A, 3, solver="krylov").values.round(decimals=6)
    tensor([49., 48., 47.], dtype=torch.float64)
    """
    n = A.shape[0]
    if not 1 <= count <= n:
        raise InputError(f"count={count}: a matrix of {n} rows has 1 to {n} eigenvectors.")
    if solver not in ("auto", *EIGENSOLVERS):
        raise InputError(f"solver={solver!r}: give 'auto', 'krylov' or 'dense'.")
    if not tol >= 0 or not max_iter >= 1:
        raise InputError(f"tol={tol!r}, max_iter={max_iter!r}: tol must be >= 0 and max_iter >= 1.")
    if solver == "auto":
        solver = "dense" if n <= DENSE_ROWS or count * DENSE_SHARE > n else "krylov"
    if solver == "dense":
        return _dense(A, count, scale)
    generator, products = generator_from(seed), Products.of(A)
    one_by_one = getattr(A, "in_memory", False) and products.device.type == "cpu" and count <= FEW_VECTORS
    found = _one_by_one(products, count, tol, max_iter, scale, generator) if one_by_one else None
    return found or _krylov(products, count, tol, max_iter, scale, generator, memory_budget)


def _dense(A: System, count: int, scale: float) -> Eigenpairs:
    started = time.perf_counter()
    matrix, precision = dense_float64(A)
    check_finite(matrix, "The Gram matrix")
    values, vectors = eigh_in_place(matrix, "The Gram matrix")
    _check_definite(float(values[0]), float(values[-1]), len(values), precision, scale)
    del matrix  # the vectors are in its memory, and are let go with it
    values, vectors = values[-count:].flip(0), vectors[:, -count:].flip(1).contiguous()
    give_back()
    images = torch.as_tensor(A.matmul(vectors)).to(torch.float64)
    missed, largest = float(images.sub_(vectors * values).norm(dim=0).max()), max(float(values[0]), 0.0)
    del images
    converged = missed <= EIGENPAIRS_ROUNDED * len(vectors) ** 0.5 * precision * max(largest, scale)
    report = judged("dense", converged, missed, largest, precision * scale)
    return Eigenpairs(values.clamp(min=0.0), vectors, replace(report, seconds=time.perf_counter() - started))


def judged(solver: str, converged: bool, missed: float, largest: float, noise: float, reason: str = "") -> SolverReport:
    """The account of eigenpairs with residuals up to `missed`, of a matrix with errors of the size `noise`.

    Eigenvalues are as far off as these two together.
    """
    residual = missed / largest if largest > 0 else 0.0
    if largest > 0 and missed + noise > ALLOWED * largest:
        converged, told = False, f"eigenvalues may be off by {(missed + noise) / largest:.0e} of the largest: {ADVICE}"
        reason = "; ".join(filter(None, [reason, told]))
    return SolverReport(solver, converged, residual, reason=reason)


def _one_by_one(
    A: Products, count: int, tol: float, max_iter: int, scale: float, generator: torch.Generator
) -> Eigenpairs | None:
    started = time.perf_counter()
    rounding = EIGENPAIRS_ROUNDED * A.n**0.5 * A.precision
    most = min(A.n - 1, max_iter, MOST_STEPS)
    found = on_one_core(lambda: best_vectors(A, count, max(tol, rounding), rounding * scale, most, generator))
    if found is None:
        return None
    top = float(found.values[0])
    _check_definite(found.least, top, A.n, A.precision, scale)
    report = judged("krylov", True, float(found.residuals.max()), top, A.precision * scale, "Lanczos' method")
    report = replace(report, iterations=found.steps, seconds=time.perf_counter() - started)
    values, vectors = torch.from_numpy(found.values.copy()), torch.from_numpy(found.vectors).contiguous()
    return Eigenpairs(values.clamp(min=0.0), vectors, report)


def _krylov(
    A: Products, count: int, tol: float, max_iter: int, scale: float, generator: torch.Generator, memory_budget: Any
) -> Eigenpairs:
    started = time.perf_counter()
    n = A.n
    block = min(n, count + EXTRA)
    room = resolve_budget(memory_budget, A.device) // (4 * 8 * n)
    basis = _Basis(A, min(n, max(2 * block, min(BASIS_BLOCKS * block, room))))
    basis.add(torch.randn(n, block, dtype=torch.float64, generator=generator).to(A.device))
    steps = 0
    while True:
        steps += 1
        found = basis.best(block)
        top = float(found.values[0])
        _check_definite(basis.smallest, top, n, A.precision, scale)
        rounding = EIGENPAIRS_ROUNDED * n**0.5 * A.precision * max(top, scale)
        allowed = max(tol * top, rounding)
        norms = found.residuals.norm(dim=0)
        converged = basis.size == n or float(norms[:count].max()) <= allowed
        if converged or steps > max_iter:
            break
        added = norms > 0.1 * allowed
        if basis.size + int(added.sum()) > basis.most:
            basis.restart(found)
        if not basis.add(found.residuals[:, added]):
            break
    reason = f"block Krylov method, {block} columns at a time"
    report = judged("krylov", converged, float(norms[:count].max()), top, A.precision * scale, reason)
    report = replace(report, iterations=steps, seconds=time.perf_counter() - started)
    return Eigenpairs(found.values[:count].clamp(min=0.0), found.vectors[:, :count].contiguous(), report)


@dataclass(frozen=True, eq=False)
class _Ritz:
    values: Tensor
    vectors: Tensor
    products: Tensor

    @property
    def residuals(self) -> Tensor:
        return self.products - self.vectors * self.values


class _Basis:
    """Orthonormal columns Q, their products A Q, and Q^T A Q."""

    def __init__(self, A: Products, most: int) -> None:
        self.A, self.most, self.size, self.smallest = A, most, 0, 0.0
        self.Q = torch.empty(most, A.n, dtype=torch.float64, device=A.device).T
        self.AQ = torch.empty_like(self.Q)
        self.H = torch.zeros(most, most, dtype=torch.float64, device=A.device)

    def add(self, new: Tensor) -> int:
        """Columns for the directions of `new` that are not in the basis yet; how many there were."""
        old, k = self.Q[:, : self.size], self.size
        new = new / new.norm(dim=0).clamp(min=torch.finfo(torch.float64).tiny)
        new = new - old @ (old.T @ new)
        new = _orthonormal(new, self.most - k)
        new = torch.linalg.qr(new - old @ (old.T @ new))[0]
        end = k + new.shape[1]
        self.Q[:, k:end] = new
        self.AQ[:, k:end] = self.A.matmul(new)
        self.size = end
        corner = self.Q[:, :end].T @ self.AQ[:, k:end]
        self.H[:end, k:end] = corner
        self.H[k:end, :end] = corner.T
        return new.shape[1]

    def best(self, count: int) -> _Ritz:
        H = self.H[: self.size, : self.size]
        values, vectors = eigh((H + H.T) / 2, "The Gram matrix")
        self.smallest = float(values[0])
        top = vectors[:, -count:].flip(1)
        return _Ritz(values[-count:].flip(0), self.Q[:, : self.size] @ top, self.AQ[:, : self.size] @ top)

    def restart(self, found: _Ritz) -> None:
        """Keep the best vectors only."""
        k = len(found.values)
        self.Q[:, :k], self.AQ[:, :k] = found.vectors, found.products
        self.H[:k, :k] = torch.diag(found.values)
        self.size = k


def _orthonormal(V: Tensor, most: int) -> Tensor:
    """At most so many orthonormal columns that span those of V, without directions that are rounding error."""
    values, vectors = eigh(V.T @ V, "The Gram matrix")
    kept = (values > 1e-14 * values[-1].clamp(min=torch.finfo(torch.float64).tiny)).nonzero().squeeze(1)
    kept = kept[max(0, len(kept) - most) :]
    return V @ (vectors[:, kept] * values[kept].rsqrt())


def _check_definite(smallest: float, largest: float, n: int, precision: float, scale: float = 0.0) -> None:
    if smallest < -(precision**0.5) * max(largest, scale, 0.0):
        raise NotPositiveDefiniteError(
            f"The Gram matrix of {n} rows has the eigenvalue {smallest:.3g} (the largest is {largest:.3g}): the kernel "
            "is not positive semi-definite. Test it with mercer.testing.check_kernel."
        )
