"""What operators allocate goes when they go, and not when the garbage collector comes."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from mercer.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, WhiteNoise
from mercer.operators import gram

X = np.random.default_rng(0).normal(size=(300, 3))


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(), Laplace(metric="l1"), Matern(0.8), Polynomial(2), 2.0 * Gaussian() * Linear(1.0) + WhiteNoise(0.5)],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_is_left_to_the_collector(kernel: Kernel, dtype: type) -> None:
    rows, V = X.astype(dtype), np.ones((300, 2), dtype=dtype)

    def everything() -> None:
        for operator in (gram(kernel, rows), gram(kernel, rows[:80], rows)):
            operator @ V
            operator.T @ V[: operator.shape[0]]
            operator.rows([3, 1])
            operator.dense()

    everything()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        everything()
        gc.collect()
        left = [value for value in gc.garbage if isinstance(value, torch.Tensor | np.ndarray)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left
