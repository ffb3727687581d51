"""EigenPro: stochastic gradient descent with the top of the spectrum flattened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from mercer.core.results import Solution
from mercer.core.seeding import generator_from
from mercer.solvers.dials import (
    CORE_MATRICES,
    EIGENPAIRS,
    EIGENPRO_DIVERGED,
    FEWEST_BATCHES,
    FEWEST_WATCHED,
    HELD_OUT_SHARE,
    LARGEST_BATCH,
    MOST_HELD_OUT,
    RETRIES,
    ROWS_PER_PAIR,
    SUBSAMPLE,
    WATCHED_SHARE,
)
from mercer.solvers.early_stopping import (
    NO_GAIN,
    BestSoFar,
    held_out_rows,
    held_out_words,
    largest_relative,
    relative_error,
)
from mercer.solvers.flattened import Flattened
from mercer.solvers.products import Products
from mercer.solvers.registry import register
from mercer.solvers.system import System, check_alpha, check_count, check_tol, each_alpha, right_hand_sides
from mercer.solvers.traits import Traits


@register("eigenpro")
@dataclass(frozen=True)
class EigenPro:
    r"""Approach A X = B by stochastic gradient descent in function space, preconditioned by the top eigenfunctions of
    a subsample,

    .. math:: f \leftarrow f - \gamma\, \mathcal{P} \sum_{i \in \text{batch}} (f(x_i) - y_i)\, k(x_i, \cdot), \qquad
              \mathcal{P} = I - \sum_{j \le q} \Bigl(1 - \frac{\sigma_{q+1}}{\sigma_j}\Bigr)\, \psi_j \otimes \psi_j.

    The batch size is the one up to which larger batches need fewer steps, max k_P(x, x) s / sigma_{q+1}, and the step
    follows from both: nothing is tuned. There is no ridge by default: the fit is regularised by the number of epochs,
    which rows held out decide. With alpha, it approaches (A + alpha I) X = B. The kernel rows and eigenvectors that are
    stored follow the memory budget of the operator.

    Parameters
    ----------
    max_iter : int
        Largest number of epochs, passes over the rows.
    validation : float or None
        Share of rows to hold out for early stopping, at most 5000, 0 for none; by default a tenth at alpha = 0 and none
        with a ridge. Their coefficients are zero, and the residual reported is that of the others.
    patience : int
        Epochs that did not lower the validation error by a thousandth after which to stop.
    tol : float
        Relative error at which to stop, of the rows held out or, without them, of the training rows.
    n_eigenpairs : int or None
        Q; by default up to 150 and a tenth of the subsample, as far as one epoch still learns what was flattened.
    subsample : int or None
        Rows for the eigenvectors; by default 2000, 8000 on a GPU, fewer where memory is short.
    batch_size : int or None
        By default from the spectrum, at most a tenth of the rows and 1024, 8192 on a GPU.
    seed : int
        Of the subsample, the rows held out and the batches.
    callback : callable or None
        Called with the epoch and the validation error, or the training error without validation. An interrupt from the
        keyboard ends the descent with the best iterate so far.

    References
    ----------
    Ma and Belkin, *Diving into the shallows: a computational perspective on large-scale shallow learning*,
    2017; Ma and Belkin, *Kernel machines that adapt to GPUs for effective large batch training*, 2019.

    Examples
    --------
    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = torch.exp(-torch.cdist(*2 * (torch.linspace(0, 9, 60).double().unsqueeze(1),)))
    >>> solution = EigenPro(max_iter=100, validation=0.0, tol=1e-3).solve(MatrixSystem(A), A[:, 30])
    >>> solution.converged
    True
    """

    traits: ClassVar[Traits] = Traits(iterates=True, stops_early=True)

    max_iter: int = 30
    validation: float | None = None
    patience: int = 5
    tol: float = 1e-4
    n_eigenpairs: int | None = None
    subsample: int | None = None
    batch_size: int | None = None
    seed: int = 0
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_tol("EigenPro", self.tol)
        for name in ("max_iter", "patience"):
            check_count("EigenPro", name, getattr(self, name))
        for name in ("n_eigenpairs", "subsample", "batch_size"):
            if getattr(self, name) is not None:
                check_count("EigenPro", name, getattr(self, name))

    def solve(self, A: System, B: Tensor, alpha: float | Tensor = 0.0) -> Solution:
        """Descend for B (n,) or (n, t); alpha is one number or one per column."""
        started = time.perf_counter()
        products, generator = Products.of(A), generator_from(self.seed)
        rhs = right_hand_sides(B, products.n).to(products.device)
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(products.device)
        seeded, prepared = generator.get_state(), {}

        def solve(columns: Tensor, alpha: float) -> Solution:  # a step is as long as the largest alpha allows
            share = self._share(alpha, products.n)
            if share not in prepared:
                generator.set_state(seeded)
                prepared[share] = self._prepare(products, share, generator), generator.get_state()
            rows, state = prepared[share]
            generator.set_state(state)
            return self._solve(products, columns, alpha, rows, generator)

        solution = each_alpha(solve, rhs, alphas)
        return replace(solution, seconds=time.perf_counter() - started, value=solution.value.reshape(B.shape))

    def _share(self, alpha: float, n: int) -> float:
        """Of the rows to hold out."""
        if self.validation is not None:
            return self.validation
        return HELD_OUT_SHARE if alpha == 0 and round(HELD_OUT_SHARE * n) else 0.0

    def _prepare(self, products: Products, share: float, generator: torch.Generator) -> _Rows:
        """What every alpha has in common."""
        train, held_out = (part.to(products.device) for part in held_out_rows(products.n, share, generator))
        budget = products.memory_budget
        fitting = max(ROWS_PER_PAIR, int((budget / (2 * 8 * CORE_MATRICES)) ** 0.5))
        size = min(len(train), self.subsample or min(fitting, SUBSAMPLE.get(products.device.type, SUBSAMPLE["cpu"])))
        places = torch.randperm(len(train), generator=generator)[:size].sort().values
        stored = max(1, budget // (2 * 8 * products.n))
        wanted = self.n_eigenpairs or min(EIGENPAIRS, size // ROWS_PER_PAIR, stored)
        return _Rows(train, held_out, Flattened.of(products, train[places.to(train.device)], train, wanted))

    def _solve(
        self, products: Products, rhs: Tensor, alpha: float, rows: _Rows, generator: torch.Generator
    ) -> Solution:
        train, held_out = rows.train, rows.held_out
        flattened = self._flatten(rows, products, alpha)
        critical = flattened.critical_batch(alpha, len(train))
        batch = min(self.batch_size or _usual_batch(critical, len(train), products.device), len(train))
        watched = held_out if len(held_out) else _some(train, generator)
        descent = _Descent(products, rhs, alpha, rows, watched, flattened, batch, critical)
        best, epochs, ending = self._descend(descent, generator)
        residual = descent.residual(best.value)
        return Solution(
            solver="eigenpro",
            converged=residual <= self.tol or (ending == "stopped" and best.step > 0),
            residual=residual,
            iterations=epochs,
            reason=self._account(descent, best, ending),
            value=best.value,
            missed=None if len(held_out) else rhs.new_full(rhs.shape[1:], residual),
        )

    def _flatten(self, rows: _Rows, products: Products, alpha: float) -> Flattened:
        n = len(rows.train)
        flat = rows.flattened.cut(rows.flattened.q, products, rows.train, alpha)
        while self.n_eigenpairs is None and flat.q > 1 and flat.critical_batch(alpha, n) > n:
            flat = flat.cut(3 * flat.q // 4, products, rows.train, alpha)
        return flat

    def _descend(self, descent: _Descent, generator: torch.Generator) -> tuple[BestSoFar, int, str]:
        c = torch.zeros_like(descent.rhs)
        best, retries, epoch = BestSoFar(c), 0, 0
        at_zero = descent.error_of(descent.rhs[descent.watched])
        best.offer(0, at_zero, c)
        try:
            for epoch in range(1, self.max_iter + 1):
                descent.epoch(c, generator)
                error = descent.error(c)
                if not error < EIGENPRO_DIVERGED * max(1.0, at_zero):
                    retries += 1
                    if retries > RETRIES:
                        return best, epoch, "diverged"
                    descent.shorten()
                    c = best.value.clone()
                    continue
                best.offer(epoch, error, c)
                if self.callback is not None:
                    self.callback(epoch, error)
                if error <= self.tol and (descent.held_out or descent.residual(c) <= self.tol):
                    return best, epoch, "arrived"
                if descent.held_out and epoch - best.progress >= self.patience:
                    return best, epoch, "stopped"
        except KeyboardInterrupt:
            return best, epoch, "interrupted"
        return best, epoch, "spent"

    def _account(self, descent: _Descent, best: BestSoFar, ending: str) -> str:
        words = f"batches of {descent.batch}, {descent.flattened.q} eigenpairs, best after {best.step} epochs"
        if descent.held_out:
            words += f" with validation error {best.error:.3g}" if best.step else f": {NO_GAIN}"
            words += f"; {held_out_words(descent.held_out)}"
        return words + {
            "diverged": "; the errors grew with every step tried",
            "spent": f"; stopped after max_iter={self.max_iter} epochs; increase max_iter to fit more closely",
            "interrupted": "; interrupted, this is the best iterate so far",
        }.get(ending, "")


def _usual_batch(critical: float, n: int, device: torch.device) -> int:
    return max(1, min(int(critical), n // FEWEST_BATCHES, LARGEST_BATCH.get(device.type, LARGEST_BATCH["cpu"])))


def _some(train: Tensor, generator: torch.Generator) -> Tensor:
    """Training rows to watch the error on when none are held out: all of a few, some of many."""
    count = max(FEWEST_WATCHED, min(int(WATCHED_SHARE * len(train)), MOST_HELD_OUT))
    return train[torch.randperm(len(train), generator=generator)[:count].to(train.device)]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Training rows, those held out, and the spectrum of a subsample."""

    train: Tensor
    held_out: Tensor
    flattened: Flattened


class _Descent:
    """The data of one descent, and its step."""

    def __init__(
        self,
        products: Products,
        rhs: Tensor,
        alpha: float,
        rows: _Rows,
        watched: Tensor,
        flattened: Flattened,
        batch: int,
        critical: float,
    ) -> None:
        self.products, self.rhs, self.alpha, self.watched = products, rhs, alpha, watched
        self.train, self.held_out = rows.train, len(rows.held_out)
        self.flattened, self.batch = flattened, batch
        peak = flattened.peak + alpha
        together = 1.0 if batch <= critical else (1.0 + (batch - 1) / critical) / 2
        self.step = 1.0 / (peak * together) if peak > 0 else 0.0

    def epoch(self, c: Tensor, generator: torch.Generator) -> None:
        """One pass over the training rows, which changes c."""
        order = self.train[torch.randperm(len(self.train), generator=generator).to(self.train.device)]
        for batch in order.split(self.batch):
            g = self.products.rows_matmul(batch, c) + self.alpha * c[batch] - self.rhs[batch]
            c[batch] -= self.step * g
            c[self.flattened.rows] += self.step * self.flattened.correction(batch, g)

    def error(self, c: Tensor) -> float:
        """The relative error of the rows watched."""
        fit = self.products.rows_matmul(self.watched, c) + self.alpha * c[self.watched]
        return self.error_of(self.rhs[self.watched] - fit)

    def error_of(self, residual: Tensor) -> float:
        """Of all targets together on rows held out, of the worst on rows that are learned."""
        if self.held_out:
            return relative_error(residual, self.rhs)
        return largest_relative(residual, self.rhs[self.watched])

    def residual(self, c: Tensor) -> float:
        """The relative residual of the training rows, the largest over targets."""
        left = self.rhs - self.products.matmul(c) - self.alpha * c
        return largest_relative(left[self.train], self.rhs[self.train])

    def shorten(self) -> None:
        self.step /= 2
