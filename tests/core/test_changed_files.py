"""Files that change while they are read: a fit never takes rows from two versions of one file."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest
import torch

from mercer import KernelRidge
from mercer.core.errors import CheckpointError, InputError, InputTypeError
from mercer.data.engines import SerialEngine
from mercer.data.rows import ArrayRows, ParquetRows, chunk_rows, npy_rows
from mercer.data.rows.marks import FileMark
from mercer.kernels import Gaussian

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

rng = np.random.default_rng(0)
X, y = rng.standard_normal((900, 3)), rng.standard_normal(900)
FITS = {"nystrom": {"solver": "nystrom"}, "falkon": {"solver": "falkon", "max_iter": 3}}


def table(X, y):
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


def write_parquet(path, X, y):
    pq.write_table(table(X, y), path, row_group_size=200)


def write_npy(path, X, y):
    np.save(path, np.c_[X, y])


def in_place(path, write, X, y):
    """As pandas writes: the file keeps its inode, and what is open reads the new bytes."""
    write(path.with_name("new.tmp.npy"), X, y)
    path.write_bytes(path.with_name("new.tmp.npy").read_bytes())
    later(path)


def replaced(path, write, X, y):
    """As careful programs write: what is open goes on with the old bytes."""
    write(path.with_name("new.tmp.npy"), X, y)
    os.replace(path.with_name("new.tmp.npy"), path)
    later(path)


def later(path):
    """Clocks of file systems are coarse; two writes of a test may fall into one of their ticks."""
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**9))


CHANGES = {
    "in place": (in_place, X, -y),
    "replaced": (replaced, X, -y),
    "grown": (in_place, np.r_[X, X], np.r_[y, y]),
    "grown, replaced": (replaced, np.r_[X, X], np.r_[y, y]),
    "shrunk": (replaced, X[:100], y[:100]),
}


class Changing:
    """Rows of which a part is changed at the end of the first whole pass after so many parts."""

    def after(self, parts, change):
        self.left, self.change = parts, change
        return self

    def load(self, part):
        chunk = super().load(part)
        self.left -= 1
        if self.left == 0:
            self.change()
        return chunk


class ChangingParquet(Changing, ParquetRows):
    pass


class ChangingArrays(Changing, ArrayRows):
    pass


def fit(source, **options):
    settings = {"kernel": Gaussian(1.5), "alpha": 0.1, "n_landmarks": 30, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelRidge(**settings).fit(source)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("options", FITS)
@pytest.mark.parametrize("parts", [1, 5, 8])
def test_a_parquet_file_that_is_written_again_during_a_fit_is_an_error(options, change, parts, tmp_path):
    how, new_X, new_y = CHANGES[change]
    path = tmp_path / "t.parquet"
    write_parquet(path, X, y)
    source = ChangingParquet(path, "y").after(parts, lambda: how(path, write_parquet, new_X, new_y))
    with pytest.raises(InputError, match=r"t\.parquet has changed since it was opened"):
        fit(source, **FITS[options])


def test_the_footer_tells_where_time_and_size_do_not(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, X, y)
    before, source = path.stat(), ParquetRows(path, "y")
    list(source)
    replaced(path, write_parquet, X, -y)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(InputError, match="has changed since it was opened .its footer differs"):
        list(source)


@pytest.mark.parametrize("change", CHANGES)
def test_so_is_one_among_several(change, tmp_path):
    how, new_X, new_y = CHANGES[change]
    for i in range(3):
        write_parquet(tmp_path / f"part-{i}.parquet", X, y)
    path = tmp_path / "part-1.parquet"
    source = ChangingParquet(tmp_path, "y").after(13, lambda: how(path, write_parquet, new_X, new_y))
    with pytest.raises(InputError, match=r"part-1\.parquet has changed"):
        fit(source, solver="falkon", max_iter=3)


@pytest.mark.parametrize("kind", ["npy", "map"])
@pytest.mark.parametrize("change", ["in place", "replaced", "grown", "grown, replaced"])
def test_so_are_npy_files_and_maps_that_only_read(change, kind, tmp_path):
    how, new_X, new_y = CHANGES[change]
    path = tmp_path / "t.npy"
    write_npy(path, X, y)
    whole = np.load(path, mmap_mode="r") if kind == "map" else npy_rows(path).X
    source = ChangingArrays(whole, y, rows_at_once=200).after(8, lambda: how(path, write_npy, new_X, new_y))
    with pytest.raises(InputError, match=r"t\.npy has changed since it was opened"):
        fit(source, solver="nystrom")


def test_so_is_the_copy_of_an_iterator(tmp_path):
    source = chunk_rows([(X, y)], folder=tmp_path, rows_at_once=200)
    list(source)
    later(next(tmp_path.glob("*/y")))
    with pytest.raises(InputError, match=r"y has changed since it was opened"):
        fit(source, solver="nystrom")


def test_a_source_does_not_read_a_file_that_changed_before_the_fit(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, X, y)
    source = ParquetRows(path, "y")
    replaced(path, write_parquet, X, -y)
    with pytest.raises(InputError, match="has changed"):
        fit(source, solver="nystrom")
    fit(ParquetRows(path, "y"), solver="nystrom")


def test_rows_that_other_processes_read_must_be_those_that_were_counted(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, X, y)
    packed = pickle.dumps(ParquetRows(path, "y"))
    replaced(path, write_parquet, X, -y)
    with pytest.raises(InputError, match="has changed"):
        fit(pickle.loads(packed), solver="nystrom", client=SerialEngine())


def test_another_machine_may_have_a_copy_with_a_time_of_its_own(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    write_parquet(path, X, y)
    source = ParquetRows(path, "y")
    later(path)
    monkeypatch.setattr("mercer.data.rows.marks.platform.node", lambda: "elsewhere")
    np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source]), X)
    write_parquet(path, X, -y)
    source = pickle.loads(pickle.dumps(source))
    with pytest.raises(InputError, match=r"t\.parquet has changed since it was opened"):
        list(source)


def test_a_checkpoint_of_rows_that_changed_meanwhile_is_not_continued(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    path, options = tmp_path / "t.parquet", {"solver": "nystrom", "checkpoint": tmp_path / "c"}
    write_parquet(path, X, y)
    source = ChangingParquet(path, "y").after(8, lambda: replaced(path, write_parquet, X, -y))
    with pytest.raises(InputError, match="has changed"):
        fit(source, **options)
    assert (tmp_path / "c").exists()
    with pytest.raises(CheckpointError, match=r"belongs to another fit \(rows"):
        fit(ParquetRows(path, "y"), **options)
    replaced(path, write_parquet, X, y)
    found = fit(ParquetRows(path, "y"), **options)
    np.testing.assert_array_equal(found.dual_coef_, fit(ParquetRows(path, "y"), solver="nystrom").dual_coef_)


def test_a_map_that_may_be_written_is_memory(tmp_path):
    np.save(tmp_path / "t.npy", X)
    source = ArrayRows(np.load(tmp_path / "t.npy", mmap_mode="r+"), y)
    later(tmp_path / "t.npy")
    np.testing.assert_array_equal(next(iter(source)).X, X)


def test_a_mark_names_what_is_different(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"1234")
    mark = FileMark.of(path)
    path.write_bytes(b"12345")
    with pytest.raises(InputError, match=r"f has changed since it was opened \(it had 4 bytes, now 5\)"):
        mark.check(path)
    path.unlink()
    with pytest.raises(InputError, match="f has vanished"):
        mark.check(path)


# Lists of files


def test_a_list_of_files_and_folders_is_read_in_its_order(tmp_path):
    pieces = np.array_split(np.arange(900), 4)
    names = ["z.parquet", "a.parquet", "folder/b.parquet", "folder/a.parquet"]
    (tmp_path / "folder").mkdir()
    for name, rows in zip(names, pieces, strict=True):
        write_parquet(tmp_path / name, X[rows], y[rows])
    order = np.r_[pieces[0], pieces[3], pieces[2], pieces[1]]
    for given in (
        [tmp_path / "z.parquet", str(tmp_path / "folder"), tmp_path / "a.parquet"],
        (tmp_path / "z.parquet", tmp_path / "folder", tmp_path / "a.parquet"),
    ):
        source = ParquetRows(given, "y")
        np.testing.assert_array_equal(torch.cat([chunk.X for chunk in source]), X[order])
        np.testing.assert_array_equal(torch.cat([chunk.targets for chunk in source])[:, 0], y[order])
    expected = fit(ArrayRows(X[order], y[order]), solver="nystrom").predict(X[:5])
    np.testing.assert_allclose(fit(source, solver="nystrom").predict(X[:5]), expected, rtol=1e-8)
    other = ParquetRows([tmp_path / "a.parquet", tmp_path / "folder", tmp_path / "z.parquet"], "y")
    assert source.identity() != other.identity()
    names = {source.place(part) for part in source.parts()}
    assert {"row group 0 of z.parquet", f"row group 0 of {tmp_path / 'z.parquet'}"} & names


def test_files_of_a_list_that_differ_are_named(tmp_path):
    write_parquet(tmp_path / "one.parquet", X, y)
    one = tmp_path / "one.parquet"
    for columns, error, complaint in (
        (table(X, y).drop_columns(["c"]), InputError, r"two\.parquet has no column 'c'"),
        (table(X, y).append_column("d", pa.array(y)), InputError, r"two\.parquet has a column 'd'"),
        (table(X, y).set_column(1, "b", pa.array(["x"] * 900)), InputTypeError, r"'b' of .*two\.parquet is of type"),
    ):
        pq.write_table(columns, tmp_path / "two.parquet")
        with pytest.raises(error, match=complaint):
            ParquetRows([one, tmp_path / "two.parquet"], "y")
    with pytest.raises(InputError, match=r"There is no file .*three\.parquet"):
        ParquetRows([one, tmp_path / "three.parquet"], "y")
    with pytest.raises(InputError, match=r"one\.parquet is given more than once"):
        ParquetRows([one, tmp_path], "y")


@pytest.mark.parametrize("wrong", [[], 3, None, [3], {"a": 1}, [None]])
def test_what_is_no_path_is_refused(wrong):
    with pytest.raises(InputTypeError, match="give a file, a folder, or a list of files and folders"):
        ParquetRows(wrong, "y")


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_parquet(tmp_path / name / "part.parquet", X, np.where(np.arange(900) == 500, np.nan, y))
    with pytest.raises(InputError, match=r"row 100, .*of row group 2 of .*one.part\.parquet"):
        list(ParquetRows([tmp_path / "one", tmp_path / "two"], "y"))
