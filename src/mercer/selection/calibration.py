"""Probabilities from decisions, fitted to decisions for rows that were left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.selection.dials import EDGE, STEPS
from mercer.selection.smoothed import smoothed_labels
from mercer.solvers.decompose import solve


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Probabilities of decisions: for two classes, and for several,

    .. math:: P(1 \mid f) = \frac{1}{1 + e^{-(a f + b)}}, \qquad P(k \mid f) = \frac{e^{a f_k}}{\sum_l e^{a f_l}}.

    The most likely class is that of the largest decision: one slope for all classes leaves it so, and of two classes
    the probability is one half where a f + b and f have different signs.
    """

    slope: Tensor
    shift: Tensor

    def __call__(self, decisions: Tensor) -> Tensor:
        """Probabilities (m, classes) of decisions (m, 1) or (m, t)."""
        z = decisions * self.slope.to(decisions) + self.shift.to(decisions)
        if z.shape[1] == 1:
            z = torch.where(decisions > 0, z.clamp(min=EDGE), z.clamp(max=-EDGE))
            return torch.cat([torch.sigmoid(-z), torch.sigmoid(z)], dim=1)
        return torch.softmax(z, 1)


def calibrate(decisions: Tensor, codes: Tensor, weights: Tensor | None = None) -> Calibration:
    """The calibration of greatest likelihood at decisions (n, 1) or (n, t) for rows left out, of classes 0, 1, 2, ...

    Labels are smoothed: certainty is not learned from a few rows that all happen to be right.

    References: Platt, *Probabilistic outputs for support vector machines*, 1999; Guo, Pleiss, Sun and Weinberger, *On
    calibration of modern neural networks*, 2017.

    >>> f = torch.linspace(-2, 2, 9).double().unsqueeze(1)
    >>> bool(calibrate(f, (f[:, 0] > 0).long()).slope > 0)
    True
    """
    codes = codes.to(decisions.device).long()
    if decisions.shape[1] == 1:
        slope, shift = _platt(decisions[:, 0], codes > 0, weights)
        return Calibration(slope.reshape(1), shift.reshape(1))
    return Calibration(_temperature(decisions, codes, weights).reshape(1), decisions.new_zeros(1))


def _temperature(f: Tensor, codes: Tensor, weights: Tensor | None) -> Tensor:
    """The slope of greatest likelihood, by bisection of a derivative that rises with it, between e^-10 and e^10."""
    w = torch.ones(len(f)).to(f) if weights is None else weights.to(f)
    wanted = (smoothed_labels(codes, f.shape[1], weights).to(f) * f).sum(1)
    unit = f.std().clamp(min=1e-300)
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        p = torch.softmax(f * (torch.e**middle / unit), 1)
        rate = float((w * ((p * f).sum(1) - wanted)).sum())
        low, high = (low, middle) if rate > 0 else (middle, high)
    result: Tensor = torch.e**low / unit
    return result


def _platt(f: Tensor, positive: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    w = torch.ones_like(f) if weights is None else weights.to(f)
    unit = w / w.max().clamp(min=1e-300)
    up, down = float(w[positive].sum()), float(w[~positive].sum())
    target = smoothed_labels(positive, 2, weights)[:, 1].to(f)
    size = f.abs().max().clamp(min=1e-300)  # a decision may have any scale
    design = torch.stack([f / size, torch.ones_like(f)], dim=1)
    start = torch.tensor([0.0, float(torch.log(torch.tensor((up + 1) / (down + 1))))]).to(f)

    def loss(coef: Tensor) -> float:
        z = design @ coef
        return float((unit * (torch.nn.functional.softplus(z) - target * z)).sum())

    coef, value = start, loss(start)
    for _ in range(STEPS):
        p = torch.sigmoid(design @ coef)
        gradient = design.T @ (unit * (p - target))
        hessian = (design * (unit * p * (1 - p)).unsqueeze(1)).T @ design + 1e-10 * torch.eye(2).to(f)
        step = solve(hessian, gradient, "The calibration of probabilities")
        s = 1.0
        while s > 1e-8 and not loss(coef - s * step) < value:
            s /= 2
        if s <= 1e-8:
            break
        coef = coef - s * step
        smaller = loss(coef)
        if value - smaller <= 1e-12 * abs(value):
            break
        value = smaller
    if float(coef[0]) < 0:
        return torch.zeros_like(coef[0]), start[1]
    return coef[0] / size, coef[1]
