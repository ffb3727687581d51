"""Gradient flow of a squared loss with a fixed kernel, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import restore
from mercer.core.errors import InputError
from mercer.core.values import as_values
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.neural.dials import NULL
from mercer.solvers.decompose import eigh
from mercer.solvers.flow import checked_time, checked_times, left_over, power_of, reached, telling_rates


@dataclass(frozen=True, eq=False)
class GradientFlow:
    r"""The function that gradient flow on :math:`\|f - y\|^2 / n` reaches at time t, with a kernel H:

    .. math:: f_t(x) = f_0(x) - h(x)\, U\, \frac{1 - e^{-2 t \lambda / n}}{\lambda}\, U^\top (f_0 - y).

    Modes of large eigenvalues train first. At infinite time it is ridgeless regression. Where the coefficients of
    f = K c descend instead of f, the exponent has :math:`\lambda^2`.

    Attributes
    ----------
    eigenvalues : Tensor
        Of H at the training rows, ascending.
    table : list of dict
        Times from where nothing is learned up to where all that can be is, with the `loss` |f_t - y|^2 / n, a mean over
        targets, and the number of `modes` of which at most 1 / e is left.
    """

    kernel: Kernel
    X: Any = field(repr=False)
    eigenvalues: Tensor = field(repr=False)
    vectors: Tensor = field(repr=False)
    gaps: Tensor = field(repr=False)
    start: Any = None
    space: str = "function"

    def predict(self, X: Any, t: Any = math.inf) -> Any:
        """f_t at the rows of X; a list of times adds a first dimension."""
        h = torch.as_tensor(self.kernel(X, self.X)).to(self.vectors)
        parts, power = self.vectors.T @ self.gaps, power_of(self.space)
        rates = [self._rate(each) for each in checked_times(t)]
        learned = torch.stack([reached(self.eigenvalues, rate, self._cutoff, power) for rate in rates])
        change = h @ (self.vectors @ (learned.unsqueeze(2) * parts))
        value = (0.0 if self.start is None else _values(self.start, X, change[0])) - change
        value = value.squeeze(2) if self.gaps.shape[1] == 1 else value
        return restore(value if np.ndim(t) else value[0], X)

    def residual(self, t: float) -> Tensor:
        """|f_t - y|^2 / n at the training rows, for each target."""
        left = left_over(self.eigenvalues, self._rate(checked_time(t)), self._cutoff, power_of(self.space))
        return (left.unsqueeze(1) * (self.vectors.T @ self.gaps)).square().sum(0) / len(self.gaps)

    @property
    def table(self) -> list[dict[str, float]]:
        largest, power = float(self.eigenvalues[-1]), power_of(self.space)
        rates = telling_rates(self.eigenvalues, largest, power).tolist() if largest > 0 else [1.0]
        times = [0.5 * len(self.gaps) * rate for rate in rates]
        trained = [int((self.eigenvalues**power >= 1.0 / rate).sum()) for rate in rates]
        losses = [float(self.residual(t).mean()) for t in times]
        return [{"time": t, "loss": R, "modes": k} for t, R, k in zip(times, losses, trained, strict=True)]

    def plot(self, ax: Any = None) -> Any:
        """The loss and the share of the modes that are trained, by time."""
        from mercer.plots.canvas import axes_for, legend, name_axes

        ax, table, start = axes_for(ax), self.table, float(self.residual(0.0).mean())
        times = [row["time"] for row in table]
        ax.semilogx(times, [row["loss"] / (start or 1.0) for row in table], label="loss, of that at the start")
        ax.semilogx(times, [row["modes"] / len(self.gaps) for row in table], label="modes trained")
        name_axes(ax, "Time", "Share", "Gradient flow")
        legend(ax, loc="best")
        return ax

    def _rate(self, t: float) -> float:
        return 2.0 * t / len(self.gaps)

    @property
    def _cutoff(self) -> float:
        return NULL * float(self.eigenvalues[-1])


def gradient_flow(kernel: Any, X: Any, y: Any, *, start: Any = None, space: str = "function") -> GradientFlow:
    """Gradient flow from the function `start` (zero by default) to y with a kernel, such as an `EmpiricalNTK`.

    `space` is what descends, the "function" or the "coefficients" c of f = start + K c.

    >>> flow = gradient_flow("gaussian", [[0.0], [1.0]], [1.0, -1.0])
    >>> flow.predict([[0.0], [1.0]], t=0.0), flow.predict([[0.0], [1.0]]).round(6)
    (array([0., 0.]), array([ 1., -1.]))
    """
    power_of(space)
    found = resolve(as_kernel(kernel), X)
    gram = torch.as_tensor(found(X)).detach().to(torch.float64)
    targets = as_values(y, "y", 1, 2).to(gram.device)
    if len(targets) != len(gram):
        raise InputError(f"y has {len(targets)} entries but X has {len(gram)} rows.")
    targets = targets.reshape(len(gram), -1)
    gaps = -targets if start is None else _values(start, X, targets) - targets
    eigenvalues, vectors = eigh(gram)
    return GradientFlow(found, X, eigenvalues.clamp(min=0.0), vectors, gaps, start, space)


def _values(function: Any, X: Any, like: Tensor) -> Tensor:
    return torch.as_tensor(function(X)).detach().to(like).reshape(len(like), -1)
