"""How far predictions at the training rows can be from those of the exact solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mercer.solvers.dials import ALLOWED, CONSTANT, ENTRIES, ROWS, SKETCHED, SPANNED

EPS = torch.finfo(torch.float64).eps


def too_far(bound: float | None, tol: float = 0.0) -> bool:
    """Whether predictions may be further off than allowed, or than the tolerance that was asked for.

    >>> too_far(1e-5), too_far(0.1), too_far(None)
    (False, True, False)
    """
    return bound is not None and not bound <= max(ALLOWED, tol)


def far_words(bound: float | None) -> str:
    """What to say of such a fit."""
    assert bound is not None
    return f"predictions may be off by {bound:.0e} of the spread of the targets: use a larger alpha"


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows: of the weights w, of w y and w y^2, one for each target, and of w k(x, x), 0 where unknown."""

    rows: int
    weight: float
    first: Tensor
    second: Tensor
    trace: float = 0.0

    @classmethod
    def of(cls, Y: Tensor, w: Tensor | None = None) -> Moments:
        """Those of targets Y (n, t) with weights w (n,).

        >>> Moments.of(torch.tensor([[1.0], [3.0]])).spread
        tensor([1.])
        """
        W = torch.ones(len(Y), 1).to(Y) if w is None else w.to(Y).unsqueeze(1)
        return cls(len(Y), float(W.sum()), (W * Y).sum(0), (W * Y.square()).sum(0))

    @property
    def spread(self) -> Tensor:
        """The standard deviation of each target; the root of its mean square where it is constant."""
        square = self.second / self.weight
        variance = square - (self.first / self.weight).square()
        return torch.where(variance > CONSTANT**2 * square, variance, square).sqrt()

    @property
    def known(self) -> bool:
        """Whether the squares are numbers: those of targets beyond 1e154 or below 1e-154 are not."""
        tiny = torch.finfo(self.second.dtype).tiny
        return bool((torch.isfinite(self.second) & ((self.second > tiny) | (self.first == 0))).all())

    def share(self, errors: Tensor) -> float:
        """The largest over targets of the norm of an error over the rows, as a share of the spread."""
        size = self.weight**0.5 * self.spread
        return float(torch.where(size > 0, errors / size, errors).nan_to_num(torch.inf, torch.inf).max())


@dataclass(frozen=True, eq=False)
class Functions:
    r"""What rounding does to orthonormal functions :math:`e_j = \sum_i E_{ij} k(z_i, \cdot)` of m landmarks.

    `diagonal` is k(z_i, z_i), `values` the precision of kernel values at the rows, `left_out` the share of the
    largest eigenvalue of K_mm up to which directions were left out, and `jitter` what was added to the diagonal to make
    them: they are orthonormal for :math:`K_{mm} + J I`.
    """

    E: Tensor
    diagonal: Tensor
    values: float = EPS
    left_out: float = EPS
    jitter: float = 0.0

    @cached_property
    def sizes(self) -> Tensor:
        """The norms of the columns of E, with rows weighted by k(z, z); a few rows at a time."""
        weights = self.diagonal.to(self.E).clamp(min=0.0)
        parts = zip(self.E.split(ROWS), weights.split(ROWS), strict=True)
        return sum((part.square().T @ weight for part, weight in parts), self.E.new_zeros(self.E.shape[1])).sqrt()

    def coefficients(self, u: Tensor) -> Tensor:
        """The norms of c = E u, weighted likewise."""
        weights = self.diagonal.to(self.E).clamp(min=0.0)
        return (weights @ (self.E @ u).square()).sqrt()


def landmark_bound(
    moments: Moments,
    functions: Functions | None,
    u: Tensor,
    alphas: Tensor,
    squares: Tensor,
    missed: Tensor,
    explained: Tensor,
    summed: Tensor | None = None,
) -> float | None:
    r"""A bound of the error of :math:`f = \sum_j u_j e_j` at the rows, as a share of the spread of y.

    With the values :math:`\Phi = W^{1/2} (e_j(x_i))` of orthonormal functions, the exact u solves
    :math:`(G + \alpha I)\, u = \Phi^T y`, :math:`G = \Phi^T \Phi`. A u with the residual r is off by

    .. math:: |\Phi\, \delta u| = |\Phi (G + \alpha I)^{-1} r|
              \le \max_\sigma \frac{\sigma}{\sigma^2 + \alpha}\, |r| \le \frac{|r|}{2 \sqrt\alpha},

    since these are the singular values of :math:`\Phi (G + \alpha I)^{-1}`. What the computed residual does not see has
    independent entries :math:`v_j`, so that its mean square is a sum over columns of that matrix,

    .. math:: |\Phi (G + \alpha I)^{-1} v|^2 \approx \sum_j v_j^2 g_j^2, \qquad
              |\Phi (G + \alpha I)^{-1} 1_j| \le g_j
              = \min \Bigl( \frac{1}{2 \sqrt\alpha}, \frac{|\Phi_j|}{\alpha} \Bigr),

    where the second is because :math:`\alpha\, (G + \alpha I)^{-1} \Phi^T p = \Phi^T q` with :math:`|q| \le |p|`. With
    :math:`\rho = y - \Phi u`, the sizes :math:`a_j` of the columns of E, c = E u, and :math:`\epsilon` the precision:

    - Values at the rows are :math:`\Phi + \Delta E` with errors
      :math:`|\Delta_{ij}| \le \epsilon (k(x_i, x_i) k(z_j, z_j))^{1/2}`. Then r changes by
      :math:`\Phi^T \Delta c - E^T \Delta^T \rho`. The first moves f by at most :math:`|\Delta c|`, which is
      :math:`\epsilon (\sum_i w_i k(x_i, x_i))^{1/2} |c|`, the second is
      :math:`v_j = \epsilon (\sum_i w_i k(x_i, x_i) / n)^{1/2} |\rho|\, a_j`.
    - The penalty is :math:`\alpha E^T (K_{mm} + \Delta) E u`, :math:`v_j = \alpha \epsilon \sqrt m\, |c|\, a_j`.
    - A sum over n rows of columns with the norms s is rounded n times,
      :math:`v_j = \epsilon \sqrt n\, (\sum_i s_i |u_i| + |y|)\, s_j`.

    Where the functions are orthonormal for :math:`K_{mm} + J I`, an eigenvalue :math:`\mu` of :math:`K_{mm}` has
    :math:`(\mu + J)^{1/2} / (\mu + \alpha)` in place of :math:`\sigma / (\sigma^2 + \alpha)`, at most
    :math:`1 / (2 \sqrt{\alpha - J})`, or :math:`\sqrt J / \alpha` where J is above :math:`\alpha / 2`.

    Functions :math:`\Psi` that were left out would have changed f by :math:`Q \Psi (\Psi^T Q \Psi + \alpha I)^{-1}
    \Psi^T \rho` with :math:`Q = I - \Phi (G + \alpha I)^{-1} \Phi^T \le I` and :math:`\rho = Q y`, so

    .. math:: |\delta f| \le \min \Bigl( \frac{\tau}{\alpha} |\rho|,\;
              \frac{\tau}{\tau + \alpha} (y^T Q y)^{1/2} \Bigr), \qquad
              \|\Psi\|^2 \le \tau = \sum_i w_i k(x_i, x_i) - \operatorname{tr} G,

    where :math:`y^T Q y = |\rho|^2 + \alpha |u|^2`. That is the distance to the ridge on all rows. It counts where
    something was left out and the rest spans the rows up to rounding; else the approximation is what was asked for.

    `squares` are :math:`|\Phi_j|^2`, `missed` is the bound that the computed residual gives, `explained` is
    :math:`u^T \Phi^T y`, and `summed` are the norms s, None without sums. None where no bound is known: for
    alpha = 0, and for targets whose squares are no numbers.
    """
    if not moments.known or not bool((alphas > 0).all()):
        return None
    n, found = max(1, moments.rows), float(squares.sum())
    trace, penalty = max(moments.trace, found), alphas * u.square().sum(0)
    left = (moments.second - explained - penalty).clamp(min=0.0) + CONSTANT**2 * moments.second

    jitter = 0.0 if functions is None else functions.jitter
    sizes = squares.clamp(min=0.0).sqrt() + jitter**0.5

    def moved(v: Tensor) -> Tensor:
        gains = [torch.minimum(_largest_gain(a, jitter), sizes / a) for a in alphas]
        return torch.stack([(v * gain).norm() for gain in gains])

    error = missed
    if summed is not None:
        error = error + EPS * n**0.5 * (summed @ u.abs() + moments.second.sqrt()) * moved(summed)
    if functions is not None:
        rounding, c = ENTRIES * functions.values * trace**0.5, functions.coefficients(u)
        skew = alphas * EPS * len(functions.E) ** 0.5 * c
        error = error + rounding * c + (rounding * (left / n).sqrt() + skew) * moved(functions.sizes)
        tau = abs(moments.trace - found)
        spanned = tau <= SPANNED * functions.left_out * len(functions.E) * trace
        if len(u) < len(functions.E) and spanned:
            tau += ENTRIES * EPS * trace
            error = error + torch.minimum(tau / alphas * left.sqrt(), tau / (tau + alphas) * (left + penalty).sqrt())
    return moments.share(error)


def _largest_gain(alpha: Tensor, jitter: float) -> Tensor:
    r"""The largest :math:`(\mu + J)^{1/2} / (\mu + \alpha)` over :math:`\mu \ge 0`, with the jitter J."""
    return 0.5 * (alpha - jitter).rsqrt() if jitter < alpha / 2 else jitter**0.5 / alpha


def row_bound(moments: Moments, missed: Tensor) -> float:
    r"""A bound of the error at the rows of a solution of (K + alpha I) c = y, as a share of the spread of y.

    With the residual r the exact c is off by :math:`(K + \alpha I)^{-1} r`, and

    .. math:: |K \delta c| = |K (K + \alpha I)^{-1} r| \le |r|.

    Weighted systems have W^1/2 K W^1/2 and W^1/2 y; their norms over rows are weighted too. `missed` is |r| / |b|.

    >>> moments = Moments.of(torch.tensor([[99.0], [101.0]]).double())
    >>> round(row_bound(moments, torch.tensor([1e-6]).double()), 6)
    0.0002
    """
    return moments.share(SKETCHED * missed.to(moments.second) * moments.second.sqrt())
