"""Gradient flow of the squared loss in closed form: regression that is regularised by the time at which it stops."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.results import Solution
from mercer.core.rules import Rule, is_number, is_numbers, one_of
from mercer.core.seeding import generator_from
from mercer.operators.stored import Stored
from mercer.solvers.dials import (
    EIGH_TOLERANCE,
    FLOW_FIRST,
    FLOW_HELD_OUT_FROM,
    FLOW_LAST,
    FLOW_SMALLEST,
    FLOW_TIMES,
)
from mercer.solvers.eigh import Eigh, Spectrum
from mercer.solvers.registry import register
from mercer.solvers.system import System, dense_float64, near_one, right_hand_sides
from mercer.solvers.traits import Traits

STOPS = ("auto", "held_out", "gcv")


TIME = Rule(is_number, lambda t: t >= 0, "a number >= 0, a time")
TIMES = Rule(is_numbers, lambda t: np.ndim(t) <= 1 and np.size(t) > 0, "one time, or a list of times")


def power_of(space: Any) -> int:
    """The power of K by which residuals fall where this descends."""
    one_of(*SPACES).check("space", space, False)
    return SPACES[space]


def checked_time(t: Any) -> float:
    """A time that is not negative."""
    TIME.check("t", t, False)
    return float(t)


def checked_times(t: Any) -> list[float]:
    """One time, or several."""
    TIMES.check("t", t, False)
    return [checked_time(each) for each in np.ravel(np.asarray(t, dtype=np.float64)).tolist()]


SPACES = {"function": 1, "coefficients": 2}
"""What descends, and the power of K by which residuals fall: of f itself K, of the coefficients c in f = K c K^2."""


def reached(eigenvalues: Tensor, rate: Tensor | float, cutoff: float, power: int = 1) -> Tensor:
    """(1 - exp(-rate l^power)) / l for eigenvalues l; those up to the cutoff are directions that never train: zero.

    >>> reached(torch.tensor([0.0, 2.0]).double(), math.inf, 1e-9)
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    trained = eigenvalues > cutoff
    safe = torch.where(trained, eigenvalues, 1.0)
    return torch.where(trained, -torch.expm1(-_powered(rate, safe, power)) / safe, 0.0)


def left_over(eigenvalues: Tensor, rate: Tensor | float, cutoff: float, power: int = 1) -> Tensor:
    """exp(-rate l^power), the share of each mode that is not learned yet, and one where a direction never trains.

    >>> left_over(torch.tensor([0.0, 2.0]).double(), math.inf, 1e-9)
    tensor([1., 0.], dtype=torch.float64)
    """
    trained = eigenvalues > cutoff
    return torch.where(trained, torch.exp(-_powered(rate, torch.where(trained, eigenvalues, 1.0), power)), 1.0)


def telling_rates(eigenvalues: Tensor, largest: float, power: int) -> Tensor:
    """Rates from where nothing is learned up to where all that can be is, for a largest eigenvalue > 0."""
    kept = eigenvalues[eigenvalues > FLOW_SMALLEST ** (1.0 / power) * largest]
    first, last = FLOW_FIRST / largest**power, FLOW_LAST / float(kept.min()) ** power
    return torch.logspace(math.log10(first), math.log10(last), FLOW_TIMES, dtype=torch.float64).to(eigenvalues)


def _powered(rate: Tensor | float, eigenvalues: Tensor, power: int) -> Tensor:
    for _ in range(power):
        rate = rate * eigenvalues
    return torch.as_tensor(rate)


@dataclass(frozen=True, eq=False)
class StoppingTime:
    """The times at which the flow stops, and how they were chosen.

    Attributes
    ----------
    t : Tensor
        One time for each target, (k,).
    total_weight : float
        W, that of the rows.
    criterion : str
        "given", "gcv" or "held_out".
    times, errors : Tensor or None
        The times that were tried, (T,), and for each and each target the mean squared error on rows held out or the
        error of generalised cross-validation, (T, k).
    held_out : int
        Rows held out, part after part.
    power : int
        That of K by which residuals fall, see `SPACES`.
    """

    t: Tensor
    total_weight: float
    criterion: str
    times: Tensor | None = None
    errors: Tensor | None = None
    held_out: int = 0
    power: int = 1

    @property
    def equivalent_alpha(self) -> Tensor:
        """W / (2 t), or its root for the coefficients, (k,): the ridge that acts much like stopping at t."""
        return (self.total_weight / (2.0 * self.t)) ** (1.0 / self.power)


@dataclass(frozen=True, eq=False)
class Flowing:
    """A system decomposed: the solution at any time, for right-hand sides whose parts along eigenvectors are known."""

    spectrum: Spectrum
    rhs: Tensor
    scale: Tensor
    weight: float
    power: int = 1

    @classmethod
    def of(cls, A: System, B: Tensor, weight: float | None, power: int = 1) -> Flowing:
        """The flow for B (n,) or (n, t) on rows of that total weight, by default one each."""
        spectrum = Eigh().prepare(A)
        rhs, scale = near_one(right_hand_sides(B, len(spectrum.values)).to(spectrum.vectors.device))
        return cls(spectrum, rhs, scale, float(len(rhs)) if weight is None else weight, power)

    @cached_property
    def parts(self) -> Tensor:
        """The right-hand sides along the eigenvectors."""
        return self.spectrum.vectors.T @ self.rhs

    def rate(self, t: Tensor | float) -> Tensor | float:
        """2 t / W."""
        return 2.0 * t / self.weight

    def at(self, t: Tensor | float) -> Tensor:
        """The coefficients (n, k) at one time or one for each column."""
        return self.spectrum.vectors @ (self.reached(t) * self.parts) * self.scale

    def reached(self, t: Tensor | float) -> Tensor:
        """What the coefficients along each eigenvector are multiples of the right-hand sides by, (n, 1) or (n, k)."""
        return reached(self.spectrum.values.unsqueeze(1), self.rate(t), self.spectrum.cutoff, self.power)

    def left_over(self, t: Tensor | float) -> Tensor:
        """The share of each mode that is not learned yet, (n, 1) or (n, k)."""
        return left_over(self.spectrum.values.unsqueeze(1), self.rate(t), self.spectrum.cutoff, self.power)

    def residual(self, t: Tensor | float) -> float:
        """The backward error of the coefficients at a time."""
        value = self.at(t) / self.scale
        aim = self.rhs - self.spectrum.vectors @ (self.left_over(t) * self.parts)
        return float(self.spectrum.error(value, aim, torch.zeros(value.shape[1]).to(value)).max())

    def times(self) -> Tensor:
        """Times from where nothing is learned up to where all that can be is."""
        if not self.spectrum.largest > 0:
            return self.spectrum.values.new_ones(1)
        return telling_rates(self.spectrum.values, self.spectrum.largest, self.power) * (self.weight / 2.0)

    def gcv(self, times: Tensor) -> Tensor:
        r"""The error of generalised cross-validation at each time, (T, k),

        .. math:: \frac{N \sum_i w_i r_i^2}{(N - \operatorname{tr} H)^2}, \qquad
            N - \operatorname{tr} H = N - n + \sum_j e^{-2 t \lambda_j^p / W},

        where with an intercept one more degree of freedom is used.
        """
        n, extra = len(self.rhs), max(0.0, self.weight - len(self.rhs))
        left = self.left_over(times)
        free = left.sum(0) + extra - int(self.spectrum.lift is not None)
        error = (n + extra) * (left.square().T @ self.parts.square()) / free.square().unsqueeze(1)
        return torch.where((free > FLOW_SMALLEST * n).unsqueeze(1), error, math.inf)


@dataclass(frozen=True, eq=False)
class FlowSolution(Solution):
    """A solution together with the flow it was taken from and the times at which it was."""

    flowing: Flowing = field(kw_only=True)
    stop: StoppingTime = field(kw_only=True)


@register("flow")
@dataclass(frozen=True)
class Flow:
    r"""Follow gradient flow on the squared error from zero, up to a time t, in function space

    .. math:: \dot f = -\nabla \frac{1}{W} \sum_i w_i (f(x_i) - y_i)^2, \qquad
        f_t(x) = k(x)\, U\, \frac{1 - e^{-2 t \lambda / W}}{\lambda}\, U^\top y, \qquad W = \sum_i w_i,

    with eigenvalues :math:`\lambda` and eigenvectors U of K, in closed form. There is no ridge: directions of large
    eigenvalues are learned first, and stopping at t acts much like a ridge of W / (2 t). At infinite time it is the
    interpolant of least norm. Descent in the coefficients c of f = K c instead has :math:`\lambda^2` in the exponent,
    so that small eigenvalues wait longer, and acts like a ridge of :math:`\sqrt{W / (2 t)}`.

    Parameters
    ----------
    t : float or None
        The time at which to stop, which may be infinite. None chooses one for each target.
    stop : str
        What chooses it: "held_out", the least error on rows held out, each once, of fits to the other parts, after
        which all rows are fitted up to that time; "gcv", generalised cross-validation of the fit to all rows, which
        costs nothing more. "auto" holds rows out from 50 rows on.
    folds : int
        The number of parts that are held out.
    seed : int
        Of the parts.
    space : str
        What descends: the "function", or the "coefficients" (with an intercept those of the centred kernel).
    total_weight : float or None
        The sum of the weights of the rows, which t is multiplied with; None for their number.

    References
    ----------
    Yao, Rosasco and Caponnetto, *On early stopping in gradient descent learning*, 2007; Ali, Kolter and Tibshirani,
    *A continuous-time view of early stopping for least squares*, 2019.

    Examples
    --------
    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.diag(torch.tensor([1.0, 0.5])).double())
    >>> Flow(t=math.inf).solve(A, torch.tensor([1.0, 1.0])).value
    tensor([1., 2.], dtype=torch.float64)
    """

    traits: ClassVar[Traits] = Traits(matrices=5.5, stops_early=True, path=False, ridge=False)

    t: float | None = None
    stop: str = "auto"
    folds: int = 5
    seed: int = 0
    space: str = "function"
    total_weight: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.t is not None:
            checked_time(self.t)
        if self.stop not in STOPS:
            raise InputError(f"Flow(stop={self.stop!r}): choose one of {', '.join(map(repr, STOPS))}.")
        if self.folds < 2:
            raise InputError(f"Flow(folds={self.folds!r}): give two parts at least.")
        power_of(self.space)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor = 0.0) -> FlowSolution:
        """Follow the flow for B (n,) or (n, t) up to its time; alpha is zero."""
        started = time.perf_counter()
        if bool((torch.as_tensor(alpha) != 0).any()):
            raise InputError(f"alpha={alpha}: gradient flow has no alpha; its stopping time plays that role. Pass 0.")
        n = A.shape[0]
        holds_out = self.stop == "held_out" or (self.stop == "auto" and n >= FLOW_HELD_OUT_FROM)
        flowing = Flowing.of(A, B, self.total_weight, power_of(self.space))
        tried = self._on_held_out(A, flowing) if self.t is None and holds_out else None
        stop = self._stopped(flowing, tried)
        residual = flowing.residual(stop.t)
        return FlowSolution(
            solver="flow",
            converged=residual <= max(EIGH_TOLERANCE, 10 * flowing.spectrum.precision),
            residual=residual,
            seconds=time.perf_counter() - started,
            reason=told(stop),
            value=flowing.at(stop.t).reshape(B.shape),
            flowing=flowing,
            stop=stop,
        )

    def _stopped(self, flowing: Flowing, tried: StoppingTime | None) -> StoppingTime:
        if self.t is not None:
            t = flowing.rhs.new_full((flowing.rhs.shape[1],), checked_time(self.t))
            return StoppingTime(t, flowing.weight, "given", power=flowing.power)
        if tried is not None:
            return tried
        times = flowing.times()
        errors = flowing.gcv(times)
        kept = errors.isfinite().all(1)
        kept[0] = True
        return _best(times[kept], errors[kept], flowing, "gcv")

    def _on_held_out(self, A: System, flowing: Flowing) -> StoppingTime:
        """The best times at rows held out, part after part, by the flow of the others."""
        matrix, n = dense_float64(A)[0], len(flowing.rhs)
        if n < 2:
            raise InputError("Flow(stop='held_out') needs two rows at least: use stop='gcv' or give t.")
        times, missed = flowing.times(), torch.zeros(())
        for out in torch.randperm(n, generator=generator_from(self.seed)).chunk(self.folds):
            train = torch.ones(n, dtype=torch.bool)
            train[out] = False
            train, out = train.to(matrix.device), out.to(matrix.device)
            weight, inner = flowing.weight * (1 - len(out) / n), Stored(matrix[train][:, train])
            part = Flowing.of(inner, flowing.rhs[train], weight, flowing.power)
            along, aims = matrix[out][:, train] @ part.spectrum.vectors, flowing.rhs[out] / part.scale
            errors = [(along @ (part.reached(t) * part.parts) - aims).square().sum(0) for t in times]
            missed = missed.to(aims) + torch.stack(errors) * part.scale.reshape(1, -1).square()
        best = _best(times, missed / flowing.weight, flowing, "held_out")
        return replace(best, held_out=n)


def told(stop: StoppingTime) -> str:
    """What a report says of the times.

    >>> t = torch.tensor([2.0])
    >>> told(StoppingTime(t, 10.0, "gcv"))
    't = 2 by generalised cross-validation, like a ridge of about 2.5'
    """
    rows = f"{stop.held_out:,} rows held out in parts"
    how = {"given": "as given", "gcv": "by generalised cross-validation", "held_out": f"by {rows}"}[stop.criterion]
    t, alpha = (", ".join(f"{v:.3g}" for v in part.tolist()) for part in (stop.t, stop.equivalent_alpha))
    return f"t = {t} {how}, like a ridge of about {alpha}"


def _best(times: Tensor, errors: Tensor, flowing: Flowing, criterion: str) -> StoppingTime:
    """The times of the least errors, of targets that were divided by a scale."""
    t = times[errors.argmin(0)]
    largest = torch.finfo(errors.dtype).max
    told_errors = (errors * flowing.scale.reshape(1, -1).square()).clamp(max=largest)
    return StoppingTime(t, flowing.weight, criterion, times, told_errors, power=flowing.power)
