"""What people have in files: a file for each thing that can be in one, and a sentence for each mistake."""

from __future__ import annotations

import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("no_drawing")
FAST = ("--no-tune", "--alpha", "0.1", "--force")


@pytest.fixture
def people():
    """Sixty people with a text category, a date, gaps, an id, a number to predict and a class to predict."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Rome", "Bonn"], 60)
    age = rng.integers(20, 70, 60)
    wage = (1000 + 10.5 * age + 500 * (city == "Oslo") + rng.normal(0, 20, 60)).round(2)
    return {
        "id": [f"p{i:03d}" for i in range(60)],
        "city": [None if i % 13 == 0 else c for i, c in enumerate(city)],
        "age": [None if i % 17 == 0 else int(a) for i, a in enumerate(age)],
        "hired": [f"20{10 + i % 12}-{1 + i % 12:02d}-{10 + i // 12}" for i in range(60)],
        "wage": wage.tolist(),
        "level": np.where(wage > np.median(wage), "high", "low").tolist(),
    }


def text_of(columns, delimiter=",", number=str, gap="", header=True):
    rows = [list(columns)] if header else []
    for row in zip(*columns.values(), strict=True):
        rows.append([gap if v is None else number(v) if isinstance(v, float) else str(v) for v in row])
    return "\n".join(delimiter.join(row) for row in rows) + "\n"


@pytest.fixture
def fitted(command, tmp_path):
    """The report of a fit to the text or bytes of a file."""

    def fit(text, *options, name="people.csv", target="wage"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        result = command("fit", name, "--target", target, *FAST, "--json", *options)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return fit


@pytest.fixture
def refused(command, tmp_path):
    def refuse(text, words, *options, name="people.csv", target="wage", code=1):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        result = command("fit", name, "--target", target, *FAST, *options)
        assert result.exit_code == code, result.output
        for part in [words] if isinstance(words, str) else words:
            assert part in result.stderr
        assert not (tmp_path / "mercer-model").exists()

    return refuse


def test_text_gaps_dates_and_ids_are_read_as_what_they_are(fitted, people):
    report = fitted(text_of(people), "--drop", "level")
    words = report["data"]["columns"]
    assert words["id"].startswith("left out: an id")
    assert words["city"].startswith("category of 3 levels")
    assert "missing" in words["age"]
    assert words["hired"].startswith("date: time elapsed")
    assert "level" not in words
    assert report["task"] == "regression"
    assert report["test"]["kernel ridge"]["r2"] > 0.5
    assert "'id' is left out" in " ".join(report["notes"])


@pytest.mark.parametrize(
    ("encode", "delimiter", "number"),
    [
        (lambda t: t.encode(), ",", str),
        (lambda t: t.encode(), ";", lambda v: f"{v:.2f}".replace(".", ",")),
        (lambda t: t.encode(), ";", lambda v: f"{v:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")),
        (lambda t: t.encode(), "\t", str),
        (lambda t: t.encode(), "|", str),
        (lambda t: t.encode("cp1252"), ",", str),
        (lambda t: t.encode("utf-16"), ";", str),
        (lambda t: t.encode("utf-8-sig"), ",", str),
        (lambda t: ("# made by hand\n#\n" + t.replace("\np030", "\n# half\np030")).encode(), ",", str),
        (lambda t: t.replace("\n", "\r\n").encode(), ",", str),
        (lambda t: t.replace("\n", ";\n").encode(), ";", str),
    ],
    ids=["plain", "decimal comma", "thousands", "tab", "pipe", "cp1252", "utf-16", "bom", "comments", "crlf", "last"],
)
def test_every_way_of_writing_a_table_gives_the_same_numbers(fitted, people, encode, delimiter, number):
    people["city"] = ["Zürich" if c == "Rome" else c for c in people["city"]]
    expected = fitted(text_of(people))
    found = fitted(encode(text_of(people, delimiter, number)))
    assert found["test"] == expected["test"]
    assert found["data"]["columns"] == expected["data"]["columns"]


def test_thousands_in_quotes_txt_files_and_compressed_ones(fitted, people):
    expected = fitted(text_of(people))
    quoted = text_of(people, number=lambda v: f'"{v:,.2f}"')
    assert fitted(quoted)["test"] == expected["test"]
    assert fitted(text_of(people), name="people.txt")["test"] == expected["test"]
    assert fitted(gzip.compress(text_of(people, "\t").encode()), name="p.txt.gz")["test"] == expected["test"]


def test_what_cannot_be_found_out_can_be_said(fitted, people):
    people["city"] = ["Żory" if c == "Rome" else c for c in people["city"]]
    expected = fitted(text_of(people))
    found = fitted(text_of(people).encode("iso-8859-2"), "--encoding", "iso-8859-2", "--delimiter", "comma")
    assert found["test"] == expected["test"]


def test_a_file_without_a_header_has_columns_by_place(fitted, people):
    columns = {name: people[name] for name in ("age", "city", "wage")}
    report = fitted(text_of(columns, header=False, gap="NA"), target="-1")
    assert (report["data"]["target"], report["data"]["features"]) == ("X2", ["X0", "X1"])
    assert any("no header" in note for note in report["notes"])


def test_rows_without_a_target_are_left_out_and_counted(fitted, people):
    people["wage"] = [None if i % 10 == 0 else w for i, w in enumerate(people["wage"])]
    report = fitted(text_of(people))
    assert report["data"]["rows"] == 54
    assert "6 of 60 rows have no wage, and are left out." in report["notes"]


def test_text_is_for_classes_and_the_task_can_be_said(fitted, people, command):
    report = fitted(text_of(people), "--drop", "wage", target="level")
    assert (report["task"], report["model"]) == ("classification", "kernel classifier")
    assert set(report["test"]) == {"kernel classifier", "logistic regression", "class shares"}
    assert set(report["test"]["kernel classifier"]) == {"accuracy", "log_loss"}
    assert report["confusion"]["classes"] == ["high", "low"]
    assert np.sum(report["confusion"]["true_by_predicted"]) == report["data"]["test_rows"]
    ratings = text_of(people | {"stars": [1 + i % 3 for i in range(60)]})
    assert fitted(ratings, target="stars")["task"] == "regression"
    assert fitted(ratings, "--task", "classification", target="stars")["task"] == "classification"
    told = command("fit", "people.csv", "--target", "level", *FAST)
    for words in ("classification (the target holds text", "true \\ predicted", "log loss", "class shares"):
        assert words in told.stdout


def test_two_values_are_classes(fitted, people):
    people["level"] = [int(v == "high") for v in people["level"]]
    report = fitted(text_of(people), "--drop", "wage", target="level")
    assert report["task_because"] == "the target holds two values, 0 and 1"


def test_regression_tells_whether_its_intervals_hold(fitted, people, command):
    report = fitted(text_of(people))
    assert 0.5 <= report["intervals"]["inside"] <= 1.0
    assert report["intervals"]["width"] > 0
    assert "intervals of 90% hold" in command("fit", "people.csv", "--target", "wage", *FAST).stdout


@pytest.mark.parametrize(("target", "task"), [("wage", "regression"), ("level", "classification")])
def test_a_gaussian_process_can_be_asked_for(fitted, people, target, task):
    report = fitted(text_of(people), "--model", "gp", target=target)
    assert (report["task"], report["model"]) == (task, "Gaussian process")


def test_folds_score_the_same_estimator(fitted, people, command):
    report = fitted(text_of(people), "--cv", "3")
    assert len(report["cross_validation"]) == 3
    assert "3 folds" in command("fit", "people.csv", "--target", "wage", *FAST, "--cv", "3").stdout


# mercer predict


def read_csv(text):
    names, *rows = [line.split(",") for line in text.strip().splitlines()]
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def test_predictions_stand_beside_ids_with_intervals(fitted, people, command, tmp_path):
    fitted(text_of(people))
    result = command("predict", "mercer-model", "people.csv", "--out", "p.csv", "--interval", "0.8", "--keep", "age")
    assert result.exit_code == 0, result.output
    found = read_csv((tmp_path / "p.csv").read_text())
    assert list(found) == ["id", "age", "prediction", "lower", "upper"]
    assert list(found["id"]) == people["id"]
    low, middle, high = (np.array(found[name], dtype=float) for name in ("lower", "prediction", "upper"))
    assert ((low < middle) & (middle < high)).all()
    assert "48 of these rows equal rows the model was trained on" in result.stdout


def test_probabilities_stand_beside_classes(fitted, people, command, tmp_path):
    fitted(text_of(people), "--drop", "wage", target="level")
    result = command("predict", "mercer-model", "people.csv", "--out", "p.csv", "--proba", "--json")
    told = json.loads(result.stdout)
    assert told["trained_on"] == 48
    assert told["score"]["accuracy"] > 0.6
    found = read_csv((tmp_path / "p.csv").read_text())
    p = np.array([found["p(high)"], found["p(low)"]], dtype=float)
    np.testing.assert_allclose(p.sum(0), 1, atol=1e-9)
    assert [("high", "low")[i] for i in p.argmax(0)] == list(found["prediction"])


def test_new_rows_are_not_said_to_be_trained_on(fitted, people, command, tmp_path):
    fitted(text_of(people))
    people["hired"] = ["2024-02-29"] * 60
    (tmp_path / "new.csv").write_text(text_of(people))
    assert "trained on" not in command("predict", "mercer-model", "new.csv", "--out", "p.csv").stdout


def test_standard_input_and_output(fitted, people, command, tmp_path, monkeypatch):
    fitted(text_of(people))
    command("predict", "mercer-model", "people.csv", "--out", "p.csv")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text_of(people).encode())))
    from mercer.cli import reading

    monkeypatch.setattr(reading.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text_of(people).encode())))
    piped = command("predict", "mercer-model", "people.csv", "--out", "-")
    assert piped.exit_code == 0, piped.output
    assert piped.stdout == (tmp_path / "p.csv").read_text()
    assert "standard output" in piped.stderr


@pytest.mark.parametrize("name", ["p.parquet", "p.npz", "p.tsv"])
def test_predictions_of_classes_are_written_to_every_format(fitted, people, command, tmp_path, name):
    fitted(text_of(people), target="level")
    assert command("predict", "mercer-model", "people.csv", "--out", name, "--proba").exit_code == 0
    assert (tmp_path / name).stat().st_size > 0


def test_a_new_level_or_a_gap_in_new_rows_is_no_error(fitted, people, command, tmp_path):
    fitted(text_of(people))
    people |= {"city": ["Paris"] * 60, "age": [None] * 60}
    (tmp_path / "new.csv").write_text(text_of({n: v for n, v in people.items() if n not in ("id", "wage")}))
    assert command("predict", "mercer-model", "new.csv", "--out", "p.csv").exit_code == 0


# Mistakes


def test_a_model_is_not_overwritten_unasked(fitted, people, command):
    fitted(text_of(people))
    result = command("fit", "people.csv", "--target", "wage", "--no-tune")
    assert result.exit_code == 1
    assert "holds a model; give another folder, or --force" in result.stderr


def test_each_mistake_gets_its_sentence(refused, people):
    text = text_of(people)
    refused(text, ["no column 'Wage'", "Did you mean 'wage'?"], target="Wage")
    refused(text, "no column 'x'", "--drop", "x")
    refused(text, "is not one of auto", "--task", "magic", code=2)
    refused(text, "is not one of kernel, gp", "--model", "tree", code=2)
    refused(text, "1 fold leaves no rows", "--cv", "1", code=2)
    refused(text, "not for gp", "--model", "gp", "--landmarks", "10", code=2)
    refused(text, "text with 60 different values in 60 rows, too many for classes", target="id")
    refused(text, "should hold numbers, but is 'high' in row", "--task", "regression", target="level")
    refused(text.replace("p030,", "p030,x,"), ["expected 6 columns, got 7 in line 32", "--delimiter"])
    refused(text.encode("utf-16"), "cannot be read as utf-8", "--encoding", "utf-8")
    refused(text, "cannot be read as nonsense", "--encoding", "nonsense")
    refused(text, "give one character", "--delimiter", "||")
    refused("", "is empty")
    refused("# only a comment\n", "has no rows")
    refused(text.splitlines()[0] + "\n", "0 rows, too few")


def test_a_number_among_text_is_found(refused, people):
    wages = [f"{w}" for w in people["wage"]]
    wages[17] = "1200 EUR"
    refused(text_of(people | {"wage": wages}), ["should hold numbers, but is '1200 EUR' in row 18", "Correct the file"])


def test_mistakes_of_predict(fitted, people, command, tmp_path):
    fitted(text_of(people))
    (tmp_path / "new.csv").write_text(text_of(people | {"age": ["old"] * 60}))
    for arguments, words, code in (
        (("new.csv", "--out", "p.csv"), "Column 'age' is 'old' in row 0; expected a number", 1),
        (("people.csv", "--out", "p.csv", "--proba"), "--proba is for classes", 1),
        (("people.csv", "--out", "p.csv", "--interval", "90"), "90 is not between 0 and 1", 2),
        (("people.csv",), "name the file to write", 2),
        (("people.csv", "--out", "p.csv", "--keep", "prediction"), "no column 'prediction'", 1),
    ):
        result = command("predict", "mercer-model", *arguments)
        assert (result.exit_code, words in result.stderr) == (code, True), result.output
    fitted(text_of(people), target="level")
    assert (
        "--interval is for numbers"
        in command("predict", "mercer-model", "people.csv", "--out", "p.csv", "--interval", "0.9").stderr
    )
