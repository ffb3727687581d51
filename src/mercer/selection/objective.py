"""The tuning objective: the log of the leave-one-out or GCV error, with its gradient in the logs of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import MercerError
from mercer.kernels import Kernel
from mercer.kernels.columns import is_length_scale
from mercer.kernels.pair import DensePair
from mercer.operators.centred import Lift
from mercer.selection.dials import FAILED, SMALLEST_ERROR, SMALLEST_RIDGE
from mercer.selection.rows import Rows
from mercer.solvers.centring import centred
from mercer.solvers.decompose import LinAlgError
from mercer.solvers.factor import cholesky, factorise_in_place
from mercer.solvers.symmetric import add_gram


class Objective:
    r"""log E(theta) with E the mean over targets of the error relative to the variance of the target.

    With an `intercept`, A is centred and targets are less their means.

    `theta` holds the logs of the kernel's tunable parameters and, when no `alpha` is given, last the log of
    rho = alpha / tr A, which leaves the error unchanged when the kernel is scaled. With `tied`, the numbers of a vector
    keep their ratios: one entry stands for all, the log of their geometric mean. With M = A + alpha I, G = M^-1,
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
        tied: bool = False,
    ) -> None:
        self.kernel = kernel
        self.rows = rows
        self.tied = tied
        self.intercept = intercept
        self.alpha = alpha
        self.error_of = error_of
        self.parameters = kernel.tunable()
        self.logs = {path: np.log(np.atleast_1d(np.asarray(v, dtype=float))) for path, v in self.parameters.items()}
        self.variance = relative_scale(rows)
        self.best: tuple[float, np.ndarray] | None = None

    def on(self, index: Tensor | slice) -> Objective:
        """The same objective on some of the rows, with a fixed alpha scaled by their share of the weight."""
        rows = self.rows.take(index)
        alpha = None if self.alpha is None else self.alpha * (rows.total / self.rows.total)
        return Objective(self.kernel, rows, alpha, self.error_of, self.intercept, self.tied)

    def moving(self, kernel: Kernel, *, tied: bool) -> Objective:
        """The same objective for another kernel."""
        return Objective(kernel, self.rows, self.alpha, self.error_of, self.intercept, tied)

    def start(self) -> np.ndarray:
        """The logs of the kernel's own parameters."""
        values = [logs.mean(keepdims=True) if self.tied else logs for logs in self.logs.values()]
        return np.concatenate(values) if values else np.empty(0)

    @property
    def widths(self) -> np.ndarray:
        """One for each entry of theta that is a length scale, zero for the other parameters."""
        sizes = {path: 1 if self.tied else len(logs) for path, logs in self.logs.items()}
        masks = [np.full(size, float(is_length_scale(path))) for path, size in sizes.items()]
        return np.concatenate(masks) if masks else np.empty(0)

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
        except (MercerError, LinAlgError):
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
        except (MercerError, LinAlgError):
            return FAILED
        return value if np.isfinite(value) else FAILED

    def predictions(self, theta: np.ndarray, rows: Rows) -> Tensor:
        """The predictions (m, t) for other rows of the fit at theta."""
        kernel, w, t = self.kernel_at(theta), self.rows.weights, self.rows.Y.shape[1]
        A, _ = self._matrix(kernel)
        alphas = self._alphas(torch.from_numpy(np.asarray(theta, dtype=float)), A.diagonal().sum())
        y = centred(self.rows.Y, w, wanted=self.intercept)[1]
        c = torch.empty_like(y)
        for distinct in alphas.unique():
            M, columns = A.clone(), alphas == distinct
            M.diagonal().add_(distinct)
            L = cholesky(M, "The system of a kernel that is tried", "use a larger alpha")
            c[:, columns] = w.sqrt().unsqueeze(1) * torch.cholesky_solve(w.sqrt().unsqueeze(1) * y[:, columns], L)
        own = kernel.on(DensePair(self.rows.X)).to(y) @ c
        constant = (w @ (self.rows.Y - own)) / w.sum() if self.intercept else y.new_zeros(t)
        return kernel.on(DensePair(rows.X, self.rows.X)).to(y) @ c + constant

    def _alphas(self, theta: Tensor, trace: Tensor) -> Tensor:
        """The alpha of each target at theta."""
        if self.alpha is None:
            return (theta[-1].to(trace).exp() * trace).expand(self.rows.Y.shape[1])
        return torch.maximum(self.alpha.to(trace), SMALLEST_RIDGE * trace)

    def _evaluate(self, theta: np.ndarray, gradient: bool) -> tuple[float, np.ndarray]:
        logs = torch.tensor(theta, dtype=torch.float64, requires_grad=gradient)
        A, lift = self._matrix(self.kernel.replace(**self._changes(logs)))
        trace = A.diagonal().sum()
        alphas = self._alphas(logs, trace)
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
                grad_M = _between(G, q).addmm_(G @ p, x.detach().T).neg_()
                grad_A += grad_M
                grad_alphas[columns] = (direct + grad_M.diagonal().sum()) / columns.sum()
        return error, grad_A, grad_alphas

    def _changes(self, theta: Tensor) -> dict[str, Tensor]:
        changes, place = {}, 0
        for path, logs in self.logs.items():
            size = 1 if self.tied else len(logs)
            part = theta[place : place + size]
            if self.tied:
                part = part + torch.from_numpy(logs - logs.mean())
            changes[path] = part.exp() if np.ndim(self.parameters[path]) else part[0].exp()
            place += size
        return changes


def _between(G: Tensor, q: Tensor) -> Tensor:
    """G diag(q) G for a symmetric G, at half the cost where q has one sign."""
    if bool((q <= 0).all()):
        return add_gram(torch.zeros_like(G), (-q).sqrt().unsqueeze(1) * G).neg_()
    return (G * q) @ G


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
