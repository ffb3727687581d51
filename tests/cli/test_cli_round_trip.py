"""Fit a file, predict with what was saved: the numbers are those of the estimator."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, root_mean_squared_error

import mercer
from mercer import KernelRidge, tabular
from mercer.cli.demo import diabetes
from mercer.cli.fitting import fit_task
from mercer.cli.frame_model import FrameModel
from mercer.cli.model import TableModel
from mercer.cli.regression import RIDGE_ALPHAS, Settings
from mercer.cli.task import REGRESSION, Task, split
from mercer.data.table import Table

pytestmark = pytest.mark.usefixtures("no_drawing")
NAMES = ("area", "rooms", "year")


def as_npz(houses):
    X = np.column_stack([houses[name] for name in NAMES])
    return {"X": X, "y": houses["price"], "feature_names": np.array(NAMES)}


def task_of_houses(houses):
    return Task(Table.of({name: houses[name] for name in NAMES}), houses["price"], None, "price", "", REGRESSION, "")


def own_model(**options):
    return tabular(KernelRidge("laplace", alpha=0.3, fit_intercept=True, **options))


def read_predictions(path):
    if path.suffix == ".npz":
        return np.load(path)["prediction"]
    read = pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.csv.read_csv
    table = read(path)
    assert table.column_names[-1] == "prediction"
    return table["prediction"].to_numpy()


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_predictions_are_those_of_the_estimator_on_tables(command, houses, save, tmp_path, ending):
    npz = ending == "npz"
    data = save(f"houses.{ending}", as_npz(houses) if npz else houses)
    target = "y" if npz else "price"
    result = command("fit", data, "--target", target, "--alpha", "0.3", "--no-tune", "--out", "model")
    assert result.exit_code == 0, result.output
    result = command("predict", "model", data, "--out", f"out.{ending}")
    assert result.exit_code == 0, result.output

    everything = task_of_houses(houses)
    train, _ = split(everything, 0.2, 0)
    expected = own_model().fit(train.table, train.y).predict(everything.table)
    np.testing.assert_allclose(read_predictions(tmp_path / f"out.{ending}"), expected, rtol=1e-10)


def test_numbers_in_the_report_are_those_of_scikit_learn(command, houses, save):
    result = command("fit", save("houses.csv", houses), "--target", "price", "--alpha", "0.3", "--no-tune", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)

    train, test = split(task_of_houses(houses), 0.2, 0)
    own = own_model().fit(train.table, train.y)
    Z, W = (own.encoder_.encode(part.table) for part in (train, test))
    predictions = {
        "kernel ridge": own.predict(test.table),
        "ridge regression": RidgeCV(alphas=RIDGE_ALPHAS).fit(Z, train.y).predict(W),
        "mean": np.full(len(test), train.y.mean()),
    }
    for name, predicted in predictions.items():
        assert report["test"][name]["r2"] == pytest.approx(r2_score(test.y, predicted), abs=1e-9)
        assert report["test"][name]["rmse"] == pytest.approx(root_mean_squared_error(test.y, predicted), rel=1e-9)
    left_out = np.empty(len(train))
    for i in range(len(train)):
        rest = np.arange(len(train)) != i
        fold = KernelRidge(own.kernel_, alpha=0.3, fit_intercept=True).fit(Z[rest], train.y[rest])
        left_out[i] = fold.predict(Z[i : i + 1])[0]
    assert report["leave_one_out"]["rmse"] == pytest.approx(root_mean_squared_error(train.y, left_out), rel=1e-7)
    assert report["data"]["train_rows"] == 48
    assert report["data"]["test_rows"] == 12
    assert report["alpha"] == 0.3
    assert report["solver"]["converged"]


def test_scores_of_predict_are_those_of_fit_on_the_same_rows(command, tmp_path):
    assert command("demo", "--quick").exit_code == 0
    report = json.loads((tmp_path / "mercer-demo" / "report.json").read_text())
    result = command("predict", "mercer-demo", "mercer-demo/test.csv", "--out", "p.csv", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["score"] == pytest.approx(report["test"]["kernel ridge"])


def test_a_saved_model_predicts_the_same_when_loaded(command, houses, save, tmp_path):
    command("fit", save("houses.csv", houses), "--target", "price", "--no-tune")
    model = TableModel.load(tmp_path / "mercer-model")
    found = fit_task(task_of_houses(houses), Settings(tune=False))
    rows = Table.of({name: houses[name] for name in NAMES})
    np.testing.assert_array_equal(model.model.predict(rows), found.model.model.predict(rows))
    assert (model.features, model.target) == (NAMES, "price")


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored(command, houses, save, tmp_path):
    data = save("houses.csv", houses)
    command("fit", data, "--target", "price", "--no-tune")
    command("predict", "mercer-model", data, "--out", "a.csv")
    shuffled = {"street": ["x"] * 60} | {name: houses[name] for name in ("year", "area", "rooms")}
    result = command("predict", "mercer-model/model.safetensors", save("new.csv", shuffled), "--out", "b.csv")
    assert result.exit_code == 0, result.output
    assert "score" not in result.output
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_integer_weights_equal_repeated_rows(command, houses, save, tmp_path):
    weights = np.arange(60) % 3
    everything = ("--target", "price", "--test-fraction", "0", "--no-tune")
    command("fit", save("w.csv", houses | {"w": weights}), *everything, "--weights", "w", "--out", "weighted")
    repeated = {name: np.repeat(values, weights) for name, values in houses.items()}
    command("fit", save("r.csv", repeated), *everything, "--out", "repeated")
    rows = Table.of({name: houses[name] for name in NAMES})
    a, b = (TableModel.load(tmp_path / name).model.predict(rows) for name in ("weighted", "repeated"))
    np.testing.assert_allclose(a, b, rtol=1e-7)


def test_the_kernel_with_the_smallest_leave_one_out_error_is_taken(command, houses, save):
    kernels = ("--kernel", "laplace", "--kernel", "gaussian", "--kernel", "matern52")
    result = command("fit", save("houses.csv", houses), "--target", "price", "--no-tune", "--json", *kernels)
    report = json.loads(result.stdout)
    best = min(report["kernels_tried"], key=report["kernels_tried"].get)
    assert set(report["kernels_tried"]) == {"laplace", "gaussian", "matern52"}
    assert {"laplace": "Laplace", "gaussian": "Gaussian", "matern52": "Matern"}[best] in report["kernel"]
    assert report["leave_one_out"]["rmse"] == pytest.approx(report["kernels_tried"][best])


def test_features_can_be_chosen_and_text_in_other_columns_does_not_matter(command, houses, save):
    data = save("houses.csv", houses | {"street": [f"street {i}" for i in range(60)]})
    result = command("fit", data, "--target", "price", "--features", "area, year", "--no-tune", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["data"]["features"] == ["area", "year"]


def test_kept_columns_stand_beside_the_predictions(command, houses, save, tmp_path):
    data = save("houses.csv", houses | {"id": [f"h{i}" for i in range(60)]})
    command("fit", data, "--target", "price", "--features", "area,rooms,year", "--no-tune")
    for name in ("p.csv", "p.parquet", "p.npz", "p.tsv", "p.csv.gz"):
        result = command("predict", "mercer-model", data, "--out", name, "--keep", "id,area")
        assert result.exit_code == 0, result.output
    csv = pyarrow.csv.read_csv(tmp_path / "p.csv")
    assert csv.column_names == ["id", "area", "prediction"]
    assert csv.equals(pyarrow.parquet.read_table(tmp_path / "p.parquet"))
    assert csv.equals(pyarrow.csv.read_csv(tmp_path / "p.csv.gz"))
    assert csv.equals(pyarrow.csv.read_csv(tmp_path / "p.tsv", parse_options=pyarrow.csv.ParseOptions(delimiter="\t")))
    npz = np.load(tmp_path / "p.npz", allow_pickle=False)
    assert npz["id"].tolist() == csv["id"].to_pylist()
    np.testing.assert_array_equal(npz["prediction"], csv["prediction"].to_numpy())


def test_semicolons_and_tabs_separate_columns_too(command, houses, tmp_path):
    rows = [";".join(houses), *(";".join(str(v) for v in row) for row in zip(*houses.values(), strict=True))]
    (tmp_path / "semicolon.csv").write_text("\n".join(rows))
    (tmp_path / "tab.tsv").write_text("\n".join(rows).replace(";", "\t"))
    for name in ("semicolon.csv", "tab.tsv"):
        result = command("fit", name, "--target", "price", "--no-tune", "--json", "--force")
        assert json.loads(result.stdout)["data"]["features"] == list(NAMES)


def test_an_npz_target_can_be_a_column_of_X(command, houses, save):
    X = np.column_stack(list(houses.values()))
    result = command("fit", save("a.npz", {"X": X}), "--target", "3", "--no-tune", "--json")
    data = json.loads(result.stdout)["data"]
    assert (data["target"], data["features"]) == ("X3", ["X0", "X1", "X2"])


def test_all_rows_are_learned_from_when_the_test_fraction_is_zero(command, houses, save):
    result = command("fit", save("h.csv", houses), "--target", "price", "--test-fraction", "0", "--no-tune", "--json")
    report = json.loads(result.stdout)
    assert (report["data"]["train_rows"], report["test"]) == (60, None)


def test_the_seed_decides_which_rows_are_held_out(houses):
    task = Task(Table.of({"i": np.arange(60.0)}), houses["price"], None, "price", "", REGRESSION, "")
    parts = [split(task, 0.25, seed) for seed in (0, 0, 1)]
    a, a_test, b, c = (part.table.columns["i"] for part in (*parts[0], parts[1][0], parts[2][0]))
    assert (len(a), len(a_test)) == (45, 15)
    assert sorted([*a, *a_test]) == list(range(60))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_a_model_saved_from_python_predicts_when_it_knows_its_columns(command, houses, save, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(houses)
    own = KernelRidge("gaussian", alpha=0.1).fit(frame[list(NAMES)], frame["price"])
    own.save(tmp_path / "own.safetensors")
    result = command("predict", "own.safetensors", save("h.csv", houses), "--out", "p.csv")
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(read_predictions(tmp_path / "p.csv"), own.predict(frame[list(NAMES)]), rtol=1e-12)


def test_tuning_lowers_the_leave_one_out_error():
    task = diabetes().take(np.arange(160))
    plain, tuned = (fit_task(task, Settings(kernels=("gaussian",), tune=tune)) for tune in (False, True))
    assert tuned.loo.rmse <= plain.loo.rmse
    assert tuned.estimator.tuning_ is not None


def test_the_model_file_is_a_mercer_model(command, houses, save, tmp_path):
    command("fit", save("h.csv", houses), "--target", "price", "--no-tune")
    assert isinstance(mercer.load(tmp_path / "mercer-model" / "model.safetensors"), FrameModel)


def test_every_file_written_can_be_read_by_others_as_the_umask_says(command, houses, save, tmp_path):
    data = save("h.csv", houses)
    command("fit", data, "--target", "price", "--no-tune")
    command("predict", "mercer-model", data, "--out", "p.csv")
    (tmp_path / "plain").touch()
    written = [*(tmp_path / "mercer-model").iterdir(), tmp_path / "p.csv"]
    assert {path.stat().st_mode for path in written} == {(tmp_path / "plain").stat().st_mode}


def test_predictions_are_written_though_the_target_has_gaps(command, houses, save, tmp_path):
    data = save("h.csv", houses)
    command("fit", data, "--target", "price", "--no-tune")
    gaps = save("gaps.csv", houses | {"price": [None, *houses["price"][1:]]})
    result = command("predict", "mercer-model", gaps, "--out", "p.csv")
    assert result.exit_code == 0
    assert "59 rows of gaps.csv hold price too" in result.stdout
    assert len(read_predictions(tmp_path / "p.csv")) == 60
    empty = command(
        "predict", "mercer-model", save("none.csv", {n: v[:0] for n, v in houses.items()}), "--out", "e.csv"
    )
    assert (empty.exit_code, (tmp_path / "e.csv").read_text()) == (0, "prediction\n")
