"""Laws of drawing rows in proportion to weights."""

from __future__ import annotations

import pytest
import torch

from mercer.solvers.drawing import draw_different

WEIGHTS = {
    "equal": torch.ones(50),
    "skewed": torch.randn(50, generator=torch.Generator().manual_seed(1)).mul(3).exp().double(),
    "one": torch.ones(50).index_fill(0, torch.tensor([7]), 1e6),
    "tiny": torch.full((50,), 1e-300, dtype=torch.float64),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("count", [1, 10, 49, 50, 80])
def test_as_many_different_rows_as_asked_for(weights, count):
    places, share = draw_different(weights, count, torch.Generator().manual_seed(0))
    assert len(places) == len(share) == min(count, 50)
    assert torch.equal(places, places.unique())
    assert 0 < float(share.min()) <= float(share.max()) <= 1.0


def test_rows_are_drawn_as_often_as_their_probabilities_say():
    weights, generator = WEIGHTS["skewed"], torch.Generator().manual_seed(0)
    often, said = torch.zeros(50), torch.full((50,), float("nan"))
    for _ in range(4000):
        places, share = draw_different(weights, 10, generator)
        often[places] += 1 / 4000
        said[places] = share.float()
    expected = said.nan_to_num(0.0)
    assert float((often - expected).abs().max()) < 0.04  # five standard deviations
    part = (weights / weights.sum() * 10).float()
    assert bool((expected[part > 1] == 1.0).all())


def test_no_rows_are_drawn_from_none():
    assert [len(found) for found in draw_different(torch.ones(0), 5, torch.Generator())] == [0, 0]
