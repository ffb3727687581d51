"""Laws of `gram` with the fused back end: chosen where it can run, parity with the kernel's matrix, budgets, notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from laws import DEVICE, columns, error, normal, points, reference

from mercer.core.errors import MemoryBudgetError
from mercer.kernels import Gaussian, Kernel, Laplace, Linear, Matern, WhiteNoise
from mercer.operators import GramOperator, backends, gram
from mercer.operators.backends import fused
from mercer.operators.backends.traced import TracedTiles
from mercer.testing.operators import check_operator

TOLERANCE = 2e-6
KERNELS = [Gaussian(), Laplace(), Matern(1.5, 2.0) * Linear(1.0) + WhiteNoise(0.5)]


@pytest.fixture(autouse=True)
def _fused_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "FUSED_DEVICES", ("cuda", "cpu"))


def fused_gram(kernel: Kernel, *samples: Any, **options: Any) -> GramOperator:
    operator = gram(kernel, *samples, **options)
    assert isinstance(operator.backend, fused.FusedTiles)
    assert operator.notes[0] == "fused on the GPU"
    return operator


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fused_operators_keep_the_laws_of_operators(kernel: Kernel) -> None:
    x, z = points(normal(70, 3, 0)).values, points(normal(40, 3, 1)).values
    check_operator(fused_gram(kernel, x, z))
    check_operator(fused_gram(kernel, z))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fused_operators_are_the_kernel_matrix(kernel: Kernel) -> None:
    x, z = points(normal(70, 3, 0)), points(normal(40, 3, 1))
    for sample, K, operator in (
        (x, reference(kernel, x, z), fused_gram(kernel, x.values, z.values)),
        (z, reference(kernel, z), fused_gram(kernel, z.values)),
    ):
        V, W = columns(40, 3), columns(len(sample))
        assert error(operator @ V, K @ V.double().cpu()) < TOLERANCE
        assert error(operator.T @ W, K.T @ W.double().cpu()) < TOLERANCE
        assert error(operator.rows([5, 1, 5]), K[[5, 1, 5]]) < TOLERANCE
        assert error(operator.dense(), K) < TOLERANCE


def test_data_are_packed_once_for_all_products_and_the_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[object] = []
    pack = fused.samples.pack
    monkeypatch.setattr(fused.samples, "pack", lambda *args: packed.append(args[0]) or pack(*args))
    operator = fused_gram(Gaussian(), points(normal(70, 3, 0)).values, points(normal(40, 3, 1)).values)
    for _ in range(3):
        operator.T @ (operator @ columns(40))
    operator.rows([1])
    assert len(packed) == 2  # both samples


def test_float64_and_bessel_functions_stay_in_tiles_and_say_why() -> None:
    x = points(normal(30, 3, 0)).values
    for kernel, rows, reason in (
        (Gaussian(), x.double(), "tiles: fused products are for float32 data"),
        (Matern(0.8), x, "tiles: a Matern kernel of order nu=0.8 needs a Bessel function"),
    ):
        operator = gram(kernel, rows)
        assert isinstance(operator.backend, TracedTiles)
        assert operator.notes[0] == reason


def test_wide_data_are_reported_before_the_product() -> None:
    operator = fused_gram(Gaussian(), points(normal(30, 3, 0, 60.0)).values)
    assert any("R2 = 6" in note for note in operator.notes)


def test_a_budget_is_kept_with_fewer_columns_at_once_or_in_tiles() -> None:
    x = points(normal(100, 3, 0)).values
    V = columns(100, 5)
    needed = fused_gram(Gaussian(), x).backend.least_bytes
    small = gram(Gaussian(), x, memory_budget=needed - 1)
    assert "memory budget" in small.notes[0]
    narrow = fused_gram(Gaussian(), x, memory_budget=needed + 4 * V.numel())
    expected = reference(Gaussian(), points(x.cpu())) @ V.double().cpu()
    for operator in (narrow, gram(Gaussian(), x, memory_budget="1GiB")):
        assert error(operator @ V, expected) < TOLERANCE
    with pytest.raises(MemoryBudgetError, match="100 x 100 Gram matrix with 4,000 columns"):
        narrow @ columns(100, 4000)


def test_numpy_gives_numpy() -> None:
    x = np.asarray(normal(30, 3, 0), dtype=np.float32)
    operator = fused_gram(Gaussian(), x, device=DEVICE)
    assert isinstance(operator @ np.ones(30), np.ndarray)
    assert (operator @ torch.ones(30, device=DEVICE)).dtype == torch.float32
