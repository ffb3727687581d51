"""Recursive feature machines: what M is, what they learn, what they say of themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import KernelRidge, RFMClassifier, RFMRegressor
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.estimators.rfm import fit as fitting
from mercer.features.dials import STEP_RIDGE
from mercer.features.gradients import gradient_products, metric_of, values_and_slopes
from mercer.features.lens import Lens
from mercer.features.recursive import rounds
from mercer.kernels import ExponentialPower, Gaussian, Laplace, Matern
from mercer.rows import ArrayRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = np.sin(2.0 * X[:, 0]) + X[:, 0] * X[:, 1]
QUICK = {"max_iter": 2, "n_folds": 2}


KERNELS = [Laplace(2.0), Laplace(2.0, metric="l1"), Gaussian(1.5), ExponentialPower(2.0, 1.4), Matern(1.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_products_are_those_of_autograd(kernel) -> None:
    z = torch.from_numpy(X[:30])
    coef = torch.from_numpy(RNG.normal(size=(30, 2)))
    weights = torch.from_numpy(RNG.uniform(0.5, 2.0, 30))
    x = z.clone().requires_grad_()
    expected = torch.zeros(5, 5).double()
    for column in coef.T:
        (g,) = torch.autograd.grad((kernel(x, z) @ column).sum(), x, retain_graph=True)
        expected += (weights / weights.sum() * g.T) @ g
    values, slopes = values_and_slopes(kernel, z)
    torch.testing.assert_close(values, kernel(z))
    metric = metric_of(kernel)
    found = gradient_products(slopes, z, coef, weights, diagonal=False, metric=metric)
    torch.testing.assert_close(found, expected)
    diagonal = gradient_products(slopes, z, coef, weights, diagonal=True, metric=metric)
    torch.testing.assert_close(diagonal, expected.diagonal())


@pytest.mark.parametrize("diagonal", [True, False])
def test_each_round_takes_the_gradients_of_the_fit_before_it(diagonal: bool) -> None:
    x, y, kernel = torch.from_numpy(X[:40]), torch.from_numpy(Y[:40, None]), Gaussian(2.0)
    ones = torch.ones(40).double()
    first, second, third = rounds(kernel, Lens.of(x, ones), x, y, ones, diagonal=diagonal, count=2)
    for before, after in ((first, second), (second, third)):
        points = ((x - x.mean(0)) / x.std(0, correction=0)).requires_grad_()
        root = before.lens.root.diag() if before.lens.root.ndim == 1 else before.lens.root
        coef = torch.linalg.solve(kernel(before.rows) + STEP_RIDGE * torch.eye(40), y)
        (g,) = torch.autograd.grad((kernel(points @ root, before.rows) @ coef).sum(), points)
        M = g.T @ g / 40
        M = M / M.diagonal().max()
        torch.testing.assert_close(after.lens.matrix, M.diagonal() if diagonal else M, rtol=1e-6, atol=1e-8)


def test_kernels_of_the_l1_distance_weigh_columns_alone() -> None:
    target = np.abs(X[:, 0]) + np.abs(X[:, 1])
    model = RFMRegressor("laplace_l1", **QUICK).fit(X, target)
    assert model.agop_.shape == (5,)
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}
    whole = RFMRegressor("laplace", **QUICK).fit(X, target)
    assert model.error_ < whole.error_
    with pytest.raises(InputError, match="weights of columns alone"):
        RFMRegressor("laplace_l1", matrix="full").fit(X, target)


def test_a_flat_function_teaches_nothing() -> None:
    x, ones = torch.from_numpy(X[:10]), torch.ones(10).double()
    steps = list(rounds(Gaussian(2.0), Lens.of(x, ones), x, 0.0 * x[:, :1], ones, diagonal=False, count=3))
    assert len(steps) == 1
    model = RFMRegressor(**QUICK).fit(X, np.ones(120))
    np.testing.assert_allclose(model.predict(X), 1.0)


def test_features_that_matter_are_found_and_units_are_not() -> None:
    model = RFMRegressor("gaussian", **QUICK).fit(X, Y)
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 1}
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    units, shift = np.array([1e-3, 1e4, 1.0, 7.0, 30.0]), np.array([0.0, 1e4, 5.0, -3.0, 0.0])
    scaled = RFMRegressor("gaussian", **QUICK).fit(X * units + shift, 100.0 * Y + 7.0)
    np.testing.assert_allclose(scaled.predict(X * units + shift), 100.0 * model.predict(X) + 7.0, rtol=1e-5, atol=1e-4)


def test_without_rounds_it_is_kernel_ridge_regression_on_scaled_columns() -> None:
    y = np.random.default_rng(3).normal(size=120)  # noise: M can only do harm
    model = RFMRegressor(Gaussian(2.0), alpha=0.5, matrix="full", **QUICK).fit(X, y)
    assert model.report().as_dict()["features"] == "all columns alike"
    assert any("hardly helped" in concern for concern in model.report().concerns)
    scaled = (X - X.mean(0)) / X.std(0)
    system = Gaussian(2.0)(scaled) + 0.5 * np.eye(120)
    expected = Gaussian(2.0)(scaled) @ np.linalg.solve(system, y - y.mean()) + y.mean()
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    assert model.error_ > 0.9 * y.std()


@pytest.mark.slow
def test_a_function_of_two_directions_of_many_is_learned() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1200, 30))
    u = x @ np.linalg.qr(rng.normal(size=(30, 2)))[0]
    y = u[:, 0] * u[:, 1]
    model = RFMRegressor("gaussian", matrix="full", n_folds=3).fit(x[:600], y[:600])
    error = np.mean((model.predict(x[600:]) - y[600:]) ** 2)
    plain = KernelRidge("gaussian", alpha=1e-3).fit(x[:600], y[:600])
    assert error < np.mean((plain.predict(x[600:]) - y[600:]) ** 2) / 5
    assert np.linalg.eigvalsh(model.agop_)[:-2].sum() < 0.1 * np.trace(model.agop_)


@pytest.mark.slow
def test_the_error_it_reports_is_that_of_new_rows() -> None:
    ratios = []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2200, 6))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=2200)
        model = RFMRegressor("laplace", max_iter=3).fit(x[:200], y[:200])
        ratios.append(model.error_ / np.sqrt(np.mean((model.predict(x[200:]) - y[200:]) ** 2)))
    assert 0.9 < np.median(ratios) < 1.15


def test_classes_have_probabilities_and_several_targets_their_errors() -> None:
    labels = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
    model = RFMClassifier("laplace", **QUICK).fit(X, labels)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], model.predict(X))
    assert model.decision_function(X).shape == (120, 3)
    assert 0.4 < model.accuracy_ <= 1.0
    two = RFMRegressor("laplace", **QUICK).fit(X, np.stack([Y, X[:, 2]], 1))
    assert two.error_.shape == (2,)
    assert two.predict(X[:3]).shape == (3, 2)


def test_weights_are_repeated_rows() -> None:
    weights = RNG.integers(0, 3, 120)
    weighted = RFMRegressor("laplace", **QUICK).fit(X, Y, sample_weight=weights)
    repeated = RFMRegressor("laplace", **QUICK).fit(np.repeat(X, weights, 0), np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)
    assert weighted.error_ == pytest.approx(repeated.error_)


@pytest.mark.parametrize("model", [RFMRegressor("laplace", **QUICK), RFMClassifier("laplace", **QUICK)], ids=repr)
def test_a_saved_machine_is_the_same_machine(model, tmp_path) -> None:
    y = Y if isinstance(model, RFMRegressor) else np.where(Y > 0, "up", "down")
    model.fit(X, y)
    model.save(tmp_path / "model.safetensors")
    again = mercer.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.agop_, model.agop_)
    assert str(again.report()) == str(model.report())
    again.plot_rounds()
    if isinstance(model, RFMClassifier):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_more_rows_than_are_searched_are_judged_at_rows_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "SEARCHED", 60)
    model = RFMRegressor("laplace", n_learn=80, **QUICK).fit(X, Y)
    assert "(held out)" in model.report().as_dict()["error"]
    assert model.kernel_.length_scale > 0
    assert model.solver_report_.solver == "cholesky"
    few = RFMRegressor("laplace", solver="nystrom", n_landmarks=30, **QUICK).fit(X, Y)
    assert few.solver_report_.solver == "nystrom"
    assert np.corrcoef(few.predict(X), Y)[0, 1] > 0.6


def test_rows_that_are_read_in_parts() -> None:
    source = ArrayRows(X, Y)
    model = RFMRegressor("laplace", n_landmarks=120, **QUICK).fit(source)
    plain = RFMRegressor("laplace", **QUICK).fit(X, Y)
    np.testing.assert_allclose(model.predict(ArrayRows(X)), plain.predict(X), atol=1e-3)
    np.testing.assert_allclose(model.predict(X), model.predict(ArrayRows(X)), atol=1e-12)


def test_tensors_and_names_go_in_and_out() -> None:
    model = RFMRegressor("laplace", **QUICK).fit(torch.from_numpy(X), torch.from_numpy(Y))
    assert isinstance(model.predict(torch.from_numpy(X)), torch.Tensor)
    assert isinstance(model.agop_, torch.Tensor)
    pandas = pytest.importorskip("pandas")
    named = RFMRegressor("laplace", **QUICK).fit(pandas.DataFrame(X, columns=list("abcde")), Y)
    assert "a " in named.report().as_dict()["columns"]
    assert named.plot().get_yticklabels()[0].get_text() in "ab"
    named.plot_agop()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="matrix='both': must be 'auto', 'diagonal' or 'full'"):
        RFMRegressor(matrix="both").fit(X, Y)
    with pytest.raises(InputError, match="recursive feature machines take 'auto'"):
        RFMRegressor("linear").fit(X, Y)
    with pytest.raises(InputError, match="one length scale for all columns"):
        RFMRegressor(Laplace((1.0, 2.0, 1.0, 1.0, 1.0))).fit(X, Y)
    with pytest.raises(InputError, match="alpha=0"):
        RFMRegressor(alpha=0).fit(X, Y)
    with pytest.raises(InputTypeError, match="alpha=None"):
        RFMRegressor(alpha=None).fit(X, Y)
    with pytest.raises(InputError, match="n_folds=1"):
        RFMRegressor(n_folds=1).fit(X, Y)
    with pytest.raises(MemoryBudgetError, match="smaller n_learn"):
        RFMRegressor(memory_budget="100KB").fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = RFMClassifier().fit(X[:3], [0, 1, 1])
    with pytest.raises(InputError, match="at least four rows"):
        few.predict_proba(X)
    assert "too few rows" in str(few.report())
    assert few.report().as_dict()["error"] == "not known: too few rows"


@pytest.mark.slow
@parametrize_with_checks([RFMRegressor(max_iter=1, n_folds=2), RFMClassifier(max_iter=1, n_folds=2)])
def test_every_scikit_learn_check_passes(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("landmarks", [[1.0, 2.0], np.zeros((4, 2))])
def test_landmarks_of_other_columns_are_refused(landmarks):
    rows = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(InputError, match=r"expected \(m, 3\), the columns of X"):
        RFMRegressor("laplace", landmarks=landmarks, max_iter=1, n_folds=2).fit(rows, rows[:, 0])


def test_machines_on_tables_are_drawn() -> None:
    X, y = {"a": [0.0, 1.0, 2.0, 3.0] * 5, "b": ["u", "v"] * 10}, np.arange(20.0) % 4
    machine = mercer.tabular(RFMRegressor("gaussian", n_folds=2, max_iter=1)).fit(X, y)
    assert len(machine.plot().patches) == len(machine.encoder_.columns)
