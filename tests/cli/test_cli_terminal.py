"""What a person sees: the demo, tables, help, quiet and JSON output, in terminals and pipes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mercer
from mercer.cli import main
from mercer.cli.scores import verdict

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "60"}


def run(*arguments, cwd, encoding="utf-8"):
    program, environment = [sys.executable, "-m", "mercer"], ENVIRONMENT | {"PYTHONIOENCODING": encoding}
    return subprocess.run(
        [*program, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=100
    )


def test_the_demo_tells_what_it_did_and_its_next_lines_work(command, tmp_path):
    result = command("demo", "--quick")
    assert result.exit_code == 0, result.output
    what = ("354 to learn from, 88 held out", "10: 10 numbers", "Laplace(length_scale=", "chosen by leave-one-out")
    how_good = (
        "residual",
        "leave-one-out  R2 0.",
        "kernel ridge",
        "ridge regression",
        "mean",
        "RMSE",
        "No clear winner",
    )
    for words in (*what, *how_good, "time"):
        assert words in result.stdout
    written = {path.name for path in (tmp_path / "mercer-demo").iterdir()}
    assert written == {"model.safetensors", "report.json", "plot.png", "train.csv", "test.csv"}
    assert (tmp_path / "mercer-demo" / "plot.png").read_bytes().startswith(b"\x89PNG")
    lines = [line.strip() for line in result.stdout.splitlines() if line.startswith("  mercer ")]
    assert len(lines) == 2
    for line in lines:
        again = command(*shlex.split(line)[1:], *(["--no-tune"] if " fit " in line else []))
        assert again.exit_code == 0, again.output
    assert (tmp_path / "mercer-demo" / "predictions.csv").read_text().startswith("prediction\n")


@pytest.mark.usefixtures("no_drawing")
def test_the_demo_works_without_pyarrow(command, without, tmp_path):
    without("pyarrow")
    result = command("demo", "--quick", "--out", "d")
    assert result.exit_code == 0, result.output
    line = next(line for line in result.stdout.splitlines() if line.startswith("  mercer predict"))
    assert command(*shlex.split(line)[1:]).exit_code == 0
    line = next(line for line in result.stdout.splitlines() if line.startswith("  mercer fit"))
    assert command(*shlex.split(line)[1:], "--no-tune").exit_code == 0


def test_the_command_in_a_narrow_pipe_prints_no_control_characters(tmp_path):
    result = run("demo", "--quick", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert not [c for c in result.stdout if not c.isprintable() and c != "\n"]
    text = [line for line in result.stdout.splitlines() if "mercer " not in line and "#" not in line]
    assert max(map(len, text)) <= 60


def test_a_name_that_the_encoding_cannot_hold_is_no_failure(tmp_path, houses, save):
    data = save("h.csv", houses)
    result = run("fit", data, "--target", "größe", cwd=tmp_path, encoding="ascii")
    assert result.returncode == 1
    assert "no column 'gr??e'" in result.stderr


def test_a_reader_that_has_gone_is_no_failure(tmp_path, houses, save):
    data = save("h.csv", houses)
    assert run("fit", data, "--target", "price", "--no-tune", "--quiet", cwd=tmp_path).returncode == 0
    job = [sys.executable, "-m", "mercer", "predict", "mercer-model", str(data), "--out", "-"]
    with subprocess.Popen(job, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as left:
        left.stdout.close()
        words = left.stderr.read().decode()
    assert (left.returncode, "Error" in words) == (141, False)


def test_a_real_interrupt_ends_with_130_and_leaves_nothing(tmp_path):
    code = """
        import sys, time
        from mercer.cli import jobs, main
        def fit_task(*args):
            print("working", flush=True)
            time.sleep(60)
        jobs.fit_task = fit_task
        sys.argv = ["mercer", "demo", "--out", "d"]
        sys.exit(main())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert any("working" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.strip() == "Error: stopped, nothing was written."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["fit", "nowhere.csv", "--target", "y"], 1), (["fit"], 2)]
)
def test_main_gives_the_exit_code(monkeypatch, capsys, arguments, code):
    monkeypatch.setattr(sys, "argv", ["mercer", *arguments])
    assert main() == code
    assert "Traceback" not in capsys.readouterr().err


def test_the_version_is_printed(command):
    assert command("--version").stdout == f"mercer {mercer.__version__}\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_packages_the_command_names_them(without, capsys, missing):
    without(missing)
    assert main() == 2
    assert capsys.readouterr().err == f'The mercer command needs {missing}: pip install "mercer[cli]"\n'


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "-h"], ["fit", "--help"], ["predict", "--help"]])
def test_help_is_complete(command, arguments):
    result = command(*arguments)
    assert result.exit_code == 0
    assert "Usage: mercer" in result.stdout or "Usage: " in result.stdout
    if arguments[0] in ("fit", "predict"):
        assert "Examples:" in result.stdout


def test_no_arguments_show_the_help(command):
    assert "demo" in command().output


@pytest.mark.usefixtures("no_drawing")
def test_examples_in_the_help_are_valid_commands(command, houses, save, tmp_path):
    save("houses.csv", houses)
    save("new.csv", houses)
    save("houses.parquet", houses)
    save("new.parquet", houses | {"id": np.arange(60)})
    save("arrays.npz", {"X": np.column_stack([houses["area"], houses["rooms"]]), "y": houses["price"]})
    (tmp_path / "trips").mkdir()
    save("trips/0.parquet", {name.replace("price", "fare"): column for name, column in houses.items()})
    np.save(tmp_path / "big.npy", np.column_stack(list(houses.values())))
    shown = command("fit", "--help").stdout + command("predict", "--help").stdout
    lines = [line.strip() for line in shown.splitlines() if line.startswith("    mercer ")]
    assert len(lines) == 10
    for line in lines:
        _, job, *rest = shlex.split(line)
        if job == "predict":
            fitted = ("trips", "--target", "fare") if "trips/" in rest else ("houses.csv", "--target", "price")
            command("fit", *fitted, "--no-tune", "--force", "--out", rest[0])
        result = command(job, *rest, *(["--no-tune", "--force"] if job == "fit" else []))
        assert result.exit_code == 0, (line, result.output)


@pytest.mark.usefixtures("no_drawing")
def test_quiet_prints_nothing(command, houses, save):
    result = command("fit", save("h.csv", houses), "--target", "price", "--no-tune", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    result = command("predict", "mercer-model", "h.csv", "--out", "p.csv", "-q")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.usefixtures("no_drawing")
def test_json_is_the_report_file(command, houses, save, tmp_path):
    result = command("fit", save("h.csv", houses), "--target", "price", "--no-tune", "--json")
    printed = json.loads(result.stdout)
    saved = json.loads((tmp_path / "mercer-model" / "report.json").read_text())
    assert {key: printed[key] for key in saved} == saved
    assert (printed["folder"], printed["plot"]) == ("mercer-model", "plot.png")


@pytest.mark.usefixtures("no_drawing")
def test_the_demo_as_data_is_its_report_and_nothing_else(command, tmp_path):
    printed = json.loads(command("demo", "--quick", "--json").stdout)
    saved = json.loads((tmp_path / "mercer-demo" / "report.json").read_text())
    assert {key: printed[key] for key in saved} == saved
    assert command("demo", "--quick", "--quiet", "--out", "again").output == ""


@pytest.mark.usefixtures("no_drawing")
def test_column_names_with_markup_are_printed_as_they_are(command, houses, save):
    houses["[bold]area :smile:"] = houses.pop("area")
    result = command("fit", save("h.csv", houses), "--target", "[bold]area :smile:", "--no-tune")
    assert "[bold]area :smile:" in result.stdout


@pytest.mark.usefixtures("no_drawing")
def test_things_worth_a_look_are_shown(command, houses, save):
    columns = {"": np.arange(60)} | houses | {"same": np.ones(60)}
    result = command("fit", save("h.csv", columns), "--target", "price", "--no-tune")
    assert "Worth a look" in result.stdout
    assert "Column '' looks like a row index" in result.stdout
    assert "'same' is left out: constant" in result.stdout


def test_an_old_plot_does_not_stand_beside_a_new_model(command, houses, save, tmp_path):
    data = save("h.csv", houses)
    command("fit", data, "--target", "price", "--no-tune")
    first = (tmp_path / "mercer-model" / "plot.png").read_bytes()
    command("fit", data, "--target", "area", "--no-tune", "--force")
    assert (tmp_path / "mercer-model" / "plot.png").read_bytes() != first


def test_the_verdict_follows_the_errors():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    good, poor, blind = y + rng.normal(size=200) * 0.1, y + rng.normal(size=200) * 0.5, np.full(200, 2.0)
    assert verdict(y, good, poor, 0.0).startswith("Kernel ridge wins")
    assert verdict(y, poor, good, 0.0).startswith("Ridge regression wins")
    assert verdict(y, good, y - (good - y), 0.0).startswith("No clear winner")
    assert verdict(y, blind, blind, 0.0).startswith("Kernel ridge is not clearly better than the mean")
    better, worse = sorted((y + rng.normal(size=200) * 0.1 for _ in range(2)), key=lambda p: np.sum((p - y) ** 2))
    assert "kernel ridge has the smaller error" in verdict(y, better, worse, 0.0)
    assert "ridge regression has the smaller error" in verdict(y, worse, better, 0.0)
    assert verdict(y, good, good, 0.0).startswith("No clear winner")


def test_the_verdict_counts_rows_with_their_weights():
    rng = np.random.default_rng(1)
    y = rng.normal(size=60)
    a, b = y + rng.normal(size=60), y + rng.normal(size=60)
    a[:20], b[20:] = y[:20], y[20:]
    weights = np.where(np.arange(60) < 20, 100.0, 0.01)
    assert verdict(y, a, b, 5.0, weights).startswith("Kernel ridge wins")
    assert verdict(y, a, b, 5.0, 1 / weights).startswith("Ridge regression wins")
