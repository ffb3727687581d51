"""Sources of rows: arrays, memory maps, Parquet."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from mercer import KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.data.rows import ArrayRows, ParquetRows, chunk_rows, npy_rows, read_ahead, sample_rows
from mercer.kernels import Gaussian, Subspace

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

rng = np.random.default_rng(0)
X, y, w = rng.standard_normal((1000, 3)), rng.standard_normal(1000), rng.integers(0, 3, 1000).astype(float)


def table(rows=slice(None), **changes):
    columns = {"a": X[rows, 0], "b": X[rows, 1], "c": X[rows, 2], "price": y[rows], "count": w[rows]}
    return pa.table(columns | changes)


@pytest.fixture
def folder(tmp_path):
    pq.write_table(table(slice(0, 600)), tmp_path / "part-0.parquet", row_group_size=250)
    pq.write_table(table(slice(600, 1000)), tmp_path / "part-1.parquet", row_group_size=250)
    return tmp_path


def sources(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    yield ArrayRows(X, y, w, rows_at_once=300)
    yield ArrayRows(mapped, y, w, rows_at_once=77)
    yield npy_rows(folder / "X.npy", folder / "y.npy", w)
    yield ArrayRows(torch.from_numpy(X), y, w)
    yield ParquetRows(folder, "price", weight="count")
    yield chunk_rows((X[i : i + 90], y[i : i + 90], w[i : i + 90]) for i in range(0, 1000, 90))


def test_every_source_gives_the_same_rows_in_order_also_after_pickling(folder):
    for original in sources(folder):
        source = pickle.loads(pickle.dumps(original))
        assert (source.n_rows, source.n_features, source.n_targets) == (1000, 3, 1)
        chunks = list(source)
        np.testing.assert_array_equal(torch.cat([chunk.X for chunk in chunks]), X)
        np.testing.assert_array_equal(torch.cat([chunk.targets for chunk in chunks])[:, 0], y)
        np.testing.assert_array_equal(torch.cat([chunk.weights for chunk in chunks]), w)
        before = 0
        for part in source.parts():
            assert part.before == before
            before += len(part)


def test_samples_do_not_depend_on_how_rows_are_cut(folder):
    drawn = [sample_rows(source, 50, torch.Generator().manual_seed(3)) for source in sources(folder)]
    for other in drawn[1:]:
        np.testing.assert_array_equal(other.X, drawn[0].X)
        np.testing.assert_array_equal(other.targets, drawn[0].targets)
    assert len(drawn[0].X.unique(dim=0)) == 50


def test_empty_row_groups_are_passed_over(tmp_path):
    with pq.ParquetWriter(tmp_path / "t.parquet", table().schema) as writer:
        writer.write_table(table(slice(0, 10)))
        writer.write_table(table(slice(10, 10)))
        writer.write_table(table(slice(10, 20)))
    source = ParquetRows(tmp_path / "t.parquet", "price")
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source])[:, 0], X[:20, 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("huge", [np.full((9, 2), 1e308), np.full((9, 2), np.float32(3e38))])
def test_numbers_whose_sum_overflows_are_read_without_a_word(huge):
    y = np.where(np.arange(9) % 2, 1e308, -1e308)
    assert all((float(huge[0, 0]) == chunk.X).all() for chunk in ArrayRows(huge, y, rows_at_once=4))


def test_what_is_wrong_with_a_row_group_is_named_with_its_place(folder):
    spoilt = X[600:1000, 1].copy()
    spoilt[260] = np.nan
    pq.write_table(table(slice(600, 1000), b=spoilt), folder / "part-1.parquet", row_group_size=250)
    with pytest.raises(InputError, match="X contains NaN: row 10, column 'b' of row group 1 of part-1.parquet"):
        list(ParquetRows(folder, "price", features=["a", "b", "c"]))
    source = ArrayRows(np.where(np.arange(3000).reshape(1000, 3) == 1501, np.inf, X), y, rows_at_once=100)
    with pytest.raises(InputError, match="X contains infinity: row 500, column 1 of X"):
        list(source)
    with pytest.raises(InputError, match="sample_weight is negative in row 7"):
        list(ArrayRows(X, y, np.where(np.arange(1000) == 7, -1.0, 1.0)))


def test_files_that_cannot_be_used_are_named(folder):
    with pytest.raises(InputError, match=r"no column 'cost'; its columns are 'a', 'b'"):
        ParquetRows(folder, "cost")
    pq.write_table(table(slice(600, 1000), b=["x"] * 400), folder / "part-1.parquet")
    with pytest.raises(InputTypeError, match=r"Column 'b' of .*part-1.parquet is of type string"):
        ParquetRows(folder, "price")
    pq.write_table(table(slice(600, 1000)).drop_columns(["c"]), folder / "part-1.parquet")
    with pytest.raises(InputError, match="part-1.parquet has no column 'c'"):
        ParquetRows(folder, "price")
    (folder / "part-1.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="part-1.parquet is not a Parquet file"):
        ParquetRows(folder, "price")
    with pytest.raises(InputError, match="There is no file"):
        ParquetRows(folder / "none.parquet", "price")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"no .parquet file in the folder"):
        ParquetRows(folder / "empty", "price")
    with pytest.raises(InputError, match="There is no file"):
        npy_rows(folder / "none.npy")
    (folder / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad.npy is not an array"):
        npy_rows(folder / "bad.npy")


def test_a_file_that_vanishes_is_named(folder):
    source = ParquetRows(folder, "price")
    (folder / "part-1.parquet").unlink()
    with pytest.raises(InputError, match="part-1.parquet has vanished"):
        list(source)


def test_arrays_that_do_not_fit_together_are_refused():
    with pytest.raises(InputError, match="y has 5 rows but X has 1000"):
        ArrayRows(X, y[:5])
    with pytest.raises(InputTypeError, match="X has dtype"):
        ArrayRows(X.astype(complex))
    with pytest.raises(InputError, match="expected 2 dimensions"):
        ArrayRows(X[0])


@pytest.mark.parametrize("at_once", [0, -5, 10.5, 10.0, "10", True, np.nan, [10]])
def test_rows_at_once_must_be_a_whole_number(at_once, folder):
    np.save(folder / "X.npy", X)

    def chunks():
        raise AssertionError("read before the parameter was checked")
        yield X

    for build in (
        lambda: ArrayRows(X, rows_at_once=at_once),
        lambda: npy_rows(folder / "X.npy", rows_at_once=at_once),
        lambda: ParquetRows(folder, "price", rows_at_once=at_once),
        lambda: chunk_rows(chunks(), rows_at_once=at_once),
    ):
        with pytest.raises(
            (InputError, InputTypeError), match=re.escape(f"rows_at_once={at_once!r}: must be an integer >= 1")
        ):
            build()
    assert ArrayRows(X, rows_at_once=np.int64(10)).rows_at_once == 10


def test_reading_ahead_keeps_the_order_and_passes_errors_on():
    def read(i):
        if i == 3:
            raise ValueError("three")
        return i * i

    assert list(read_ahead(read, range(3))) == [(0, 0), (1, 1), (2, 4)]
    assert list(read_ahead(read, [])) == []
    with pytest.raises(ValueError, match="three"):
        list(read_ahead(read, range(5)))


def test_chunks_are_kept_on_disk_while_their_source_lives(tmp_path):
    source = chunk_rows(iter([X[:600], X[600:]]), folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source]), X)
    del source
    assert not list(tmp_path.iterdir())


def test_chunks_that_do_not_fit_together_are_named(tmp_path):
    for chunks, complaint in (
        ([X[:5], X[5:9, :2]], "X of chunk 1 does not match"),
        ([(X[:5], y[:4])], "y of chunk 0 has 4 rows, X has 5"),
        ([(X[:5], y[:5]), X[5:9]], "y of chunk 1 does not match"),
        ([], "gave no rows"),
        ([X[:5].astype(np.float32), X[5:9]], "X of chunk 1 is float64, but the chunks before it are float32"),
    ):
        with pytest.raises(InputError, match=complaint):
            chunk_rows(iter(chunks), folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_chunks_of_text_are_refused(tmp_path):
    with pytest.raises(InputTypeError, match="X of chunk 0 has dtype <U1"):
        chunk_rows([np.array([["a", "b"]])], folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_names_of_frames_are_kept(frame):
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    whole = ArrayRows(frame(columns), y)
    chunks = chunk_rows(
        (frame({name: v[i : i + 500] for name, v in columns.items()}), y[i : i + 500]) for i in (0, 500)
    )
    for source in (whole, chunks, pickle.loads(pickle.dumps(chunks)), whole.portion(whole.parts())):
        assert source.names == ("a", "b", "c")
        np.testing.assert_array_equal(torch.cat([source.load(part).X for part in source.parts()]), X)
    with pytest.raises(InputError, match="X contains NaN: row 0, column 'b' of X"):
        list(ArrayRows(frame(columns | {"b": np.full(1000, np.nan)})))


def test_names_go_with_the_files_behind_memory_maps(folder):
    np.save(folder / "X.npy", X)
    source = ArrayRows(np.load(folder / "X.npy", mmap_mode="r"))
    source.names = ("a", "b", "c")
    portion = source.portion(source.parts())
    assert portion is not source
    assert portion.names == source.names


def test_frames_without_names_of_text_have_none():
    assert ArrayRows(pd.DataFrame(X)).names is None
    assert ArrayRows(X).names is None
    with pytest.raises(InputError, match="more than one column named 'a'"):
        ArrayRows(pd.DataFrame(X, columns=["a", "b", "a"]))


def test_chunks_with_other_columns_are_refused(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    targets = frame[["a", "b"]]
    for chunks, complaint in (
        (
            [frame, frame[["c", "a", "b"]]],
            "X of chunk 1 has the columns ['c', 'a', 'b'], but the chunks before it have",
        ),
        ([frame, frame.rename(columns={"a": "d"})], "X of chunk 1 has the columns ['d', 'b', 'c'], but"),
        (
            [frame, frame, X],
            "X of chunk 2 has no column names, but the chunks before it have the columns ['a', 'b', 'c']",
        ),
        ([X, frame], "X of chunk 1 has the columns ['a', 'b', 'c'], but the chunks before it have no column names"),
        ([(X, targets), (X, targets[["b", "a"]])], "y of chunk 1 has the columns ['b', 'a'], but"),
    ):
        with pytest.raises(InputError, match=re.escape(complaint)):
            chunk_rows(chunks, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_compare_the_names_of_a_source_with_those_of_the_fit():
    frame = pd.DataFrame(X, columns=list("abc"))
    swapped = frame[["c", "a", "b"]]
    model = KernelRidge(Subspace(Gaussian(1.0), ["a"]), n_landmarks=20)
    for source in (ArrayRows(frame, y), chunk_rows([(frame, y)])):
        model.fit(source)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        np.testing.assert_array_equal(model.predict(ArrayRows(frame)), model.predict(frame))
        for other in (ArrayRows(swapped), chunk_rows([swapped])):
            with pytest.raises(InputError, match="features of the source are"):
                model.predict(other)
