"""The best alpha for a smooth loss from one eigendecomposition: fits along a path and predictions for rows left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from mercer.selection.alpha import AlphaPath, best_alpha
from mercer.selection.dials import (
    HALVINGS,
    LAST_STEP,
    MOST_STEPS,
    NEWTON_UNKNOWNS,
    PATH_ROUNDING,
    PATH_SYSTEM,
    SMALL_FEATURES,
    SMALLEST_STEP,
    SQUARED_ROWS,
    ZERO,
)
from mercer.selection.smoothed import loss_of_left_out
from mercer.solvers.class_curvature import class_curvature, of_classes
from mercer.solvers.decompose import eigh_in_place
from mercer.solvers.descent import descended
from mercer.solvers.dials import FLATTEST
from mercer.solvers.factor import factorise_in_place, solve_factored
from mercer.solvers.few_span import factor_with_jitter
from mercer.solvers.objective import Objective
from mercer.solvers.scales import FactorScale, MeanScale, Scale, mean_curvature


@dataclass(frozen=True, eq=False)
class Around:
    """theta, its values f at the rows (n, t), and the mean over the rows of the second derivatives of the losses there.

    Of the mean there are eigenvalues mu (t,) and eigenvectors Q (t, t).
    """

    theta: Tensor
    f: Tensor
    mu: Tensor
    Q: Tensor

    def further(self, objective: Objective, other: Around, share: float) -> Around:
        """What lies ahead on the way from another function, after a share of it, if the objective is less there."""
        theta, f = (own + share * (own - old) for own, old in ((self.theta, other.theta), (self.f, other.f)))
        ahead = replace(self, theta=theta, f=f)
        return ahead if ahead.value(objective) < self.value(objective) else self

    def value(self, objective: Objective) -> float:
        """The objective."""
        return objective.loss_sum(self.f) + objective.alpha * float(self.theta[:-1].square().sum())


@dataclass(frozen=True, eq=False)
class Spectral:
    r"""Functions by their values at rows, :math:`f = \Phi \theta + b` with :math:`\|f\|_k = \|\theta\|`.

    With weights w and S = diag(sqrt w), the columns of S Phi are orthogonal: eigenvectors U of the matrix S K S times
    the roots of its eigenvalues. With an intercept the matrix is centred, so that theta and b do not pull on each
    other.

    Attributes
    ----------
    features : Tensor
        Phi, (n, r).
    values : Tensor
        The eigenvalues, (r,).
    weights : Tensor
        Weights of the rows, (n,).
    intercept : bool
        Whether there is b.
    turn : Tensor or None
        Theta as coefficients of the features that were given, where Phi is made of such, (m, r).
    """

    features: Tensor
    values: Tensor
    weights: Tensor
    intercept: bool
    turn: Tensor | None = None

    @classmethod
    def of_matrix(cls, K: Tensor, weights: Tensor | None, intercept: bool) -> Spectral:
        """From the Gram matrix of the rows, in float64, which is overwritten.

        It becomes the eigenvectors, and these the features; LAPACK works on two more matrices: `PATH_MATRICES` in all.
        """
        w = torch.ones(len(K)).to(K) if weights is None else weights.to(K)
        s = w.sqrt()
        K.mul_(s.unsqueeze(1)).mul_(s)
        if intercept:
            u = s / s.norm()
            means = K @ u
            half = means - 0.5 * (u @ means) * u
            K.addr_(u, half, alpha=-1.0).addr_(half, u, alpha=-1.0)
        values, vectors = eigh_in_place(K)
        kept = values > ZERO * values[-1:]
        if not bool(kept.all()):
            values, vectors = values[kept], vectors[:, kept]
        return cls(vectors.mul_(values.sqrt()).div_(s.unsqueeze(1)), values, w, intercept)

    @classmethod
    def of_features(cls, B: Tensor, weights: Tensor | None, intercept: bool) -> Spectral:
        """From a root of the Gram matrix with few columns, B B^T = K, which is overwritten.

        It lives beside its copy with weights, or the features beside it: no more than `PATH_MATRICES` of its size.
        """
        w = torch.ones(len(B)).to(B) if weights is None else weights.to(B)
        if intercept:
            B.sub_((w @ B) / w.sum())
        scaled = B if weights is None else w.sqrt().unsqueeze(1) * B
        values, turn = eigh_in_place(scaled.T @ scaled)
        kept = values > ZERO * values[-1:]
        values, turn = values[kept], turn[:, kept]
        return cls(B @ turn, values, w, intercept, turn)

    def around(self, objective: Objective, theta: Tensor | None = None) -> Around:
        """What is to be known of theta, zero if there is none, for minima nearby and for rows left out."""
        t = objective.outputs
        theta = self.values.new_zeros(len(self.values) + 1, t) if theta is None else theta
        f = self.at(theta)
        return Around(theta, f, *mean_curvature(objective, f))

    def minimum(self, objective: Objective, start: Around, care: str = "rough") -> Tensor:
        """theta with b as one more row, (r + 1, t), where the objective is nearly least.

        With few unknowns by Newton's method, for losses that are curved everywhere. Else by L-BFGS in coordinates that
        are scaled by the mean curvature of the losses at the start; its products are in float32, but for few features
        and for the squared loss, for which a step or two are exact. `care` names the gain that ends them.
        """
        exact = objective.loss.quadratic
        small = self.features.numel() <= SMALL_FEATURES
        curved = not exact and (objective.loss.strict or of_classes(objective))
        if curved and (len(self.values) + 1) * objective.outputs <= NEWTON_UNKNOWNS:
            return self._by_newton(objective, start)
        Phi = self.features if exact or small else self.rough
        gain = PATH_ROUNDING if exact else SMALLEST_STEP["small" if small else care]
        return descended(
            objective,
            self._scale(objective, start),
            lambda theta: by_columns(theta.to(Phi), Phi.T).double(),
            lambda slope: by_columns(slope.to(Phi), Phi).double(),
            start.theta,
            gain=gain,
            most=MOST_STEPS,
        )[0]

    def _by_newton(self, objective: Objective, start: Around) -> Tensor:
        """Steps to the least of the parabola that touches the objective, halved until they gain.

        The last one is the first to promise little: it squares what is left.
        """
        A = torch.cat([self.features, self.features.new_full((len(self.features), 1), float(self.intercept))], dim=1)
        penalty = 2 * objective.alpha * torch.ones_like(A[:1].T)
        penalty[-1] = 0.0
        theta, f, promised = start.theta, start.f, torch.inf
        losses, slope, bend = objective.parabola(f)
        value = losses + float((penalty * theta.square()).sum()) / 2
        while promised > LAST_STEP * abs(value):
            down = A.T @ slope + penalty * theta
            step = self._newton_step(A, bend, penalty, down)
            promised, moved = -float((down * step).sum()), A @ step
            for half in range(HALVINGS):
                share = 0.5**half
                losses, slope, bend = objective.parabola(f + share * moved)
                ahead = theta + share * step
                there = losses + float((penalty * ahead.square()).sum()) / 2
                if there <= value - 1e-4 * share * promised + SMALLEST_STEP["small"] * abs(value):
                    break
            else:
                break
            theta, f, value = ahead, f + share * moved, there
        return theta

    def _newton_step(self, A: Tensor, bend: Tensor, penalty: Tensor, down: Tensor) -> Tensor:
        r"""The step against the slope `down` (r + 1, t) with the curvature :math:`\sum_i A_i A_i^T \otimes H_i`.

        That of the penalty comes on top, and a little for an intercept: it may have none, or one that classes share.
        """
        r, t = down.shape
        blocks = A.T @ (A[:, :, None, None] * bend[:, None]).reshape(len(A), -1)
        matrix = blocks.reshape(r, r, t, t).permute(0, 2, 1, 3).reshape(r * t, r * t)
        more = matrix.diagonal()
        more += penalty.expand(r, t).reshape(-1)
        more[-t:] += max(FLATTEST * float(more[-t:].max()), 1.0 - self.intercept)
        if not factorise_in_place(matrix):
            return torch.zeros_like(down)
        return -solve_factored(matrix.mT, down.reshape(-1, 1)).reshape(r, t)

    def _scale(self, objective: Objective, start: Around) -> Scale:
        """Coordinates in which the curvature at the start is near the identity."""
        unknowns = (len(self.values) + self.intercept) * objective.outputs
        if not of_classes(objective) or not 0 < unknowns <= (PATH_SYSTEM * len(self.features)) ** 0.5:
            return MeanScale.of(objective, self.values, start.mu, start.Q, float(self.weights.sum()))
        parts = [(slice(0, len(self.features)), self.features)]
        matrix = class_curvature(objective.at(start.f), self.values, lambda: parts)
        return FactorScale(factor_with_jitter(matrix, objective.alpha), self.intercept, objective.outputs)

    @cached_property
    def rough(self) -> Tensor:
        """The features in float32."""
        return self.features.float()

    def coefficients(self, theta: Tensor) -> Tensor:
        """The coefficients of the features that were given, (m, t), or of the kernels at the rows, (n, t)."""
        if self.turn is not None:
            return self.turn @ theta[:-1]
        return self.weights.unsqueeze(1) * (self.features @ (theta[:-1] / self.values.unsqueeze(1)))

    def at(self, theta: Tensor) -> Tensor:
        """The values at the rows, (n, t)."""
        return self.features @ theta[:-1] + theta[-1]

    def left_out(self, objective: Objective, around: Around) -> Tensor:
        r"""For each row the prediction by a fit without it, or of repeated rows without one copy, to first order,

        .. math:: f_{-i} = f_i + (a_i^{-1} - m_i \bar H)^{-1} m_i\, g_i, \qquad
            a_i = \big[(2 \alpha K^{-1} + W \otimes \bar H)^{-1}\big]_{ii},

        where m_i is the weight that leaves and the mean curvature of the losses stands for that of each row. Its
        eigenvectors Q, with eigenvalues mu, and those of K make a_i diagonal, :math:`\sum_j \Phi_{ij}^2 / (2 \alpha +
        \mu \lambda_j)`. It is exact for the squared loss.
        """
        mu, Q = around.mu, around.Q
        curved = mu > ZERO * mu.max()
        reciprocal = 1.0 / (2 * objective.alpha + self.values.unsqueeze(1) * mu)
        a = torch.cat([part.square() @ reciprocal for part in self.features.split(SQUARED_ROWS)])
        if self.intercept:
            a = a + torch.where(curved, 1.0 / torch.where(curved, mu * self.weights.sum(), 1.0), 0.0)
        m = objective.leaving
        reach = m * a / (1.0 - m * mu * a).clamp(min=1e-9)
        slope = objective.loss.gradient(objective.targets, around.f)
        return around.f + ((slope @ Q) * reach) @ Q.T


def by_columns(V: Tensor, A: Tensor) -> Tensor:
    """A^T V for few columns of V, each of which lies in one piece: three times as fast.

    >>> by_columns(torch.tensor([[1.0], [2.0]]), torch.eye(2))
    tensor([[1.],
            [2.]])
    """
    return (V.T.contiguous() @ A).T


def select_alpha_of_spectrum(
    span: Spectral, objectives: list[Objective], alphas: Tensor
) -> tuple[AlphaPath, list[Tensor]]:
    """Choose one alpha for all objectives by `loss_of_left_out`: every second one, falling until the error rises, then
    those beside the best. Each fit begins on the line through two others in log alpha.

    Returns the path and theta of each objective at the chosen alpha.
    """
    ascending = alphas.sort().values
    errors = torch.full((len(alphas),), torch.inf, dtype=torch.float64)
    found: dict[int, list[Around]] = {}
    zero = [span.around(objective) for objective in objectives]

    def look(index: int) -> None:
        problems = [replace(objective, alpha=float(ascending[index])) for objective in objectives]
        above = sorted(k for k in found if k > index)
        starts = found[above[0]] if above else zero
        for other in [index - 1] if index - 1 in found else above[1:2]:
            share = (above[0] - index) / (other - above[0])
            starts = [s.further(p, o, share) for s, p, o in zip(starts, problems, found[other], strict=True)]
        found[index] = [span.around(p, span.minimum(p, start)) for p, start in zip(problems, starts, strict=True)]
        pairs = zip(problems, found[index], strict=True)
        errors[index] = sum(loss_of_left_out(p, span.left_out(p, around)) for p, around in pairs)

    for index in range(len(alphas) - 1, -1, -2):
        look(index)
        if index != int(errors.argmin()):
            break
    best = int(errors.argmin())
    for index in (best + 1, best - 1):
        if 0 <= index < len(alphas) and index not in found:
            look(index)
    index, seen = int(errors.argmin()), errors.isfinite()
    path = best_alpha(ascending[seen], errors[seen].unsqueeze(1), torch.zeros(1, dtype=torch.float64), "loo")
    edge = torch.tensor([index in (0, len(alphas) - 1)])
    path = replace(path, alpha=ascending[index].reshape(1), at_edge=edge)
    chosen = [replace(objective, alpha=float(path.alpha[0])) for objective in objectives]
    return path, [span.minimum(p, around, "last") for p, around in zip(chosen, found[index], strict=True)]
