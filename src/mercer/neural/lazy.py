"""Two-layer networks trained by gradient descent, to see when they train like their tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mercer.core.errors import InputError
from mercer.core.rules import one_of
from mercer.core.values import as_values
from mercer.kernels.activations import FUNCTIONS, checked_activation
from mercer.neural.arguments import check, rows_of
from mercer.neural.flow import gradient_flow
from mercer.neural.tangent import empirical_ntk
from mercer.solvers.decompose import eigvalsh

SCALES = {"lazy": 0.5, "mean_field": 0.0}
"""The power of the width that the sum over units, divided by the width, is multiplied by."""


class TwoLayer(nn.Module):
    r"""The network :math:`f(x) = \frac{a}{M} \sum_i b_i\, \varphi(w_i \cdot x / \sqrt d)` of M units.

    a is :math:`\sqrt M` for scaling="lazy", one for "mean_field". Weights are standard normal, and half of the units
    repeat the others with the opposite sign of b, so that f is zero at first.
    """

    def __init__(self, n_columns: int, width: int, activation: str, scaling: str, seed: int) -> None:
        super().__init__()
        check(width=width, seed=seed)
        one_of(*SCALES).check("scaling", scaling, False)
        generator = torch.Generator().manual_seed(seed)
        w = torch.randn(width // 2, n_columns, generator=generator, dtype=torch.float64)
        b = torch.randn(width // 2, generator=generator, dtype=torch.float64)
        self.w, self.b = nn.Parameter(torch.cat([w, w])), nn.Parameter(torch.cat([b, -b]))
        self.activation = FUNCTIONS[checked_activation(activation, "two-layer network")]
        self.factor = width ** SCALES[scaling]

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(x @ self.w.T / x.shape[1] ** 0.5)
        result: Tensor = self.factor / len(self.b) * (hidden @ self.b)
        return result


@dataclass(frozen=True)
class LazyRun:
    """One trained network.

    Attributes
    ----------
    movement : float
        Relative change of the parameters, |theta_t - theta_0| / |theta_0|.
    ntk_change : float
        Relative change of the tangent kernel.
    kernel_gap : float
        Root mean square difference from the flow of the first tangent kernel at the same time, at the rows.
    loss : Loss or str
        |f - y|^2 / n at the end, `start_loss` at the start.
    rate : float
        c0 = 4 l / n of the bound R(t) <= R(0) exp(-c0 t), l the smaller one of the least eigenvalues of the tangent
        kernel at the start and at the end; `decay` is what was measured.
    """

    width: int
    movement: float
    ntk_change: float
    kernel_gap: float
    start_loss: float
    loss: float
    rate: float
    decay: float


@dataclass(frozen=True)
class LazyTraining:
    """Networks of several widths, trained for the same time: `table` has a row for each, `slopes` their trends."""

    scaling: str
    time: float
    runs: tuple[LazyRun, ...]

    @property
    def table(self) -> list[dict[str, float]]:
        return [vars(run) for run in self.runs]

    @property
    def slopes(self) -> dict[str, float]:
        """The power of the width with which movement, change of the tangent kernel and kernel gap go."""
        widths = torch.tensor([math.log(run.width) for run in self.runs], dtype=torch.float64)
        centred = widths - widths.mean()

        def slope(name: str) -> float:
            logs = torch.tensor([math.log(getattr(run, name)) for run in self.runs], dtype=torch.float64)
            return float(centred @ logs / centred.square().sum())

        return {name: slope(name) for name in ("movement", "ntk_change", "kernel_gap")}

    def plot(self, ax: Any = None) -> Any:
        """Movement, change of the tangent kernel and kernel gap by width, on logarithmic axes."""
        from mercer.plots.canvas import axes_for, legend, name_axes

        ax = axes_for(ax)
        widths = [run.width for run in self.runs]
        for name, slope in self.slopes.items():
            label = f"{name.replace('_', ' ')} (slope {slope:.2f})"
            ax.loglog(widths, [getattr(run, name) for run in self.runs], "o-", label=label)
        ax.set_xticks(widths, [str(width) for width in widths])
        ax.set_xticks([], minor=True)
        name_axes(ax, "Width", "", f"{self.scaling} scaling, time {self.time:g}")
        legend(ax, loc="best")
        return ax


def lazy_training(
    widths: Sequence[int],
    X: Any,
    y: Any,
    *,
    scaling: str = "lazy",
    activation: str = "tanh",
    time: float = 10.0,
    steps: int = 1000,
    seed: int = 0,
) -> LazyTraining:
    r"""Two-layer networks trained by gradient descent on :math:`|f - y|^2 / n` for the same time, width by width.

    A step is `time / steps` times :math:`M / a^2`, for which f trains at the same speed at any width. With "lazy"
    scaling (:math:`a = \sqrt M`) parameters move by :math:`1 / \sqrt M` and the network trains like its tangent
    kernel; with "mean_field" (a = 1) they move as much at any width, and features are learned.

    References: Chizat, Oyallon and Bach, *On lazy training in differentiable programming*, 2019.

    >>> X = torch.linspace(-1, 1, 8).unsqueeze(1)
    >>> result = lazy_training([16, 256], X, torch.sin(3 * X[:, 0]), time=1.0, steps=50)
    >>> result.runs[1].movement < result.runs[0].movement
    True
    """
    check(time=time, steps=steps)
    x = rows_of(X)
    targets = targets_of(y, x)
    sizes = numbers_of_units(widths)
    runs = (_run(TwoLayer(x.shape[1], w, activation, scaling, seed), x, targets, time, steps) for w in sizes)
    return LazyTraining(scaling, time, tuple(runs))


def numbers_of_units(widths: Any) -> list[int]:
    """One width or more."""
    found = as_values(widths, "widths", 0, 1).reshape(-1).tolist()
    if not found or any(w % 1 for w in found):
        raise InputError(f"widths={widths!r}: give even numbers of units, one or more.")
    return [int(w) for w in found]


def targets_of(y: Any, x: Tensor) -> Tensor:
    """One number for each row, in float64."""
    targets = as_values(y, "y").to(x.device)
    if targets.shape != (len(x),):
        raise InputError(f"y has shape {tuple(targets.shape)} but X has {len(x)} rows; one number for each is needed.")
    return targets


def descend(module: TwoLayer, x: Tensor, y: Tensor, length: float, steps: int) -> None:
    """Steps of gradient descent on |f - y|^2 / n, each of that length in time that passes as fast at any width."""
    params, speed = list(module.parameters()), len(module.b) / module.factor**2
    for _ in range(steps):
        grads = torch.autograd.grad((module(x) - y).square().mean(), params)
        with torch.no_grad():
            for p, grad in zip(params, grads, strict=True):
                p.sub_(length * speed * grad)


def _run(module: TwoLayer, x: Tensor, y: Tensor, time: float, steps: int) -> LazyRun:
    width, params = len(module.b), list(module.parameters())
    speed = width / module.factor**2
    first, start = empirical_ntk(module, x), [p.detach().clone() for p in params]
    start_loss = float((module(x).detach() - y).square().mean())
    descend(module, x, y, time / steps, steps)
    outputs = module(x).detach()
    loss = float((outputs - y).square().mean())
    if not math.isfinite(loss) or loss > 10.0 * start_loss:
        raise InputError(f"Gradient descent diverged at width {width}: use more than {steps} steps, or a shorter time.")
    last = empirical_ntk(module, x)
    least = min(float(eigvalsh(H)[0]) for H in (first, last)) * speed
    return LazyRun(
        width=width,
        movement=_distance(params, start) / _distance(start, [torch.zeros_like(p) for p in start]),
        ntk_change=float((last - first).norm() / first.norm()),
        kernel_gap=float((outputs - _flowed(speed * first, y, time)).square().mean().sqrt()),
        start_loss=start_loss,
        loss=loss,
        rate=4.0 * max(least, 0.0) / len(y),
        decay=math.log(start_loss / loss) / time if loss > 0 else 0.0 if start_loss == 0 else math.inf,
    )


def _flowed(H: Tensor, y: Tensor, time: float) -> Tensor:
    """The function at the rows that gradient flow from zero with a kernel matrix reaches."""
    flowed: Tensor = gradient_flow("precomputed", H, y).predict(H, time)
    return flowed


def _distance(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float((p.detach() - q).square().sum()) for p, q in zip(a, b, strict=True)))
