"""Which rows are copies of others."""

from __future__ import annotations

import pytest
import torch

from mercer.core.arrays import Points
from mercer.processes import Observations
from mercer.processes.copies import rows_but_copies

X = torch.linspace(0, 1, 50).double().unsqueeze(1).expand(-1, 3) * torch.tensor([1.0, -2.0, 0.0]).double()
Y = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double()
AGAIN = torch.tensor([3, 3, 7])


def without_copies(data):
    kept = rows_but_copies(data)
    return data if kept is None else data.take(kept)


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


def repeated(x, y):
    index = torch.randint(0, len(x), (300,), generator=torch.Generator().manual_seed(1))
    return Observations(Points(x[index]), y[index]), len(index.unique())


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_copies_are_known_by_their_points_whatever_the_digits_of_y(digits):
    data, distinct = repeated(torch.rand(200, 2).double(), (10 * torch.randn(200, 1).double()).round(decimals=digits))
    assert len(without_copies(data)) == distinct < 200


@pytest.mark.parametrize(
    "values",
    [
        lambda x, noise: (300 * x.sin() + 0.3 * noise).round(decimals=1),  # a rounded instrument
        lambda x, noise: (noise > 1.7).double(),  # a rare event
        lambda x, noise: (x + 0.4 * noise).round(),
        lambda x, noise: torch.ones_like(x),
    ],
)
def test_observations_of_few_points_are_no_copies(values):
    x = torch.arange(10).repeat(40).double().unsqueeze(1)
    noise = torch.randn(400, 1, generator=torch.Generator().manual_seed(2)).double()
    data = Observations(Points(x), values(x, noise))
    assert len(torch.cat([x, data.Y], 1).unique(dim=0)) < 200
    assert without_copies(data) is data


def test_all_rows_of_a_point_with_different_values_are_kept():
    x = torch.cat([torch.arange(50), torch.arange(50), torch.tensor([0, 0])]).double().unsqueeze(1)
    y = x.sin()
    y[-1] = 5.0
    kept = without_copies(Observations(Points(x), y))
    assert kept.X.values[:, 0].tolist() == [*range(50), 0, 0, 0]


def test_one_record_entered_several_times_is_one():
    assert len(without_copies(Observations(Points(torch.zeros(4, 1)), torch.zeros(4, 1)))) == 1


def test_minus_zero_is_zero_and_objects_are_compared():
    X = Points(torch.tensor([[0.0], [-0.0], [1.0]]))
    assert len(without_copies(Observations(X, torch.tensor([[0.5], [0.5], [0.7]])))) == 2
    words = Points(["ab", "b", "ab"])
    assert without_copies(Observations(words, torch.tensor([[0.5], [0.6], [0.5]]))).X.values == ["ab", "b"]


def test_a_ready_gram_matrix_is_left_alone():
    data = Observations(Points(torch.ones(3, 3)), torch.tensor([[0.5], [0.5], [0.7]]), square=True)
    assert without_copies(data) is data
