"""`mercer fit` on folders of Parquet files with columns of any kind, and for classes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mercer.cli.app import app

rng = np.random.default_rng(0)
N = 400
CITY = rng.choice(["Oslo", "Rome"], N)
SIZE = rng.normal(80, 20, N)
FRAME = pd.DataFrame({"size": SIZE, "city": CITY, "row_id": [f"r{i}" for i in range(N)]})
FRAME["price"] = SIZE / 20 + 2.0 * (CITY == "Rome") + 0.1 * rng.normal(size=N)
FRAME["kind"] = np.where(FRAME["price"] > 5, "dear", "cheap")
QUICK = ["--kernel", "laplace", "--landmarks", "30", "--no-tune", "--json"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    for i in range(2):
        FRAME.iloc[200 * i : 200 * (i + 1)].to_parquet(tmp_path / "rows" / f"{i}.parquet", row_group_size=90)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("target", "other", "measure"), [("kind", "price", "accuracy"), ("price", "kind", "r2")])
def test_a_folder_of_tables_is_fitted_in_parts_and_predicted(target, other, measure, folder):
    asked = ["--target", target, "--drop", other, "--out", folder / "m", *QUICK]
    result = run("fit", folder / "rows", *asked)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["data"]["read"].startswith("in 6 parts")
    assert told["data"]["rows"] == N
    ours = next(iter(told["test"].values()))
    assert ours[measure] > 0.85
    assert "row_id" in " ".join(told["notes"])
    result = run("predict", folder / "m", folder / "rows", "--out", folder / "p.csv")
    assert result.exit_code == 0, result.output
    assert list(pd.read_csv(folder / "p.csv").columns[:2]) == ["row_id", "prediction"]
    assert run("fit", folder / "rows", *asked).exit_code != 0  # a model is there
    assert run("fit", folder / "rows", *asked, "--force").exit_code == 0


def test_numbers_of_files_that_are_no_parquet_say_how_classes_are_read(folder):
    np.save(folder / "X.npy", np.column_stack([SIZE, CITY == "Rome"]))
    result = run("fit", folder / "X.npy", "--target", "1", "--task", "classification", "--landmarks", "10")
    assert result.exit_code != 0
    assert "save them as Parquet" in result.output
