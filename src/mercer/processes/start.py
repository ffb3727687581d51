"""Where learning begins: kernel and noise in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.kernels.columns import is_length_scale, per_column
from mercer.kernels.names import kernel_from_name
from mercer.kernels.pair import DiagonalPair
from mercer.processes.dials import LARGEST, ROWS_PER_FEATURE


@dataclass(frozen=True, eq=False)
class Scales:
    """Deviations of the features and the variance of the targets; ones where there is nothing to go by.

    Attributes
    ----------
    X : array or None
        (d,) deviations of the columns, None for objects; 1 for a constant column.
    y : float
        Mean variance of the targets; the mean square of constant ones, and 1 for zeros.
    """

    X: np.ndarray | None
    y: float

    @classmethod
    def of(cls, X: Points, Y: Tensor, pairwise: bool = False) -> Scales:
        """Those of the data; a ready Gram matrix has no features."""
        spread = None
        need_squares(Y.abs().amax(0).double().cpu().numpy(), "y")
        if X.is_tensor and not pairwise:
            values = X.values.detach().to("cpu", torch.float64)
            size = values.abs().amax(0).numpy()
            need_squares(size, "X")
            spread = values.std(0, correction=0).numpy()
            spread = np.where(spread > 1e-12 * size, spread, 1.0)
        mean_square = float(Y.square().mean())
        variance = float(Y.var(0, correction=0).mean())
        scale = variance if variance > 1e-24 * mean_square else mean_square
        return cls(spread, scale if scale > 0 else 1.0)

    @classmethod
    def unit(cls, n_columns: int | None) -> Scales:
        """For data that are standardised already, or not known yet."""
        return cls(None if n_columns is None else np.ones(n_columns), 1.0)


def need_squares(size: np.ndarray, name: str) -> None:
    """Reject columns, given by their largest absolute values, whose squares float64 cannot hold."""
    bad = np.flatnonzero((size > LARGEST) | ((size > 0) & (size < 1.0 / LARGEST)))
    if len(bad):
        where = f"column {bad[0]} of {name}" if len(size) > 1 else name
        raise InputError(
            f"The largest value of {where} is {size[bad[0]]:.0e}, whose square float64 cannot hold: rescale it."
        )


def start_kernel(
    kernel: Any, X: Points, scales: Scales, seed: int = 0, tune: bool | str = True
) -> tuple[Kernel, frozenset[str]]:
    r"""The kernel from which learning starts, and the paths of the parameters whose entries stay tied.

    A name stands for a signal variance times that kernel with a length scale for each feature,

    .. math:: \operatorname{var}(y)\, k(x, z), \qquad \ell_j = \sqrt d \operatorname{sd}(x_j);

    with fewer than four rows for each feature these keep their ratios. A kernel is taken as it is, in the units of the
    data, with median length scales found. With ``tune="scale"`` length scales keep their ratios whatever the rows; with
    "ard" they never do, and a kernel with one for several columns gets one for each.

    >>> X = Points(torch.tensor([[0.0], [2.0], [0.0], [2.0]]).double())
    >>> start_kernel("matern52", X, Scales.of(X, torch.tensor([[-3.0], [3.0], [3.0], [-3.0]])))[0]
    9.0 * Matern(nu=2.5, length_scale=(1.0,))
    """
    start, tied = _start_kernel(kernel, X, scales, seed)
    if tune == "scale":
        return start, frozenset(path for path, v in start.tunable().items() if is_length_scale(path) and np.ndim(v))
    return (per_column(start, X), frozenset()) if tune == "ard" else (start, tied)


def _start_kernel(kernel: Any, X: Points, scales: Scales, seed: int) -> tuple[Kernel, frozenset[str]]:
    if not isinstance(kernel, str):
        return resolve(as_kernel(kernel).bind(X.names), X, seed=seed), frozenset()
    base, tied = kernel_from_name(kernel), frozenset[str]()
    if scales.X is not None and any(f.name == "length_scale" for f in fields(base)) and kernel != "periodic":
        d = len(scales.X)
        base = base.replace(length_scale=tuple((d**0.5 * scales.X).tolist()))
        if d > 1 and len(X) < ROWS_PER_FEATURE * d:
            tied = frozenset({"kernel__length_scale"})
    if base.properties.is_normalised:
        return scales.y * base, tied
    size = float(base.on(DiagonalPair(X)).mean())
    return (scales.y / size if size > 0 else scales.y) * base, tied
