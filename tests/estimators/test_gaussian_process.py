"""Gaussian process regression: its laws, and agreement with other libraries and closed forms."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as PeerMatern
from sklearn.linear_model import RidgeCV

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Brownian, Constant, Gaussian, Linear, Matern, Spectrum, Subspace, WhiteNoise
from mercer.plots.places import line_over
from mercer.processes.calibration import contradicted, credible_width, half_width
from mercer.processes.dials import JUDGED
from mercer.processes.posterior_kernel import PosteriorKernel
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(40, 2))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=40)
NEW = rng.uniform(-3, 3, size=(15, 2))
KERNEL = 1.7 * Matern(2.5, (0.8, 1.4))


def fixed(kernel=KERNEL, noise=0.05, mean="zero", **settings):
    return GaussianProcessRegressor(kernel, noise=noise, mean=mean, tune=False, **settings)


# Agreement

PEERS = {
    "matern52": (KERNEL, ConstantKernel(1.7) * PeerMatern([0.8, 1.4], nu=2.5)),
    "matern32": (0.6 * Matern(1.5, 0.9), ConstantKernel(0.6) * PeerMatern(0.9, nu=1.5)),
    "gaussian": (2.0 * Gaussian(1.1) + 0.5, ConstantKernel(2.0) * RBF(1.1) + ConstantKernel(0.5)),
}


@pytest.mark.parametrize("name", PEERS)
def test_the_posterior_is_that_of_scikit_learn(name):
    kernel, peer_kernel = PEERS[name]
    peer = Peer(peer_kernel + WhiteKernel(0.05), alpha=0.0, optimizer=None).fit(X, y)
    model = fixed(kernel).fit(X, y)
    mean, std = peer.predict(NEW, return_std=True)
    np.testing.assert_allclose(model.predict(NEW), mean, atol=1e-8)
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], std, atol=1e-8)
    latent = Peer(peer_kernel, alpha=0.05, optimizer=None).fit(X, y)
    np.testing.assert_allclose(
        model.predict(NEW, return_cov=True, latent=True)[1], latent.predict(NEW, return_cov=True)[1], atol=1e-8
    )
    assert model.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-8)


def test_learning_reaches_at_least_the_likelihood_of_scikit_learn():
    peer = Peer(ConstantKernel() * PeerMatern([1.0, 1.0], nu=2.5) + WhiteKernel(), random_state=0).fit(X, y)
    model = GaussianProcessRegressor(mean="zero", n_restarts=0).fit(X, y)
    assert model.log_marginal_likelihood_ >= peer.log_marginal_likelihood_value_ - 1e-4


def test_the_mean_is_kernel_ridge_with_alpha_the_noise():
    ridge = KernelRidge(KERNEL, alpha=0.05, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(fixed().fit(X, y).predict(NEW), ridge.predict(NEW), atol=1e-10)


def test_a_constant_kernel_is_the_conjugate_normal_update():
    tau2, s2, prior = 3.0, 0.5, 1.0
    model = fixed(Constant(tau2), noise=s2, mean=prior).fit(X, y)
    precision = 1 / tau2 + len(y) / s2
    mean, std = model.predict(NEW[:1], return_std=True, latent=True)
    assert mean[0] == pytest.approx((prior / tau2 + y.sum() / s2) / precision)
    assert std[0] == pytest.approx(precision**-0.5)


def test_noise_of_each_row_is_a_diagonal_in_the_covariance():
    variances = rng.uniform(0.01, 0.5, size=len(y))
    model = fixed(noise=variances).fit(X, y)
    A = KERNEL(X) + np.diag(variances)
    np.testing.assert_allclose(model.predict(NEW), KERNEL(NEW, X) @ np.linalg.solve(A, y), atol=1e-10)
    cov = KERNEL(NEW) - KERNEL(NEW, X) @ np.linalg.solve(A, KERNEL(X, NEW))
    np.testing.assert_allclose(model.predict(NEW, return_cov=True, latent=True)[1], cov, atol=1e-10)
    observed = model.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(observed, np.sqrt(np.diag(cov) + variances.mean()), atol=1e-10)
    assert model.log_marginal_likelihood_ == pytest.approx(
        scipy.stats.multivariate_normal.logpdf(y, np.zeros(len(y)), A), rel=1e-10
    )
    again = fixed(noise=variances[:25]).fit(X[:25], y[:25]).partial_fit(X[25:], y[25:], noise=variances[25:])
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), atol=1e-10)
    with pytest.raises(InputError, match="partial_fit needs noise"):
        again.partial_fit(X[:1], y[:1])


@pytest.mark.parametrize("mean", ["zero", "constant", "linear", -2.0, lambda X: X[:, 0] ** 2])
def test_a_mean_function_is_what_remains_far_from_the_data(mean):
    model = fixed(mean=mean).fit(X, y + 3.0)
    far = np.array([[1e4, 2e4], [-1e4, 1e4]])
    coef = model._fit.posterior.mean_function.coef.numpy()
    if mean == "zero":
        expected = np.zeros(2)
    elif mean == "constant":
        expected = np.full(2, coef[0, 0])
        assert 2.0 < coef[0, 0] < 4.0
    elif mean == "linear":
        expected = coef[0, 0] + ((far - X.mean(0)) / X.std(0)) @ coef[1:, 0]
    elif mean == -2.0:
        expected = np.full(2, -2.0)
    else:
        expected = far[:, 0] ** 2
    np.testing.assert_allclose(model.predict(far), expected, rtol=1e-10)


# Laws


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_conditioning_in_two_steps_equals_once(mean):
    once = fixed(mean=mean).fit(X, y)
    order = rng.permutation(len(y))
    for split in (np.arange(len(y)), order):
        first, second, third = split[:20], split[20:33], split[33:]
        steps = fixed(mean=mean).fit(X[first], y[first])
        steps.partial_fit(X[second], y[second]).partial_fit(X[third], y[third])
        for a, b in zip(steps.predict(NEW, return_cov=True), once.predict(NEW, return_cov=True), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        assert steps.log_marginal_likelihood_ == pytest.approx(once.log_marginal_likelihood_, abs=1e-8)
        assert steps._fit.seen.n_rows == len(y)


def test_partial_fit_equals_a_refit_with_what_was_learned():
    model = GaussianProcessRegressor(n_restarts=0).fit(X[:30], y[:30])
    refit = GaussianProcessRegressor(model.kernel_, noise=model.noise_, tune=False, standardize=False).fit(X, y)
    model.partial_fit(X[30:], y[30:])
    for a, b in zip(model.predict(NEW, return_std=True), refit.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_what_was_learned_is_in_the_units_of_the_data():
    big = 1e3 * X + 5e4
    model = GaussianProcessRegressor(n_restarts=0).fit(big, 20.0 * y + 300.0)
    plain = GaussianProcessRegressor(n_restarts=0).fit(X, y)
    assert model.noise_ == pytest.approx(400.0 * plain.noise_, rel=1e-3)
    np.testing.assert_allclose(
        model.kernel_.kernel.length_scale, 1e3 * np.array(plain.kernel_.kernel.length_scale), rtol=1e-2
    )
    again = GaussianProcessRegressor(model.kernel_, noise=model.noise_, tune=False, standardize=False)
    again.fit(big, 20.0 * y + 300.0)
    for a, b in zip(again.predict(big, return_std=True), model.predict(big, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert model.log_marginal_likelihood_ == pytest.approx(
        plain.log_marginal_likelihood_ - len(y) * np.log(20.0), abs=1e-3
    )


def test_noise_free_data_are_met_with_no_deviation():
    model = fixed(noise=0.0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-9)
    assert std.max() < 1e-6
    assert model.predict(NEW, return_std=True)[1].min() > 1e-3


def test_a_singular_covariance_gets_a_jitter_that_is_reported():
    dense = np.linspace(0, 1, 80).reshape(-1, 1)
    model = fixed(Gaussian(1.0), noise=0.0).fit(dense, np.sin(3 * dense[:, 0]))
    assert model._fit.posterior.report.jitter > 0
    assert "jitter" in str(model.report())
    np.testing.assert_allclose(model.predict(dense), np.sin(3 * dense[:, 0]), atol=1e-6)
    assert model.predict(dense, return_std=True)[1].max() < 1e-3


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-6, 0.1])
def test_a_variance_is_never_negative(noise):
    line = np.repeat(np.linspace(0, 1, 30), 2).reshape(-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fixed(Gaussian(2.0), noise=noise).fit(line, np.cos(line[:, 0]))
    variances = model._fit.posterior.variance(model._fit.posterior.data.X)
    assert bool((variances >= 0).all())
    std = model.predict(np.linspace(-1, 2, 500).reshape(-1, 1), return_std=True)[1]
    assert np.isfinite(std).all()
    assert (std >= 0).all()


def test_variances_below_zero_by_rounding_are_zero_and_counted():
    model = fixed(noise=0.0).fit(X, y)
    rows = Points(torch.from_numpy(X.copy()))
    posterior = model._fit.posterior
    raw = posterior.prior_variance(rows) - posterior.explained(posterior.cross(rows))
    assert bool((raw < 0).any())
    assert (model.predict(X, return_std=True)[1] >= 0).all()
    assert f"{int((raw < 0).sum())} variances were below zero" in str(model.report())


def test_an_observation_has_the_noise_that_the_function_has_not():
    model = fixed().fit(X, y)
    latent, observed = (model.predict(NEW, return_std=True, latent=flag)[1] for flag in (True, False))
    np.testing.assert_allclose(observed**2 - latent**2, 0.05, atol=1e-12)
    cov = model.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(np.diag(cov), observed**2, atol=1e-12)
    low, high = model.predict_interval(NEW, level=0.9, calibrated=False)
    np.testing.assert_allclose((high - low) / 2, scipy.stats.norm.ppf(0.95) * observed, rtol=1e-10)


def test_tiles_do_not_change_the_variance(monkeypatch):
    model = fixed().fit(X, y)
    whole = model.predict(NEW, return_std=True)[1]
    monkeypatch.setattr("mercer.processes.posterior.CROSS_TILE", 8 * 4 * len(y) * 2)
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], whole, rtol=1e-12)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_leave_one_out_is_a_refit_without_the_row(mean):
    model = fixed(mean=mean).fit(X, y)
    found = model.loo()
    for i in (0, 7, 39):
        keep = np.arange(len(y)) != i
        other = fixed(mean=mean).fit(X[keep], y[keep])
        expected, std = other.predict(X[i : i + 1], return_std=True)
        assert found.mean[i] == pytest.approx(expected[0], abs=1e-9)
        assert found.std[i] == pytest.approx(std[0], abs=1e-9)
        assert found.log_density[i] == pytest.approx(scipy.stats.norm.logpdf(y[i], expected[0], std[0]), abs=1e-8)


def test_a_mean_chosen_by_the_data_is_one_of_the_two_and_the_report_says_why():
    wave = np.sin(3 * X[:, 0])
    for target, name in ((wave, "constant"), (wave + 40 * X[:, 1], "linear")):
        chosen = GaussianProcessRegressor(mean="auto", n_restarts=0).fit(X, target)
        given = GaussianProcessRegressor(mean=name, n_restarts=0).fit(X, target)
        np.testing.assert_allclose(chosen.predict(NEW), given.predict(NEW), rtol=1e-10)
        words = chosen.report().as_dict()["mean"]
        assert words.startswith(given.report().as_dict()["mean"])
        assert "; chosen: a line adds" in words
        assert "chosen" not in given.report().as_dict()["mean"]


@pytest.mark.parametrize("of", ["mean", "std"])
def test_the_gradient_is_the_derivative_of_the_prediction(of):
    model = fixed(mean="linear").fit(X, y)
    found, step = model.gradient(NEW, of=of), 1e-5

    def value(at):
        mean, std = model.predict(at, return_std=True, latent=True)
        return mean if of == "mean" else std

    for j in range(2):
        shift = np.eye(2)[j] * step
        np.testing.assert_allclose(found[:, j], (value(NEW + shift) - value(NEW - shift)) / (2 * step), atol=1e-6)


def test_predictions_are_differentiable_for_torch():
    model = fixed().fit(torch.from_numpy(X), torch.from_numpy(y))
    at = torch.from_numpy(NEW).requires_grad_()
    (slope,) = torch.autograd.grad(model.predict(at).sum(), at)
    np.testing.assert_allclose(slope.numpy(), fixed().fit(X, y).gradient(NEW), atol=1e-10)


def test_targets_share_the_kernel_and_keep_their_own_size():
    Y = np.c_[y, 100.0 * y[::-1] + 7.0]
    model = fixed().fit(X, Y)
    for j in range(2):
        alone = fixed().fit(X, Y[:, j])
        np.testing.assert_allclose(model.predict(NEW)[:, j], alone.predict(NEW), rtol=1e-9)
    assert model.predict(NEW, return_std=True)[1].shape == (15, 2)
    assert model.predict(NEW, return_cov=True)[1].shape == (15, 15, 2)
    assert model.loo().mean.shape == Y.shape
    assert model.sample_y(NEW, 3).shape == (15, 2, 3)
    assert model.sample_functions(3)(NEW).shape == (3, 15, 2)
    assert model.gradient(NEW).shape == (15, 2, 2)
    learned = GaussianProcessRegressor(n_restarts=0).fit(X, np.c_[y, 100.0 * y])
    std = learned.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(std[:, 1], 100.0 * std[:, 0], rtol=1e-8)
    alone = GaussianProcessRegressor(n_restarts=0).fit(X, y)
    assert learned.log_marginal_likelihood_ == pytest.approx(
        2 * alone.log_marginal_likelihood_ - len(y) * np.log(100.0), abs=1e-3
    )


# The posterior as a kernel


def test_the_posterior_covariance_is_a_kernel():
    model = fixed().fit(X, y)
    kernel = model.posterior_kernel_
    np.testing.assert_allclose(kernel(NEW), model.predict(NEW, return_cov=True, latent=True)[1], atol=1e-12)
    check_kernel(kernel, rng.uniform(-2, 2, size=(21, 2)))
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    again = fixed().fit(X, y).posterior_kernel_
    assert again == kernel
    assert hash(again) == hash(kernel)


class Skewed(PosteriorKernel):
    """Larger in the first argument than in the second, by little beside the prior."""

    def of(self, pair):
        left, _ = pair.ends(lambda rows: 1e-8 * rows[:, 0])
        return super().of(pair) + left


@pytest.mark.parametrize("seed", range(6))
def test_no_uncertainty_at_training_rows_is_still_a_kernel(seed):
    Z = np.random.default_rng(seed).normal(size=(21, 2))
    check_kernel(fixed(noise=0.0).fit(Z[:9], Z[:9, 0]).posterior_kernel_, Z)


def test_little_uncertainty_is_still_a_kernel():
    Z = np.random.default_rng(0).uniform(-2, 2, size=(221, 2))
    Z, inside = Z[:200], 0.9 * Z[200:]
    model = GaussianProcessRegressor(n_restarts=0).fit(Z, np.sin(2 * Z[:, 0]))
    kernel = model.posterior_kernel_
    assert kernel.diag(inside).max() < 1e-6 * model.kernel_.diag(inside).max()
    check_kernel(kernel, inside)
    check_kernel(2.0 * kernel + model.kernel_, inside)
    assert (2.0 * kernel).uncancelled() == 2.0 * model.kernel_
    wrong = PosteriorKernel((1 - 1e-7) * model.kernel_, kernel.whitened)
    with pytest.raises(AssertionError, match="fails"):
        check_kernel(wrong, inside)
    with pytest.raises(AssertionError, match="symmetry"):
        check_kernel(Skewed(model.kernel_, kernel.whitened), inside)


def test_the_data_never_make_the_process_less_certain():
    kernel = fixed().fit(X, y).posterior_kernel_
    assert np.linalg.eigvalsh(KERNEL(NEW) - kernel(NEW)).min() > -1e-10


def test_conditioning_the_posterior_again_is_conditioning_on_both():
    first = fixed().fit(X[:20], y[:20])
    residual = y[20:] - first.predict(X[20:])
    second = fixed(first.posterior_kernel_).fit(X[20:], residual)
    both = fixed().fit(X, y)
    np.testing.assert_allclose(first.predict(NEW) + second.predict(NEW), both.predict(NEW), atol=1e-9)
    np.testing.assert_allclose(
        second.predict(NEW, return_std=True)[1], both.predict(NEW, return_std=True)[1], atol=1e-9
    )


# Learning


def test_an_irrelevant_feature_is_named_in_the_report():
    Z = np.c_[X, rng.normal(size=(40, 1))]
    Z = np.concatenate([Z, rng.uniform(-2, 2, size=(60, 3))])
    target = np.sin(2 * Z[:, 0]) + 0.05 * rng.normal(size=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor(bounds={"length_scale": (0.05, 1e3)}).fit(Z, target)
    text = str(model.report())
    assert "feature 1, feature 2 look irrelevant" in text


def test_per_point_noise_and_a_learned_kernel_go_together():
    variances = np.where(np.arange(40) % 2, 0.01, 1.0)
    noisy = y + rng.normal(size=40) * np.sqrt(variances)
    model = GaussianProcessRegressor(noise=variances, n_restarts=0).fit(X, noisy)
    shared = GaussianProcessRegressor(n_restarts=0).fit(X, noisy)
    truth = np.sin(2 * NEW[:, 0]) + 0.5 * NEW[:, 1]
    assert np.abs(model.predict(NEW) - truth).mean() < np.abs(shared.predict(NEW) - truth).mean()


def test_the_same_seed_gives_the_same_model():
    a, b = (GaussianProcessRegressor(random_state=3).fit(X, y) for _ in range(2))
    assert a.kernel_ == b.kernel_
    np.testing.assert_array_equal(a.sample_y(NEW, 2), b.sample_y(NEW, 2))
    np.testing.assert_array_equal(a.sample_functions(2)(NEW), b.sample_functions(2)(NEW))


def test_more_than_five_hundred_rows_start_from_a_subset():
    Z = rng.uniform(-2, 2, size=(620, 1))
    model = GaussianProcessRegressor(n_restarts=1).fit(Z, np.sin(3 * Z[:, 0]) + 0.1 * rng.normal(size=620))
    assert model.noise_ == pytest.approx(0.01, rel=0.2)
    assert model.optimum_.evaluations < 30


def test_float32_kernel_values_are_close():
    single = fixed(dtype="float32").fit(X, y)
    np.testing.assert_allclose(single.predict(NEW), fixed().fit(X, y).predict(NEW), atol=1e-4)
    assert fixed().fit(X.astype(np.float32), y).predict(NEW.astype(np.float32)).dtype == np.float32


def test_auto_goes_by_the_memory_budget_and_says_so():
    assert "fit the memory budget" in str(GaussianProcessRegressor(n_restarts=0).fit(X, y).report())


# Calibration


def test_intervals_of_the_true_process_are_calibrated():
    Z = rng.uniform(-3, 3, size=(700, 2))
    cov = KERNEL(Z) + 0.05 * np.eye(700)
    target = np.linalg.cholesky(cov) @ rng.normal(size=700)
    model = fixed().fit(Z[:200], target[:200])
    found = model.calibration(Z[200:], target[200:])
    assert found.error < 0.05
    assert found.coverage[list(found.levels).index(0.95)] == pytest.approx(0.95, abs=0.03)
    mean, std = model.predict(Z[200:], return_std=True)
    assert found.nll == pytest.approx(-scipy.stats.norm.logpdf(target[200:], mean, std).mean())
    assert (np.diff(found.width) > 0).all()
    worse = type(found).of(target[200:], mean, 0.2 * std)
    assert (worse.score > found.score).all()
    assert found.plot().get_xlabel() == "Promised"
    assert "500 observations" in str(found)


def test_calibrated_intervals_hold_that_share_of_the_rows_left_out():
    model = fixed(mean="constant").fit(X, y)
    left_out = model.loo()
    low, high = model.predict_interval(NEW, level=0.9, calibrated=True)
    mean, std = model.predict(NEW, return_std=True)
    reach = (high - low) / (2 * std)
    np.testing.assert_allclose(reach, reach[0], rtol=1e-10)
    np.testing.assert_allclose((high + low) / 2, mean, atol=1e-12)
    assert np.sum(np.abs(y - left_out.mean) <= reach[0] * left_out.std * (1 + 1e-12)) == int(np.ceil(0.9 * 41))


@pytest.mark.parametrize("scale", [0.04, 1.0, 25.0])
def test_calibrated_intervals_hold_what_they_promise_whatever_the_model_believes(scale):
    own = np.random.default_rng(0)
    Z = own.uniform(-3, 3, size=(900, 2))
    target = np.sin(2 * Z[:, 0]) + 0.2 * own.standard_t(3, size=900)
    model = fixed(scale * KERNEL, noise=scale * 0.05).fit(Z[:400], target[:400])
    low, high = model.predict_interval(Z[400:], calibrated=True)
    assert np.mean((low <= target[400:]) & (target[400:] <= high)) == pytest.approx(0.95, abs=0.03)


def test_intervals_are_those_of_the_process_unless_the_data_contradict_it():
    Z = np.random.default_rng(1).uniform(-3, 3, size=(900, 2))
    smooth = np.sin(Z[:, 0]) * np.cos(Z[:, 1])
    noisy = smooth + 0.1 * np.random.default_rng(2).normal(size=900)
    Y = np.c_[smooth, noisy]
    for target, is_right in ((smooth, False), (noisy, True)):
        model = GaussianProcessRegressor("matern32", n_restarts=0).fit(Z[:300], target[:300])
        low, high = model.predict_interval(Z[300:])
        expected = model.predict_interval(Z[300:], calibrated=not is_right)
        np.testing.assert_array_equal((low, high), expected)
        assert np.mean((low <= target[300:]) & (target[300:] <= high)) == pytest.approx(0.95, abs=0.03)
        assert "of the rows, each predicted from the others" in str(model.report())
        assert ("too wide" in str(model.report())) is not is_right
        own = model.predict_interval(Z[300:], latent=True, calibrated=False)
        np.testing.assert_array_equal(model.predict_interval(Z[300:], latent=True), own)
    narrow = fixed(noise=1e-4).fit(Z[:300], noisy[:300])
    narrow.predict_interval(Z)
    assert "too narrow" in str(narrow.report())
    both = fixed(standardize=False, noise=0.01).fit(Z[:300], Y[:300])
    own, auto, all_rows = (both.predict_interval(Z, calibrated=c)[1] for c in (False, "auto", True))
    np.testing.assert_array_equal(auto[:, 0], all_rows[:, 0])
    np.testing.assert_array_equal(auto[:, 1], own[:, 1])


def test_too_few_rows_and_approximations_contradict_nothing():
    few = fixed(noise=1e-4).fit(X[:12], 10 * y[:12])
    np.testing.assert_array_equal(few.predict_interval(NEW), few.predict_interval(NEW, calibrated=False))
    sparse = fixed(method="sgpr", n_landmarks=10).fit(X, y)
    np.testing.assert_array_equal(sparse.predict_interval(NEW), sparse.predict_interval(NEW, calibrated=False))


@pytest.mark.parametrize(
    ("level", "inside", "believed"), [(0.95, 0.96, True), (0.95, 0.98, False), (0.95, 0.92, False), (0.5, 0.75, False)]
)
def test_a_share_far_from_its_promise_is_not_believed(level, inside, believed):
    n = 10_000
    sizes = half_width((np.arange(n) + 0.5) / n)
    moved = int(inside * n)
    sizes[:moved] = np.linspace(0.0, half_width(level), moved)
    sizes[moved:] = half_width(level) * 1.001 + np.linspace(0.0, 0.7, n - moved)
    at = list(JUDGED).index(level)
    assert contradicted(sizes[:, None])[at, 0] == (not believed)
    few = sizes[:: n // 15][:, None]
    assert (credible_width(level, few) == half_width(level)).all()


@pytest.mark.parametrize("seed", range(5))
def test_intervals_of_higher_levels_hold_those_of_lower_ones(seed):
    generator = np.random.default_rng(seed)
    Z = generator.uniform(-3, 3, size=(150, 1))
    target = np.sin(2 * Z[:, 0]) + 0.3 * generator.standard_t(2.5, size=150)
    model = GaussianProcessRegressor(n_restarts=0).fit(Z, target)
    levels = [1e-12, 0.1, 0.5, 0.505, 0.51, 0.8, 0.9, 0.95, 0.985, 0.99, 0.993, 0.995, 0.999]
    assert (np.diff([np.ptp(model.predict_interval([[0.0]], level)) for level in levels]) >= 0).all()


def test_rows_whose_copies_stay_are_not_left_out():
    generator = np.random.default_rng(0)
    Z = generator.uniform(-3, 3, size=(1100, 2))
    smooth = np.sin(Z[:, 0]) * np.cos(Z[:, 1])
    model = GaussianProcessRegressor("matern32", n_restarts=0).fit(np.repeat(Z[:100], 5, 0), np.repeat(smooth[:100], 5))
    low, high = model.predict_interval(Z[100:], 0.9)
    np.testing.assert_array_equal((low, high), model.predict_interval(Z[100:], 0.9, calibrated=False))
    assert "each predicted from the others" not in str(model.report())
    some = np.r_[Z[:100], Z[:30]], np.r_[smooth[:100], smooth[:30]]
    low, high = GaussianProcessRegressor("matern32", n_restarts=0).fit(*some).predict_interval(Z[100:], 0.9)
    assert np.mean((low <= smooth[100:]) & (smooth[100:] <= high)) > 0.85


def test_a_row_that_alone_decides_the_mean_has_no_prediction_without_it():
    assert np.isnan(GaussianProcessRegressor().fit([[1.0]], [2.0]).loo().mean).all()
    Z = np.c_[np.r_[np.zeros(10), 1.0], np.linspace(0, 1, 11)]
    left_out = fixed(mean="linear").fit(Z, Z[:, 1]).loo()
    assert np.isnan(left_out.mean[10])
    assert np.isfinite(left_out.mean[:10]).all()
    with pytest.raises(InputError, match="need at least 1 rows; there are 0"):
        GaussianProcessRegressor().fit([[1.0]], [2.0]).predict_interval([[1.0]], 0.5, calibrated=True)


def test_intervals_have_the_precision_of_the_rows():
    Z = X.astype(np.float32)
    model = fixed().fit(Z, np.c_[y, 10 * y].astype(np.float32))
    for calibrated in ("auto", True, False):
        assert all(end.dtype == np.float32 for end in model.predict_interval(Z, 0.9, calibrated=calibrated))


def test_levels_near_one_are_those_of_the_normal_distribution():
    assert half_width(1 - 1e-15) == pytest.approx(scipy.stats.norm.isf(0.5 * (1 - (1 - 1e-15))), rel=1e-12)
    for level in (0.0, 1.0, "a", None, [0.5, 0.9]):
        with pytest.raises(InputError, match="level="):
            fixed().fit(X, y).predict_interval(NEW, level)


def test_each_target_has_its_own_calibrated_intervals():
    Y = np.c_[y, 10 * rng.normal(size=40)]
    both = fixed(standardize=False).fit(X, Y).predict_interval(torch.from_numpy(NEW), calibrated=True)
    for j in (0, 1):
        alone = fixed().fit(X, Y[:, j]).predict_interval(NEW, calibrated=True)
        for found, expected in zip(both, alone, strict=True):
            np.testing.assert_allclose(found[:, j], expected, rtol=1e-9)


def test_calibrated_intervals_say_what_they_need():
    with pytest.raises(InputError, match="at least 99 rows; there are 40"):
        fixed().fit(X, y).predict_interval(NEW, level=0.99, calibrated=True)
    with pytest.raises(InputError, match="never observed"):
        fixed().fit(X, y).predict_interval(NEW, latent=True, calibrated=True)
    with pytest.raises(InputError, match='needs method="exact"'):
        fixed(method="sgpr", n_landmarks=10).fit(X, y).predict_interval(NEW, calibrated=True)
    with pytest.raises(InputError, match='give True, False or "auto"'):
        fixed().fit(X, y).predict_interval(NEW, calibrated="yes")


# Odd data


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_data_whose_squares_are_no_numbers_are_rejected(size):
    with pytest.raises(InputError, match="column 1 of X is .*e[+-].*: rescale it"):
        GaussianProcessRegressor().fit(X * [1.0, size], y)
    with pytest.raises(InputError, match="value of y is .*: rescale it"):
        GaussianProcessRegressor().fit(X, y * size)


def test_a_line_with_noise_is_called_that():
    model = GaussianProcessRegressor(mean="auto", n_restarts=0).fit(X, 9 * X[:, 0] + 0.1 * rng.normal(size=40))
    assert "the data look like a line and noise" in str(model.report())


def test_one_row():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor().fit([[1.0, 2.0]], [5.0])
    mean, std = model.predict([[1.0, 2.0], [100.0, 0.0]], return_std=True)
    np.testing.assert_allclose(mean, 5.0)
    assert 0 < std[0] < std[1]
    assert "one row teaches nothing" in str(model.report())


def test_the_same_rows_with_different_targets():
    Z = np.repeat(np.linspace(0, 3, 12), 3).reshape(-1, 1)
    target = np.sin(2 * Z[:, 0]) + 0.3 * rng.normal(size=36)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor().fit(Z, target)
    assert model.noise_ == pytest.approx(0.09, rel=0.6)
    with pytest.warns(UserWarning, match="explained without more noise"):
        hard = fixed(Matern(2.5, 1.0), noise=0.0).fit(Z, target)
    assert "use a larger noise" in str(hard.report())


def test_constant_targets():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor().fit(X, np.full(40, 7.0))
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, 7.0, rtol=1e-6)
    assert std.max() < 0.1
    assert "targets are constant" in str(model.report())


@pytest.mark.parametrize("zeros", [True, False])
def test_constant_features_do_no_harm(zeros):
    Z = np.c_[X, np.zeros(40) if zeros else np.full(40, 1e6)]
    model = GaussianProcessRegressor(n_restarts=0).fit(Z, y)
    np.testing.assert_allclose(model.predict(Z), GaussianProcessRegressor(n_restarts=0).fit(X, y).predict(X), atol=0.05)


def test_pure_noise_is_called_noise():
    noise = np.random.default_rng(5)
    target, Z = noise.normal(size=120), noise.normal(size=(120, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor().fit(Z, target)
    mean, std = model.predict(noise.normal(size=(50, 3)), return_std=True)
    assert np.abs(mean - target.mean()).max() < 0.5
    assert std.mean() == pytest.approx(target.std(), rel=0.1)
    assert "noise alone explains" in str(model.report())
    assert "noise alone" not in str(GaussianProcessRegressor(n_restarts=0).fit(X, y).report())


def test_five_hundred_features():
    units, own = np.geomspace(0.1, 1000, 500), np.random.default_rng(8)
    Z = own.normal(size=(300, 500)) * units
    target = (Z / units) @ own.normal(size=500) / np.sqrt(500) + 0.05 * own.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor(n_restarts=0).fit(Z[:100], target[:100])
    mean, std = model.predict(Z[100:], return_std=True)
    linear = RidgeCV(np.logspace(-3, 5, 30)).fit(Z[:100] / units, target[:100]).predict(Z[100:] / units)
    assert np.corrcoef(mean, target[100:])[0, 1] > 0.9 * np.corrcoef(linear, target[100:])[0, 1] > 0.2
    assert np.mean(np.abs(mean - target[100:]) < 1.96 * std) > 0.85
    ratios = np.array(model.kernel_.kernel.length_scale) / Z[:100].std(0)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-10)
    assert "500 from" in str(model.report())


# Kernels of all kinds


def test_a_kernel_of_some_named_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = GaussianProcessRegressor(1.0 * Subspace(Gaussian(1.0), ["a"]) + 0.1 * Linear(), n_restarts=0).fit(frame, y)
    assert model.predict(frame).shape == (40,)
    assert model.plot(frame, y).get_xlabel()


def test_strings_and_ready_matrices():
    words = ["ACGT", "AACC", "GGTT", "ACAC", "TTGA", "CCGA"]
    targets = np.arange(6.0)
    model = fixed(1.0 * Spectrum(2), noise=0.1).fit(words, targets)
    K = Spectrum(2)(words)
    np.testing.assert_allclose(model.predict(words), K @ np.linalg.solve(K + 0.1 * np.eye(6), targets), atol=1e-10)
    assert model.predict(words, return_std=True)[1].shape == (6,)
    ready = GaussianProcessRegressor("precomputed", noise=0.1, mean="zero", tune=False, standardize=False)
    ready.fit(K, targets)
    scale = ready.kernel_.factor
    np.testing.assert_allclose(
        ready.predict(K), scale * K @ np.linalg.solve(scale * K + 0.1 * np.eye(6), targets), atol=1e-9
    )


def test_white_noise_inside_the_kernel_is_noise():
    model = fixed(KERNEL + WhiteNoise(0.03), noise=0.02).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW), fixed().fit(X, y).predict(NEW), atol=1e-9)


# Files, pickles, clones


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_pickles_hold_no_factor_and_predict_the_same(mean):
    model = GaussianProcessRegressor(mean=mean, n_restarts=0).fit(X, y)
    data = pickle.dumps(model)
    assert len(data) < 8 * 40 * 40 + 6000
    again = pickle.loads(data)
    for a, b in zip(again.predict(NEW, return_std=True), model.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert clone(model).get_params() == model.get_params()


# Bad input


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"noise": -1.0}, InputError, "noise=-1.0"),
        ({"noise": [0.1, 0.2]}, InputError, "there are 40 rows"),
        ({"noise": "much"}, InputError, "noise='much'"),
        ({"noise": np.full(40, np.nan)}, InputError, "finite"),
        ({"mean": "quadratic"}, InputError, "mean='quadratic'"),
        ({"mean": None}, InputTypeError, "mean=None"),
        ({"method": "magic"}, InputError, "method='magic'"),
        ({"n_restarts": -1}, InputError, "n_restarts=-1"),
        ({"max_iter": 0}, InputError, "max_iter=0"),
        ({"bounds": [1, 2]}, InputTypeError, "bounds"),
        ({"bounds": {"gamma": (1, 2)}}, InputError, "gamma"),
        ({"kernel": "matern53"}, InputError, "matern52"),
    ],
)
def test_bad_settings_are_named(settings, error, words):
    with pytest.raises(error, match=words):
        GaussianProcessRegressor(**settings).fit(X, y)


def test_bad_questions_are_answered_in_words():
    model = fixed().fit(X, y)
    with pytest.raises(InputError, match="one of the two"):
        model.predict(NEW, return_std=True, return_cov=True)
    with pytest.raises(InputError, match="level=1.5"):
        model.predict_interval(NEW, level=1.5)
    with pytest.raises(InputError, match="n=0"):
        model.sample_functions(0)
    with pytest.raises(InputError, match="n_samples=0"):
        model.sample_y(NEW, 0)
    with pytest.raises(InputError, match="of='variance'"):
        model.gradient(NEW, of="variance")
    with pytest.raises(InputError, match="too many for 3 rows"):
        fixed(mean="linear").fit(X[:3], y[:3])
    with pytest.raises(InputError, match="random features"):
        fixed(Brownian()).fit(np.abs(X), y).sample_functions(1)
    with pytest.raises(MemoryError, match="return_std"):
        fixed(method="exact", memory_budget="1MiB").fit(X, y).predict(np.zeros((2000, 2)), return_cov=True)


def test_another_kernel_can_be_asked_for_its_likelihood():
    model = fixed().fit(X, y)
    other = fixed(0.5 * Gaussian(1.0), noise=0.3).fit(X, y)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_
    assert model.log_marginal_likelihood(0.5 * Gaussian(1.0), noise=0.3) == pytest.approx(
        other.log_marginal_likelihood_
    )


# Pictures


def test_pictures():
    model = GaussianProcessRegressor(n_restarts=0).fit(X[:, :1], y)
    ax = model.plot()
    assert len(ax.lines) == 4
    assert model.plot(n_samples=0).get_xlabel() == "x"
    three = np.c_[X, X[:, 0] * X[:, 1]]
    model = GaussianProcessRegressor(n_restarts=0).fit(three, y)
    assert len(model.plot().patches) == 3
    assert model.plot(three, y).get_title(loc="left") == "Predictions"
    model = fixed().fit(X, y)
    maps = [part.collections[0].get_array() for part in model.plot().figure.axes[:2]]
    places, second = np.meshgrid(*(line_over(column, 0.08, 80) for column in X.T))
    mean, std = model.predict(np.c_[places.ravel(), second.ravel()], return_std=True, latent=True)
    np.testing.assert_allclose(np.ravel(maps), np.ravel([mean, std]), atol=1e-8)
    with pytest.raises(InputError, match="give both"):
        model.plot(X)
    with pytest.raises(InputError, match="one target"):
        fixed().fit(X, np.c_[y, y]).plot()
    with pytest.raises(InputError, match="relevance"):
        fixed(Gaussian(1.0)).fit(three, y).plot()


def test_components_are_the_regression_on_each_kernel_of_the_sum_and_add_up():
    first, second = 2.0 * Gaussian(1.5), Linear()
    model = fixed(first + second, noise=0.1, mean=1.0).fit(X, y)
    assert model.components_ == (first, second)
    A = first(X) + second(X) + 0.1 * np.eye(len(y))
    for j, k in enumerate(model.components_):
        mean, std = model.predict_component(NEW, j, return_std=True)
        np.testing.assert_allclose(mean, k(NEW, X) @ np.linalg.solve(A, y - 1.0), atol=1e-9)
        np.testing.assert_allclose(std**2, np.diag(k(NEW) - k(NEW, X) @ np.linalg.solve(A, k(X, NEW))), atol=1e-9)
    both = sum(model.predict_component(NEW, j) for j in range(2))
    np.testing.assert_allclose(both + 1.0, model.predict(NEW), atol=1e-9)
    again = pickle.loads(pickle.dumps(model))  # its factor is made again, of the whole kernel
    np.testing.assert_allclose(again.predict_component(NEW, 1, True), model.predict_component(NEW, 1, True), atol=1e-9)
    with pytest.raises(InputError, match="sum of 2"):
        model.predict_component(NEW, 2)


def test_components_of_the_approximate_methods_add_up():
    for method in ("iterative", "sgpr"):
        model = fixed(2.0 * Gaussian(1.5) + Linear(), noise=0.1, method=method, n_landmarks=20).fit(X, y)
        both = sum(model.predict_component(NEW, j) for j in range(2))
        np.testing.assert_allclose(both, model.predict(NEW), atol=1e-6)


def test_components_are_drawn_one_panel_each():
    model = fixed(2.0 * Gaussian(1.5) + Linear()).fit(X[:, :1], y)
    assert [ax.get_title(loc="left") for ax in model.plot_components()] == list(map(repr, model.components_))
    with pytest.raises(InputError, match="one feature"):
        fixed().fit(X, y).plot_components()


def test_new_rows_may_have_a_noise_of_their_own():
    variances = rng.uniform(0.01, 0.5, size=len(y))
    model = fixed(noise=variances).fit(X, y)
    latent, own = model.predict(NEW, return_std=True, latent=True)[1], np.linspace(0.1, 2.0, len(NEW))
    std = model.predict(NEW, return_std=True, noise=own)[1]
    np.testing.assert_allclose(std**2, latent**2 + own, atol=1e-10)
    np.testing.assert_allclose(np.diag(model.predict(NEW, return_cov=True, noise=own)[1]), std**2, atol=1e-10)
    low, high = model.predict_interval(NEW, noise=own, calibrated=False)
    np.testing.assert_allclose(high - low, 2 * scipy.stats.norm.ppf(0.975) * std, atol=1e-9)
    with pytest.raises(InputError, match="but there are"):
        model.predict(NEW, return_std=True, noise=own[1:])
    with pytest.raises(InputError, match="latent"):
        model.predict(NEW, return_std=True, noise=own, latent=True)


def test_leave_one_out_prints_its_errors_and_the_farthest_rows():
    found = fixed().fit(X, y).loo()
    rmse, r2 = np.sqrt(np.mean((y - found.mean) ** 2)), 1 - np.mean((y - found.mean) ** 2) / y.var()
    assert f"RMSE {rmse:.4g}, R2 {r2:.4f}" in repr(found)
    assert int(repr(found).splitlines()[4].split()[0]) == np.argmax(np.abs(y - found.mean) / found.std)


def test_tune_says_which_length_scales_move():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 5.0]
    y = np.sin(2 * X[:, 0])
    scale = GaussianProcessRegressor("gaussian", tune="scale").fit(X, y).kernel_.kernel.length_scale
    assert scale[1] / scale[0] == pytest.approx(X[:, 1].std() / X[:, 0].std(), rel=1e-9)
    each = GaussianProcessRegressor(1.0 * Gaussian(2.0), tune="ard").fit(X, y).kernel_.kernel.length_scale
    assert each[1] > 10 * each[0]
    assert isinstance(GaussianProcessRegressor(1.0 * Gaussian(2.0)).fit(X, y).kernel_.kernel.length_scale, float)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_the_influence_of_a_row_is_how_far_the_prediction_moves_with_its_label(mean):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(15, 2)), rng.normal(size=(3, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=15)
    made = GaussianProcessRegressor(2.0 * Gaussian(1.5), mean=mean, noise=0.05, tune=False)
    model = clone(made).fit(X, y)
    found = model.influential(new, k=15)
    for row in range(15):
        moved = y.copy()
        moved[row] += 1.0
        change = clone(made).fit(X, moved).predict(new) - model.predict(new)
        np.testing.assert_allclose(found.weights[found.rows == row], change, atol=1e-9)
    np.testing.assert_array_equal(found.labels, y[found.rows])


def test_the_mean_is_a_function_of_the_rkhs_plus_the_mean_function():
    X = np.linspace(0, 5, 20).reshape(-1, 1)
    model = GaussianProcessRegressor("matern52", mean="zero").fit(X, 3.0 * np.sin(X[:, 0]))
    new = np.array([[0.3], [7.0]])
    np.testing.assert_allclose(model.function_(new), model.predict(new), atol=1e-8)


def test_an_open_kernel_is_that_of_greatest_evidence():
    X = np.random.default_rng(0).uniform(-2, 2, (150, 2))
    for y, metric in ((np.floor(1.5 * X).sum(1), "l1"), (np.sin(X.sum(1)), None)):
        found = GaussianProcessRegressor("auto", n_restarts=0).fit(X, y)
        assert getattr(found.kernel_.kernel, "metric", None) == metric
        for name in ("matern52", "matern32", "laplace_l1"):
            other = GaussianProcessRegressor(name, n_restarts=0).fit(X, y)
            assert found.log_marginal_likelihood_ > other.log_marginal_likelihood_ - 3.0
