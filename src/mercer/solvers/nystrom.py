"""Nyström regression on m landmarks by normal equations: sums over rows in one pass, then every alpha."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError
from mercer.core.results import Solution
from mercer.solvers.centring import Means
from mercer.solvers.decompose import eigh
from mercer.solvers.dials import NYSTROM_TOLERANCE
from mercer.solvers.error_bound import Functions, Moments, far_words, landmark_bound, too_far
from mercer.solvers.factor import factorise_in_place
from mercer.solvers.registry import register
from mercer.solvers.row_blocks import Block
from mercer.solvers.symmetric import add_gram
from mercer.solvers.system import check_alpha
from mercer.solvers.traits import Traits
from mercer.solvers.whitening import landmark_matrix, whitening


@register("nystrom")
@dataclass(frozen=True)
class Nystrom:
    """Ridge regression on landmarks by normal equations, which `NystromSums` are; it has no options of its own."""

    traits: ClassVar[Traits] = Traits("landmarks", matrices=7, merges=True)


class NystromSums:
    r"""The sums that Nyström regression on m landmarks z_j needs of the rows x_i, gathered in any order,

    .. math:: G = \sum_i w_i\, k_i k_i^T, \qquad h = \sum_i w_i\, k_i y_i^T, \qquad k_i = (k(x_i, z_j))_j,

    in float64, and of the :math:`w_i k_i`. Sums of disjoint rows merge into the sums of all, so rows may come in
    pieces, late or from several
    machines. `solve` then finds, for any alpha,

    .. math:: \min_{f = \sum_j c_j k(z_j, \cdot)} \sum_i w_i (f(x_i) - y_i)^2 + \alpha \|f\|^2, \qquad
              (G + \alpha K_{mm})\, c = h,

    or with an `intercept` the same of features and targets less their weighted means.

    References: Williams and Seeger, *Using the Nyström method to speed up kernel machines*, 2001; Rudi, Camoriano and
    Rosasco, *Less is more: Nyström computational regularization*, 2015.

    >>> K = torch.tensor([[1.0, 0.5], [0.5, 1.0], [0.2, 0.1]]).double()
    >>> sums = NystromSums(m=2, t=1).add(K[:2], torch.tensor([[1.0], [2.0]]).double())
    >>> more = NystromSums(m=2, t=1).add(K[2:], torch.tensor([[0.3]]).double())
    >>> sums.merge(more).rows
    3
    >>> sums.solve(K[:2], alpha=0.1).value.round(decimals=4)
    tensor([[0.1268],
            [1.7606]], dtype=torch.float64)
    """

    def __init__(self, m: int, t: int, device: torch.device | str = "cpu") -> None:
        if m < 1 or t < 1:
            raise InputError(f"NystromSums(m={m}, t={t}): needs at least one landmark and one target.")
        self.gram = torch.zeros(m, m, dtype=torch.float64, device=device)
        self.cross = torch.zeros(m, t, dtype=torch.float64, device=device)
        self.features = torch.zeros(m, dtype=torch.float64, device=device)
        self.targets = torch.zeros(2, t, dtype=torch.float64, device=device)
        self.rows, self.weight, self.trace = 0, 0.0, 0.0

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> NystromSums:
        """The sums over all blocks, gathered here."""
        sums: NystromSums | None = None
        for block in blocks:
            if sums is None:
                sums = cls(block.kernel.shape[1], block.targets.shape[1], block.kernel.device)
            sums.add_block(block)
        if sums is None:
            raise InputError("There are no rows to learn from.")
        return sums

    def to_arrays(self) -> dict[str, Tensor]:
        """The sums as plain arrays, which a file can hold."""
        counts = torch.tensor([float(self.rows), self.weight, self.trace], dtype=torch.float64)
        names = ("gram", "cross", "features", "targets")
        return {name: getattr(self, name) for name in names} | {"counts": counts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Tensor], device: torch.device | str = "cpu") -> NystromSums:
        """The sums that `to_arrays` wrote."""
        gram, cross, features, targets, counts = (
            arrays[name].to(device=device, dtype=torch.float64)
            for name in ("gram", "cross", "features", "targets", "counts")
        )
        fits = cross.ndim == 2 and gram.shape == (len(cross), len(cross)) and targets.shape == (2, cross.shape[1])
        if not fits or features.shape != (len(cross),) or counts.shape != (3,):
            shapes = f"{tuple(gram.shape)} and {tuple(cross.shape)}"
            raise InputError(f"Expected sums of shapes (m, m) and (m, t), got {shapes}.")
        sums = cls(len(cross), cross.shape[1], device)
        sums.gram, sums.cross, sums.features, sums.targets = gram, cross, features, targets
        sums.rows, sums.weight, sums.trace = int(counts[0]), float(counts[1]), float(counts[2])
        return sums

    def add(self, K: Tensor, y: Tensor, w: Tensor | None = None) -> NystromSums:
        """Add rows: kernel values K (b, m), targets y (b, t) and weights w (b,)."""
        m, t = self.cross.shape
        if K.ndim != 2 or K.shape[1] != m or y.shape != (len(K), t) or (w is not None and w.shape != (len(K),)):
            shapes = tuple(K.shape), tuple(y.shape), None if w is None else tuple(w.shape)
            raise InputError(f"Rows of shapes {shapes} were added; expected (b, {m}), (b, {t}) and (b,) or None.")
        if w is not None and not bool((w >= 0).all()):
            raise InputError("Weights must be >= 0.")
        K, y = K.to(self.gram), y.to(self.gram)
        given = y
        if w is not None:
            root = w.to(self.gram).sqrt().unsqueeze(1)
            K, y = K * root, y * root
        self.features += K.sum(0) if w is None else root[:, 0] @ K
        add_gram(self.gram, K)
        self.cross.addmm_(K.T, y)
        self._add_moments(Moments.of(given, w))
        return self

    def add_block(self, block: Block) -> NystromSums:
        """Add a block of rows, some kernel rows at a time."""
        for K, y, w in block.parts():
            self.add(K, y, w)
        self.trace += block.trace()
        return self

    def merge(self, other: NystromSums) -> NystromSums:
        """Add the sums of other rows over the same landmarks."""
        if other.cross.shape != self.cross.shape:
            raise InputError(
                f"Sums over (landmarks, targets) {tuple(self.cross.shape)} cannot take in sums over "
                f"{tuple(other.cross.shape)}."
            )
        self.gram += other.gram.to(self.gram)
        self.cross += other.cross.to(self.cross)
        self.features += other.features.to(self.features)
        self._add_moments(other.moments)
        return self

    @property
    def moments(self) -> Moments:
        """The sums that know nothing of landmarks."""
        return Moments(self.rows, self.weight, self.targets[0], self.targets[1], self.trace)

    @property
    def means(self) -> Means:
        """The weighted means of kernel values and targets."""
        weight = self.weight or 1.0
        return Means(self.features / weight, self.targets[0] / weight, self.weight)

    def _add_moments(self, more: Moments) -> None:
        self.targets += torch.stack([more.first, more.second]).to(self.targets)
        self.rows += more.rows
        self.weight += more.weight
        self.trace += more.trace

    def prepare(
        self, K_mm: Any, basis: Tensor | None = None, functions: Functions | None = None, *, intercept: bool = False
    ) -> NystromSpectrum:
        """Decompose the normal equations once, to solve for every alpha; `K_mm` is the landmarks' Gram matrix.

        With None it is the identity: `kernel` rows are then features phi(x_i), and the penalty is alpha |c|^2.
        `basis` is ``whitening(K_mm, ...)`` where it is known already, `functions` what is known of its rounding.
        """
        return NystromEquations.of(self, K_mm, basis, functions, intercept).spectrum()

    def solve(
        self,
        K_mm: Any,
        alpha: float | Tensor,
        basis: Tensor | None = None,
        functions: Functions | None = None,
        *,
        intercept: bool = False,
    ) -> Solution:
        """Coefficients c (m, t), and where it is asked for an intercept, for one alpha or one per target."""
        return NystromEquations.of(self, K_mm, basis, functions, intercept).solve(alpha)


@dataclass(frozen=True, eq=False)
class NystromEquations:
    r"""Normal equations in a basis E that makes the penalty the identity,

    .. math:: E^T K_{mm} E = I, \qquad (E^T G E + \alpha I)\, u = E^T h, \qquad c = E u.

    K_mm is scaled to a unit diagonal, and its eigenvalues up to three times the rounding error are left out instead of
    lifted by a jitter, so the penalty stays alpha |f|^2. Without a K_mm both it and E are the identity. With `means`,
    which an intercept has, G and h are those of what is less its mean.
    """

    sums: NystromSums
    K_mm: Tensor | None
    basis: Tensor | None
    inner: Tensor
    functions: Functions | None = None
    means: Means | None = None
    seconds: float = 0.0

    @classmethod
    def of(
        cls,
        sums: NystromSums,
        K_mm: Any,
        basis: Tensor | None = None,
        functions: Functions | None = None,
        intercept: bool = False,
    ) -> NystromEquations:
        started = time.perf_counter()
        check_finite(sums.gram, "The sum of products of kernel values")
        check_finite(sums.cross, "The sum of kernel values times targets")
        kernel, inner = None, sums.gram
        if K_mm is not None:
            kernel, precision = landmark_matrix(K_mm, sums.gram)
            basis = whitening(kernel, precision) if basis is None else basis
            inner = basis.T @ sums.gram @ basis
            functions = Functions(basis, kernel.diagonal()) if functions is None else functions
        inner = (inner + inner.T).div_(2)
        means = sums.means if intercept else None
        if means is not None:
            mean = means.features if basis is None else basis.T @ means.features
            inner.addr_(mean, mean, alpha=-means.weight)
        return cls(sums, kernel, basis, inner, functions, means, time.perf_counter() - started)

    @property
    def cross(self) -> Tensor:
        """h."""
        return self.sums.cross if self.means is None else self.means.cross(self.sums.cross)

    @property
    def moments(self) -> Moments:
        """Those of targets and functions, less their means where there is an intercept."""
        moments, means = self.sums.moments, self.means
        if means is None:
            return moments
        second = (moments.second - means.weight * means.targets.square()).clamp(min=0.0)
        lost = means.weight * float(self._inside(means.features.unsqueeze(1)).square().sum())
        trace = max(0.0, moments.trace - lost) if moments.trace else 0.0
        return replace(moments, first=torch.zeros_like(second), second=second, trace=trace)

    def solve(self, alpha: float | Tensor) -> Solution:
        """Coefficients c (m, t): by Cholesky for one alpha well above the rounding of the sums, else by eigenvalues."""
        started = time.perf_counter()
        alphas = check_alpha(alpha, self.sums.cross.shape[1]).to(self.inner)
        factor = self._factor(float(alphas.min())) if len(alphas.unique()) == 1 else None
        if factor is None:
            return self.spectrum().solve(alpha)
        u = torch.cholesky_solve(self._inside(self.cross), factor)
        return self.solution(u, alphas.reshape(1, -1), self.seconds + time.perf_counter() - started)

    def spectrum(self) -> NystromSpectrum:
        """The equations with their matrix made diagonal."""
        started = time.perf_counter()
        values, vectors = eigh(self.inner)
        seconds = self.seconds + time.perf_counter() - started
        return NystromSpectrum(self, self._outside(vectors), vectors, values, seconds)

    def solution(self, u: Tensor, alphas: Tensor, seconds: float, concern: str = "") -> Solution:
        """The coefficients c = E u with their account; alphas are (1, 1) or (1, t)."""
        value = self._outside(u).contiguous()
        rank, m, residual, bound = len(u), len(value), self._backward_error(value, alphas), self._bound(u, alphas)
        words = [f"{rank} of {m} landmarks are independent to rounding"] if rank < m else []
        words += [concern] if concern else []
        if residual > NYSTROM_TOLERANCE:
            words.append("the normal equations are too close to singular: use a larger alpha or fewer landmarks")
        words += [far_words(bound)] if too_far(bound) else []
        return Solution(
            solver="nystrom",
            converged=residual <= NYSTROM_TOLERANCE and not too_far(bound),
            residual=residual,
            seconds=seconds,
            reason="; ".join(words),
            error_bound=bound,
            value=value,
            intercept=None if self.means is None else self.means.constant(value),
        )

    def _factor(self, alpha: float) -> Tensor | None:
        """The factor for alpha, None unless rounding has pushed no eigenvalue further below zero than half of it."""
        if alpha == 0 or not factorise_in_place(self._shifted(alpha / 2)):
            return None
        shifted = self._shifted(alpha)
        return shifted.mT if factorise_in_place(shifted) else None

    def _shifted(self, shift: float) -> Tensor:
        shifted = self.inner.clone()
        shifted.diagonal().add_(shift)
        return shifted

    def _inside(self, V: Tensor) -> Tensor:
        return V if self.basis is None else self.basis.T @ V

    def _outside(self, U: Tensor) -> Tensor:
        return U if self.basis is None else self.basis @ U

    def _bound(self, u: Tensor, alphas: Tensor) -> float | None:
        """How far predictions at the rows can be from those of the exact solution."""
        cross, moments, sizes = self._inside(self.cross), self.moments, self.inner.diagonal().clamp(min=0.0)
        alphas = alphas.reshape(-1).expand(u.shape[1])
        missed = (cross - self.inner @ u - alphas * u).norm(dim=0) / (2.0 * alphas.sqrt())
        summed = sizes.sqrt()
        if self.basis is not None and self.functions is not None:
            summed = max(moments.trace, float(sizes.sum())) ** 0.5 * self.functions.sizes
        explained = (u * cross).sum(0)
        return landmark_bound(moments, self.functions, u, alphas, sizes, missed, explained, summed)

    def _backward_error(self, value: Tensor, alphas: Tensor) -> float:
        gram, cross = self.sums.gram, self.cross
        image = gram @ value if self.means is None else self.means.image(gram @ value, value)
        missed = cross - image - alphas * (value if self.K_mm is None else self.K_mm @ value)
        norm = _row_sum(gram) + alphas * (1.0 if self.K_mm is None else _row_sum(self.K_mm))
        scale = norm * value.norm(dim=0) + cross.norm(dim=0)
        error = torch.where(scale > 0, missed.norm(dim=0) / scale, 0.0)
        return float(error.nan_to_num(torch.inf, torch.inf).max())


@dataclass(frozen=True, eq=False)
class NystromSpectrum:
    r"""Normal equations in the basis in which both matrices are diagonal,

    .. math:: E^T K_{mm} E = I, \qquad E^T G E = \operatorname{diag}(\mu), \qquad
              c = E\, (|\mu| + \alpha)^{-1} E^T h.

    Rounding of G can turn a tiny mu negative: its modulus is how well that direction is known.
    """

    equations: NystromEquations
    basis: Tensor
    vectors: Tensor
    values: Tensor
    seconds: float = 0.0

    @property
    def sums(self) -> NystromSums:
        return self.equations.sums

    @property
    def rank(self) -> int:
        """The number of independent landmarks, to rounding."""
        return len(self.values)

    @property
    def rounding(self) -> float:
        """How far below zero rounding has pushed an eigenvalue."""
        return float((-self.values).clamp(min=0.0).max()) if self.rank else 0.0

    def solve(self, alpha: float | Tensor) -> Solution:
        """Coefficients c (m, t) for one alpha or one per target; the value at alpha = 0 is that of least norm."""
        started = time.perf_counter()
        cross = self.equations.cross
        alphas = check_alpha(alpha, cross.shape[1]).reshape(1, -1).to(cross.device)
        u = self.vectors @ (self.inverse_values(alphas.squeeze(0)) * (self.basis.T @ cross))
        smallest, concern = float(alphas.min()), ""
        if self.rounding > smallest:
            concern = f"alpha={smallest:g} is below the rounding error {self.rounding:.0e} of the sums"
        return self.equations.solution(u, alphas, self.seconds + time.perf_counter() - started, concern)

    def inverse_values(self, alphas: Tensor) -> Tensor:
        """1 / (mu + alpha) of shape (r, k) for k alphas; at alpha = 0 that of what is not rounding, else zero."""
        size = self.values.abs().unsqueeze(1)
        tiny = torch.finfo(torch.float64).eps * len(size) * (float(size.max()) if len(size) else 0.0)
        return torch.where((alphas > 0) | (size > max(tiny, self.rounding)), 1.0 / (size + alphas), 0.0)


def sums_over(blocks: Iterable[Block]) -> dict[str, Tensor]:
    """The arrays of `NystromSums` over all blocks: a sum over rows, which `total` can have done elsewhere."""
    return NystromSums.of(blocks).to_arrays()


def _row_sum(A: Tensor) -> Tensor:
    """The largest sum of absolute values of a row, without another matrix of that size."""
    result: Tensor = torch.linalg.vector_norm(A, ord=1, dim=1).max()
    return result
