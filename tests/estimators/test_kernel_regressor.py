"""KernelRegressor: support vector, quantile and robust regression against their references."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import mercer
from mercer import KernelRegressor, KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Linear
from mercer.losses import Huber, Loss

LOSSES = ["squared", "huber", "quantile", "epsilon_insensitive"]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200] / 50


def scaled_alpha(loss, alpha, factor):
    """The alpha of the same fit to targets in another unit: straight losses grow as y, the norm as its square."""
    return alpha if loss == "huber" else alpha / factor


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive"])
def test_what_losses_forgive_follows_the_units_of_the_targets(diabetes, loss):
    X, y = diabetes
    options = {"loss": loss, "fit_intercept": True, "tol": 1e-10, "delta": 0.3, "epsilon": 0.3}
    f = KernelRegressor(Gaussian(3.0), alpha=0.3, **options).fit(X, y)
    for factor in (1e-4, 50.0):
        g = KernelRegressor(Gaussian(3.0), alpha=scaled_alpha(loss, 0.3, factor), **options).fit(X, factor * y + 7.0)
        np.testing.assert_allclose((g.predict(X) - 7.0) / factor, f.predict(X), atol=1e-4)


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive"])
def test_integer_weights_equal_repeated_rows_in_what_losses_forgive(diabetes, loss):
    X, y = diabetes
    w = np.random.default_rng(0).integers(0, 4, len(y))
    model = KernelRegressor(Gaussian(3.0), loss=loss, delta=0.3).fit(X, y, w)
    again = KernelRegressor(Gaussian(3.0), loss=loss, delta=0.3).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    name = "delta" if loss == "huber" else "epsilon"
    np.testing.assert_allclose(getattr(model.losses_[0], name), getattr(again.losses_[0], name), rtol=1e-9)


def test_the_default_huber_loss_is_as_good_as_ridge_on_targets_in_large_units():
    X, y = load_diabetes(return_X_y=True)
    train, test = slice(0, 300), slice(300, None)
    robust = KernelRegressor(loss="huber", fit_intercept=True).fit(X[train], y[train])
    ridge = KernelRidge(fit_intercept=True).fit(X[train], y[train])
    assert abs(robust.score(X[test], y[test]) - ridge.score(X[test], y[test])) < 0.02


def test_raw_units_are_those_of_the_targets_and_constant_targets_have_none(diabetes):
    X, y = diabetes
    raw = KernelRegressor(Gaussian(3.0), loss="huber", delta=0.3, units="raw").fit(X, y)
    assert raw.losses_[0].delta == 0.3
    given = KernelRegressor(Gaussian(3.0), loss=Huber(0.3)).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), raw.predict(X))
    assert KernelRegressor(Gaussian(3.0), loss="huber", delta=0.3).fit(X, 0 * y + 4).losses_[0].delta == 0.3


def test_a_saved_model_keeps_the_unit_of_its_loss(diabetes, tmp_path):
    X, y = diabetes
    model = KernelRegressor(Gaussian(3.0), loss="huber", delta=0.3).fit(X, y)
    model.save(tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    assert loaded.losses_ == model.losses_
    assert str(loaded.report()) == str(model.report())
    np.testing.assert_array_equal(loaded.predict_interval(X[:3])[0], model.predict_interval(X[:3])[0])


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(150, 1))
    return X, np.sin(X[:, 0]) + rng.normal(size=150) * (0.1 + 0.1 * np.abs(X[:, 0]))


def test_the_squared_loss_is_kernel_ridge_regression(diabetes):
    X, y = diabetes
    w = np.random.default_rng(0).uniform(0.5, 2, len(y))
    ours = KernelRegressor(Gaussian(3.0), alpha=0.3).fit(X, y, w)
    theirs = KernelRidge(Gaussian(3.0), alpha=0.3).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_epsilon_insensitive_loss_is_support_vector_regression(diabetes, epsilon):
    X, y = diabetes
    options = {"loss": "epsilon_insensitive", "epsilon": epsilon, "units": "raw", "fit_intercept": True}
    ours = KernelRegressor(Gaussian(3.0), alpha=0.25, tol=1e-8, **options).fit(X, y)
    theirs = SVR(C=2.0, gamma=1 / 18, epsilon=epsilon, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)
    f = theirs.predict(X)
    norm = theirs.dual_coef_[0] @ (f[theirs.support_] - theirs.intercept_)
    least = np.maximum(0, np.abs(y - f) - epsilon).sum() + 0.25 * norm
    assert ours.objective_ == pytest.approx(least, rel=1e-5)


def test_a_tiny_alpha_on_a_linear_kernel_is_the_linear_program_of_quantile_regression(diabetes):
    X, y = diabetes
    X = X[:, :3]
    level, n = 0.3, len(y)
    design = np.hstack([X, np.ones((n, 1))])
    costs = np.r_[np.zeros(4), np.full(n, level), np.full(n, 1 - level)]
    program = linprog(
        costs, A_eq=np.hstack([design, np.eye(n), -np.eye(n)]), b_eq=y, bounds=[(None, None)] * 4 + [(0, None)] * 2 * n
    )
    ours = KernelRegressor(Linear(), loss="quantile", quantiles=level, alpha=1e-4, fit_intercept=True, tol=1e-7).fit(
        X, y
    )
    below = y - ours.predict(X)
    assert np.where(below > 0, level * below, (level - 1) * below).sum() == pytest.approx(program.fun, rel=1e-4)


def test_the_huber_loss_is_that_of_the_linear_regressor(diabetes):
    X, y = diabetes
    theirs = HuberRegressor(epsilon=1.3, alpha=0.0, max_iter=10_000, tol=1e-10).fit(X, y)
    delta = 1.3 * theirs.scale_
    ours = KernelRegressor(
        Linear(), loss="huber", delta=float(delta), units="raw", alpha=1e-7, fit_intercept=True, tol=1e-12
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)


def test_a_few_wild_targets_hardly_move_the_robust_losses(waves):
    X, y = waves
    wild = y.copy()
    wild[::15] += 30
    truth = np.sin(X[:, 0])
    for loss in ("huber", "quantile", "epsilon_insensitive"):
        model = KernelRegressor(Gaussian(1.0), loss=loss, delta=0.3, alpha=0.3, fit_intercept=True).fit(X, wild)
        assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.25
    squared = KernelRegressor(Gaussian(1.0), alpha=0.3, fit_intercept=True).fit(X, wild)
    assert np.sqrt(np.mean((squared.predict(X) - truth) ** 2)) > 1.0


def test_quantiles_leave_their_share_below_and_never_cross(waves):
    X, y = waves
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = KernelRegressor(Gaussian(1.0), loss="quantile", quantiles=levels, alpha=0.1, fit_intercept=True).fit(X, y)
    grid = np.linspace(-4, 4, 300).reshape(-1, 1)
    predicted = model.predict(X)
    assert predicted.shape == (150, 5)
    np.testing.assert_allclose((y[:, None] <= predicted + 1e-6).mean(0), levels, atol=0.06)
    assert (np.diff(model.predict(grid), axis=1) >= 0).all()
    assert "before sorting" in str(model.report())
    assert 0 < model.score(X, y) < 1


def test_crossings_are_counted_and_reported():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(40, 1))
    y = rng.normal(size=40)
    levels = np.linspace(0.4, 0.6, 9).tolist()
    model = KernelRegressor(Gaussian(0.03), loss="quantile", quantiles=levels, alpha=0.3).fit(X, y)
    raw = model.function_(X) + model.intercept_
    assert model.n_crossings_ == (np.diff(raw, axis=1) < -1e-9).any(1).sum()
    assert bool(model.n_crossings_) == any("crossed" in concern for concern in model.report().concerns)


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_agree(loss, diabetes):
    X, y = diabetes
    options = {"loss": loss, "alpha": 0.3, "fit_intercept": True, "tol": 1e-7}
    dense = KernelRegressor(Gaussian(3.0), solver="dense", **options).fit(X, y)
    for other in ({"solver": "pcg"}, {"landmarks": X}):
        model = KernelRegressor(Gaussian(3.0), **options, **other).fit(X, y)
        assert model.objective_ == pytest.approx(dense.objective_, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_alpha_that_is_chosen_is_nearly_the_best_of_its_path(loss, waves):
    X, y = waves
    X_new = np.linspace(-3, 3, 200).reshape(-1, 1)
    truth = np.sin(X_new[:, 0])
    model = KernelRegressor(Gaussian(1.0), loss=loss, alpha="auto").fit(X, y)

    def error(fitted):
        return np.sqrt(np.mean((fitted.predict(X_new) - truth) ** 2))

    each = [
        error(KernelRegressor(Gaussian(1.0), loss=loss, alpha=float(a)).fit(X, y)) for a in model.alpha_path_.alphas
    ]
    assert error(model) < min(each) + 0.06


def test_the_path_of_the_squared_loss_is_exact_leave_one_out(waves):
    X, y = waves
    model = KernelRegressor(Gaussian(1.0), alpha="auto").fit(X, y)
    alphas = model.alpha_path_.alphas.numpy()
    ridge = KernelRidge(Gaussian(1.0), alpha="loo", alphas=alphas).fit(X, y)
    np.testing.assert_allclose(model.alpha_path_.errors[:, 0], ridge.alpha_path_.errors[:, 0], rtol=1e-6)
    assert model.alpha_ == pytest.approx(ridge.alpha_)


def test_integer_weights_equal_repeated_rows(waves):
    X, y = waves[0][:60], waves[1][:60]
    w = np.tile([0, 1, 3], 20)
    index = np.repeat(np.arange(60), w)
    for loss in LOSSES:
        one = KernelRegressor(loss=loss, alpha=0.2, tol=1e-10).fit(X, y, w)
        two = KernelRegressor(loss=loss, alpha=0.2, tol=1e-10).fit(X[index], y[index])
        np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-4)


def test_a_loss_that_is_not_convex_is_a_local_solution_and_the_report_says_so(waves):
    @dataclass(frozen=True)
    class Cauchy(Loss):
        convex = False

        def value(self, y, f):
            return torch.log1p((y - f) ** 2)

    X, y = waves
    model = KernelRegressor(Gaussian(1.0), loss=Cauchy(), alpha=0.05).fit(X, y)
    assert model.solver_report_.converged
    assert any("local solution" in concern for concern in model.report().concerns)
    assert model.score(X, y) > 0.7
    with pytest.raises(InputError, match="pickle"):
        model.save("unused.safetensors")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("extra", [{}, {"n_landmarks": 20}, {"alpha": "auto"}])
def test_a_saved_model_is_the_same_model(loss, extra, tmp_path, waves):
    X, y = waves
    model = KernelRegressor(loss=loss, quantiles=[0.2, 0.8], fit_intercept=True, **extra).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    again = mercer.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.report()) == str(model.report())


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_targets_and_columns_and_equal_rows_have_an_answer(loss):
    X = np.ones((6, 2))
    model = KernelRegressor(Gaussian(1.0), loss=loss, alpha=0.01, fit_intercept=True).fit(X, np.full(6, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=0.11)
    model = KernelRegressor(Gaussian(1.0), loss=loss, alpha="auto").fit(X, np.arange(6.0))
    assert np.isfinite(model.predict(X)).all()


def test_tensors_come_back_as_tensors(waves):
    X, y = (torch.tensor(a) for a in waves)
    model = KernelRegressor(loss="huber").fit(X, y)
    assert isinstance(model.predict(X), torch.Tensor)
    assert isinstance(model.dual_coef_, torch.Tensor)


def test_wrong_arguments_are_refused(waves):
    X, y = waves
    for options, words in [
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"loss": "quantile", "quantiles": 1.5}, "quantiles=1.5"),
        ({"loss": "quantile", "quantiles": [0.9, 0.1]}, "ascending"),
        ({"loss": "epsilon_insensitive", "epsilon": -1}, "epsilon=-1"),
        ({"loss": "epsilon_insensitive", "epsilon": np.inf}, "epsilon=inf"),
        ({"loss": "huber", "delta": 0}, "delta=0"),
        ({"alpha": -1.0}, "alpha=-1.0"),
    ]:
        with pytest.raises(InputError, match=words):
            KernelRegressor(**options).fit(X, y)
    for options, words in [
        ({"loss": "epsilon_insensitive", "epsilon": "a"}, "epsilon='a'"),
        ({"loss": "huber", "delta": "a"}, "delta='a'"),
        ({"loss": "quantile", "quantiles": "a"}, "quantiles='a'"),
    ]:
        with pytest.raises(InputTypeError, match=words):
            KernelRegressor(**options).fit(X, y)
    with pytest.raises(InputError, match="2 columns"):
        KernelRegressor().fit(X, np.stack([y, y], axis=1))


def test_plots_show_curves_or_predictions(waves, diabetes):
    X, y = waves
    ax = KernelRegressor(loss="quantile", quantiles=[0.1, 0.5, 0.9], alpha=0.3).fit(X, y).plot()
    assert len(ax.get_lines()) == 3
    ax = KernelRegressor(loss="huber").fit(*diabetes).plot()
    assert ax.get_xlabel().startswith("Actual")


class Own(Loss):
    """A loss with a kink that does not say so."""

    def value(self, y, f):
        return (y - f).abs()


class Kinked(Own):
    smooth = False


class Nowhere(Loss):
    def value(self, y, f):
        return (y - f).square() * float("nan")


@pytest.mark.parametrize("alpha", [0.1, "auto"])
def test_a_loss_that_cannot_be_minimised_is_refused(alpha, waves):
    for loss, words in [(Kinked(), "PiecewiseLinear"), (Nowhere(), "'nowhere' has a value that is not finite")]:
        with pytest.raises(InputError, match=words):
            KernelRegressor(loss=loss, alpha=alpha).fit(*waves)


def test_a_kink_that_was_not_announced_is_named_as_a_cause(waves):
    with pytest.warns(ConvergenceWarning, match="PiecewiseLinear"):
        KernelRegressor(loss=Own(), alpha=0.1, max_iter=5).fit(*waves)


@pytest.mark.parametrize("loss", ["quantile", "epsilon_insensitive"])
def test_an_alpha_that_was_chosen_and_one_given_lead_to_the_same_minimum(loss, waves):
    X, y = waves
    chosen = KernelRegressor("gaussian", loss=loss, alpha="auto", fit_intercept=True).fit(X, y)
    given = KernelRegressor("gaussian", loss=loss, alpha=chosen.alpha_, fit_intercept=True).fit(X, y)
    assert chosen.solver_report_.residual <= chosen.tol
    assert chosen.objective_ == pytest.approx(given.objective_, rel=3e-6)


def test_the_report_names_the_support_and_how_alpha_was_chosen(waves):
    X, y = waves
    model = KernelRegressor(loss="epsilon_insensitive").fit(X, y)
    assert model.report().as_dict()["support"] == f"{len(model.support_):,} of {len(X):,} rows"
    assert "by exact leave-one-out" in str(KernelRegressor(loss="squared", alpha="auto").fit(X, y).report())
    assert "by approximate leave-one-out" in str(KernelRegressor(loss="huber", alpha="auto").fit(X, y).report())


@pytest.mark.parametrize("loss", LOSSES)
def test_integer_weights_equal_repeated_rows_also_for_alpha(loss):
    rng = np.random.default_rng(0)
    X, times = rng.normal(size=(40, 2)), rng.integers(0, 4, size=40)
    y = X[:, 0] + rng.normal(size=40)
    weighted = KernelRegressor(Gaussian(1.0), loss=loss, alpha="auto").fit(X, y, times.astype(float))
    repeated = KernelRegressor(Gaussian(1.0), loss=loss, alpha="auto").fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*NOT CONVERGED")
def test_large_coefficients_do_not_magnify_the_rounding_of_float32():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=40)
    model = KernelRegressor(Gaussian(3.0), loss="huber", alpha=1e-7, solver="dense").fit(X, y)
    exact = Gaussian(3.0)(X.astype(float)) @ model.dual_coef_ + model.intercept_
    assert model.solver_report_.converged
    assert np.abs(model.dual_coef_).max() > 1e6
    np.testing.assert_allclose(model.predict(X), exact, atol=1e-5)


@pytest.mark.parametrize("loss", ["huber", "quantile", "squared"])
def test_tune_finds_the_column_that_matters_though_some_targets_are_far_out(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=160)
    if loss != "squared":
        y[:5] += 1000.0
    model = KernelRegressor(Gaussian(1.5), loss=loss, alpha=0.01, tune="ard").fit(X, y)
    scales = model.kernel_.length_scale
    assert min(scales[1:]) > 4 * scales[0]
    assert model.tuning_.tune == "ard"
