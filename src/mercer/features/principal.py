"""Principal directions of a sample in the RKHS: exact from its Gram matrix, or in the span of landmarks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.results import SolverReport
from mercer.features.dials import ALL_MATRICES, FEW_MATRICES, PART_NUMBERS, ZERO
from mercer.features.nystrom import NystromMap
from mercer.functions.fourier import FeatureRows
from mercer.kernels.base import Kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.operators import Centred, Stored, gram
from mercer.solvers.decompose import eigh
from mercer.solvers.symmetric import add_gram
from mercer.solvers.top_eigenpairs import top_eigenpairs


@dataclass(frozen=True, eq=False)
class KernelProjection:
    r"""Coordinates of k(x, .) along functions :math:`f_s = \sum_i c_{is} k(z_i, \cdot)`, from some origin,

    .. math:: \varphi_s(x) = \sum_i c_{is}\, k(x, z_i) - b_s.

    Attributes
    ----------
    kernel, points : Kernel, str or callable and Points
        The kernel and the z_i.
    coef, shift : Tensor
        The c, of shape (m, q), and b, of shape (q,), in float64.
    features, directions : ExplicitFeatures or None and Tensor or None
        The features of the kernel less those of the origin, and the f_s in them, (p, q): the way to the coordinates.
    """

    kernel: Kernel
    points: Points
    coef: Tensor
    shift: Tensor
    device: torch.device | None = None
    memory_budget: Any = None
    features: ExplicitFeatures | None = None
    directions: Tensor | None = None

    def __post_init__(self) -> None:
        q = self.coef.shape[-1]
        if self.coef.shape != (len(self.points), q) or self.shift.shape != (q,):
            raise InputError(
                f"Coefficients of shape {tuple(self.coef.shape)} and a shift of shape {tuple(self.shift.shape)} do not "
                f"belong to {len(self.points)} points."
            )

    @property
    def n_features(self) -> int:
        return len(self.shift)

    def __call__(self, points: Points) -> Tensor:
        """The coordinates (n, q) in float64; products run tile by tile and never store k(x, z)."""
        if self.features is not None and self.directions is not None:
            return FeatureRows(self.features, points, self.device).matmul(self.directions)
        place = {"device": self.device, "memory_budget": self.memory_budget, "dtype": torch.float64}
        operator = gram(self.kernel, points, self.points, **place)
        return operator.matmul(self.coef.to(operator.device)).sub_(self.shift.to(operator.device))


@dataclass(frozen=True, eq=False)
class PrincipalSubspace:
    """The largest eigenvalues of a (centred) Gram matrix and the coordinates along their directions.

    Attributes
    ----------
    projection : KernelProjection
        Coordinates of any point.
    values : Tensor
        The eigenvalues, in falling order.
    coordinates : Tensor or None
        Those of the sample, (n, q); None where the sample was read in parts.
    total : float
        The sum of all eigenvalues.
    mean_coef : Tensor
        Coefficients of the mean of the features at the projection's points, zero without centring.
    """

    projection: KernelProjection
    values: Tensor
    coordinates: Tensor | None
    total: float
    mean_coef: Tensor
    report: SolverReport

    def with_variance(self) -> PrincipalSubspace:
        """Without the directions that have no variance; the first one stays."""
        kept = self.values > 0
        kept[0] = True
        part = self.projection
        directions = None if part.directions is None else part.directions[:, kept]
        projection = replace(part, coef=part.coef[:, kept], shift=part.shift[kept], directions=directions)
        coordinates = None if self.coordinates is None else self.coordinates[:, kept]
        return replace(self, projection=projection, values=self.values[kept], coordinates=coordinates)


@dataclass(frozen=True, eq=False)
class Powers:
    r"""The functions :math:`\lambda_s^{\theta/2} \psi_s`, from the features :math:`\sqrt{\lambda_s}\,\psi_s`."""

    features: KernelProjection
    values: Tensor
    theta: float

    def __call__(self, points: Points) -> Tensor:
        """The values (n, q) at some rows."""
        features = self.features(points)
        values = self.values.to(features)
        return features * torch.where(values > 0, values ** (0.5 * (self.theta - 1.0)), 0.0)

    def powered_eigenfunctions(self, rows: Tensor) -> Tensor:
        """The same for a tensor of rows, in its dtype."""
        return self(Points(rows)).to(rows)


def principal_subspace(
    kernel: Kernel,
    X: Points,
    count: int | None,
    *,
    center: bool = True,
    solver: str = "auto",
    tol: float = 1e-12,
    max_iter: int = 500,
    seed: int = 0,
    device: torch.device | None = None,
    memory_budget: Any = None,
) -> PrincipalSubspace:
    r"""The directions of largest variance of k(x_1, .), ..., k(x_n, .), from the eigenvectors of the Gram matrix,

    .. math:: P K P a_s = \lambda_s a_s, \qquad \varphi_s(x) = \frac{1}{\sqrt{\lambda_s}} \sum_i a_{is}
              \bigl(k(x, x_i) - \bar k(x_i)\bigr),

    with P the centring matrix and the mean :math:`\bar k` over the rows; without centring P = I and there is no mean.
    The matrix is stored where it fits the budget, else products are computed tile by tile. With ``count=None`` all
    eigenvalues above rounding.

    With ``solver="auto"`` the directions of a kernel with fewer features than rows are those of its features.

    References: Schölkopf, Smola and Müller, *Nonlinear component analysis as a kernel eigenvalue problem*, 1998.

    >>> from mercer.kernels import Gaussian
    >>> found = principal_subspace(Gaussian(), Points(torch.tensor([[0.0], [1.0], [2.0]]).double()), 1)
    >>> found.coordinates.shape
    torch.Size([3, 1])
    """
    started = time.perf_counter()
    n = len(X)
    features = ExplicitFeatures.of(kernel, X, n - 1) if solver == "auto" else None
    if features is not None:
        found = principal_subspace_of_features(features, X, count, center=center, device=device)
        return replace(found, projection=replace(found.projection, memory_budget=memory_budget))
    lazy = gram(kernel, X, memory_budget=memory_budget, device=device, dtype=torch.float64)
    wanted = n if count is None else min(count, n)
    budget = resolve_budget(memory_budget, lazy.device)
    fits = (ALL_MATRICES if count is None else FEW_MATRICES) * 8 * n * n <= budget
    if count is None and not fits:
        advice = "Give n_components: the largest eigenvalues need no stored matrix. Or use landmarks."
        require(ALL_MATRICES * 8 * n * n, budget, f"all eigenvectors of {n:,} rows", advice)
    operator: Any = Stored(lazy.dense(), lazy.given, symmetric=True) if fits else lazy
    centred = Centred(operator) if center else operator
    scale = n * float(centred.means.abs().max()) if center else 0.0
    diagonal = torch.as_tensor(centred.diag())
    pairs = top_eigenpairs(
        centred, wanted, solver=solver, tol=tol, max_iter=max_iter, scale=scale, seed=seed, memory_budget=memory_budget
    )
    zero = max(ZERO * float(pairs.values[0]), torch.finfo(torch.float64).eps * scale)
    values = torch.where(pairs.values > zero, pairs.values, 0.0)
    if count is None:
        values = values[: max(1, int((values > 0).sum()))]
    vectors = pairs.vectors[:, : len(values)]
    if center:
        vectors = vectors - vectors.mean(0)
    vectors = vectors * _signs(vectors)
    coef = vectors * torch.where(values > 0, values.rsqrt(), 0.0)
    shift = coef.T @ centred.means if center else coef.new_zeros(len(values))
    projection = KernelProjection(kernel, X, coef, shift, device, memory_budget)
    total = float(diagonal.sum())
    mean = coef.new_full((n,), 1.0 / n if center else 0.0)
    words = "; ".join(filter(None, [pairs.report.reason, "" if fits else "products tile by tile"]))
    report = SolverReport(
        pairs.report.solver,
        pairs.report.converged,
        pairs.report.residual,
        pairs.report.iterations,
        time.perf_counter() - started,
        reason=words,
    )
    return PrincipalSubspace(projection, values, vectors * values.sqrt(), total, mean, report)


def principal_subspace_of_features(
    features: ExplicitFeatures,
    X: Points,
    count: int | None,
    *,
    center: bool = True,
    device: torch.device | None = None,
) -> PrincipalSubspace:
    r"""The same for a kernel with p features, from the eigenvectors of p x p numbers instead of n x n,

    .. math:: \sum_i (\varphi(x_i) - \bar\varphi)(\varphi(x_i) - \bar\varphi)^T v_s = \lambda_s v_s, \qquad
              a_{is} = (\varphi(x_i) - \bar\varphi) \cdot v_s / \sqrt{\lambda_s}.
    """
    started = time.perf_counter()
    n, p = len(X), features.n_features
    rows = FeatureRows(features, X, device)
    origin = torch.zeros(p, dtype=torch.float64, device=rows.device)
    if center:
        origin = torch.stack([part.sum(0) for part in rows.parts()]).sum(0) / n
    around = replace(features, shift=origin if center else None)
    rows, products = FeatureRows(around, X, device), origin.new_zeros(p, p)
    for part in rows.parts():
        add_gram(products, part)
    products = (products + products.T) / 2
    values, vectors = eigh(products, "The covariance of the features")
    values, vectors = values.flip(0).clamp(min=0.0), vectors.flip(1)
    rounding = torch.finfo(torch.float64).eps * n * float(origin @ origin)
    kept = int((values > max(ZERO * float(values[0]), rounding)).sum())
    missed = float((products @ vectors - vectors * values).norm(dim=0).max())
    residual = missed / float(values[0]) if kept else 0.0
    wanted = max(1, kept) if count is None else min(count, n)
    here = min(wanted, p)
    values = torch.where(torch.arange(p, device=values.device) < kept, values, 0.0)[:here]
    vectors = vectors[:, :here] * (values > 0)
    coordinates = rows.matmul(vectors)
    signs = _signs(coordinates)
    padding = (0, wanted - here)
    values, coordinates, vectors = (pad(t, padding) for t in (values, coordinates * signs, vectors * signs))
    coef = coordinates * torch.where(values > 0, 1.0 / values, 0.0)
    projection = KernelProjection(
        features.kernel, X, coef, origin @ vectors, device, features=around, directions=vectors
    )
    mean = coef.new_full((n,), 1.0 / n if center else 0.0)
    reason = f"the kernel has {p:,} features, fewer than the {n:,} rows"
    report = SolverReport("primal", True, residual, seconds=time.perf_counter() - started, reason=reason)
    return PrincipalSubspace(projection, values, coordinates, float(products.trace()), mean, report)


def principal_subspace_of_landmarks(
    nystrom: NystromMap, X: Points, count: int | None, *, center: bool = True
) -> PrincipalSubspace:
    r"""The same for the projections onto the span of landmarks, in one pass over the rows: the eigenvectors of

    .. math:: \sum_i (\varphi(x_i) - \bar\varphi)(\varphi(x_i) - \bar\varphi)^T

    for Nyström features :math:`\varphi`. O(n m^2) work; exact when every row is a landmark.
    """
    started = time.perf_counter()
    n, r = len(X), nystrom.n_features
    step = max(1, PART_NUMBERS // max(1, r))
    first = nystrom(X.take(slice(0, 1)))[0].to(torch.float64)
    origin = first if center else torch.zeros_like(first)  # near the mean, so that nothing cancels
    sums, products, trace = torch.zeros_like(first), first.new_zeros(r, r), 0.0
    for start in range(0, n, step):
        part = X.take(slice(start, start + step))
        phi = nystrom(part).to(torch.float64)
        trace += float(torch.as_tensor(nystrom.kernel.diag(part.values)).sum()) - float(phi.square().sum())
        phi -= origin
        sums += phi.sum(0)
        add_gram(products, phi)
    mean = sums / n
    if center:
        products -= n * torch.outer(mean, mean)
        mean = mean + origin
    values, vectors = eigh((products + products.T) / 2, "The covariance of the features")
    values, vectors = values.flip(0).clamp(min=0.0), vectors.flip(1)
    total = float(values.sum()) + max(0.0, trace)
    kept = int((values > ZERO * values[:1]).sum())
    wanted = max(1, kept) if count is None else min(count, n, r)
    values, vectors = values[:wanted], vectors[:, :wanted]
    values = torch.where(torch.arange(wanted, device=values.device) < kept, values, 0.0)
    basis = nystrom.basis.to(vectors)
    coef = (basis @ vectors) * (values > 0)
    signs = _signs(coef)
    coef = coef * signs
    shift = (mean @ vectors) * signs * (values > 0) if center else coef.new_zeros(wanted)
    projection = KernelProjection(nystrom.kernel, nystrom.landmarks, coef, shift, nystrom.device, nystrom.memory_budget)
    mean_coef = basis @ mean if center else coef.new_zeros(len(coef))
    report = SolverReport("landmarks", True, 0.0, seconds=time.perf_counter() - started)
    return PrincipalSubspace(projection, values, None, total, mean_coef, report)


def _signs(vectors: Tensor) -> Tensor:
    """The sign of the entry of largest size of each column: with it, that entry is positive."""
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).squeeze(0)
    return torch.where(largest < 0, -1.0, 1.0)
