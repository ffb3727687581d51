"""Tables with text, categories, dates and gaps, from rows that are read in parts."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import KernelClassifier, KernelRidge, tabular
from mercer.core.errors import InputTypeError
from mercer.engines import SerialEngine
from mercer.rows import ParquetTables

rng = np.random.default_rng(0)
N = 900
CITY = rng.choice(["Oslo", "Rome", "Bern"], N)
FRAME = pd.DataFrame(
    {
        "size": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.normal(80, 20, N)),
        "city": np.where(rng.uniform(size=N) < 0.05, None, CITY),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D"),
        "new": rng.uniform(size=N) < 0.5,
        "row_id": [f"r{i}" for i in range(N)],
    }
)
Y = FRAME["size"].fillna(80) / 20 + np.where(CITY == "Rome", 2.0, 0.0) + 0.1 * rng.normal(size=N)
KIND = np.where(np.median(Y) < Y, "dear", "cheap")
SHARED = {"alpha": 0.1, "n_landmarks": 60, "solver": "nystrom"}


@pytest.fixture
def folder(tmp_path):
    table = FRAME.assign(y=Y, kind=KIND)
    table.loc[600:, "city"] = table.loc[600:, "city"].where(table.index[600:] >= 600, None)
    for i in range(3):
        table.iloc[300 * i : 300 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet", row_group_size=170)
    return tmp_path


@pytest.mark.parametrize("client", [None, SerialEngine(group_rows=200)])
def test_a_folder_of_tables_gives_the_fit_of_a_table_in_memory(folder, client):
    model = tabular(KernelRidge(**SHARED))
    expected = model.fit(FRAME, Y).predict(FRAME)
    columns = model.encoder_.columns
    features = list(FRAME)
    source = ParquetTables(folder, "y", features)
    parts = tabular(KernelRidge(**SHARED, client=client)).fit(source)
    assert parts.encoder_.columns == columns
    assert "row_id" in str(parts.report())
    np.testing.assert_allclose(parts.predict(FRAME), expected, rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(parts.predict(source), parts.predict(FRAME), atol=1e-9)
    assert parts.score(source) == pytest.approx(parts.score(FRAME, Y))
    parts.save(folder / "model")
    np.testing.assert_array_equal(mercer.load(folder / "model").predict(FRAME), parts.predict(FRAME))


def test_classes_of_a_folder_of_tables(folder):
    source = ParquetTables(folder, "kind", list(FRAME))
    model = tabular(KernelClassifier(**SHARED)).fit(source)
    assert model.classes_.tolist() == ["cheap", "dear"]
    assert model.score(source) == pytest.approx(model.score(FRAME, KIND))
    assert model.score(source) > 0.9
    assert model.predict_proba(source).shape == (N, 2)


def test_a_dask_data_frame_of_any_columns(folder):
    frame = dd.from_pandas(FRAME.assign(y=Y), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        model = tabular(KernelRidge(**SHARED)).fit(frame, "y")
        found = model.predict(frame.drop(columns="y"))
        np.testing.assert_allclose(found.compute(), model.predict(FRAME), atol=1e-9)
        assert model.score(frame, "y") == pytest.approx(model.score(FRAME, Y))
        assert isinstance(found, dd.Series | da.Array)


def test_a_level_of_some_part_alone_is_another_one(folder):
    odd = FRAME.head(50).assign(city="Lima", y=Y[:50], kind=KIND[:50])
    odd.to_parquet(folder / "9.parquet")
    model = tabular(KernelRidge(**SHARED), rare=20).fit(ParquetTables(folder, "y", ["size", "city"]))
    assert np.isfinite(model.predict({"size": [80.0], "city": ["Lima"]})).all()


def test_plain_estimators_say_that_a_table_needs_more(folder):
    with pytest.raises(InputTypeError, match=r"columns of any kind: use mercer.tabular\(\.\.\.\)"):
        KernelRidge().fit(ParquetTables(folder, "y"))
