"""Gradient flow of a squared loss with a fixed kernel, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import restore
from mercer.core.errors import InputError
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.solvers.decompose import eigh

NULL = 1e-12
"""Eigenvalues below this share of the largest are directions that never train, where time is infinite."""


@dataclass(frozen=True, eq=False)
class GradientFlow:
    r"""The function that gradient flow on :math:`\|f - y\|^2 / n` reaches at time t, with a kernel H:

    .. math:: f_t(x) = f_0(x) - h(x)\, U\, \frac{1 - e^{-2 t \lambda / n}}{\lambda}\, U^\top (f_0 - y).

    Modes of large eigenvalues train first. At infinite time it is ridgeless regression.

    Attributes
    ----------
    eigenvalues : Tensor
        Of H at the training rows, ascending.
    """

    kernel: Kernel
    X: Any
    eigenvalues: Tensor
    vectors: Tensor
    gaps: Tensor
    start: Any = None

    def predict(self, X: Any, t: float = math.inf) -> Any:
        """f_t at the rows of X."""
        h = torch.as_tensor(self.kernel(X, self.X)).to(self.vectors)
        change = h @ (self.vectors @ (self._reached(t) * (self.vectors.T @ self.gaps)))
        value = (0.0 if self.start is None else _values(self.start, X, change)) - change
        return restore(value.squeeze(1) if self.gaps.shape[1] == 1 else value, X)

    def residual(self, t: float) -> Tensor:
        """|f_t - y|^2 / n at the training rows, for each target."""
        left = torch.exp(-2.0 * self.eigenvalues / len(self.gaps) * checked_time(t))
        left = torch.where(self._trained, left, 1.0)
        return (left.unsqueeze(1) * (self.vectors.T @ self.gaps)).square().sum(0) / len(self.gaps)

    @property
    def _trained(self) -> Tensor:
        return self.eigenvalues > NULL * self.eigenvalues[-1]

    def _reached(self, t: float) -> Tensor:
        """(1 - exp(-2 t l / n)) / l for each eigenvalue l, whose limit at zero is 2 t / n."""
        rate = 2.0 * checked_time(t) / len(self.gaps)
        eigenvalues = torch.where(self._trained, self.eigenvalues, 1.0)
        part = -torch.expm1(-rate * eigenvalues) / eigenvalues
        return torch.where(self._trained, part, 0.0 if math.isinf(rate) else rate).unsqueeze(1)


def gradient_flow(kernel: Any, X: Any, y: Any, *, start: Any = None) -> GradientFlow:
    """Gradient flow from the function `start` (zero by default) to y with a kernel, such as an `EmpiricalNTK`.

    >>> flow = gradient_flow("gaussian", [[0.0], [1.0]], [1.0, -1.0])
    >>> flow.predict([[0.0], [1.0]], t=0.0), flow.predict([[0.0], [1.0]]).round(6)
    (array([0., 0.]), array([ 1., -1.]))
    """
    found = resolve(as_kernel(kernel), X)
    gram = torch.as_tensor(found(X)).detach().to(torch.float64)
    targets = torch.as_tensor(y).detach().to(gram)
    if len(targets) != len(gram):
        raise InputError(f"y has {len(targets)} entries but X has {len(gram)} rows.")
    targets = targets.reshape(len(gram), -1)
    gaps = -targets if start is None else _values(start, X, targets) - targets
    eigenvalues, vectors = eigh(gram)
    return GradientFlow(found, X, eigenvalues.clamp(min=0.0), vectors, gaps, start)


def checked_time(t: float) -> float:
    """A time that is not negative."""
    if not t >= 0:
        raise InputError(f"t={t!r}: a time is a number >= 0.")
    return float(t)


def _values(function: Any, X: Any, like: Tensor) -> Tensor:
    return torch.as_tensor(function(X)).detach().to(like).reshape(len(like), -1)
