"""What goes wrong is said in words: exit code 1 for a job that failed, 2 for wrong usage, and nothing is written."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from mercer.cli import account, jobs
from mercer.cli.model import TableModel
from mercer.core.errors import ModelFileError
from mercer.files.persistence import load, write_model

pytestmark = pytest.mark.usefixtures("no_drawing")


@pytest.fixture
def fails(command, tmp_path):
    """The command ends with this code and these words on stderr, without a traceback and without a result."""

    def check(code, words, *arguments):
        result = command(*arguments)
        assert result.exit_code == code, result.output
        for part in [words] if isinstance(words, str) else words:
            assert part in result.stderr
        assert "Traceback" not in result.output
        assert result.stdout == ""
        assert not (tmp_path / "mercer-model").exists()
        assert not list(tmp_path.rglob(".mercer-*"))

    return check


def test_missing_file(fails):
    fails(1, "There is no file nowhere.csv", "fit", "nowhere.csv", "--target", "y")


def test_unknown_ending(fails, tmp_path):
    (tmp_path / "a.xlsx").write_text("x")
    fails(1, ["a.xlsx", ".csv, .csv.gz, .tsv"], "fit", "a.xlsx", "--target", "y")


def test_folder_instead_of_a_file(fails, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    fails(1, "no .parquet file in the folder folder.csv", "fit", "folder.csv", "--target", "y")


def test_empty_file(fails, tmp_path):
    (tmp_path / "a.csv").touch()
    fails(1, "a.csv is empty", "fit", "a.csv", "--target", "y")


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.csv.gz"])
def test_corrupt_file(fails, tmp_path, name):
    (tmp_path / name).write_bytes(b"this is not what the name says")
    fails(1, f"{name} cannot be read as a", "fit", name, "--target", "y")


def test_truncated_files(fails, houses, save, tmp_path):
    for name in ("t.parquet", "t.npz"):
        whole = save(name, houses).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        fails(1, f"{name} cannot be read as a", "fit", name, "--target", "price")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(save("t.csv", houses).read_bytes())[:-30])
    fails(1, "t.csv.gz cannot be read as a CSV file", "fit", "t.csv.gz", "--target", "price")


def test_ragged_csv(fails, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3\n4,5\n")
    fails(1, "cannot be read as a CSV file: expected 2 columns, got 1 in line 3", "fit", "a.csv", "--target", "y")


def test_pickled_objects_in_an_npz_file_are_refused(fails, tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([{"a": 1}], dtype=object), y=np.ones(1))
    fails(1, ["a.npz cannot be read as a npz file", "allow_pickle=False"], "fit", "a.npz")


def test_missing_target_lists_the_columns_and_suggests_the_closest(fails, houses, save):
    data = save("houses.csv", houses)
    fails(
        1, ["no column 'Prize'", "Did you mean 'price'?", "area, rooms, year, price"], "fit", data, "--target", "Prize"
    )


def test_file_without_a_header(fails, tmp_path):
    (tmp_path / "a.csv").write_text("1.5,2.5\n3,4\n")
    fails(1, ["no column 'y'", "Its columns: X0, X1"], "fit", "a.csv", "--target", "y")


def test_two_columns_of_one_name(fails, tmp_path):
    (tmp_path / "a.csv").write_text("x,x,y\n1,2,3\n")
    fails(1, "two columns named 'x'", "fit", "a.csv", "--target", "y")


def test_infinite_values(fails, houses, save):
    area = houses["area"].copy()
    area[3] = np.inf
    fails(1, "Column 'area' is infinite in row", "fit", save("h.npz", houses | {"area": area}), "--target", "price")


def test_constant_target(fails, houses, save):
    fails(1, "'price' is 3", "fit", save("h.csv", houses | {"price": np.full(60, 3.0)}), "--target", "price")


def test_a_target_constant_in_the_training_rows(fails, houses, save):
    price = np.zeros(60)
    price[np.random.default_rng(0).permutation(60)[0]] = 1.0
    fails(1, "in every training row", "fit", save("h.csv", houses | {"price": price}), "--target", "price")


@pytest.mark.parametrize("n", [0, 1, 6])
def test_too_few_rows(fails, houses, save, n):
    data = save("h.parquet", {name: values[:n] for name, values in houses.items()})
    fails(1, f"has {n} rows, too few", "fit", data, "--target", "price")


def test_seven_rows_are_enough(command, houses, save):
    data = save("h.csv", {name: values[:7] for name, values in houses.items()})
    assert command("fit", data, "--target", "price", "--no-tune").exit_code == 0


def test_nothing_to_learn_from(fails, houses, save):
    fails(1, "no column besides 'price'", "fit", save("h.csv", {"price": houses["price"]}), "--target", "price")


def test_the_target_is_no_feature(fails, houses, save):
    data = save("h.csv", houses)
    fails(1, "--features names 'price'", "fit", data, "--target", "price", "--features", "area,price")
    fails(1, "no column 'arae'", "fit", data, "--target", "price", "--features", "arae")


def test_negative_and_zero_weights(fails, houses, save):
    data = save("h.csv", houses | {"w": np.where(np.arange(60) == 4, -1.0, 1.0), "z": np.zeros(60)})
    fails(1, "negative weight (-1 in row 5)", "fit", data, "--target", "price", "--weights", "w")
    fails(1, "Every weight in column 'z' is zero", "fit", data, "--target", "price", "--weights", "z")


def test_arrays_of_other_lengths_in_an_npz_file(fails, houses, save):
    data = save("a.npz", {"X": np.ones((60, 2)), "y": np.ones(50), "cube": np.ones((2, 2, 2))})
    fails(1, "'y' of", "fit", data)
    fails(1, "has 50 rows but 'X' has 60", "fit", data)
    fails(1, "has shape (2, 2, 2)", "fit", data, "--target", "cube")


def test_wrong_feature_names_in_an_npz_file(fails, save):
    data = save("a.npz", {"X": np.ones((9, 2)), "y": np.arange(9.0), "feature_names": np.array(["a"])})
    fails(1, "feature_names must hold 2 different names", "fit", data)


def test_a_job_that_does_not_fit_the_memory(fails, houses, save):
    fails(1, "memory", "fit", save("h.csv", houses), "--target", "price", "--memory", "1KiB", "--no-tune")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--alpha", "small", "'small' is not auto, loo, gcv or a number"),
        ("--alpha", "-1", "'-1' is not auto, loo, gcv or a number"),
        ("--alpha", "nan", "'nan' is not auto"),
        ("--kernel", "gausian", 'Did you mean "gaussian"'),
        ("--kernel", "spectrum", "cannot learn from columns of numbers"),
        ("--test-fraction", "1", "1 is not at least 0 and below 1"),
        ("--test-fraction", "nan", "nan is not at least 0"),
        ("--memory", "lots", "'lots'"),
        ("--features", "a,,b", "empty name"),
        ("--features", "a,b,a", "'a' is named twice"),
        ("--seed", "-1", "--seed"),
    ],
)
def test_wrong_options_are_wrong_usage(fails, houses, save, option, value, words):
    fails(2, [option, words], "fit", save("h.csv", houses), "--target", "price", option, value)


def test_a_csv_file_needs_a_target(fails, houses, save):
    fails(2, "--target", "fit", save("h.csv", houses))


@pytest.mark.parametrize("arguments", [["predict", "a"], ["fit"], ["nonsense"], ["fit", "a.csv", "--nonsense"]])
def test_wrong_arguments_are_wrong_usage(command, arguments):
    assert command(*arguments).exit_code == 2


def test_a_folder_with_other_files_is_not_written_to(command, houses, save, tmp_path):
    data = save("h.csv", houses)
    result = command("fit", data, "--target", "price", "--no-tune", "--out", ".")
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [data])
    assert "holds other files" in result.stderr
    result = command("fit", data, "--target", "price", "--no-tune", "--out", data)
    assert "this is a file" in result.stderr
    result = command("fit", data, "--target", "price", "--no-tune", "--out", data / "below")
    assert (result.exit_code, "cannot be written to" in result.stderr) == (1, True)


# mercer predict


@pytest.fixture
def fitted(command, houses, save):
    assert command("fit", save("h.csv", houses), "--target", "price", "--no-tune", "--out", "m").exit_code == 0


@pytest.fixture
def fitted_in_parts(command, houses, save):
    arguments = ("--target", "price", "--no-tune", "--landmarks", "20", "--out", "m")
    assert command("fit", save("h.csv", houses), *arguments).exit_code == 0


def test_missing_features_are_listed(fitted, fails, houses, save):
    data = save("new.csv", {"aera" if name == "area" else name: values for name, values in houses.items()})
    words = ["lacks 1 of the 3 columns", "'area'", "Did you mean 'aera'?"]
    fails(1, words, "predict", "m", data, "--out", "p.csv")


def test_text_in_a_feature(fitted, fails, houses, save, tmp_path):
    fails(1, "Column 'rooms'", "predict", "m", save("n.csv", houses | {"rooms": ["two"] * 60}), "--out", "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_outputs_that_would_destroy_something(fitted, fails, houses, save, tmp_path):
    data = save("h.csv", houses)
    before = data.read_bytes()
    fails(1, "this is a folder, the data or the model", "predict", "m", data, "--out", data)
    fails(1, "the name must end in", "predict", "m", data, "--out", "m/model.safetensors")
    fails(1, "the name must end in", "predict", "m", data, "--out", "predictions")
    fails(1, "--keep prediction", "predict", "m", save("q.csv", houses | {"prediction": houses["area"]}),
          "--out", "p.csv", "--keep", "prediction")  # fmt: skip
    assert data.read_bytes() == before


def test_models_that_cannot_be_used(fitted, fails, houses, save, tmp_path):
    data = save("h.csv", houses)
    fails(1, "nowhere", "predict", "nowhere", data, "--out", "p.csv")
    (tmp_path / "empty").mkdir()
    fails(1, "no model.safetensors in the folder", "predict", "empty", data, "--out", "p.csv")
    whole = (tmp_path / "m" / "model.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-100])
    fails(1, "cut.safetensors", "predict", "cut.safetensors", data, "--out", "p.csv")
    (tmp_path / "changed.safetensors").write_bytes(whole.replace(b"price", b"prise"))
    fails(1, "changed.safetensors", "predict", "changed.safetensors", data, "--out", "p.csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": ["a", "a", "b"]}, "different column names"),
        ({"features": ["a", "b"]}, r"center.*expected \(2,\)"),
        ({"target": 3}, "meta.target is 3, expected text"),
        ({"target_mean": "0"}, "target_mean"),
        ({"weights": "area"}, "different column names"),
    ],
)
def test_a_model_file_whose_parts_do_not_fit_is_refused(fitted_in_parts, tmp_path, change, words):
    meta, arrays = TableModel.load(tmp_path / "m").to_state()
    write_model(tmp_path / "bad.safetensors", "TableModel", meta | change, arrays)
    with pytest.raises(ModelFileError, match=words):
        load(tmp_path / "bad.safetensors")


def test_scaling_that_does_not_fit_is_refused(fitted_in_parts, tmp_path):
    meta, arrays = TableModel.load(tmp_path / "m").to_state()
    for name, value in (("scale", np.zeros(3)), ("center", np.zeros(2))):
        write_model(tmp_path / "bad.safetensors", "TableModel", meta, arrays | {name: value})
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / "bad.safetensors")


@pytest.mark.parametrize(
    ("change", "words"),
    [({"target": "area"}, "one of the features"), ({"weights": 3}, "meta.weights"), ({"model": {}}, "class")],
)
def test_a_model_of_a_table_whose_parts_do_not_fit_is_refused(fitted, tmp_path, change, words):
    meta, arrays = TableModel.load(tmp_path / "m").to_state()
    write_model(tmp_path / "bad.safetensors", "FrameModel", meta | change, arrays)
    with pytest.raises(ModelFileError, match=words):
        load(tmp_path / "bad.safetensors")
    write_model(tmp_path / "bad.safetensors", "FrameModel", meta, arrays | {"marks": np.zeros(3)})
    with pytest.raises(ModelFileError, match="marks"):
        load(tmp_path / "bad.safetensors")


def test_a_foreign_safetensors_file_is_refused(fails, houses, save, tmp_path):
    save_file({"x": torch.ones(2)}, tmp_path / "other.safetensors")
    fails(1, "not a mercer model", "predict", "other.safetensors", save("h.csv", houses), "--out", "p.csv")


# Interrupts, surprises and missing packages


def test_an_interrupt_ends_with_130_and_leaves_nothing(command, houses, save, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    data = save("h.csv", houses)
    for module, name in ((jobs, "fit_task"), (account, "figure")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupted)
            result = command("fit", data, "--target", "price", "--no-tune", "--out", "deep/below")
        assert (result.exit_code, "stopped" in result.stderr) == (130, True)
        assert list(tmp_path.iterdir()) == [data]


def test_an_interrupt_keeps_the_earlier_model(fitted, command, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    monkeypatch.setattr(account, "figure", interrupted)
    assert command("fit", "h.csv", "--target", "area", "--no-tune", "--out", "m", "--force").exit_code == 130
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


def test_debug_shows_where_an_error_came_from(command, houses, save, monkeypatch):
    def broken(*args):
        raise RuntimeError("a surprise")

    monkeypatch.setattr(jobs, "fit_task", broken)
    data = save("h.csv", houses)
    plain, debug = (command("fit", data, "--target", "price", *extra) for extra in ((), ("--debug",)))
    assert plain.exit_code == debug.exit_code == 1
    assert "RuntimeError: a surprise (--debug shows where)" in plain.stderr
    assert "Traceback" not in plain.output
    assert "Traceback" in debug.stderr
    assert "broken" in debug.stderr


def test_without_pyarrow_the_message_names_the_package(fails, houses, save, without):
    data = save("h.parquet", houses)
    without("pyarrow")
    fails(1, 'pip install "mercer[io]"', "fit", data, "--target", "price")


def test_npz_files_need_no_pyarrow(command, houses, save, without):
    data = save("h.npz", houses)
    without("pyarrow")
    assert command("fit", data, "--target", "price", "--no-tune").exit_code == 0
    assert command("predict", "mercer-model", data, "--out", "p.csv").exit_code == 0


def test_without_matplotlib_everything_but_the_plot_is_written(fitted, command, tmp_path, without):
    without("matplotlib")
    result = command("fit", "h.csv", "--target", "price", "--no-tune", "--out", "m", "--force")
    assert result.exit_code == 0
    assert 'pip install "mercer[plot]"' in result.stdout
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"model.safetensors", "report.json"}
