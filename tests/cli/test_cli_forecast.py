"""`mercer forecast` says what more rows would bring, and what it does not know."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def table(save):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 120)
    return save("rows.csv", {"x": x, "y": np.sin(2 * x) + 0.3 * rng.standard_normal(120)})


def test_a_forecast_is_told_in_words_and_as_data(command, table):
    told = command("forecast", table, "--target", "y", "--error", "0.01")
    assert told.exit_code == 0, told.output
    assert "960" in told.output
    assert "not known" in told.output
    data = json.loads(command("forecast", table, "--target", "y", "--json").stdout)
    assert [point["rows"] for point in data["points"]] == [120, 240, 480, 960]
    assert all(point["lower"] < point["error"] < point["upper"] for point in data["points"])


def test_too_few_rows_are_an_error(command, save):
    few = save("few.csv", {"x": np.arange(20.0), "y": np.arange(20.0) ** 2})
    result = command("forecast", few, "--target", "y")
    assert result.exit_code == 1
    assert "at least 64" in result.stderr


def test_a_target_of_words_is_a_class(command, save):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 160)
    words = np.where(np.sin(2 * x) + 0.3 * rng.standard_normal(160) > 0, "up", "down")
    told = command("forecast", save("words.csv", {"x": x, "y": words}), "--target", "y", "--json")
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert data["measure"] == "Brier score"
    assert data["classes"] == ["down", "up"]
    assert 0 < data["points"][-1]["error"] <= data["points"][0]["error"] < 0.25


def test_rows_without_a_class_are_left_out(command, save):
    rng = np.random.default_rng(0)
    words = np.where(rng.standard_normal(90) > 0, "a", "b").tolist()
    words[3] = None
    told = command("forecast", save("gap.csv", {"x": rng.normal(size=90), "y": words}), "--target", "y", "--json")
    assert json.loads(told.stdout)["points"][0]["rows"] == 89


def test_a_forecast_reads_tables_as_a_fit_does(command, tmp_path):
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(-3, 3, 90), 0.3 * rng.standard_normal(90)
    lines = [
        "größe;id;y",
        *(f"{a:.4f};r{i};{b:.4f}" for i, (a, b) in enumerate(zip(x, np.sin(x) + noise, strict=True))),
    ]
    (tmp_path / "t.txt").write_bytes("\n".join(lines).replace(".", ",").encode("cp1252"))
    options = ("--target", "y", "--json", "--encoding", "cp1252", "--delimiter", "semicolon")
    one = command("forecast", "t.txt", *options, "--drop", "id")
    assert one.exit_code == 0, one.output
    two = command("forecast", "t.txt", *options)
    assert json.loads(one.stdout) == json.loads(two.stdout)  # the id is left out unasked
    assert command("forecast", "t.txt", *options, "--task", "words").exit_code == 2
