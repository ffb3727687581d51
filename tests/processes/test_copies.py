"""Which rows are copies of others."""

from __future__ import annotations

import pytest
import torch

from mercer.core.arrays import Points
from mercer.processes import Observations
from mercer.processes.copies import without_copies

X = torch.linspace(0, 1, 50).double().unsqueeze(1).expand(-1, 3) * torch.tensor([1.0, -2.0, 0.0]).double()
Y = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double()
AGAIN = torch.tensor([3, 3, 7])


def with_copies(values=Y, noise=None):
    index = torch.cat([torch.arange(50), AGAIN])
    return Observations(Points(X[index]), values[index], None if noise is None else noise[index])


def test_the_first_of_equal_rows_stays_where_it_is():
    kept = without_copies(with_copies())
    torch.testing.assert_close(kept.X.values, X)
    torch.testing.assert_close(kept.Y, Y)


def test_without_copies_nothing_is_copied():
    data = Observations(Points(X), Y)
    assert without_copies(data) is data


@pytest.mark.parametrize("part", ["X", "Y", "noise"])
def test_rows_that_differ_anywhere_are_no_copies(part):
    noise = torch.full((50,), 0.1).double()
    data = with_copies(noise=noise)
    assert len(without_copies(data)) == 50
    changed = {"X": data.X.values[:, 1], "Y": data.Y[:, 1], "noise": data.noise}[part]
    changed[50:] += torch.tensor([1e-9, 2e-9, 3e-9]).double()
    assert without_copies(data) is data


def test_equal_rows_of_values_that_are_often_equal_are_observations():
    data = with_copies((10 * Y).round() / 10)
    assert len(without_copies(data)) == 50
    coarse = with_copies(Y.sign())
    assert without_copies(coarse) is coarse


def test_one_record_alone_is_kept_as_it_is():
    data = Observations(Points(torch.zeros(4, 1)), torch.zeros(4, 1))
    assert without_copies(data) is data


def test_minus_zero_is_zero_and_objects_are_compared():
    X = Points(torch.tensor([[0.0], [-0.0], [1.0]]))
    assert len(without_copies(Observations(X, torch.tensor([[0.5], [0.5], [0.7]])))) == 2
    words = Points(["ab", "b", "ab"])
    assert without_copies(Observations(words, torch.tensor([[0.5], [0.6], [0.5]]))).X.values == ["ab", "b"]


def test_a_ready_gram_matrix_is_left_alone():
    data = Observations(Points(torch.ones(3, 3)), torch.tensor([[0.5], [0.5], [0.7]]), square=True)
    assert without_copies(data) is data
