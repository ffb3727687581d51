"""Ridge in the features of the kernel is the ridge of the kernel, at the cost of the features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer import KernelRidge, load
from mercer.core.errors import InputError
from mercer.kernels import FeatureMap, Gaussian, Linear, Polynomial
from mercer.rows import ArrayRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.stack([X @ RNG.normal(size=4) + 5.0, X[:, 0] * X[:, 1]], axis=1) + 0.3 * RNG.normal(size=(60, 2))
W = RNG.integers(0, 3, 60).astype(float)
NEW = RNG.normal(size=(9, 4))

KERNELS = [Linear(), Polynomial(degree=2, scale=0.5), FeatureMap(torch.sin) + 0.5]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weights"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.3, [0.1, 2.0], "loo", "gcv", 0.0], ids=str)
def test_it_is_the_fit_of_the_full_system(kernel, weights, intercept, alpha) -> None:
    options = {"alpha": alpha, "alphas": [1e-3, 0.03, 1.0, 30.0], "fit_intercept": intercept}
    primal = KernelRidge(kernel, **options).fit(X, Y, weights)
    dual = KernelRidge(kernel, solver="eigh", **options).fit(X, Y, weights)
    assert primal.solver_report_.solver == "primal"
    assert primal.solver_report_.converged
    for name in ("alpha_", "intercept_", "dual_coef_", "loo_predictions_"):
        expected = np.asarray(getattr(dual, name))
        np.testing.assert_allclose(getattr(primal, name), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(primal.predict(NEW), dual.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(primal.label_weights(NEW), dual.label_weights(NEW), atol=1e-7)
    np.testing.assert_allclose(primal.function_(NEW) + primal.intercept_, primal.predict(NEW), atol=1e-7)


def test_data_far_from_zero_lose_no_digits_with_an_intercept() -> None:
    near = KernelRidge(Linear(), alpha=0.1, fit_intercept=True).fit(X, Y[:, 0])
    far = KernelRidge(Linear(), alpha=0.1, fit_intercept=True).fit(X + 1e6, Y[:, 0])
    np.testing.assert_allclose(far.predict(NEW + 1e6), near.predict(NEW), atol=1e-8)


def test_a_kernel_with_more_features_than_rows_or_infinitely_many_is_solved_by_its_matrix() -> None:
    assert KernelRidge(Polynomial(degree=5), alpha=0.3).fit(X, Y).solver_report_.solver == "cholesky"
    assert KernelRidge(Gaussian(2.0), alpha=0.3).fit(X, Y).solver_report_.solver == "cholesky"
    with pytest.raises(InputError, match="finitely many features"):
        KernelRidge(Gaussian(2.0), solver="primal").fit(X, Y)


@pytest.mark.parametrize("intercept", [False, True])
def test_parts_of_rows_give_the_fit_of_all(intercept, tmp_path) -> None:
    options = {"alpha": 0.3, "fit_intercept": intercept}
    whole = KernelRidge(Linear(), **options).fit(X, Y)
    streamed = KernelRidge(Linear(), **options).fit(ArrayRows(X, Y, rows_at_once=7))
    parts = KernelRidge(Linear(), solver="primal", **options).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    for model in (streamed, parts):
        assert model.solver_report_.solver == "primal"
        np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-10)
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-10)
        model.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(NEW), model.predict(NEW))


def test_a_saved_model_knows_its_rows(tmp_path) -> None:
    model = KernelRidge(Polynomial(degree=2), alpha="loo", fit_intercept=True).fit(X, Y, W)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    for name in ("coef_", "dual_coef_", "loo_predictions_", "intercept_"):
        np.testing.assert_allclose(getattr(again, name), getattr(model, name), atol=1e-12)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
