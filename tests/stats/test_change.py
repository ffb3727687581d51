"""Change points of a series."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

from mercer.core.errors import InputError, MemoryBudgetError
from mercer.rows import ArrayRows
from mercer.stats import change_points
from mercer.stats.change import _largest, _layers

RNG = np.random.default_rng(0)


def series():
    X = pd.DataFrame(RNG.normal(size=(600, 2)), columns=["flow", "heat"])
    X.loc[250:399, "heat"] *= 3.0
    X.loc[400:, "flow"] += 1.5
    return X


def test_the_statistic_of_each_interval_is_that_of_the_definition():
    means = torch.randn(40, 3, dtype=torch.float64)
    layers = _layers(40, 8)
    for (length, starts), (values, places) in zip(layers, _largest(means, layers, 4), strict=True):
        for start, value, place in zip(starts.tolist(), values.tolist(), places.tolist(), strict=True):
            T = {}
            for k in range(start + 4, start + length - 3):
                before, after = means[start:k].mean(0), means[k : start + length].mean(0)
                T[k] = (k - start) * (start + length - k) / length * float((before - after).square().sum())
            assert value == pytest.approx(max(T.values()))
            assert T[place] == pytest.approx(max(T.values()))


def test_changes_of_mean_and_of_spread_are_found_and_named():
    found = change_points(series(), random_state=0)
    assert np.abs(found.points - [250, 400]).max() < 15
    assert found.columns(0)[0].name == "heat"
    assert found.columns(1)[0].name in ("flow", "heat")
    assert "2 changes in 600 rows" in found.summary
    assert found.plot().get_ylabel() == "flow"


def test_a_series_without_a_change_has_one_found_at_the_level():
    hits = [
        len(change_points(np.random.default_rng(i).normal(size=(80, 1)), n_resamples=39, random_state=i).points) > 0
        for i in range(60)
    ]
    assert sum(hits) <= binom.ppf(0.999, 60, 0.05)


def test_long_series_are_looked_at_in_blocks_from_memory_or_from_a_source():
    X = RNG.normal(size=(6000, 2))
    X[3500:] += 0.7
    found = change_points(X, n_resamples=49, random_state=0)
    assert found.resolution == 4
    assert len(found.points) == 1
    assert abs(found.points[0] - 3500) < 60
    source = change_points(ArrayRows(X, rows_at_once=700), n_resamples=49, random_state=0)
    assert (source.points == found.points).all()
    np.testing.assert_allclose(source.null_distribution, found.null_distribution, rtol=1e-4)
    with pytest.raises(MemoryBudgetError, match="mean features"):
        change_points(X, memory_budget="100KiB")


def test_blocks_are_permuted_where_rows_follow_each_other():
    def walk(i):
        rng, x = np.random.default_rng(i), np.zeros(300)
        for t in range(1, 300):
            x[t] = 0.8 * x[t - 1] + rng.normal()
        return x[:, None]

    hits = {None: 0, 30: 0}
    for i in range(10):
        for order in hits:
            hits[order] += len(change_points(walk(i), order=order, n_resamples=39, random_state=i).points) > 0
    assert hits[None] > 6
    assert hits[30] < 5


def test_constant_series_do_not_change():
    assert not len(change_points(np.ones((50, 2)), n_resamples=39).points)
    assert "No change found in 50 rows" in repr(change_points(np.ones((50, 2)), n_resamples=39))


@pytest.mark.parametrize(
    ("X", "options", "match"),
    [
        (np.ones((15, 1)), {}, "min_size=10"),
        (np.ones((50, 1)), {"level": 0.001}, "level=0.001"),
        (np.ones((50, 1)), {"min_size": 0}, "min_size=0"),
        (np.ones((50, 1)), {"order": 0}, "order=0"),
        (np.ones((50, 1)), {"kernel": "linear"}, "other kernels of x - z have them.$"),
        (np.full((50, 1), np.nan), {}, "NaN"),
    ],
)
def test_wrong_arguments_are_clear_errors(X, options, match):
    with pytest.raises(InputError, match=match):
        change_points(X, **options)
