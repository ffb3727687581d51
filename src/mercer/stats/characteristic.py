"""The empirical characteristic function."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mercer.core.arrays import as_points
from mercer.core.errors import InputError
from mercer.stats.samples import sample_points, sample_weights


def characteristic_function(X: Any, frequencies: Any, sample_weight: Any = None) -> np.ndarray:
    r"""The empirical characteristic function, :math:`\hat\varphi(\omega) = \sum_j w_j e^{i \omega \cdot x_j}`.

    For a shift-invariant kernel with spectral measure L, MMD(P, Q)^2 is the mean of |phi_P - phi_Q|^2 under L.

    >>> characteristic_function([[0.0], [np.pi]], [[0.0], [1.0]]).round(6)
    array([1.+0.j, 0.+0.j])
    """
    x = sample_points(X, "X").values.double()
    w = as_points(frequencies, "frequencies").values.double()
    if w.shape[1] != x.shape[1]:
        raise InputError(f"frequencies have {w.shape[1]} columns but X has {x.shape[1]}.")
    weights = sample_weights(sample_weight, len(x), "sample_weight")
    step = max(1, 2**22 // max(1, len(w)))
    total = torch.zeros(len(w), dtype=torch.complex128)
    for rows, part in zip(x.split(step), weights.split(step), strict=True):
        phase = rows @ w.T
        total += torch.complex(part @ phase.cos(), part @ phase.sin())
    return total.numpy()
