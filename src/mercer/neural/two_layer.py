"""Two-layer networks that learn features, beside those that train like a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.values import as_values
from mercer.neural.arguments import check, rows_of
from mercer.neural.lazy import TwoLayer, descend, targets_of


@dataclass(frozen=True)
class Moment:
    """A network at a time of its training.

    Attributes
    ----------
    scaling : str
        "mean_field" or "lazy".
    time : float
        Of gradient flow.
    alignment : float
        The share of the first layer's weights, squared, that lies in the span of U; k / d to expect at first.
    movement : float
        Relative change of the first layer, |W_t - W_0| / |W_0|.
    error : float
        The mean squared error at the rows, divided by the variance of the targets.
    test_error : float or None
        The same at the test rows, where there are any.
    """

    scaling: str
    time: float
    alignment: float
    movement: float
    error: float
    test_error: float | None


@dataclass(frozen=True)
class TwoLayerTraining:
    """Networks in one or several scalings while they train: `table` has a row for each at each moment."""

    width: int
    moments: tuple[Moment, ...]

    @property
    def table(self) -> list[dict[str, Any]]:
        return [vars(moment) for moment in self.moments]

    @property
    def last(self) -> dict[str, Moment]:
        """Each network at the end, by its scaling."""
        return {moment.scaling: moment for moment in self.moments}

    def plot(self, ax: Any = None) -> Any:
        """The alignment of the first layer over time, for each scaling."""
        from mercer.plots.canvas import axes_for, legend, name_axes

        ax = axes_for(ax)
        for scaling in self.last:
            seen = [moment for moment in self.moments if moment.scaling == scaling]
            label = f"{scaling.replace('_', ' ')}: error {_shown(seen[-1]):.2g} at the end"
            ax.plot([moment.time for moment in seen], [moment.alignment for moment in seen], "o-", label=label)
        ax.set_ylim(0.0, 1.0)
        name_axes(ax, "Time", "Share of the first layer in the span of U", f"Two layers of width {self.width}")
        legend(ax, loc="best")
        return ax


def two_layer(
    X: Any,
    y: Any,
    U: Any,
    *,
    scaling: str | Sequence[str] = ("mean_field", "lazy"),
    width: int = 256,
    activation: str = "relu",
    time: float = 60.0,
    steps: int = 1200,
    moments: int = 12,
    test: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> TwoLayerTraining:
    r"""Two-layer networks trained on a target :math:`g(U^\top x)`, and how far their first layer turns to U.

    The network :math:`f(x) = \frac{a}{M} \sum_i b_i\, \varphi(w_i \cdot x / \sqrt d)` of M units is trained by gradient
    descent on :math:`|f - y|^2 / n`. With "mean_field" scaling (a = 1) weights move as far at any width, and the
    :math:`w_i` align with the directions U that the target depends on: features are learned. With "lazy" scaling
    (:math:`a = \sqrt M`) they hardly move, and the network is a kernel machine, which cannot adapt.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    y : array of shape (n,)
        Targets.
    U : array of shape (d, k)
        The directions; only their span matters.
    scaling : str or sequence of str
        "mean_field", "lazy" or both.
    width : int
        M, an even number.
    activation : str
        Of the units, one of those of `NNGP`.
    time : float
        Time of gradient flow, which passes at the same speed in both scalings.
    steps : int
        Of gradient descent, each as long as time / steps.
    moments : int
        How often networks are looked at, besides the start.
    test : tuple or None
        Rows and targets that are not trained on.
    seed : int
        Of the first weights, the same in each scaling.

    References
    ----------
    Mei, Montanari and Nguyen, *A mean field view of the landscape of two-layer neural networks*, 2018; Chizat, Oyallon
    and Bach, *On lazy training in differentiable programming*, 2019.

    Examples
    --------
    >>> X = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    >>> result = two_layer(X, torch.relu(X[:, 0]), torch.eye(4)[:, :1], width=64, time=20.0, steps=200)
    >>> result.last["mean_field"].alignment > 1.5 * result.last["lazy"].alignment
    True
    """
    check(width=width, time=time, steps=steps, moments=moments, seed=seed)
    x = rows_of(X)
    targets = targets_of(y, x)
    unseen = None
    if test is not None:
        if not isinstance(test, tuple) or len(test) != 2:
            raise InputError("test must be a pair (rows, targets), or None.")
        z = rows_of(test[0], "test[0]")
        unseen = z, targets_of(test[1], z)
    if moments > steps:
        raise InputError(f"moments={moments}: must be from 1 to {steps}, the number of steps.")
    basis, found = _span(U, x.shape[1]), []
    for each in [scaling] if isinstance(scaling, str) else _names(scaling):
        module = TwoLayer(x.shape[1], width, activation, each, seed)
        start, done = module.w.detach().clone(), 0
        found.append(_moment(module, start, 0.0, basis, (x, targets), unseen, each))
        for k in range(1, moments + 1):
            upto = round(k * steps / moments)
            descend(module, x, targets, time / steps, upto - done)
            done = upto
            found.append(_moment(module, start, done * time / steps, basis, (x, targets), unseen, each))
    return TwoLayerTraining(width, tuple(found))


def _names(scaling: Any) -> Sequence[str]:
    if not isinstance(scaling, list | tuple) or not scaling:
        raise InputError(f"scaling={scaling!r}: give 'mean_field', 'lazy' or both.")
    return scaling


def _span(U: Any, n_columns: int) -> Tensor:
    """An orthonormal basis of the span of the columns."""
    directions = as_values(U, "U", 1, 2)
    directions = directions.unsqueeze(1) if directions.ndim == 1 else directions
    if directions.ndim != 2 or len(directions) != n_columns:
        raise InputError(f"U has shape {tuple(directions.shape)}: give a row for each of the {n_columns} columns of X.")
    if int(torch.linalg.matrix_rank(directions)) < directions.shape[1]:
        raise InputError("The columns of U are linearly dependent: remove the dependent ones.")
    basis: Tensor = torch.linalg.qr(directions)[0]
    return basis


def _moment(
    module: TwoLayer,
    start: Tensor,
    time: float,
    basis: Tensor,
    seen: tuple[Tensor, Tensor],
    unseen: tuple[Tensor, Tensor] | None,
    scaling: str,
) -> Moment:
    w = module.w.detach()
    error = _error(module, *seen)
    if not math.isfinite(error) or error > 100.0:
        raise InputError(
            f"Gradient descent diverged ({scaling} scaling, time {time:g}): use more steps, or a shorter time."
        )
    return Moment(
        scaling=scaling,
        time=time,
        alignment=float((w @ basis).square().sum() / w.square().sum()),
        movement=float((w - start).norm() / start.norm()),
        error=error,
        test_error=None if unseen is None else _error(module, *unseen),
    )


def _error(module: TwoLayer, x: Tensor, y: Tensor) -> float:
    spread = (y - y.mean()).square().mean()
    return float((module(x).detach() - y).square().mean() / spread.where(spread > 0, torch.ones_like(spread)))


def _shown(moment: Moment) -> float:
    return moment.error if moment.test_error is None else moment.test_error
