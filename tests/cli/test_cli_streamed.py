"""`mercer fit` and `predict` on data that are read in parts: the same answer, checkpoints, and clear errors."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mercer.cli.model import TableModel
from mercer.cli.regression import Settings
from mercer.cli.scan import LinearModel, Moments
from mercer.cli.scores import RunningErrors, score
from mercer.cli.sources import why_in_parts
from mercer.data.rows import Chunk

pytestmark = pytest.mark.usefixtures("no_drawing")

N = 1200
FIT = ("--target", "fare", "--no-tune", "--kernel", "gaussian", "--landmarks", "40")


@pytest.fixture
def columns():
    """Trips whose fare is a smooth function of columns of very different scales."""
    rng = np.random.default_rng(0)
    miles, hour = rng.gamma(2.0, 3.0, N), rng.uniform(0, 24, N)
    year = rng.integers(2000, 2020, N).astype(float)
    fare = 3 + 2 * miles + 4 * np.sin(hour / 3) + 0.1 * (year - 2010) ** 2 + rng.normal(0, 0.3, N)
    return {"miles": miles, "hour": hour, "year": year, "fare": fare}


@pytest.fixture
def trips(tmp_path, columns):
    """A folder of three files with several row groups each."""
    (tmp_path / "trips").mkdir()
    for i in range(3):
        rows = slice(i * N // 3, (i + 1) * N // 3)
        table = pa.table({name: column[rows] for name, column in columns.items()})
        pq.write_table(table, tmp_path / "trips" / f"{i}.parquet", row_group_size=70)
    return tmp_path / "trips"


def fitted(command, *arguments):
    result = command("fit", *arguments, "--force")
    assert result.exit_code == 0, result.output
    return result


def report(tmp_path, folder="mercer-model"):
    return json.loads((tmp_path / folder / "report.json").read_text())


def test_a_folder_is_fitted_in_parts_and_said_so(command, trips, tmp_path):
    result = fitted(command, "trips", *FIT)
    assert "read           in 18 parts: a folder is read in parts" in result.stdout
    assert "Kernel ridge wins" in result.stdout
    assert "means and deviations:" in result.stderr
    found = report(tmp_path)
    assert found["data"]["train_rows"] + found["data"]["test_rows"] == N
    assert found["test"]["kernel ridge"]["r2"] > 0.95
    assert found["leave_one_out"]["rmse"] == pytest.approx(found["test"]["kernel ridge"]["rmse"], rel=0.3)


def test_every_format_and_cut_gives_the_same_model(command, trips, columns, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "one.parquet")
    array = np.column_stack(list(columns.values()))
    np.save(tmp_path / "all.npy", array)
    np.save(tmp_path / "X.npy", array[:, :3])
    np.save(tmp_path / "fare.npy", array[:, 3])
    rest = ("--no-tune", "--kernel", "gaussian", "--landmarks", 40)
    for data, target in (
        ("trips", "fare"),
        ("one.parquet", "fare"),
        ("all.npy", "X3"),
        ("all.npy", "3"),
        ("all.npy", "-1"),
        ("X.npy", "fare.npy"),
    ):
        fitted(command, data, "--target", target, *rest, "--out", f"m-{data}-{target}")
    models = [TableModel.load(folder) for folder in sorted(tmp_path.glob("m-*"))]
    assert len(models) == 6
    for model in models[1:]:
        np.testing.assert_allclose(model.predict(array[:, :3]), models[0].predict(array[:, :3]), rtol=1e-6)
        np.testing.assert_array_equal(model.scale, models[0].scale)
    assert {model.target for model in models} == {"fare", "X3"}


def test_weights_count_as_repeated_rows_in_what_is_saved(command, columns, tmp_path):
    weights = np.random.default_rng(1).integers(0, 3, N)
    pq.write_table(pa.table(columns | {"count": weights}), tmp_path / "w.parquet")
    fitted(command, "w.parquet", *FIT, "--weights", "count", "--test-fraction", 0)
    model = TableModel.load(tmp_path / "mercer-model")
    X = np.column_stack([columns[name] for name in ("miles", "hour", "year")])
    np.testing.assert_allclose(model.center, np.repeat(X, weights, axis=0).mean(0), rtol=1e-5)
    np.testing.assert_allclose(model.scale, np.repeat(X, weights, axis=0).std(0), rtol=1e-6)
    assert model.weights == "count"
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "fare.npy", columns["fare"])
    np.save(tmp_path / "count.npy", weights)
    fitted(
        command, "X.npy", "--target", "fare.npy", *FIT[2:], "--weights", "count.npy", "--test-fraction", 0, "--out", "n"
    )
    np.testing.assert_allclose(TableModel.load(tmp_path / "n").predict(X), model.predict(X), rtol=1e-6)


def test_size_against_the_budget_decides(command, columns, tmp_path):
    big = tmp_path / "big.parquet"
    pq.write_table(pa.table({name: np.tile(c, 3000) for name, c in columns.items()}), big)
    settings = Settings(memory=300 * 2**20)
    assert why_in_parts(big, settings) == "all rows need 439.5 MiB, the budget is 300.0 MiB"
    assert why_in_parts(big, replace(settings, memory=2**30)) is None
    array = np.lib.format.open_memmap(tmp_path / "big.npy", "w+", np.float32, (10**8, 2))
    assert "the budget is 300.0 MiB" in why_in_parts(tmp_path / "big.npy", settings)
    del array
    pq.write_table(pa.table(columns), tmp_path / "small.parquet")
    options = ("--no-tune", "--kernel", "gaussian", "--alpha", "0.1")
    assert "read " not in fitted(command, "small.parquet", "--target", "fare", *options).stdout
    np.save(tmp_path / "small.npy", np.column_stack(list(columns.values())))
    assert "read " not in fitted(command, "small.npy", "--target", "-1", *options).stdout
    (tmp_path / "big.csv").write_bytes(b"a,b\n" + b"1,2\n" * 1000)
    result = command("fit", "big.csv", "--target", "b", "--memory", "1KiB", "--force")
    assert "save it as Parquet or .npy, which are read in parts" in result.stderr


@pytest.mark.parametrize("solver", ["falkon", "random_features", "nystrom"])
def test_solvers_can_be_asked_for_also_on_a_csv_file(command, columns, save, solver, tmp_path):
    save("t.csv", columns)
    fitted(command, "t.csv", *FIT, "--solver", solver, "--alpha", "0.1")
    assert report(tmp_path)["solver"]["solver"] == solver
    assert report(tmp_path)["test"]["kernel ridge"]["r2"] > 0.9
    result = command("predict", "mercer-model", "t.csv", "--out", "p.csv")
    assert result.exit_code == 0, result.output


def test_predictions_stream_in_and_out(command, trips, columns, tmp_path):
    fitted(command, "trips", *FIT)
    X = np.column_stack([columns[name] for name in ("miles", "hour", "year")])
    expected = TableModel.load(tmp_path / "mercer-model").predict(X)
    np.save(tmp_path / "X.npy", X)
    for data in ("trips", "X.npy"):
        for out in ("p.csv", "p.csv.gz", "p.parquet", "p.npy"):
            result = command("predict", "mercer-model", data, "--out", out)
            assert result.exit_code == 0, result.output
            assert ("score" in result.stdout) == (data == "trips")
            if out == "p.npy":
                found = np.load(tmp_path / out)
            elif out == "p.parquet":
                found = pq.read_table(tmp_path / out).column("prediction").to_numpy()
            else:
                found = pa.csv.read_csv(tmp_path / out).column("prediction").to_numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    command("predict", "mercer-model", "trips", "--out", "k.parquet", "--keep", "year,fare")
    kept = pq.read_table(tmp_path / "k.parquet")
    assert kept.column_names == ["year", "fare", "prediction"]
    np.testing.assert_array_equal(kept.column("fare").to_numpy(), columns["fare"])
    result = command("predict", "mercer-model", "trips", "--out", "p.npz")
    assert "written to .csv, .parquet or .npy" in result.stderr


def test_json_of_a_streamed_fit_is_the_report_and_nothing_else(command, trips, tmp_path):
    result = fitted(command, "trips", *FIT, "--json")
    assert json.loads(result.stdout)["data"] == report(tmp_path)["data"]
    assert result.stderr == ""
    assert fitted(command, "trips", *FIT, "--quiet").output == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hour": None}, "2.parquet has no column 'hour'"),
        ({"hour": pa.array(["noon"] * 400)}, "Column 'hour' of trips/2.parquet is of type string"),
        ({"hour": np.where(np.arange(400) == 215, np.nan, 1.0)}, "row 5, column 'hour' of row group 3 of 2.parquet"),
        ({"fare": np.where(np.arange(400) == 0, np.inf, 1.0)}, "row 0, column 'fare' of row group 0 of 2.parquet"),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(command, trips, tmp_path, change, words):
    table = pq.read_table(trips / "2.parquet").to_pydict()
    changed = {name: column for name, column in (table | change).items() if column is not None}
    pq.write_table(pa.table(changed), trips / "2.parquet", row_group_size=70)
    result = command("fit", "trips", *FIT)
    assert result.exit_code == 1
    assert words in result.stderr
    assert not (tmp_path / "mercer-model").exists()


def test_a_truncated_file_and_an_empty_folder_are_named_and_text_in_all_files_is_a_column(command, trips, tmp_path):
    (tmp_path / "none").mkdir()
    assert "no .parquet file in the folder none" in command("fit", "none", *FIT).stderr
    assert "There is no file or folder nowhere" in command("fit", "nowhere", *FIT).stderr
    result = command("fit", "trips", "--target", "price")
    assert "--target price: trips has no column 'price'" in result.stderr
    assert "Its columns: miles, hour, year, fare" in result.stderr
    whole = (trips / "1.parquet").read_bytes()
    (trips / "1.parquet").write_bytes(whole[:-20])
    assert "1.parquet is not a Parquet file" in command("fit", "trips", *FIT).stderr
    (trips / "1.parquet").write_bytes(whole)
    for file in trips.iterdir():
        table = pq.read_table(file)
        pq.write_table(table.append_column("city", pa.array(["Oslo", "Rome"] * len(table))[: len(table)]), file)
    assert fitted(command, "trips", *FIT)
    assert fitted(command, "trips", *FIT, "--features", "miles,hour,year")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--resume"], 2, "name the file to go on from with --checkpoint"),
        (["--solver", "magic"], 2, "is not one of auto, cholesky"),
        (["--solver", "eigh", "--landmarks", "5"], 2, "uses all rows"),
        (["--solver", "eigh", "--checkpoint", "c"], 2, "needs all rows at once"),
        (["--solver", "falkon"], 1, "--solver falkon needs a number: --alpha NUMBER"),
        (["--kernel", "laplace", "--kernel", "gaussian", "--checkpoint", "c"], 1, "name one --kernel"),
        (["--kernel", "laplace", "--kernel", "gaussian", "--alpha", "1"], 1, "name one --kernel"),
        (["--checkpoint", "nowhere/c"], 1, "nowhere does not exist"),
        (["--memory", "1MiB"], 1, "the memory budget is 1.0 MiB"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command, trips, arguments, code, words):
    result = command("fit", "trips", "--target", "fare", *arguments)
    assert result.exit_code == code, result.output
    assert words in " ".join(result.stderr.split())


def test_several_kernels_are_compared_by_leave_one_out(command, trips, tmp_path):
    fitted(command, "trips", *FIT[:3], "--landmarks", 40, "--kernel", "gaussian", "--kernel", "laplace")
    tried = report(tmp_path)["kernels_tried"]
    assert set(tried) == {"gaussian", "laplace"}
    assert report(tmp_path)["kernel"].lower().startswith(min(tried, key=tried.get))


INTERRUPTED = """
    import sys, time
    import mercer.data.rows.parquet as parquet
    from mercer.cli import main

    calls, load = 0, parquet.ParquetRows.load
    def slow(self, part):
        global calls
        calls += 1
        if calls == {calls}:
            print("now", flush=True)
            time.sleep(3)
        return load(self, part)
    parquet.ParquetRows.load = slow
    sys.argv = ["mercer", *{arguments!r}]
    sys.exit(main())
"""


@pytest.mark.parametrize("calls", [5, 18 + 18 + 9])
def test_ctrl_c_leaves_a_checkpoint_and_resume_goes_on_to_the_same_model(command, trips, tmp_path, calls):
    """The fit is stopped in its first pass, over means and deviations, or in its third, over the sums."""
    fitted(command, "trips", *FIT, "--out", "whole")
    arguments = ["fit", "trips", *FIT, "--checkpoint", "trips.checkpoint", "--out", "stopped"]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED).format(calls=calls, arguments=arguments)],
        cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "now" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not (tmp_path / "stopped").exists()
    if calls > 40:
        assert "stopped. The state so far is in trips.checkpoint: the same command with --resume goes on" in errors
        again = command(*arguments)
        assert again.exit_code == 1
        assert "trips.checkpoint" in again.stderr
        assert "Add --resume to go on, or remove it" in again.stderr
    else:
        assert "stopped, nothing was written." in errors
    result = fitted(command, *arguments[1:], "--resume")
    assert ("going on from trips.checkpoint" if calls > 40 else "no checkpoint yet") in result.stderr
    assert ("going on after" in result.stderr) == (calls > 40)
    assert not list(tmp_path.glob("trips.checkpoint*"))
    whole, found = (TableModel.load(tmp_path / name) for name in ("whole", "stopped"))
    np.testing.assert_array_equal(found.regressor.dual_coef_, whole.regressor.dual_coef_)


def test_an_error_in_the_middle_of_a_fit_keeps_the_checkpoint(command, trips, tmp_path, monkeypatch):
    load, calls = parquet_load(), []

    def vanishing(self, part):
        calls.append(part)
        if len(calls) == 18 + 18 + 9:
            (trips / "2.parquet").rename(tmp_path / "aside")
        return load(self, part)

    monkeypatch.setattr("mercer.data.rows.parquet.ParquetRows.load", vanishing)
    arguments = ("fit", "trips", *FIT, "--checkpoint", "c")
    result = command(*arguments)
    assert result.exit_code == 1
    assert "Cannot read row group 0 of 2.parquet" in result.stderr
    assert "has vanished" in result.stderr
    assert "the same command with --resume goes on from there" in result.stderr
    (tmp_path / "aside").rename(trips / "2.parquet")
    result = command("fit", "trips", *FIT[:-1], "50", "--checkpoint", "c", "--resume")
    assert "belongs to another fit" in result.stderr
    assert "--resume goes on" not in result.stderr
    assert "going on after" in fitted(command, *arguments[1:], "--resume").stderr


def parquet_load():
    from mercer.data.rows.parquet import ParquetRows

    return ParquetRows.load


def test_the_next_line_of_a_streamed_fit_works(command, trips, tmp_path):
    result = fitted(command, "trips", *FIT)
    line = next(line for line in result.stdout.splitlines() if line.startswith("  mercer predict"))
    (trips / "0.parquet").rename(tmp_path / "new.parquet")
    assert command(*shlex.split(line)[1:]).exit_code == 0


def test_moments_of_parts_are_those_of_all_rows_also_far_from_zero():
    import torch

    rng = np.random.default_rng(0)
    X, y = 1e6 + rng.standard_normal((500, 3)), rng.standard_normal((500, 1))
    w = rng.integers(0, 3, 500).astype(float)
    merged = None
    for part in np.array_split(np.arange(500), 7):
        found = Moments.of(Chunk(*(torch.from_numpy(values[part]) for values in (X, y, w))))
        merged = found if merged is None else merged.merge(found)
    Z = np.column_stack([X, y])
    mean = np.average(Z, axis=0, weights=w)
    np.testing.assert_allclose(merged.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(merged.products, (Z - mean).T @ ((Z - mean) * w[:, None]), rtol=1e-6, atol=1e-6)
    assert merged.weight == w.sum()
    assert merged.rows == (w > 0).sum()


def test_the_linear_model_from_moments_is_ridge_regression():
    import torch
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) * [1, 10, 100] + 5
    y = X @ [1.0, 0.2, 0.03] + rng.standard_normal(400)
    moments = Moments.of(Chunk(torch.from_numpy(X), torch.from_numpy(y[:, None]), None))
    found = LinearModel.of(moments, ("a", "b", "c"), np.array([7.0]))
    Z = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(found.predict(X), Ridge(alpha=7.0).fit(Z, y).predict(Z), rtol=1e-6)
    alphas = np.logspace(-3, 4, 30)
    chosen = LinearModel.of(moments, ("a", "b", "c"), alphas)

    def gcv(a):
        H = Z @ np.linalg.solve(Z.T @ Z + a * np.eye(3), Z.T)
        centred = y - y.mean()
        return ((centred - H @ centred) ** 2).sum() / (400 - 1 - np.trace(H)) ** 2

    best = alphas[np.argmin([gcv(a) for a in alphas])]
    np.testing.assert_allclose(chosen.coef, Ridge(alpha=best).fit(Z, y).coef_, rtol=1e-5)


def test_errors_added_in_parts_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    y, w = rng.normal(100, 1, 300), rng.integers(1, 4, 300).astype(float)
    ours, ridge = y + rng.normal(0, 0.5, 300), y + rng.normal(0, 0.6, 300)
    predictions = {"kernel ridge": ours, "ridge regression": ridge, "mean": np.full(300, 100.0)}
    errors = RunningErrors(tuple(predictions), 99.0)
    for part in np.array_split(np.arange(300), 4):
        errors.add(y[part], {name: values[part] for name, values in predictions.items()}, w[part])
    for name, values in predictions.items():
        expected = score(y, values, w)
        assert errors.scores()[name].r2 == pytest.approx(expected.r2, abs=1e-10)
        assert errors.scores()[name].rmse == pytest.approx(expected.rmse, rel=1e-12)
    drop = (y - ridge) ** 2 - (y - ours) ** 2
    mean = np.average(drop, weights=w)
    deviation = np.sqrt(np.sum((w / w.sum() * (drop - mean)) ** 2))
    assert errors.gain("ridge regression") == pytest.approx(mean / deviation, rel=1e-10)
