"""Data frames with categories."""

import numpy as np
import pandas as pd
import pytest

from mercer.core.errors import InputError
from mercer.stats import independence_test, two_sample_test

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
