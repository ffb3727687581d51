"""The tuning objective: the log of the leave-one-out or GCV error, with its gradient in the logs of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import MercerError
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.centred import Lift
from mercer.selection.rows import Rows
from mercer.solvers.centring import centred
from mercer.solvers.factor import factorise_in_place

FAILED = 50.0
"""The value where the error cannot be computed: worse than any log error that can."""

SMALLEST_ERROR = 1e-30
"""Relative errors below this are zero, as for targets that are all zero."""

SMALLEST_RIDGE = 1e-12
"""Alphas below this share of the trace of A are lost to rounding; a fixed smaller one is replaced by it."""


class Objective:
    r"""log E(theta) with E the mean over targets of the error relative to the variance of the target.

    With an `intercept`, A is centred and targets are less their means.

    `theta` holds the logs of the kernel's tunable parameters and, when no `alpha` is given, last the log of
    rho = alpha / tr A, which leaves the error unchanged when the kernel is scaled. With M = A + alpha I, G = M^-1,
    x = G b, and p, q the derivatives of E in x and in diag G,

    .. math:: \frac{\partial E}{\partial M} = -(G p) x^T - G \operatorname{diag}(q) G,

    and autograd carries that through the kernel to the parameters.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 5.4.2.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        alpha: Tensor | None,
        error_of: Callable[..., Tensor],
        intercept: bool = False,
    ) -> None:
        self.kernel = kernel
        self.rows = rows
        self.intercept = intercept
        self.alpha = alpha
        self.error_of = error_of
        self.parameters = kernel.tunable()
        self.variance = relative_scale(rows)
        self.best: tuple[float, np.ndarray] | None = None

    def on_first(self, n: int) -> Objective:
        """The same objective on the first n rows, with a fixed alpha scaled by their share of the weight."""
        rows = self.rows.take(slice(n))
        alpha = None if self.alpha is None else self.alpha * (rows.total / self.rows.total)
        return Objective(self.kernel, rows, alpha, self.error_of, self.intercept)

    def start(self) -> np.ndarray:
        """The logs of the kernel's own parameters."""
        values = [np.atleast_1d(np.log(np.asarray(v, dtype=np.float64))) for v in self.parameters.values()]
        return np.concatenate(values) if values else np.empty(0)

    def kernel_at(self, theta: np.ndarray) -> Kernel:
        """The kernel with parameters exp(theta), as floats and tuples."""
        changes = self._changes(torch.from_numpy(np.asarray(theta, dtype=np.float64)))
        return self.kernel.replace(**{path: _plain(value) for path, value in changes.items()})

    def ridge_at(self, theta: np.ndarray) -> float:
        """The alpha that theta stands for, on these rows, when alpha is free."""
        return float(np.exp(theta[-1]) * self._matrix(self.kernel_at(theta))[0].diagonal().sum())

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient at theta; `FAILED` and a zero gradient where there is none."""
        try:
            value, gradient = self._evaluate(theta, gradient=True)
        except (MercerError, torch.linalg.LinAlgError):
            value, gradient = np.nan, np.zeros_like(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return FAILED, np.zeros_like(theta)
        if self.best is None or value < self.best[0]:
            self.best = (value, np.array(theta))
        return value, gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone, at a third of the cost."""
        try:
            value, _ = self._evaluate(theta, gradient=False)
        except (MercerError, torch.linalg.LinAlgError):
            return FAILED
        return value if np.isfinite(value) else FAILED

    def _evaluate(self, theta: np.ndarray, gradient: bool) -> tuple[float, np.ndarray]:
        logs = torch.tensor(theta, dtype=torch.float64, requires_grad=gradient)
        A, lift = self._matrix(self.kernel.replace(**self._changes(logs)))
        trace = A.diagonal().sum()
        if self.alpha is None:
            alphas = (logs[-1].to(trace).exp() * trace).expand(self.rows.Y.shape[1])
        else:
            alphas = torch.maximum(self.alpha.to(trace), SMALLEST_RIDGE * trace)
        error, grad_A, grad_alphas = self._error(A.detach(), alphas.detach(), gradient, lift)
        value = float(np.log(np.maximum(error, SMALLEST_ERROR)))
        pairs = [(t, g) for t, g in ((A, grad_A), (alphas, grad_alphas)) if t.requires_grad]
        if not (pairs and error > SMALLEST_ERROR):
            return value, np.zeros_like(theta)
        torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])
        slope = torch.zeros_like(logs) if logs.grad is None else logs.grad
        return value, (slope / error).numpy()

    def _matrix(self, kernel: Kernel) -> tuple[Tensor, Lift | None]:
        """A, with an intercept centred and lifted along the roots of the weights."""
        A = weighted_gram(kernel, self.rows)
        if not self.intercept:
            return A, None
        s = self.rows.weights.sqrt()
        lift = Lift(s / s.norm(), float(A.detach().diagonal().mean()))
        means = A @ lift.u
        half = means - 0.5 * (lift.u @ means + lift.level) * lift.u
        return A - torch.outer(lift.u, half) - torch.outer(half, lift.u), lift

    def _error(self, A: Tensor, alphas: Tensor, gradient: bool, lift: Lift | None) -> tuple[float, Tensor, Tensor]:
        """E and its derivatives in A and in each target's alpha; E is NaN where a factorisation fails."""
        w, t = self.rows.weights, len(alphas)
        b = w.sqrt().unsqueeze(1) * centred(self.rows.Y, w, wanted=self.intercept)[1]
        error, grad_A, grad_alphas = 0.0, torch.zeros_like(A), torch.zeros_like(alphas)
        for distinct in alphas.unique():
            columns = alphas == distinct
            M = A.clone()
            M.diagonal().add_(distinct)
            if not factorise_in_place(M):
                return float("nan"), grad_A, grad_alphas
            L = M.mT
            half = torch.linalg.solve_triangular(L, b[:, columns], upper=False)
            x = torch.linalg.solve_triangular(L.mT, half, upper=True).requires_grad_(gradient)
            G = torch.cholesky_inverse(L)
            diagonal = G.diagonal().clone().requires_grad_(gradient)
            alpha = distinct.clone().requires_grad_(gradient)
            inverse = diagonal if lift is None else diagonal - lift.u.square() / (lift.level + alpha)
            part = (self.error_of(x, inverse, alpha, w) / self.variance[columns]).sum() / t
            error += float(part.detach())
            if gradient:
                p, q, direct = torch.autograd.grad(part, [x, diagonal, alpha])
                grad_M = torch.addmm((G @ p) @ x.detach().T, G * q, G).neg_()
                grad_A += grad_M
                grad_alphas[columns] = (direct + grad_M.diagonal().sum()) / columns.sum()
        return error, grad_A, grad_alphas

    def _changes(self, logs: Tensor) -> dict[str, Tensor]:
        changes, place = {}, 0
        for path, value in self.parameters.items():
            if np.ndim(value) == 0:
                changes[path] = logs[place].exp()
                place += 1
            else:
                changes[path] = logs[place : place + len(value)].exp()
                place += len(value)
        return changes


def weighted_gram(kernel: Kernel, rows: Rows) -> Tensor:
    """S K S with S = diag(sqrt w), with gradients to the kernel's parameters."""
    s = rows.weights.sqrt()
    return s.unsqueeze(1) * kernel.on(DensePair(rows.X)).to(rows.Y) * s


def relative_scale(rows: Rows) -> Tensor:
    """The weighted variance of each target; for a constant its mean square, and one for zero."""
    w = rows.weights / rows.weights.sum()
    mean_square = w @ rows.Y.square()
    variance = w @ (rows.Y - w @ rows.Y).square()
    scale = torch.where(variance > 1e-24 * mean_square, variance, mean_square)
    return torch.where(scale > 0, scale, 1.0)


def _plain(value: Tensor) -> Any:
    return float(value) if value.ndim == 0 else tuple(value.tolist())
