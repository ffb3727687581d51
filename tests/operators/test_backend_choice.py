"""Which back end multiplies: fused products on a GPU, tiles elsewhere, and the notes that say why."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mercer.kernels import Callable, Gaussian
from mercer.operators import backends, gram
from mercer.operators.backends.dense import DenseTiles
from mercer.operators.backends.fused import FusedTiles, support
from mercer.operators.backends.traced import TracedTiles

ROWS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def test_products_on_a_cpu_run_in_tiles() -> None:
    operator = gram(Gaussian(), ROWS)
    assert isinstance(operator.backend, TracedTiles)
    assert not any("tiles:" in note for note in operator.notes)


def test_what_cannot_be_fused_runs_in_tiles_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "FUSED_DEVICES", ("cpu",))
    monkeypatch.setattr(support, "_triton_imports", lambda: False)
    operator = gram(Gaussian(), ROWS)
    assert isinstance(operator.backend, TracedTiles)
    assert operator.notes[0] == "tiles: triton cannot be imported"
    assert np.abs(operator @ np.ones(20) - Gaussian()(ROWS).sum(1)).max() < 1e-5


def test_what_cannot_be_traced_runs_in_dense_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "FUSED_DEVICES", ("cpu",))
    operator = gram(Callable(lambda x, z: float(x @ z)), ROWS)
    assert isinstance(operator.backend, DenseTiles)


@pytest.mark.parametrize(("capability", "fused"), [((8, 0), False), ((9, 0), True), ((10, 0), False)])
def test_gpus_of_other_generations_run_in_tiles(
    capability: tuple[int, int], fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnGpu(list[int]):
        is_tensor = True
        values = SimpleNamespace(dtype=torch.float32, is_cuda=True, device="cuda:0")

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(support, "_triton_imports", lambda: True)
    reason = support._no_device(OnGpu([1]), OnGpu([1]))
    assert (reason is None) if fused else (reason is not None and f"the GPU has {capability[0]}" in reason)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_float32_products_on_a_gpu_are_fused() -> None:
    operator = gram(Gaussian(), torch.from_numpy(ROWS).cuda())
    assert isinstance(operator.backend, FusedTiles)
    expected = Gaussian()(ROWS.astype(np.float64)).sum(1)
    assert np.abs((operator @ torch.ones(20, device="cuda")).cpu().numpy() - expected).max() < 2e-6 * expected.max()
