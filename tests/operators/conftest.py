"""What the tests of operators share: small tiles, two workers, and exact references."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from mercer.operators.backends import tiles


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 2,000 numbers, so that small samples are cut many times."""
    monkeypatch.setattr(tiles, "TILE_BYTES", {"cpu": 2**14})
    monkeypatch.setattr(tiles, "LEAST_BYTES", 2**10)


@pytest.fixture
def two_workers() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def distances(X: Tensor, Z: Tensor) -> Tensor:
    """Euclidean distances in float64 from differences."""
    return torch.cdist(X.double(), Z.double(), compute_mode="donot_use_mm_for_euclid_dist")
