"""Tables as they are: what becomes of columns, and that estimators on them keep every promise of estimators."""

from __future__ import annotations

import pickle
from datetime import date, datetime

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    RFMRegressor,
    tabular,
)
from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.data.table import Table
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.estimators.tabular.treatments import Category, LeftOut, Moment, Number
from mercer.kernels import Gaussian, Laplace, Subspace

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

RIDGE = KernelRidge(alpha=0.1)


def flats(n: int = 80, seed: int = 0) -> dict[str, list]:
    """A table with every kind of column, some gaps, and a rent that depends on them."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(30, 120, n).round(1)
    city = rng.choice(["Oslo", "Rome", "Bonn"], n)
    days = rng.integers(0, 900, n)
    rent = 5 * size + 200 * (city == "Oslo") + 0.1 * days
    return {
        "id": [f"flat-{i}" for i in range(n)],
        "size": [None if i % 9 == 0 else v for i, v in enumerate(size.tolist())],
        "rooms": rng.integers(1, 5, n).tolist(),
        "city": [None if i % 11 == 0 else v for i, v in enumerate(city.tolist())],
        "balcony": (rng.random(n) < 0.4).tolist(),
        "let": [datetime(2021, 1, 1 + int(d) % 28, int(d) % 24) for d in days],
        "tax": [f"{v:,.1f}" for v in rng.uniform(900, 4000, n)],
        "country": ["EU"] * n,
        "rent": rent.round(1).tolist(),
    }


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(flats())


@pytest.fixture(scope="module")
def fitted(frame):
    return tabular(RIDGE).fit(frame.drop(columns="rent"), frame["rent"])


@parametrize_with_checks([tabular(KernelRidge()), tabular(KernelClassifier())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Columns


def test_each_column_gets_the_treatment_that_its_values_ask_for(fitted):
    kinds = {t.name: type(t) for t in fitted.encoder_.treatments}
    assert kinds == {
        "id": LeftOut, "size": Number, "rooms": Number, "city": Category, "balcony": Number,
        "let": Moment, "tax": Number, "country": LeftOut,
    }  # fmt: skip


def test_frames_of_pandas_and_polars_and_dictionaries_give_the_same_numbers(frame, fitted):
    rows = frame.drop(columns="rent")
    encoded = fitted.encoder_.encode(Table.of(rows))
    columns = {name: values for name, values in flats().items() if name != "rent"}
    for other in (pl.DataFrame(columns), columns, rows.astype({"city": "category"}), rows.convert_dtypes()):
        encoder = TableEncoder.looking_at(Table.of(other))
        assert encoder == fitted.encoder_
        np.testing.assert_array_equal(encoder.encode(Table.of(other)), encoded)


@pytest.mark.parametrize("levels", [2, 3, 20])
def test_rows_are_as_far_apart_in_a_category_as_in_a_column_of_numbers(levels):
    rng = np.random.default_rng(levels)
    category = rng.choice([f"c{k}" for k in range(levels)], 600).tolist()
    table = Table.of({"number": rng.normal(size=600), "category": category})
    encoded = TableEncoder.looking_at(table).encode(table)
    number, rest = ((v[:, None] - v[None]) ** 2 for v in (encoded[:, :1], encoded[:, 1:]))
    np.testing.assert_allclose(rest.sum(2).mean(), number.sum(2).mean(), rtol=0.02)


def test_gaps_of_numbers_are_at_the_centre_and_told_by_a_column():
    table = Table.of({"x": [1.0, 3.0, None, 5.0]})
    encoder = TableEncoder.looking_at(table)
    values = encoder.encode(table)
    assert encoder.columns == ("x", "x=missing")
    assert values[2, 0] == 0.0
    assert len(np.unique(values[[0, 1, 3], 1])) == 1
    assert values[2, 1] > values[0, 1]


def test_rare_and_unknown_levels_are_one_level():
    column = ["a"] * 20 + ["b"] * 20 + ["c", "d"]
    encoder = TableEncoder.looking_at(Table.of({"k": column}))
    values = encoder.encode(Table.of({"k": ["c", "d", "never seen", "a"]}))
    assert encoder.columns == ("k=a", "k=b", "k=other levels")
    np.testing.assert_array_equal(values[[0, 1]], values[[2, 2]])
    assert not np.array_equal(values[2], values[3])


def test_an_unknown_level_where_none_is_rare_is_at_the_centre():
    encoder = TableEncoder.looking_at(Table.of({"k": ["a", "b", "c"] * 20}))
    np.testing.assert_array_equal(encoder.encode(Table.of({"k": ["z"]})), np.zeros((1, 3)))


def test_dates_have_parts_that_come_again():
    days = pd.date_range("2020-01-01", periods=900, freq="17h")
    encoder = TableEncoder.looking_at(Table.of(pd.DataFrame({"t": days})))
    (moment,) = encoder.treatments
    assert moment.parts == ("time of year", "day of the week", "time of day")
    table = Table.of({"t": np.array(["2020-03-02T06", "2020-03-09T06"], dtype="datetime64[h]")})  # two Mondays
    values = dict(zip(encoder.columns, encoder.encode(table).T, strict=True))
    assert values["t, day of the week=Mon"].min() > 0
    np.testing.assert_allclose(np.diff(values["t, time of day (sin)"]), 0, atol=1e-8)


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["2024-02-29", "2024-03-01T10:00:00Z"], "year-month-day"),
        (["29.2.2024", "1.3.2024 10:00"], "day.month.year"),
        (["2/29/2024", "3/1/2024"], "month/day/year"),
        (["29/2/2024", "1/3/2024"], "day/month/year"),
    ],
)
def test_dates_that_are_text_are_dates(texts, form):
    (moment,) = TableEncoder.looking_at(Table.of({"t": texts})).treatments
    assert moment.form == form
    seconds = moment.read(Table.of({"t": texts}).columns["t"])
    assert np.diff(seconds)[0] == pytest.approx(86_400 + 36_000 * (":" in texts[1]))


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.5", "-2", "1e3"], [1.5, -2, 1000]),
        (["1.234,5", "2,25", "7"], [1234.5, 2.25, 7]),
        (["1,234.5", "12,345,678"], [1234.5, 12345678]),
        (["1 234,5", "-"], [1234.5, np.nan]),
    ],
)
def test_numbers_that_are_text_are_numbers(texts, numbers):
    (number,) = TableEncoder.looking_at(Table.of({"x": texts})).treatments
    np.testing.assert_array_equal(number.read(Table.of({"x": texts}).columns["x"]), numbers)


def test_codes_with_leading_zeros_are_categories():
    assert isinstance(TableEncoder.looking_at(Table.of({"zip": ["01234", "99999"] * 9})).treatments[0], Category)


@pytest.mark.parametrize(
    ("name", "values", "out"),
    [
        ("id", np.arange(40.0), True),
        ("customer_id", np.arange(40.0) * 7, True),
        ("rownames", np.arange(40.0), True),
        ("note", [f"text {i}" for i in range(40)], True),
        ("year", np.arange(1980.0, 2020.0), False),
        ("id", np.arange(40.0) % 8, False),
        ("width", np.linspace(0, 1, 40), False),
    ],
)
def test_ids_are_left_out(name, values, out):
    found = TableEncoder.looking_at(Table.of({name: values, "x": np.sin(np.arange(40.0))}))
    assert isinstance(found.treatments[0], LeftOut) == out


def test_an_id_is_used_when_there_is_nothing_else_or_when_asked():
    rows = {"id": np.arange(40.0)}
    assert TableEncoder.looking_at(Table.of(rows)).columns == ("id",)
    both = Table.of(rows | {"x": np.sin(np.arange(40.0))})
    assert TableEncoder.looking_at(both, kinds={"id": "number"}).columns == ("id", "x")
    assert TableEncoder.looking_at(both, kinds={"x": "drop", "id": "number"}).columns == ("id",)


# Estimators


def test_a_table_of_numbers_without_gaps_is_the_plain_estimator(frame):
    X, y = frame[["rooms", "rent"]].to_numpy(float), frame["rent"]
    X = X + np.random.default_rng(0).normal(size=X.shape)
    plain = KernelRidge(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(tabular(KernelRidge(alpha=0.1)).fit(X, y).predict(X), plain.predict(X), rtol=1e-9)


def test_text_that_decides_the_target_is_learned(frame):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"city": rng.choice(["Oslo", "Rome", "Bonn"], 200), "noise": rng.normal(size=200)})
    y = X["city"].map({"Oslo": 1.0, "Rome": 5.0, "Bonn": 2.0})
    model = tabular(KernelRidge(alpha="loo", fit_intercept=True)).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.95
    labels = tabular(KernelClassifier(alpha=0.01)).fit(X[:150], X["city"][:150])
    assert labels.score(X[150:], X["city"][150:]) == 1.0


def test_weights_of_whole_numbers_are_repeated_rows(frame):
    X, y = frame.drop(columns=["rent", "id"]), frame["rent"]
    times = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    weighted = tabular(RIDGE, rare=1).fit(X, y, sample_weight=times.astype(float))
    repeated = tabular(RIDGE, rare=1).fit(X.iloc[rows], y.iloc[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_metadata_is_routed(frame):
    import sklearn

    X, y, w = frame.drop(columns="rent"), frame["rent"], np.linspace(0.1, 2, len(frame))
    plain = tabular(RIDGE).fit(X, y, sample_weight=w).predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = tabular(clone(RIDGE).set_fit_request(sample_weight=True)).fit(X, y, sample_weight=w)
        pipe = make_pipeline(tabular(clone(RIDGE).set_fit_request(sample_weight=True))).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(asked.predict(X), plain)
    np.testing.assert_array_equal(pipe.predict(X), plain)


def test_models_survive_files_pickle_and_clone(frame, fitted, tmp_path):
    X, y = frame.drop(columns="rent"), frame["rent"]
    expected = fitted.predict(X)
    fitted.save(tmp_path / "m.safetensors")
    for other in (mercer.load(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        np.testing.assert_allclose(other.predict(X), expected, rtol=1e-12)
        assert other.encoder_ == fitted.encoder_
        assert list(other.feature_names_in_) == list(X.columns)
        assert str(other.report().lines[:8]) == str(fitted.report().lines[:8])


def test_model_files_of_other_models_are_checked(fitted, tmp_path):
    from mercer.files.modelfile import write_model

    meta, arrays = fitted.to_state()
    for change in (
        {"class": "TableModel"},
        {"class": "Nothing"},
        {"treatments": [*meta["treatments"][:-1]]},
        {"treatments": [meta["treatments"][1] | {"spread": -1.0}, *meta["treatments"][1:]]},
        {"treatments": [{"kind": "magic"}]},
        {"columns": [["id", "magic"]]},
    ):
        write_model(tmp_path / "m.safetensors", "TabularEstimator", meta | change, arrays)
        with pytest.raises(ModelFileError):
            mercer.load(tmp_path / "m.safetensors")


def test_search_and_cross_validation(frame):
    X, y = frame.drop(columns="rent"), frame["rent"]
    search = GridSearchCV(tabular(KernelRidge()), {"estimator__alpha": [0.01, 1.0], "rare": [5]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    grid = GridSearchCV(tabular(KernelRidge(Gaussian())), {"estimator__kernel__length_scale": [1.0, 4.0]}, cv=2)
    assert grid.fit(X, y).best_params_["estimator__kernel__length_scale"] in (1.0, 4.0)
    assert cross_val_score(make_pipeline(tabular(RIDGE)), X, y, cv=3).min() > 0.4


def test_kernels_on_columns_of_the_table_see_all_that_was_made_of_them(frame):
    X, y = frame.drop(columns="rent"), frame["rent"]
    kernel = Subspace(Gaussian("auto"), ["size"]) + Subspace(Laplace("auto"), ["city"])
    model = tabular(KernelRidge(kernel, alpha=0.1)).fit(X, y)
    made = [[model.encoder_.columns[j] for j in part.columns] for _, part in model.kernel_.children()]
    assert made == [["size", "size=missing"], ["city=Bonn", "city=Oslo", "city=Rome", "city=missing"]]


@pytest.mark.parametrize(
    "inner",
    [GaussianProcessRegressor(), KernelRegressor(loss="squared"), RFMRegressor(max_iter=1), Ridge()],
    ids=lambda e: type(e).__name__,
)
def test_every_estimator_learns_from_a_table(frame, inner):
    X, y = frame.drop(columns="rent"), frame["rent"]
    model = tabular(inner).fit(X[:60], y[:60])
    assert model.score(X[:60], y[:60]) > 0.3
    assert "size" in str(model.report())


def test_intervals_calibrate_on_tables(frame):
    X, y = frame.drop(columns="rent"), frame["rent"]
    model = tabular(RIDGE).fit(X[:50], y[:50])
    low, high = model.predict_interval(X[50:], 0.8, calibrate=(X[50:], y[50:]))
    assert np.mean((low <= y[50:]) & (y[50:] <= high)) >= 0.75


def test_transformers_and_parts(frame):
    X, y = frame.drop(columns="rent"), frame["rent"]
    assert tabular(KernelPCA(n_components=2)).fit(X).transform(X).shape == (len(X), 2)
    parts = tabular(KernelRidge(solver="nystrom", n_landmarks=20, alpha=0.1))
    parts.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert parts.estimator_.predict(parts._encoded(X)).shape == (len(X),)


# Reports and errors


def test_the_report_tells_of_every_column_and_of_ids(fitted):
    text = str(fitted.report())
    for words in (
        "category of 3 levels",
        "11.3% missing",
        "date: time elapsed",
        "constant, EU",
    ):
        assert words in text
    assert any("'id' is left out" in concern for concern in fitted.report().concerns)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"size": "big"}, InputError, "Column 'size' is 'big' in row 3; expected a number"),
        ({"let": "tomorrow"}, InputTypeError, "Column 'let' holds no dates"),
        ({"size": np.inf}, InputError, "Column 'size' is infinite in row 3"),
    ],
)
def test_what_new_rows_hold_is_checked(frame, fitted, change, error, words):
    rows = frame.drop(columns="rent").astype(object)
    for name, value in change.items():
        rows.loc[3, name] = value
    rows = rows.astype({"size": float}) if change.get("size") == np.inf else rows
    with pytest.raises(error, match=words):
        fitted.predict(rows)


def test_missing_columns_are_named(frame, fitted):
    with pytest.raises((InputError, ValueError), match="city"):
        fitted.predict(frame.drop(columns=["rent", "city"]))
    with pytest.raises(InputError, match="no column 'rooms'"):
        fitted.predict({"size": [1.0]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": {"nothing": "number"}}, "no column of X"),
        ({"columns": {"city": "magic"}}, "choose one of"),
        ({"columns": {"city": "number"}}, "Column 'city' is 'Bonn' in row 1"),
        ({"columns": {"rooms": "date"}}, "holds numbers"),
        ({"max_levels": 0}, "max_levels=0"),
    ],
)
def test_options_are_checked(frame, options, words):
    with pytest.raises(InputError, match=words):
        tabular(RIDGE, **options).fit(frame.drop(columns="rent"), frame["rent"])


def test_date_objects_are_dates():
    days = [date(2020, 1, 1), None, date(2020, 2, 1)]
    assert isinstance(TableEncoder.looking_at(Table.of({"d": days, "x": [1.0, 2.0, 3.0]})).treatments[0], Moment)


@pytest.mark.parametrize("estimator", [KernelRidge(), KernelClassifier(), GaussianProcessRegressor()])
def test_plain_estimators_name_the_text_and_the_way_out(estimator):
    columns = {"size": [1.0, 2.0, 3.0], "city": [None, "1.5", "Rome"]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        with pytest.raises(InputTypeError, match=r"'Rome' in row 2, column 'city'.*mercer.tabular\("):
            estimator.fit(frame, [0, 1, 0])
    with pytest.raises(InputTypeError, match=r"'Oslo' in row 1, column 1.*mercer.tabular\("):
        estimator.fit(np.array([[1, 2.0], [2, "Oslo"], [3, "Rome"]], dtype=object), [0, 1, 0])
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=3), "kind": ["a", "b", "c"]})
    with pytest.raises(InputTypeError, match="column 'day'"):
        estimator.fit(days, [0, 1, 0])
