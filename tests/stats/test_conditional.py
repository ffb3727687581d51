"""Tests of independence given a third variable."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import binom

from mercer.core.arrays import as_points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Linear
from mercer.stats import conditional_independence_test
from mercer.stats.regress_out import RIDGES, features, gram_matrices_of_z, regressed_out

RNG = np.random.default_rng(0)


def test_the_errors_are_those_of_regressions_without_the_row():
    z, C = as_points(RNG.normal(size=(25, 1))), torch.randn(25, 3, dtype=torch.float64)
    K = next(iter(gram_matrices_of_z(z, C)))
    found = regressed_out(C, iter([K]))
    sizes = {}
    for ridge in 25 * RIDGES:
        left = []
        for i in range(25):
            others = [j for j in range(25) if j != i]
            A = K[others][:, others] + ridge * torch.eye(24, dtype=torch.float64)
            left.append(C[i] - K[i, others] @ torch.linalg.solve(A, C[others]))
        sizes[float(torch.stack(left).square().sum())] = torch.stack(left)
    torch.testing.assert_close(found.errors, sizes[min(sizes)], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found.smoother @ C, found.errors)


def test_features_multiply_to_the_centred_gram_matrix():
    x = as_points(RNG.normal(size=(30, 1)))
    C = features(Gaussian(2.0), x)
    K = torch.as_tensor(Gaussian(2.0)(x.values))
    H = torch.eye(30, dtype=torch.float64) - 1 / 30
    assert float((C @ C.T - H @ K @ H).abs().max()) < 5e-3


def on_the_circle(n, rng):
    """The setting of SplitKCI's paper: both sides are noisy copies of Z, a point of the circle."""
    z = rng.normal(size=(n, 2))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return z + 0.05 * rng.normal(size=(n, 2)), z + 0.05 * rng.normal(size=(n, 2)), z


def jump(n, rng):
    z = rng.normal(size=n)
    return np.sign(z) + 0.3 * rng.normal(size=n), np.sign(z) + 0.3 * rng.normal(size=n), z


def wave(n, rng):
    z = rng.uniform(-2, 2, size=(n, 1))
    return np.sin(4 * z) + 0.3 * rng.normal(size=(n, 1)), np.sin(4 * z) + 0.3 * rng.normal(size=(n, 1)), z


@pytest.mark.parametrize("setting", [on_the_circle, wave, jump])
def test_the_level_holds_where_both_follow_z(setting):
    """Where regressions are imperfect, plain wild signs reject 10 to 15% of these, and without leaves half of jumps."""
    rejected = sum(
        conditional_independence_test(*setting(80, np.random.default_rng(i)), n_resamples=99, random_state=i).pvalue
        <= 0.05
        for i in range(40)
    )
    assert rejected <= binom.ppf(0.999, 40, 0.05)


@pytest.mark.parametrize("setting", [on_the_circle, wave])
def test_dependence_given_z_is_found(setting):
    x, y, z = setting(100, RNG)
    y = y + 0.7 * (x - (z if z.shape[1] == 2 else np.sin(4 * z)))
    result = conditional_independence_test(x, y, z, n_resamples=199)
    assert result.pvalue == 1 / 200
    assert "depend on each other given Z" in result.summary
    assert min(result.explained) > 0.3
    assert result.plot().get_xlabel() == "Statistic"


def test_labels_and_kernels_of_ones_own():
    z = RNG.normal(size=80)
    x, y = (z + RNG.normal(size=80) > 0), z + RNG.normal(size=80)
    labels = np.where(x, "yes", "no")
    assert conditional_independence_test(labels, y, z, n_resamples=99).pvalue > 0.01
    assert conditional_independence_test(labels, y + 2 * x, z, n_resamples=99).pvalue == 0.01
    assert conditional_independence_test(y, y + z, z, Linear(), Linear(), Gaussian(1.0), n_resamples=99).pvalue == 0.01
    groups = np.where(z > 0, "a", "b")
    by_group = (z > 0) + 0.3 * RNG.normal(size=80)
    assert conditional_independence_test(by_group, (z > 0) + RNG.normal(size=80), groups, n_resamples=99).pvalue > 0.01


def test_a_regression_that_cannot_fit_warns():
    z = np.linspace(-3, 3, 150)
    rng = np.random.default_rng(3)
    x, y = (np.sin(7 * z) + 0.3 * rng.normal(size=150) for _ in "xy")
    with pytest.warns(UserWarning, match="still depend on Z"):
        conditional_independence_test(x, y, z, kernel_z=Gaussian(30.0), n_resamples=99)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert conditional_independence_test(x, y, z, n_resamples=99).pvalue > 0.01


def test_constant_sides_have_the_p_value_one():
    z, ones = RNG.normal(size=20), np.ones(20)
    assert conditional_independence_test(ones, z + RNG.normal(size=20), z, n_resamples=49).pvalue == 1.0
    assert conditional_independence_test(z, RNG.normal(size=20), ones, n_resamples=49).pvalue > 0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (([0.0], [1.0], [2.0]), "at least two"),
        ((range(5), range(5), range(5)), "at least ten"),
        (([0.0, 1.0], [1.0, 2.0], [1.0, 2.0, 3.0]), "Z has 3"),
        (([0.0, 1.0], [1.0, np.inf], [1.0, 2.0]), "Y contains infinity"),
    ],
)
def test_wrong_arguments_are_clear_errors(given, match):
    with pytest.raises(InputError, match=match):
        conditional_independence_test(*([float(v) for v in side] for side in given))
