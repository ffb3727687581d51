"""EigenPro: stochastic gradient descent with the top of the spectrum flattened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.operators.base import PART_NUMBERS
from mercer.solvers.early_stopping import MOST_HELD_OUT, NO_GAIN, BestSoFar, held_out_rows, relative_error
from mercer.solvers.products import Products, generator_from
from mercer.solvers.system import System, check_alpha, each_alpha, right_hand_sides

SUBSAMPLE = {"cpu": 2000, "cuda": 8000}
EIGENPAIRS = 150
ROWS_PER_PAIR = 10
LARGEST_BATCH = {"cpu": 1024, "cuda": 8192}
FEWEST_BATCHES = 10
RETRIES = 5  # times that a step found too long is halved
DIVERGED = 2.0  # times the error of the function that is zero
WATCHED_SHARE, FEWEST_WATCHED = 0.1, 1000


@dataclass(frozen=True)
class EigenPro:
    r"""Approach A X = B by stochastic gradient descent in function space, preconditioned by the top eigenfunctions of
    a subsample,

    .. math:: f \leftarrow f - \gamma\, \mathcal{P} \sum_{i \in \text{batch}} (f(x_i) - y_i)\, k(x_i, \cdot), \qquad
              \mathcal{P} = I - \sum_{j \le q} \Bigl(1 - \frac{\sigma_{q+1}}{\sigma_j}\Bigr)\, \psi_j \otimes \psi_j.

    The batch size is the one up to which larger batches need fewer steps, max k_P(x, x) s / sigma_{q+1}, and the step
    follows from both: nothing is tuned. There is no ridge by default: the fit is regularised by the number of epochs,
    which rows held out decide. With alpha, it approaches (A + alpha I) X = B.

    Parameters
    ----------
    max_iter : largest number of epochs, passes over the rows.
    validation : share of rows to hold out for early stopping, at most 5000; their coefficients are zero. 0 for none.
    patience : epochs that did not lower the validation error by a thousandth after which to stop.
    tol : relative error at which to stop, of the rows held out or, without them, of the training rows.
    n_eigenpairs : q; by default up to 150 and a tenth of the subsample, as far as one epoch still learns what was
        flattened.
    subsample : rows for the eigenvectors; by default 2000, 8000 on a GPU.
    batch_size : by default from the spectrum, at most a tenth of the rows and 1024, 8192 on a GPU.
    seed : of the subsample, the rows held out and the batches.
    callback : called with the epoch and the validation error, or the training error without validation. An interrupt
        from the keyboard ends the descent with the best iterate so far.

    References: Ma and Belkin, *Diving into the shallows: a computational perspective on large-scale shallow learning*,
    2017; Ma and Belkin, *Kernel machines that adapt to GPUs for effective large batch training*, 2019.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = torch.exp(-torch.cdist(*2 * (torch.linspace(0, 9, 60).double().unsqueeze(1),)))
    >>> solution = EigenPro(max_iter=100, validation=0.0, tol=1e-3).solve(MatrixSystem(A), A[:, 30])
    >>> solution.converged
    True
    """

    max_iter: int = 30
    validation: float = 0.1
    patience: int = 5
    tol: float = 1e-4
    n_eigenpairs: int | None = None
    subsample: int | None = None
    batch_size: int | None = None
    seed: int = 0
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("max_iter", "patience", "n_eigenpairs", "subsample", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"EigenPro({name}={value}): must be at least 1.")
        if not 0 < self.tol < 1:
            raise InputError(f"EigenPro(tol={self.tol}): must be a number > 0 and < 1.")

    def solve(self, A: System, B: Tensor, alpha: float | Tensor = 0.0) -> Solution:
        """Descend for B (n,) or (n, t); alpha is one number or one per column."""
        started = time.perf_counter()
        products, generator = Products.of(A), generator_from(self.seed)
        rhs = right_hand_sides(B, products.n).to(products.device)
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(products.device)
        if len(alphas.unique()) > 1:  # a step is as long as the largest alpha allows
            solution = each_alpha(lambda columns, one: self.solve(A, columns, one), rhs, alphas)
            return replace(solution, value=solution.value.reshape(B.shape))
        train, held_out = (part.to(products.device) for part in held_out_rows(products.n, self.validation, generator))
        flattened = self._flatten(products, train, float(alphas.max()), generator)
        critical = flattened.critical_batch(float(alphas.max()), len(train))
        batch = min(self.batch_size or _usual_batch(critical, len(train), products.device), len(train))
        watched = held_out if len(held_out) else _some(train, generator)
        descent = _Descent(products, rhs, alphas, train, watched, flattened, batch, critical)
        best, epochs, ending = self._descend(descent, generator)
        residual = relative_error(descent.residual(best.value)[train], rhs[train])
        return Solution(
            solver="eigenpro",
            converged=residual <= self.tol or (ending == "stopped" and best.step > 0),
            residual=residual,
            iterations=epochs,
            seconds=time.perf_counter() - started,
            reason=self._account(descent, best, ending),
            value=best.value.reshape(B.shape),
        )

    def _flatten(self, products: Products, train: Tensor, alpha: float, generator: torch.Generator) -> Flattened:
        size = min(len(train), self.subsample or SUBSAMPLE.get(products.device.type, SUBSAMPLE["cpu"]))
        places = torch.randperm(len(train), generator=generator)[:size].sort().values
        wanted = self.n_eigenpairs or min(EIGENPAIRS, size // ROWS_PER_PAIR)
        flat = Flattened.of(products, train[places.to(train.device)], train, wanted, alpha)
        while self.n_eigenpairs is None and flat.q > 1 and flat.critical_batch(alpha, len(train)) > len(train):
            flat = flat.cut(3 * flat.q // 4, products, train, alpha)
        return flat

    def _descend(self, descent: _Descent, generator: torch.Generator) -> tuple[BestSoFar, int, str]:
        c = torch.zeros_like(descent.rhs)
        best, retries, epoch = BestSoFar(c), 0, 0
        at_zero = relative_error(descent.rhs[descent.watched], descent.rhs)
        best.offer(0, at_zero, c)
        try:
            for epoch in range(1, self.max_iter + 1):
                descent.epoch(c, generator)
                error = descent.error(c)
                if not error < DIVERGED * max(1.0, at_zero):
                    retries += 1
                    if retries > RETRIES:
                        return best, epoch, "diverged"
                    descent.shorten()
                    c = best.value.clone()
                    continue
                best.offer(epoch, error, c)
                if self.callback is not None:
                    self.callback(epoch, error)
                if error <= self.tol:
                    return best, epoch, "arrived"
                if self.validation and epoch - best.progress >= self.patience:
                    return best, epoch, "stopped"
        except KeyboardInterrupt:
            return best, epoch, "interrupted"
        return best, epoch, "spent"

    def _account(self, descent: _Descent, best: BestSoFar, ending: str) -> str:
        words = f"batches of {descent.batch}, {descent.flattened.q} eigenpairs, best after {best.step} epochs"
        if self.validation:
            words += f" with validation error {best.error:.3g}" if best.step else f": {NO_GAIN}"
        return words + {
            "diverged": "; the errors grew with every step tried",
            "spent": f"; max_iter={self.max_iter} is spent: raise it to fit more closely",
            "interrupted": "; interrupted, this is the best iterate so far",
        }.get(ending, "")


@dataclass(frozen=True, eq=False)
class Flattened:
    r"""The kernel with its q top eigenvalues brought down to the next one, from a subsample S of s rows,

    .. math:: k_P(x, z) = k(x, z) - \sum_j \Bigl(1 - \frac{\sigma_{q+1}}{\sigma_j}\Bigr) \psi_j(x)\, \psi_j(z), \qquad
              \psi_j = \sigma_j^{-1/2} \sum_{i \in S} v_{ij}\, k(x_i, \cdot).

    With a ridge it is sigma + alpha s/n that is brought down. `peak` is the largest k_P(x, x) and `slope` its largest
    eigenvalue divided by the number of rows.
    """

    rows: Tensor
    values: Tensor  # (q + 1,)
    vectors: Tensor
    images: Tensor  # (q, n): the kernel rows of S in the basis of the eigenvectors
    damping: Tensor
    peak: float
    slope: float

    @classmethod
    def of(cls, products: Products, rows: Tensor, train: Tensor, q: int, alpha: float = 0.0) -> Flattened:
        core = torch.cat([products.rows(part)[:, rows] for part in rows.split(max(1, PART_NUMBERS // products.n))])
        values, vectors = torch.linalg.eigh((core + core.T) / 2)
        values, vectors = values.flip(0), vectors.flip(1)
        if float(values[-1]) < -(products.precision**0.5) * float(values[0].clamp(min=0.0)):
            raise NotPositiveDefiniteError(
                f"The Gram matrix of {len(rows)} rows has the eigenvalue {float(values[-1]):.3g}: the kernel is not "
                "positive semi-definite. Test it with mercer.testing.check_kernel."
            )
        floor = len(rows) * products.precision * float(values[0].clamp(min=0.0))
        q = max(0, min(q, int((values > floor).sum()) - 1))
        values, vectors = values[: q + 1].clamp(min=floor), vectors[:, :q]
        images = torch.zeros(q, products.n, dtype=torch.float64, device=products.device)
        for part in torch.arange(len(rows), device=rows.device).split(max(1, PART_NUMBERS // products.n)):
            images.addmm_(vectors[part].T, products.rows(rows[part]))
        return cls(rows, values, vectors, images, torch.empty(0), 0.0, 0.0).cut(q, products, train, alpha)

    def cut(self, q: int, products: Products, train: Tensor, alpha: float) -> Flattened:
        """The same with the first q eigenpairs alone."""
        top, following, images = self.values[:q], float(self.values[q]), self.images[:q]
        ridge = alpha * len(self.rows) / len(train)
        damping = (1.0 - (following + ridge) / (top + ridge)) / top
        left = products.diag - (damping.unsqueeze(1) * images.square()).sum(0)
        peak, slope = float(left[train].max()), following / len(self.rows)
        return Flattened(self.rows, self.values[: q + 1], self.vectors[:, :q], images, damping, peak, slope)

    @property
    def q(self) -> int:
        return len(self.values) - 1

    def critical_batch(self, alpha: float, n: int) -> float:
        """The batch size up to which twice the batch needs half the steps."""
        steepest = self.slope + alpha / n
        return (self.peak + alpha) / steepest if steepest > 0 else float(n)

    def correction(self, batch: Tensor, g: Tensor) -> Tensor:
        """What a step along sum_i g_i k(x_i, .) over the batch is too long by, as coefficients of the subsample."""
        return self.vectors @ (self.damping.unsqueeze(1) * (self.images[:, batch] @ g))


def _usual_batch(critical: float, n: int, device: torch.device) -> int:
    return max(1, min(int(critical), n // FEWEST_BATCHES, LARGEST_BATCH.get(device.type, LARGEST_BATCH["cpu"])))


def _some(train: Tensor, generator: torch.Generator) -> Tensor:
    """Training rows to watch the error on when none are held out: all of a few, some of many."""
    count = max(FEWEST_WATCHED, min(int(WATCHED_SHARE * len(train)), MOST_HELD_OUT))
    return train[torch.randperm(len(train), generator=generator)[:count].to(train.device)]


class _Descent:
    """The data of one descent, and its step."""

    def __init__(
        self,
        products: Products,
        rhs: Tensor,
        alphas: Tensor,
        train: Tensor,
        watched: Tensor,
        flattened: Flattened,
        batch: int,
        critical: float,
    ) -> None:
        self.products, self.rhs, self.alphas, self.train, self.watched = products, rhs, alphas, train, watched
        self.flattened, self.batch = flattened, batch
        peak = flattened.peak + float(alphas.max())
        together = 1.0 if batch <= critical else (1.0 + (batch - 1) / critical) / 2
        self.step = 1.0 / (peak * together) if peak > 0 else 0.0

    def epoch(self, c: Tensor, generator: torch.Generator) -> None:
        """One pass over the training rows, which changes c."""
        order = self.train[torch.randperm(len(self.train), generator=generator).to(self.train.device)]
        for batch in order.split(self.batch):
            g = self.products.rows_matmul(batch, c) + self.alphas * c[batch] - self.rhs[batch]
            c[batch] -= self.step * g
            c[self.flattened.rows] += self.step * self.flattened.correction(batch, g)

    def error(self, c: Tensor) -> float:
        """The relative error of the rows watched."""
        fit = self.products.rows_matmul(self.watched, c) + self.alphas * c[self.watched]
        return relative_error(self.rhs[self.watched] - fit, self.rhs)

    def residual(self, c: Tensor) -> Tensor:
        return self.rhs - self.products.matmul(c) - self.alphas * c

    def shorten(self) -> None:
        self.step /= 2
