"""Data frames with categories."""

import numpy as np
import pandas as pd
import pytest

from mercer.core.errors import InputError
from mercer.stats import (
    conditional_independence_test,
    goodness_of_fit_test,
    independence_test,
    two_sample_test,
)

RNG = np.random.default_rng(0)


def frame(n, share):
    city = np.where(RNG.random(n) < share, "Oslo", "Rome")
    return pd.DataFrame({"size": RNG.normal(size=n), "city": city})


def test_categories_are_compared_and_named():
    X, Y = frame(120, 0.3), frame(100, 0.8)
    result = two_sample_test(X, Y, n_resamples=99, random_state=0)
    assert result.pvalue == 0.01
    assert "city" in result.columns()[0].name
    assert two_sample_test(X, frame(120, 0.3), n_resamples=99, random_state=0).pvalue > 0.01
    with pytest.raises(InputError, match="columns of X are"):
        two_sample_test(X, Y[["city", "size"]])


def test_dependence_on_categories_is_found():
    X = frame(150, 0.5)
    y = (X["city"] == "Oslo") + 0.5 * RNG.normal(size=150)
    result = independence_test(X, y, n_resamples=99, random_state=0)
    assert result.pvalue == 0.01
    assert "city" in result.columns()[0].name or result.columns()[0].side == "Y"


def test_a_sampler_may_draw_categories():
    def drawn(n, rng):
        city = np.where(rng.random(n) < 0.8, "Oslo", "Rome")
        return pd.DataFrame({"size": rng.normal(size=n), "city": city})

    result = goodness_of_fit_test(frame(150, 0.3), sampler=drawn, n_resamples=99)
    assert result.pvalue == 0.01
    assert "city" in result.columns()[0].name
    assert goodness_of_fit_test(frame(150, 0.8), sampler=drawn, n_resamples=99).pvalue > 0.01


def test_a_category_can_explain_a_dependence():
    Z = frame(200, 0.5)
    oslo = (Z["city"] == "Oslo").to_numpy()
    X, Y = (oslo + 0.5 * RNG.normal(size=200) for _ in range(2))
    assert independence_test(X, Y, n_resamples=99, random_state=0).pvalue < 0.05
    assert conditional_independence_test(X, Y, Z, n_resamples=99, random_state=0).pvalue > 0.05
    assert conditional_independence_test(X, Y, Z[["city"]], n_resamples=99, random_state=0).pvalue > 0.05
    assert conditional_independence_test(X, Y, Z["city"], n_resamples=99, random_state=0).pvalue > 0.05
    assert conditional_independence_test(X, Y + X, Z, n_resamples=99, random_state=0).pvalue == 0.01


def test_columns_of_two_kinds_are_an_error():
    X = frame(20, 0.5)
    with pytest.raises(InputError, match="Column 'city' holds text in X but numbers in Y"):
        two_sample_test(X, X.assign(city=1.0))
    with pytest.raises(InputError, match="Column 'city' holds text in X but dates in Y"):
        two_sample_test(X, X.assign(city=pd.Timestamp("2020-01-01")))


def test_a_column_without_values_in_one_of_the_samples_is_compared_as_gaps():
    X = frame(60, 0.5)
    result = two_sample_test(X, X.assign(city=None), n_resamples=99, random_state=0)
    assert result.pvalue == 0.01
    assert result.columns()[0].name == "city=missing"
