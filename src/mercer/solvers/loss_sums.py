"""Sums of losses over rows that are read in parts: all that a search for the best function has to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.data.engines import Arrays
from mercer.losses import Loss
from mercer.solvers.dials import STEP_SHARES
from mercer.solvers.dual import Smoothed
from mercer.solvers.few_span import factor_with_jitter
from mercer.solvers.objective import Objective
from mercer.solvers.row_blocks import Block
from mercer.solvers.symmetric import add_gram


@dataclass(frozen=True)
class Aim:
    """A problem for some columns: what its predictions are to be near to.

    `column` is that of the targets, `outputs` the number of predictions: more than one for a joint loss alone.
    """

    loss: Loss
    alpha: float
    intercept: bool
    column: int = 0
    outputs: int = 1

    def objective(self, targets: Tensor, weights: Tensor | None) -> Objective:
        """The problem for some rows."""
        y = targets[:, self.column]
        y = y if self.loss.joint else y.unsqueeze(1)
        return Objective(self.loss, y, self.alpha, weights, self.intercept, self.outputs)


class Trial(Protocol):
    """A point of a search, u (r, k) in orthonormal coordinates and the intercepts b (k,), and what is asked of it."""

    @property
    def columns(self) -> Tensor:
        """The coordinates (r, q) of all functions whose values the question needs."""

    def sums(self, aim: Objective, f: Tensor, features: Any) -> tuple[Tensor, Arrays]:
        """Right-hand sides (rows, p) to be multiplied by the features, and sums; from the values f (rows, q)."""

    def answer(self, cross: Tensor, sums: Arrays) -> Arrays:
        """What the search is told, from sums over all rows; `cross` (r, p) are those with features."""

    @property
    def aim(self) -> Aim: ...

    @property
    def rights(self) -> int:
        """The number p of right-hand sides."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """Asks for the objective and its gradient."""

    aim: Aim
    u: Tensor
    b: Tensor

    @property
    def columns(self) -> Tensor:
        return self.u

    @property
    def rights(self) -> int:
        return self.u.shape[1]

    def sums(self, objective: Objective, f: Tensor, features: Any) -> tuple[Tensor, Arrays]:
        f = f + self.b.to(f)
        losses, gradient = objective.look(f)
        return gradient, {"loss": losses.sum().reshape(1), "slope": gradient.sum(0)}

    def answer(self, cross: Tensor, sums: Arrays) -> Arrays:
        alpha = self.aim.alpha
        value = sums["loss"] + alpha * self.u.square().sum()
        return {"value": value, "uphill": cross + 2 * alpha * self.u, "slope": sums["slope"]}


@dataclass(frozen=True, eq=False)
class Round:
    """A round of the proximal point method that has ended: its function, and how wide kinks were rounded."""

    u: Tensor
    b: Tensor
    width: float


@dataclass(frozen=True, eq=False)
class Kinks:
    r"""Asks for a Newton step where kinks are rounded around the dual variables of the rounds before, and for the gap.

    `start` is where the step to this point began: the objective is found at parts of the way, too.

    No row has a state: its dual variable is a function of its values in all rounds, which are found again together.
    The dual variables c may not add up to zero as an intercept asks; scaled by s where they are positive and by s'
    where negative they do, and the dual objective is then at least

    .. math:: \alpha \Bigl(2 s \sum_{c_i > 0} q_i(c_i) + 2 s' \sum_{c_i < 0} q_i(c_i) - |\Phi^T c|^2\Bigr),

    because each q is concave with q(0) = 0.
    """

    aim: Aim
    u: Tensor
    b: Tensor
    width: float
    rounds: tuple[Round, ...] = ()
    start: tuple[Tensor, Tensor] | None = None

    @property
    def columns(self) -> Tensor:
        return torch.cat([*[r.u for r in self.rounds], self._start[0], self.u], dim=1)

    @property
    def _start(self) -> tuple[Tensor, Tensor]:
        return (self.u, self.b) if self.start is None else self.start

    @property
    def rights(self) -> int:
        return 3

    @property
    def shares(self) -> tuple[float, ...]:
        """The parts of the way from `start` at which the objective is wanted, all of it first."""
        return (1.0,) if self.start is None else STEP_SHARES

    def sums(self, objective: Objective, f: Tensor, features: Any) -> tuple[Tensor, Arrays]:
        f = f + torch.cat([*[r.b for r in self.rounds], self._start[1], self.b]).to(f)
        before, own = f[:, -2:-1], f[:, -1:]
        smooth = Smoothed.of(objective, self.width, None)
        widths = [*[r.width for r in self.rounds], self.width]
        for i, (width, after) in enumerate(pairwise(widths)):
            smooth = replace(replace(smooth, delta=width).moved(None, f[:, i : i + 1]), delta=after)
        smoothed = replace(objective, loss=smooth)
        dual = smooth.multipliers(own)
        linear = smooth.linear(dual)
        h = (smooth.hessian(objective.targets, own) * objective.w)[:, 0]
        near = h > 0
        phi = features(near)
        gram = add_gram(phi.new_zeros(phi.shape[1], phi.shape[1]), phi * h[near].sqrt().unsqueeze(1))
        up, down = dual.clamp(min=0.0), (-dual).clamp(min=0.0)
        found = {
            "loss": objective.losses(own).sum(),
            "positive": linear[dual > 0].sum(),
            "negative": linear[dual < 0].sum(),
            "up": up.sum(),
            "down": down.sum(),
            "bend": h.sum(),
        }
        sums = {name: value.reshape(1) for name, value in found.items()}
        sums["smooth"] = torch.stack([smoothed.losses(before + s * (own - before)).sum() for s in self.shares])
        return torch.cat([up, down, h.unsqueeze(1)], dim=1), sums | {"gram": gram}

    def answer(self, cross: Tensor, sums: Arrays) -> Arrays:
        alpha = self.aim.alpha
        up, down, tilt = cross.split(1, dim=1)
        square = self.u.square().sum()
        uphill = 2 * alpha * (self.u - up + down)
        slope = 2 * alpha * (sums["down"] - sums["up"])
        system = sums["gram"].clone()
        system.diagonal().add_(2 * alpha)
        L = factor_with_jitter(system, alpha)
        plain, bent = torch.cholesky_solve(torch.cat([-uphill, tilt], dim=1), L).split(1, dim=1)
        shift = torch.zeros_like(self.b)
        if self.aim.intercept:
            curvature = sums["bend"] - (tilt * bent).sum()
            if float(curvature) > 1e-13 * float(sums["bend"]):
                shift = (-slope - (tilt * plain).sum()) / curvature
        step = plain - bent * shift
        promised = -((uphill * step).sum() + slope * shift * self.aim.intercept) / 2
        positive, negative = sums["positive"], sums["negative"]
        if self.aim.intercept:
            least = torch.minimum(sums["up"], sums["down"])
            share, other = (torch.where(s > 0, least / s.clamp(min=1e-300), 0.0) for s in (sums["up"], sums["down"]))
            up, down, positive, negative = up * share, down * other, positive * share, negative * other
        bound = alpha * (2 * (positive + negative) - (up - down).square().sum())
        begun = self._start[0]
        squares = torch.stack([(begun + s * (self.u - begun)).square().sum() for s in self.shares])
        value, primal = sums["smooth"] + alpha * squares, sums["loss"] + alpha * square
        told = {"value": value, "primal": primal, "bound": bound, "promised": promised.reshape(1)}
        return told | {"step": step, "shift": shift}


def sums_at(blocks: Iterable[Block], trials: Sequence[Trial], basis: Tensor) -> Arrays:
    """What all trials ask of the rows: a sum over rows, with one product of kernel values for each way."""
    found: Arrays = {}
    columns = [trial.columns for trial in trials]
    widths, coef = [c.shape[1] for c in columns], basis @ torch.cat(columns, dim=1).to(basis)
    for block in blocks:
        for K, y, w in block.parts():
            K = K.to(basis)
            y, w = y.to(basis), None if w is None else w.to(basis)
            rights = []
            for i, (trial, f) in enumerate(zip(trials, (K @ coef).split(widths, dim=1), strict=True)):
                right, sums = trial.sums(
                    trial.aim.objective(y, w), f, lambda some, K=K: (K if bool(some.all()) else K[some]) @ basis
                )
                rights.append(right)
                for name, value in sums.items():
                    key = f"{i}/{name}"
                    found[key] = found[key] + value if key in found else value
            cross = K.mT @ torch.cat(rights, dim=1)
            found["cross"] = found["cross"] + cross if "cross" in found else cross
    return found


def answers_of(trials: Sequence[Trial], found: Arrays, basis: Tensor) -> Arrays:
    """The answers to all trials, with their numbers before the names."""
    crosses = (basis.mT @ found["cross"]).split([trial.rights for trial in trials], dim=1)
    answers: Arrays = {}
    for i, (trial, cross) in enumerate(zip(trials, crosses, strict=True)):
        own = {name.split("/", 1)[1]: value for name, value in found.items() if name.startswith(f"{i}/")}
        answers |= {f"{i}/{name}": value for name, value in trial.answer(cross, own).items()}
    return answers
