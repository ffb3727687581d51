"""Columns of odd kinds: dates are no numbers without a word, and integers that float64 rounds are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mercer import GaussianProcessRegressor, KernelPCA, KernelRegressor, KernelRidge, RFMRegressor, tabular
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Laplace

N = 12
NUMBERS = np.random.default_rng(0).normal(size=(N, 1))
Y = NUMBERS[:, 0] ** 2
DAYS = np.datetime64("2024-01-30") + np.arange(N)
DAYS[3] = np.datetime64("NaT")
SPANS = (DAYS - np.datetime64("2024-01-01")).astype("m8[us]")
MODELS = (KernelRidge, KernelRegressor, GaussianProcessRegressor, RFMRegressor, KernelPCA)
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda column: column[:, None],
    "list": lambda column: [[value] for value in column],
    "pandas": lambda column: pd.DataFrame({"t": column}),
    "polars": lambda column: pl.DataFrame({"t": column}),
    "arrow": lambda column: pa.table({"t": column}),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("column", [DAYS, SPANS], ids=["days", "spans"])
def test_rows_of_dates_are_refused_by_estimators_of_numbers(column, holder, model):
    given = HOLDERS[holder](column)
    with pytest.raises(InputTypeError, match="takes numbers only.*mercer.tabular"):
        model().fit(given, Y)
    fitted = model().fit(NUMBERS, Y)
    with pytest.raises(InputTypeError, match="takes numbers only"):
        (fitted.transform if model is KernelPCA else fitted.predict)(given)


@pytest.mark.parametrize("target", [DAYS, SPANS, list(DAYS), pd.Series(DAYS), pl.Series(DAYS), DAYS.astype(object)])
@pytest.mark.parametrize("model", MODELS[:4])
def test_targets_that_are_dates_are_refused(model, target):
    with pytest.raises(InputError, match="y contains dates or durations"):
        model().fit(NUMBERS, target)


BIG = [2**62 + 1, None, 3, 4, 5, 6]
FRAMES = {
    "pandas": pd.DataFrame({"a": pd.array(BIG, dtype="Int64")}),
    "pandas, arrow": pd.DataFrame({"a": pd.array(BIG, dtype="int64[pyarrow]")}),
    "polars": pl.DataFrame({"a": BIG}),
    "polars, 128 bits": pl.DataFrame({"a": pl.Series(BIG, dtype=pl.Int128)}),
    "arrow": pa.table({"a": BIG}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_integers_that_float64_rounds_are_numbers_in_every_frame(name):
    frame, plain = FRAMES[name], pd.DataFrame({"a": np.array(BIG, dtype=float)})
    y = np.arange(6.0)
    found, expected = (tabular(KernelRidge()).fit(X, y).predict(X) for X in (frame, plain))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="contains NaN"):
        Laplace(1.0)(frame)
    with pytest.raises((InputError, InputTypeError)):
        KernelRidge().fit(frame, y)


@pytest.mark.parametrize("model", [KernelRidge(), KernelRegressor(), tabular(KernelRidge())], ids=str)
def test_what_intervals_are_calibrated_with_is_a_pair_of_rows_and_targets(model):
    model.fit(NUMBERS, Y)
    for wrong in ([], (NUMBERS,), (NUMBERS, Y, Y), "ab c", 3.0, np.ones(3)):
        with pytest.raises(InputTypeError, match=r"calibrate is .*pair \(X_new, y_new\)"):
            model.predict_interval(NUMBERS, calibrate=wrong)
    with pytest.raises(InputError, match="y contains NaN"):
        model.predict_interval(NUMBERS, calibrate=(NUMBERS, np.where(Y > 1, np.nan, Y)))
    with pytest.raises(InputError, match="inconsistent"):
        model.predict_interval(NUMBERS, calibrate=(NUMBERS, Y[:3]))
