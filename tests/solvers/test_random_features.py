"""Laws of random Fourier features and of ridge regression on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from mercer.core.arrays import Points
from mercer.core.blocks import PART_NUMBERS
from mercer.core.errors import InputError
from mercer.files.modelfile import read_model, write_model
from mercer.functions.fourier import FeatureRows, FourierFeatures
from mercer.kernels import Constant, Gaussian, Laplace, Linear, Matern, Periodic, Subspace
from mercer.solvers import Cholesky
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.random_features import feature_block
from mercer.testing.solvers import MatrixSystem

KERNELS = (
    Gaussian(),
    2.0 * Laplace((1.0, 2.0, 3.0)) + 0.5,
    Matern(1.5) * Periodic(2.0, period=5.0) + Gaussian(2.0),
    Subspace(Laplace(), (0, 2)),
)


def sample(n=200, d=3, seed=0, dtype=torch.float64):
    return Points(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype))


def targets(X):
    return torch.stack([X.values.sum(1).sin(), X.values[:, 0] * X.values[:, 1]], dim=1).double()


def ridge(features, X, y, alpha, weights=None):
    return NystromSums.of([feature_block(features, X, y, weights)]).solve(None, alpha)


@pytest.mark.parametrize("n_features", [2, 3, 8, 9])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_of_features_are_the_kernel_in_the_mean(kernel, n_features):
    X = sample(4)
    phis = [FourierFeatures.draw(kernel, X, n_features, seed)(X) for seed in range(1500)]
    grams = torch.stack([phi @ phi.T for phi in phis])
    error = (grams.mean(0) - kernel(X.values)).abs()
    assert bool((error <= 5 * grams.std(0) / 1500**0.5 + 1e-12).all()), error


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_squared_norm_of_features_is_the_diagonal_of_the_kernel(kernel):
    X = sample(50)
    has_constant = kernel.spectral_measure(3).constant > 0
    phi = FourierFeatures.draw(kernel, X, 20 + has_constant)(X)
    torch.testing.assert_close(phi.square().sum(1), kernel.diag(X.values), rtol=1e-12, atol=0)
    odd = FourierFeatures.draw(kernel, X, 21 + has_constant)(X).square().sum(1)
    assert bool(((odd - kernel.diag(X.values)).abs() <= kernel.diag(X.values) / 21).all())


def test_the_variance_falls_like_one_over_the_number_of_features():
    X = sample(2)

    def variance(n_features):
        values = [FourierFeatures.draw(Laplace(), X, n_features, seed)(X) for seed in range(2000)]
        return float(torch.stack([phi[0] @ phi[1] for phi in values]).var())

    assert variance(10) / variance(160) == pytest.approx(16.0, rel=0.25)


def test_a_large_constant_takes_one_feature_and_not_the_budget():
    X = sample(50)
    kernel = Gaussian() + 1000.0
    phi = FourierFeatures.draw(kernel, X, 2001)(X)
    assert float((phi @ phi.T - kernel(X.values)).abs().max()) < 0.2


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_a_constant_kernel_is_exact(n_features):
    X = sample(3)
    features = FourierFeatures.draw(Constant(3.0), X, n_features)
    phi = features(X)
    assert phi.shape == (3, n_features)
    torch.testing.assert_close(phi @ phi.T, torch.full((3, 3), 3.0).double())


@pytest.mark.parametrize("n_features", [1, 2, 7, 100])
def test_there_are_as_many_features_as_asked_for(n_features):
    X = sample(1, d=1)
    features = FourierFeatures.draw(Gaussian(), X, n_features)
    assert features.n_features == n_features
    assert features(X).shape == (1, n_features)
    assert bool(torch.isfinite(ridge(features, X, torch.ones(1, 1), 0.1).value).all())


def test_float32_rows_far_from_zero_keep_their_accuracy():
    X = sample(100, dtype=torch.float32)
    far = Points(X.values + 1e4)
    features = FourierFeatures.draw(Gaussian(), far, 4001, seed=3)
    phi = features(far)
    assert phi.dtype == torch.float32
    exact = features(Points(far.values.double()))
    torch.testing.assert_close(phi.double(), exact, rtol=0, atol=1e-7)
    assert float((exact @ exact.T - Gaussian()(far.values.double())).abs().max()) < 0.1


def test_frequencies_do_not_depend_on_the_rows_and_repeat_with_their_seed():
    one, other = (FourierFeatures.draw(KERNELS[2], X, 31, seed=5) for X in (sample(3), sample(90, seed=1)))
    assert torch.equal(one.frequencies, other.frequencies)
    assert torch.equal(one.offset, other.offset)
    assert not torch.equal(one.frequencies, FourierFeatures.draw(KERNELS[2], sample(3), 31, seed=6).frequencies)


def test_columns_may_be_chosen_by_name():
    X = Points(sample(10).values, ("a", "b", "c"))
    by_name, by_place = (FourierFeatures.draw(Subspace(Gaussian(), c), X, 10)(X) for c in ("c", 2))
    assert torch.equal(by_name, by_place)


def test_features_are_differentiable_in_the_rows():
    X = sample(4)
    features = FourierFeatures.draw(Laplace() + 1.0, X, 8)
    assert torch.autograd.gradcheck(lambda x: features(Points(x)), X.values.clone().requires_grad_())


@pytest.mark.parametrize("n_features", [40, 41])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_ridge_on_features_equals_that_of_scikit_learn(kernel, n_features):
    X = sample()
    y, weights = targets(X), torch.linspace(0.1, 3.0, 200).double()
    features = FourierFeatures.draw(kernel, X, n_features)
    for alpha, w in itertools.product((1e-3, 1.0, 1e4), (None, weights)):
        reference = Ridge(alpha, fit_intercept=False, solver="cholesky").fit(features(X), y, w)
        solution = ridge(features, X, y, alpha, w)
        assert solution.converged
        np.testing.assert_allclose(solution.value, reference.coef_.T, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1e-10])
def test_ridge_with_almost_no_penalty_is_least_squares_of_least_norm(alpha):
    X = sample(30)
    features = FourierFeatures.draw(Gaussian(), X, 60)
    y = targets(X)
    value = ridge(features, X, y, alpha).value
    least = torch.linalg.lstsq(features(X), y, driver="gelsd").solution
    torch.testing.assert_close(value, least, rtol=0, atol=1e-5 * float(least.abs().max()))


def test_ridge_on_features_approaches_kernel_ridge_regression():
    X, new = sample(100), sample(50, seed=1)
    y, kernel = targets(X), Gaussian(2.0)
    exact = kernel(new.values, X.values) @ Cholesky().solve(MatrixSystem(kernel(X.values)), y, 1.0).value

    def error(n_features, seed):
        features = FourierFeatures.draw(kernel, X, n_features, seed)
        fit = FeatureRows(features, new).matmul(ridge(features, X, y, 1.0).value)
        return float((fit - exact).norm() / exact.norm())

    few, many = (np.mean([error(p, seed) for seed in range(5)]) for p in (50, 800))
    assert many < 0.4 * few
    assert many < 0.1


def test_weights_equal_repeated_rows():
    X = sample()
    y = targets(X)
    repeats = torch.randint(0, 4, (200,), generator=torch.Generator().manual_seed(1))
    index = torch.arange(200).repeat_interleave(repeats)
    weighted, repeated = (FourierFeatures.draw(Laplace(), rows, 31) for rows in (X, X.take(index)))
    torch.testing.assert_close(
        ridge(weighted, X, y, 0.1, repeats.double()).value,
        ridge(repeated, X.take(index), y[index], 0.1).value,
        rtol=1e-9,
        atol=1e-10,
    )


def test_pieces_merge_in_any_order():
    X = sample()
    y, weights = targets(X), torch.linspace(0.1, 3.0, 200).double()
    features = FourierFeatures.draw(Matern(1.5) + 1.0, X, 25)
    once = ridge(features, X, y, 0.01, weights).value
    parts = [slice(0, 70), slice(70, 71), slice(71, 200)]
    for order in itertools.permutations(parts):
        sums = NystromSums(25, 2)
        for part in order:
            block = feature_block(features, X.take(part), y[part], weights[part])
            sums.merge(NystromSums.of([block]))
        torch.testing.assert_close(sums.solve(None, 0.01).value, once, rtol=1e-10, atol=1e-10)


def test_features_are_made_some_rows_at_a_time(monkeypatch):
    X = sample()
    features = FourierFeatures.draw(Gaussian(), X, 20)
    whole, product = ridge(features, X, targets(X), 0.1).value, features(X) @ torch.ones(20, 2).double()
    monkeypatch.setitem(PART_NUMBERS, "cpu", 140)
    monkeypatch.setattr("mercer.core.blocks.LEAST_ROWS", 1)
    monkeypatch.setattr("mercer.solvers.row_blocks.LEAST_ROWS", 1)
    seen, plain = [], FourierFeatures.__call__
    monkeypatch.setattr(FourierFeatures, "__call__", lambda s, x, *rest: seen.append(len(x)) or plain(s, x, *rest))
    torch.testing.assert_close(ridge(features, X, targets(X), 0.1).value, whole)
    torch.testing.assert_close(FeatureRows(features, X).matmul(torch.ones(20, 2)), product)
    assert max(seen) == 7
    assert sum(seen) == 400


def test_no_penalty_equal_to_the_identity_changes_nothing():
    X = sample()
    sums = NystromSums.of([feature_block(FourierFeatures.draw(Laplace(), X, 30), X, targets(X))])
    torch.testing.assert_close(sums.solve(None, 0.1).value, sums.solve(torch.eye(30), 0.1).value)


@pytest.mark.parametrize("n_features", [1, 8, 9])
@pytest.mark.parametrize("kernel", [Gaussian(), Constant(2.0), 0.5 * Laplace() + Matern(1.5)], ids=repr)
def test_the_map_survives_a_model_file(kernel, n_features, tmp_path):
    X = sample(5)
    features = FourierFeatures.draw(kernel, X, n_features)
    write_model(tmp_path / "map.safetensors", "Map", {}, features.to_arrays())
    _, _, arrays = read_model(tmp_path / "map.safetensors", {"Map"})
    assert torch.equal(FourierFeatures.from_arrays(arrays)(X), features(X))


def test_bad_input_is_named():
    X = sample(5)
    features = FourierFeatures.draw(Gaussian(), X, 6)
    for wrong, words in ((0, "n_features=0"), (2.5, "n_features=2.5"), (True, "n_features=True")):
        with pytest.raises((ValueError, TypeError), match=words):
            FourierFeatures.draw(Gaussian(), X, wrong)
    with pytest.raises(InputError, match="takes one feature of its own"):
        FourierFeatures.draw(Gaussian() + 1.0, X, 1)
    with pytest.raises(InputError, match=r'Linear.*solver="nystrom"'):
        FourierFeatures.draw(Gaussian() + Linear(), X, 10)
    with pytest.raises(TypeError, match="other objects"):
        FourierFeatures.draw(Gaussian(), Points(["a", "b"]), 10)
    with pytest.raises(InputError, match="X has 2 columns, but the feature map expects 3"):
        features(sample(5, d=2))
    with pytest.raises(InputError, match="targets have shape"):
        feature_block(features, X, torch.ones(4, 1))
    with pytest.raises(InputError, match="weights have shape"):
        feature_block(features, X, torch.ones(5, 1), torch.ones(4))
    arrays = features.to_arrays()
    for name, broken in (
        ("frequencies", torch.ones(3)),
        ("frequencies", torch.full((3, 3), torch.inf)),
        ("offset", torch.ones(4)),
        ("masses", torch.ones(3)),
        ("masses", -torch.ones(2)),
    ):
        with pytest.raises(InputError):
            FourierFeatures.from_arrays(arrays | {name: broken})
