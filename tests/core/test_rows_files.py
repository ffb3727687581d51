"""Rows of files: what is read, what goes wrong, and views of them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from mercer.core.errors import InputError
from mercer.data.rows import ArrayRows, ColumnRows, ParquetRows, ScaledRows, SelectedRows, chunk_rows, npy_rows
from mercer.data.rows.files import FileArray
from mercer.data.rows.source import drawn
from mercer.data.rows.views import row_hash

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

rng = np.random.default_rng(0)
X, y = rng.standard_normal((1000, 3)), rng.standard_normal(1000)


def table(rows=slice(None), **changes):
    return pa.table({"a": X[rows, 0], "b": X[rows, 1], "c": X[rows, 2], "y": y[rows]} | changes)


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<i4", "|u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_npy_files_are_those_of_the_array(kind, order, tmp_path):
    array = np.asarray(np.abs(X) * 10, dtype=kind, order=order)
    np.save(tmp_path / "X.npy", array)
    np.save(tmp_path / "y.npy", y)
    source = npy_rows(tmp_path / "X.npy", tmp_path / "y.npy", rows_at_once=77)
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source]), array.astype("<f8"))
    np.testing.assert_array_equal(torch.cat([chunk.targets for chunk in source])[:, 0], y)


def test_a_source_of_files_is_small_when_pickled(tmp_path):
    np.save(tmp_path / "X.npy", X)
    pq.write_table(table(), tmp_path / "t.parquet")
    spooled = chunk_rows([X])
    for source in (npy_rows(tmp_path / "X.npy"), ParquetRows(tmp_path / "t.parquet", "y"), spooled):
        packed = pickle.dumps(source)
        assert len(packed) < 3000
        np.testing.assert_array_equal(torch.cat([chunk.X for chunk in pickle.loads(packed)]), X)


def test_npy_files_that_change_are_errors_not_crashes(tmp_path):
    np.save(tmp_path / "X.npy", X)
    source = npy_rows(tmp_path / "X.npy", rows_at_once=100)
    whole = (tmp_path / "X.npy").read_bytes()
    (tmp_path / "X.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"X.npy has changed since it was opened"):
        list(source)
    with pytest.raises(InputError, match=r"X.npy is not an array that numpy can read"):
        npy_rows(tmp_path / "X.npy")
    (tmp_path / "X.npy").unlink()
    with pytest.raises(InputError, match=r"X.npy has vanished"):
        list(source)
    np.savez(tmp_path / "many.npz", X=X)
    with pytest.raises(InputError, match="several arrays"):
        FileArray.npy(tmp_path / "many.npz")


@pytest.mark.parametrize("at_once", [None, 100, 33, 1000])
def test_large_row_groups_are_read_in_pieces(at_once, tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=250)
    source = ParquetRows(tmp_path / "t.parquet", "y", rows_at_once=at_once)
    assert max(map(len, source.parts())) <= (at_once or 250)
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source]), X)
    parts = source.parts()
    for i in (len(parts) - 1, 0, len(parts) // 2, len(parts) // 2, 1 % len(parts)):  # in any order
        part = parts[i]
        np.testing.assert_array_equal(source.read(part).X, X[part.before : part.before + len(part)])


def test_files_of_other_precision_or_integers_are_read_as_float64(tmp_path):
    single = {name: X[:500, j].astype(np.float32) for j, name in enumerate("abc")}
    pq.write_table(table(slice(0, 500), **single), tmp_path / "0.parquet")
    assert ParquetRows(tmp_path, "y").dtype == torch.float32
    pq.write_table(table(slice(500, 1000), b=np.arange(500)), tmp_path / "1.parquet")
    source = ParquetRows(tmp_path, "y")
    assert source.dtype == torch.float64
    np.testing.assert_array_equal(list(source)[1].X[:, 1], np.arange(500))


def test_files_with_more_columns_than_the_first_are_refused(tmp_path):
    pq.write_table(table(slice(0, 500)), tmp_path / "0.parquet")
    pq.write_table(table(slice(500, 1000), d=y[:500]), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet has a column 'd' that .*0.parquet does not have"):
        ParquetRows(tmp_path, "y")
    assert len(ParquetRows(tmp_path, "y", features=["a", "b"])) == 1000


@pytest.mark.parametrize("bad", [np.nan, np.inf, None])
@pytest.mark.parametrize("column", ["b", "y"])
def test_a_bad_number_in_chunk_700_is_named_with_file_row_group_row_and_column(bad, column, tmp_path):
    values = (X[:, 1] if column == "b" else y).tolist()
    values[703] = bad
    pq.write_table(table(**{column: pa.array(values, pa.float64())}), tmp_path / "t.parquet", row_group_size=1)
    source = ParquetRows(tmp_path, "y")
    kind = "infinity" if bad == np.inf else "NaN"
    with pytest.raises(InputError, match=rf"contains {kind}: row 0, column '{column}' of row group 703 of t.parquet"):
        list(source)


def test_a_parquet_file_that_is_cut_short_or_vanishes_while_it_is_read_is_named_with_its_row_group(tmp_path):
    for i in range(2):
        pq.write_table(table(slice(500 * i, 500 * i + 500)), tmp_path / f"{i}.parquet", row_group_size=100)
    source = ParquetRows(tmp_path, "y")
    chunks = iter(source)
    next(chunks)
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"Cannot read row group 0 of 1.parquet: .*1.parquet has changed since"):
        list(chunks)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(InputError, match=r"Cannot read row group 0 of 1.parquet: .*has vanished"):
        list(source)
    spoilt = whole[:50] + bytes(len(whole) // 2) + whole[50 + len(whole) // 2 :]
    (tmp_path / "1.parquet").write_bytes(spoilt)
    with pytest.raises(InputError, match=r"Cannot read row group \d of 1.parquet"):
        list(source)


def test_the_identity_of_files_changes_with_their_content(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", compression="none", use_dictionary=False)
    first = ParquetRows(tmp_path, "y").identity()
    assert first == ParquetRows(tmp_path, "y").identity()
    pq.write_table(table(a=X[:, 0] + 1), tmp_path / "t.parquet", compression="none", use_dictionary=False)
    assert first != ParquetRows(tmp_path, "y").identity()


def test_the_identity_of_parquet_files_changes_when_values_change_places(tmp_path):
    """The footer has the extremes of each row group, which stay as they are."""
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(table(), tmp_path / "t.parquet", **plain)
    first, size = ParquetRows(tmp_path, "y").identity(), (tmp_path / "t.parquet").stat().st_size
    pq.write_table(table(y=y[::-1]), tmp_path / "t.parquet", **plain)
    assert (tmp_path / "t.parquet").stat().st_size == size
    assert first != ParquetRows(tmp_path, "y").identity()


@pytest.mark.parametrize("changed", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("row", [0, 237, 999])
@pytest.mark.parametrize("kind", [ArrayRows, torch.from_numpy, npy_rows, chunk_rows])
def test_the_identity_of_arrays_changes_with_every_number(changed, row, kind, tmp_path):
    def identity(arrays):
        if kind is npy_rows:
            for name, array in arrays.items():
                np.save(tmp_path / f"{name}.npy", array)
            return npy_rows(*(tmp_path / f"{name}.npy" for name in arrays), rows_at_once=300).identity()
        if kind is chunk_rows:
            return chunk_rows([tuple(arrays.values())], rows_at_once=300).identity()
        given = [torch.from_numpy(array) if kind is torch.from_numpy else array for array in arrays.values()]
        return ArrayRows(*given, rows_at_once=300).identity()

    arrays = {"X": X.copy(order="F"), "y": y.copy(), "sample_weight": np.ones(1000)}
    first = identity(arrays)
    assert first == identity(arrays)
    arrays[changed][row] += 0.5
    assert first != identity(arrays)


def test_the_identity_tells_how_rows_are_cut_and_what_they_are_called():
    frame = pd.DataFrame(X, columns=list("abc"))
    others = [ArrayRows(X, rows_at_once=100), ArrayRows(frame), ArrayRows(frame.rename(columns={"a": "d"}))]
    assert len({str(source.identity()) for source in (ArrayRows(X), *others)}) == 4


@pytest.mark.parametrize(
    ("uses", "complaint"),
    [
        ({"target": "y", "features": ["a", "y"]}, "features has 'y', which is the target; leave it out"),
        ({"target": ["c", "y"], "features": ["a", "c"]}, "features has 'c', which is the target"),
        ({"target": "y", "weight": "c", "features": ["a", "c"]}, "features has 'c', which is the weight"),
        ({"target": "y", "features": ["a", "b", "a"]}, "features names the column 'a' more than once"),
        ({"target": ["y", "y"]}, "target names the column 'y' more than once"),
        ({"target": "y", "weight": "y"}, "'y' is both target and weight"),
    ],
)
def test_a_parquet_column_with_two_uses_is_refused(uses, complaint, tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=complaint):
        ParquetRows(tmp_path, **uses)


def test_parquet_files_with_two_columns_of_one_name_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array(X[:, 0]), pa.array(X[:, 1]), pa.array(X[:, 2]), pa.array(y)], list("abay"))
    pq.write_table(twice, tmp_path / "t.parquet")
    for uses in (
        {"target": "y"},
        {"target": "a", "features": ["b"]},
        {"target": "y", "features": ["b"], "weight": "a"},
    ):
        with pytest.raises(InputError, match=r"t.parquet has more than one column named 'a'; rename or remove"):
            ParquetRows(tmp_path, **uses)
    assert ParquetRows(tmp_path, "y", features=["b"]).names == ("b",)


def test_many_files_are_not_held_open(tmp_path):
    for i in range(30):
        pq.write_table(table(slice(i, i + 1)), tmp_path / f"{i:02}.parquet")
    import os

    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    source = ParquetRows(tmp_path, "y")
    assert len(list(source)) == 30
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 3


def test_views_select_columns_and_rows_and_scale():
    inner = ArrayRows(X, y, rows_at_once=100)
    columns = ColumnRows(ArrayRows(X, rows_at_once=100), [2, 0], target=1, names=["c", "a"])
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in columns]), X[:, [2, 0]])
    np.testing.assert_array_equal(torch.cat([chunk.targets for chunk in columns])[:, 0], X[:, 1])
    scaled = ScaledRows(inner, X.mean(0), X.std(0), 2.0)
    np.testing.assert_allclose(torch.cat([chunk.X for chunk in scaled]), (X - X.mean(0)) / X.std(0), rtol=1e-12)
    np.testing.assert_allclose(torch.cat([chunk.targets for chunk in scaled])[:, 0], y - 2.0)
    with pytest.raises(InputError, match="no column 3"):
        ColumnRows(inner, [3])
    with pytest.raises(InputError, match="weight is negative in row"):
        list(ColumnRows(inner, [0], weight=1))
    assert len({str(view.identity()) for view in (inner, columns, scaled)}) == 3


def test_rows_held_out_do_not_depend_on_the_cut_and_are_a_fair_share():
    chosen = []
    for at_once in (1000, 77, 1):
        source = ArrayRows(X, y, rows_at_once=at_once)
        test, train = (SelectedRows(source, 0.3, 5, held_out=held_out) for held_out in (True, False))
        assert len(test) + len(train) == 1000
        chosen.append(torch.cat([chunk.X for chunk in test]))
        both = torch.cat([chosen[-1], *(chunk.X for chunk in train)])
        np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(X, axis=0))
    assert torch.equal(chosen[0], chosen[1])
    assert torch.equal(chosen[0], chosen[2])
    share = row_hash(0, 10**6, 1)
    assert abs((share < 0.2).mean() - 0.2) < 0.002
    assert abs(np.corrcoef(share[1:], share[:-1])[0, 1]) < 0.005
    assert abs(np.corrcoef(share, row_hash(0, 10**6, 2))[0, 1]) < 0.005


def test_an_error_in_a_view_names_the_row_of_the_file(tmp_path):
    values = X[:, 1].copy()
    values[503] = np.nan
    pq.write_table(table(b=values), tmp_path / "t.parquet", row_group_size=250)
    rows = SelectedRows(ParquetRows(tmp_path, "y"), 0.5, 0, held_out=True)
    with pytest.raises(InputError, match="row 3, column 'b' of row group 2 of t.parquet"):
        list(ScaledRows(rows, np.zeros(3), np.ones(3)))


def test_numbers_are_drawn_without_replacement_and_evenly():
    for n, count in ((100, 5), (100, 60), (10**12, 1000), (40, 10)):
        found = drawn(n, count, torch.Generator().manual_seed(0))
        assert len(found.unique()) == count
        assert torch.equal(found, found.sort().values)
        assert int(found.max()) < n
    n, generator = 2**22, torch.Generator().manual_seed(1)
    hits = torch.bincount(drawn(n, n // 5, generator) * 40 // n, minlength=40)
    assert float((hits - n / 200).abs().max()) < 6 * (n / 200) ** 0.5  # as many in each fortieth, six deviations
