"""Conjugate gradients for many right-hand sides at once, judged by true residuals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.data.checkpoint import Checkpoint
from mercer.solvers.dials import (
    CG_DIVERGED,
    CG_ROUNDING,
    CHECK_ACCURATELY_EVERY,
    CHECK_EVERY,
    GAIN,
    STRIKES,
)

Map = Callable[[Tensor, Tensor], Tensor]
"""A linear map of columns V (n, k); the second argument says which right-hand sides they belong to."""

Progress = Callable[[int, float], None]
"""Told the iteration and the largest relative residual."""


EPS = torch.finfo(torch.float64).eps

OF_ALL = ("best", "residual", "fate")
MATRICES = ("X", "R", "P", "previous")
VECTORS = ("columns", "rho", "fresh", "broken", "strikes", "anchor", "stretch", "goal")
"""The state of a search: of all columns, and of those that are still running."""

CONVERGED, RUNNING, STAGNATED, DIVERGING, INDEFINITE, INTERRUPTED = range(6)


@dataclass(frozen=True, eq=False)
class Iterates:
    """The best iterate found for each right-hand side, its true relative residual and how the search ended."""

    value: Tensor
    residual: Tensor
    fate: Tensor
    iterations: int


def conjugate_gradients(
    product: Map,
    B: Tensor,
    precondition: Map,
    *,
    tol: float,
    max_iter: int,
    precision: float = EPS,
    accurate: Map | None = None,
    start: Tensor | None = None,
    callback: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Iterates:
    r"""Solve M x = b for each column b of B (n, t), in float64 with products of any precision.

    Each step is an exact line search along a direction that is conjugate to the one before. Every 10 steps, and
    before a column is called converged, its residual is computed anew as b - M x and takes the place of the one
    carried along; a column whose two residuals have parted restarts from there. The best iterate is kept, and a column
    that has arrived is dropped. An interrupt from the keyboard ends the search with what it has, after one more product
    to know how good that is; a second interrupt does without.

    `precision` is the rounding error of `product`. Where a float64 version of it is given as `accurate`, that is what
    true residuals are computed with, each time a hundredth of the last one seems to be left: iterative refinement.
    A `checkpoint` keeps the state in a file, and a search that finds one goes on from there as if nothing had happened.

    References: Hestenes and Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952; van der Vorst
    and Ye, *Residual replacement strategies for Krylov subspace iterative methods*, 2000.

    >>> M, b = torch.diag(torch.tensor([1.0, 2.0, 3.0]).double()), torch.ones(3, 1).double()
    >>> found = conjugate_gradients(lambda V, _: M @ V, b, lambda R, _: R.clone(), tol=1e-10, max_iter=10)
    >>> found.iterations, found.value[:, 0].round(decimals=6)
    (3, tensor([1.0000, 0.5000, 0.3333], dtype=torch.float64))
    """
    search = _Search(product, accurate, precondition, B, tol, precision, start)
    every = CHECK_EVERY if accurate is None else CHECK_ACCURATELY_EVERY
    iterations, latest = 0, None
    saved = None if checkpoint is None else checkpoint.load()
    if saved is not None:
        iterations = saved[0]
        search.restore(saved[1])
    try:
        while len(search.columns) and iterations < max_iter:
            search.step()
            iterations += 1
            if callback is not None:
                callback(iterations, search.largest())
            if iterations % every == 0 or iterations == max_iter or search.has_to_be_checked():
                search.check()
            if checkpoint is not None:
                latest = (iterations, search.state())
                checkpoint.offer(iterations, lambda state=latest[1]: state)  # type: ignore[misc]
    except BaseException as error:
        if checkpoint is not None and latest is not None:
            checkpoint.save(*latest)
        if checkpoint is not None or not isinstance(error, KeyboardInterrupt):
            raise
        with suppress(KeyboardInterrupt):
            search.check()
        search.fate[search.columns] = INTERRUPTED
    return Iterates(search.best, search.residual, search.fate, iterations)


class _Search:
    """The state of the columns that are still running, and the best of all."""

    def __init__(
        self,
        product: Map,
        accurate: Map | None,
        precondition: Map,
        B: Tensor,
        tol: float,
        precision: float,
        start: Tensor | None,
    ) -> None:
        self.product, self.precondition, self.B, self.tol, self.precision = product, precondition, B, tol, precision
        self.judge, self.judge_precision, self.gain = product, precision, 0.0
        if accurate is not None:
            self.judge, self.judge_precision, self.gain = accurate, EPS, GAIN
        self.norm = B.norm(dim=0)
        self.best = torch.zeros_like(B)
        self.residual = (self.norm > 0).to(B)
        residual = B
        if start is not None:
            begun = B - self.judge(start, torch.arange(B.shape[1], device=B.device))
            ratio = begun.norm(dim=0) / self.norm
            better = ratio < self.residual
            self.best = torch.where(better, start, self.best)
            self.residual = torch.where(better, ratio, self.residual)
            residual = torch.where(better, begun, B)
        self.fate = torch.where(self.residual > tol, RUNNING, CONVERGED)
        self.columns = (self.fate == RUNNING).nonzero()[:, 0]
        self.X, self.R = self.best[:, self.columns], residual[:, self.columns]
        self.P, self.previous = torch.zeros_like(self.R), torch.zeros_like(self.R)
        self.rho = torch.ones_like(self.norm[self.columns])
        self.fresh = torch.ones_like(self.columns, dtype=torch.bool)
        self.broken = torch.zeros_like(self.columns)
        self.strikes = torch.zeros_like(self.columns)
        self.anchor = self.residual[self.columns]
        self.goal = (self.gain * self.anchor).clamp(min=tol)
        self.stretch = torch.zeros_like(self.anchor)  # the most that M has been seen to stretch a direction by

    def step(self) -> None:
        Z = self.precondition(self.R, self.columns)
        rho = (self.R * Z).sum(0)
        slope = (Z * (self.R - self.previous)).sum(0) / self.rho
        self.P = Z + torch.where(self.fresh, 0.0, slope.clamp(min=0.0)) * self.P
        Q = self.product(self.P, self.columns)
        curvature = (self.P * Q).sum(0)
        rounding = 100 * self.precision * self.P.norm(dim=0) * Q.norm(dim=0)
        self.stretch = torch.maximum(self.stretch, (Q.norm(dim=0) / self.P.norm(dim=0)).nan_to_num(0.0, 0.0))
        sound = (rho > 0) & (curvature > 0) & torch.isfinite(curvature)
        self.broken = torch.where(sound, 0, torch.where(curvature < -rounding, INDEFINITE, STAGNATED))
        length = torch.where(sound, (self.P * self.R).sum(0) / curvature, 0.0)
        self.previous = self.R.clone()
        self.X += length * torch.where(sound, self.P, 0.0)
        self.R -= length * torch.where(sound, Q, 0.0)
        self.rho = torch.where(sound, rho, 1.0)
        self.fresh = ~sound

    def relative(self) -> Tensor:
        result: Tensor = self.R.norm(dim=0) / self.norm[self.columns]
        return result

    def largest(self) -> float:
        finished = self.residual[self.fate == CONVERGED]
        return float(torch.cat([self.relative(), finished]).max())

    def has_to_be_checked(self) -> bool:
        """Whether no running column has anything to gain from another step, as far as the carried residuals tell."""
        return bool(((self.relative() <= self.goal) | (self.broken > 0)).all())

    def check(self) -> None:
        """Compute the true residuals, keep what is best and drop the columns that have ended."""
        true = self.B[:, self.columns] - self.judge(self.X, self.columns)
        size = true.norm(dim=0) / self.norm[self.columns]
        drift = (true - self.R).norm(dim=0) / self.norm[self.columns]
        better = size < self.residual[self.columns]
        self.best[:, self.columns[better]] = self.X[:, better]
        self.residual[self.columns[better]] = size[better]
        advanced = size < 0.5 * self.anchor
        lost = ~(drift <= 0.5 * size)
        rounding = self.judge_precision * self.stretch * self.X.norm(dim=0) / self.norm[self.columns]
        self.anchor = torch.where(advanced, size, self.anchor)
        self.strikes = torch.where(advanced, 0, self.strikes + (lost | (self.anchor <= CG_ROUNDING * rounding)))
        fate = torch.where(self.strikes >= STRIKES, STAGNATED, RUNNING)
        fate = torch.where(self.broken > 0, self.broken, fate)
        fate = torch.where(torch.isfinite(size) & (size < CG_DIVERGED), fate, DIVERGING)
        fate = torch.where(size <= self.tol, CONVERGED, fate)
        self.fate[self.columns] = fate
        self.R, self.goal = true, (self.gain * size).clamp(min=self.tol)
        self.fresh |= lost
        self._keep(fate == RUNNING)

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on."""
        return {
            name: getattr(self, name).clone(memory_format=torch.contiguous_format)
            for name in (*OF_ALL, *MATRICES, *VECTORS)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a state."""
        for name, value in state.items():
            setattr(self, name, value.to(self.B.device))

    def _keep(self, running: Tensor) -> None:
        if bool(running.all()):
            return
        kept = {name: getattr(self, name)[:, running] for name in MATRICES}
        kept |= {name: getattr(self, name)[running] for name in VECTORS}
        self.__dict__.update(kept)  # all at once: an interrupt finds either all columns or those that run on
