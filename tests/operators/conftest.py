"""What the tests of operators share."""

from __future__ import annotations

import pytest

from mercer.operators.backends import tiles


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of some thousand numbers, so that small samples are cut many times."""
    monkeypatch.setattr(tiles, "TILE_BYTES", 2**13)
    monkeypatch.setattr(tiles, "LEAST_BYTES", 2**10)
