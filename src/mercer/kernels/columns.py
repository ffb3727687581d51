"""One length scale for each column, in place of one for all."""

from __future__ import annotations

import contextlib

import numpy as np

from mercer.core.arrays import Points, Warp
from mercer.core.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import vectors
from mercer.kernels.parameters import AUTO


def per_column(kernel: Kernel, X: Points) -> Kernel:
    """The kernel with as many equal length scales as it sees columns of X, wherever it has one for several.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Gaussian, Linear, Subspace
    >>> per_column(Gaussian(2.0) + Subspace(Gaussian(3.0), [0]) + Linear(), as_points([[0.0, 1.0]]))
    Gaussian(length_scale=(2.0, 2.0)) + Subspace(kernel=Gaussian(length_scale=3.0), columns=(0,)) + Linear(bias=0.0)
    """
    if not X.is_tensor or kernel.domain == "matrix":
        return kernel
    row = X.take(slice(1))
    for path, value in kernel.tunable().items():
        if is_length_scale(path) and np.ndim(value) == 0:
            with contextlib.suppress(InputError):  # a kernel whose length scale is one number for good
                kernel = _widened(kernel, path, float(value), row)
    return kernel


def is_length_scale(path: str) -> bool:
    """Whether a parameter with this path is a length scale."""
    return path.split("__")[-1] == "length_scale"


def _widened(kernel: Kernel, path: str, value: float, row: Points) -> Kernel:
    def found(_: str, warps: tuple[Warp, ...], metric: str) -> float | tuple[float, ...]:
        seen = row
        for warp in warps:
            seen = warp(seen)
        d = vectors(seen).shape[1]
        return value if d == 1 else (value,) * d

    return kernel.replace(**{path: AUTO}).resolved(found)
