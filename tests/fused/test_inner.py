"""What the lengths of rows ask of inner products."""

from __future__ import annotations

import pytest
import torch

from mercer.operators.backends.fused import inner
from mercer.operators.backends.fused.dials import LARGEST_NORM
from mercer.operators.backends.fused.inner import inner_scales

ROWS = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))


def longest(rows: torch.Tensor) -> float:
    return float(rows.double().norm(dim=1).max())


@pytest.mark.parametrize("size", [1.0, 1e-12, 1e12])
def test_each_sample_has_a_scale_of_its_own(size: float) -> None:
    found = inner_scales(ROWS, size * ROWS)
    for factor, rows in ((found.left, ROWS), (found.right, size * ROWS)):
        assert LARGEST_NORM / 2 < factor * longest(rows) <= LARGEST_NORM
    assert found.precision == "bare"
    assert not found.note
    assert found.longest == pytest.approx(max(found.left * longest(ROWS), found.right * longest(size * ROWS)))


def test_many_columns_take_three_terms_and_unequal_rows_features_one_by_one() -> None:
    wide = torch.randn(60, 300, generator=torch.Generator().manual_seed(1))
    assert inner_scales(wide, wide).precision == "deep"
    uneven = ROWS.clone()
    uneven[3] *= 1e6
    for pair in ((uneven, ROWS), (ROWS, uneven)):
        found = inner_scales(*pair)
        assert found.precision == "featurewise"
        assert "differ in length by a factor of" in found.note


def test_short_rows_are_a_twentieth_and_zeros_do_not_count() -> None:
    rows = torch.diag(torch.arange(1.0, 41.0))
    assert inner._lengths(rows) == (3.0, 40.0)
    assert inner._lengths(torch.cat([torch.zeros(100, 40), rows])) == (3.0, 40.0)
    assert inner._lengths(torch.zeros(7, 40)) == (1.0, 1.0)


def test_lengths_are_measured_in_parts_and_short_rows_looked_for_among_some(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inner._lengths(ROWS)
    monkeypatch.setattr(inner, "NUMBERS_AT_ONCE", 12)
    assert inner._lengths(ROWS) == whole
    monkeypatch.setattr(inner, "LOOKED_AT", 10)
    some = ROWS[::6].double().norm(dim=1).sort()[0]
    assert inner._lengths(ROWS) == pytest.approx((float(some[0]), whole[1]))


def test_rows_that_overflow_are_left_to_the_check_of_the_result() -> None:
    far = torch.full((3, 5), torch.inf)
    for pair in ((far, ROWS), (ROWS, far)):
        found = inner_scales(*pair)
        assert found.precision == "featurewise"
        assert "overflow" in found.note
