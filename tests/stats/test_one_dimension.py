"""Numbers of one dimension are one column, wherever a sample is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from mercer import stats

FEW = {"n_resamples": 30, "random_state": 0}
GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "mmd": lambda x, y: stats.mmd(x, y),
    "two_sample_test": lambda x, y: stats.two_sample_test(x, y, **FEW).pvalue,
    "independence_test": lambda x, y: stats.independence_test(x, y, **FEW).pvalue,
    "hsic": lambda x, y: stats.hsic(x, y),
    "wasserstein": lambda x, y: stats.wasserstein(x, y),
    "kolmogorov": lambda x, y: stats.kolmogorov(x, y),
    "ksd": lambda x, y: stats.ksd(x, score=lambda X: -X),
    "goodness_of_fit_test": lambda x, y: stats.goodness_of_fit_test(x, score=lambda X: -X, **FEW).pvalue,
    "characteristic_function": lambda x, y: stats.characteristic_function(x, [[1.0]]),
    "change_points": lambda x, y: stats.change_points(x, **FEW).points,
    "MeanEmbedding": lambda x, y: stats.MeanEmbedding().fit(x).norm(),
    "DriftDetector": lambda x, y: stats.DriftDetector(**FEW).fit(x).test(y).pvalue,
    "KernelThinning": lambda x, y: stats.KernelThinning(4, random_state=0).fit(x).indices_,
    "KernelHerding": lambda x, y: stats.KernelHerding(4).fit(x).indices_,
    "SteinThinning": lambda x, y: stats.SteinThinning(4).fit(x, lambda X: -X).indices_,
}
COLUMNS: tuple[Callable[[Any], Any], ...] = (np.asarray, list, torch.tensor, pd.Series, pl.Series)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda made: made.__module__.split(".")[0] + "." + made.__name__)
@pytest.mark.parametrize("name", GIVEN)
def test_one_dimension_is_one_column(name: str, column: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=24), rng.normal(size=24) + 0.5
    found, expected = GIVEN[name](column(x), column(y)), GIVEN[name](x[:, None], y[:, None])
    np.testing.assert_array_equal(found, expected)
