"""Stein kernels, discrepancies and tests of fit."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import binom, norm

from mercer import kernels
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import (
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Subspace,
)
from mercer.stats import DiscreteSteinKernel, SteinKernel, goodness_of_fit_test, ksd
from mercer.testing import check_kernel

RNG = np.random.default_rng(0)
BASES = [
    InverseMultiquadric(1.3, 0.7),
    Gaussian((0.7, 1.5, 2.0)),
    Matern(2.5, 1.2),
    Matern(1.5, 0.8),
    Matern(3.3, 1.7),
    RationalQuadratic(0.9, 0.4),
    Gaussian(2.0) * Linear(0.5) + 0.3,
    Polynomial(3, 0.5, 1.0),
    Subspace(Gaussian(0.5), [2, 0]) * InverseMultiquadric(2.0) + Subspace(Linear(), [1]),
    2.0 * Gaussian(1.0) ** 2,
]


def banana(X):
    return -0.5 * X[:, 0] ** 2 - 0.5 * (X[:, 1] - X[:, 0] ** 2) ** 2 / 0.25 - 0.5 * X[:, 2:].square().sum(1)


def score_of(log_prob, x):
    x = x.clone().requires_grad_(True)
    return torch.autograd.grad(log_prob(x).sum(), x)[0]


def finite_differences(base, x, y, s_x, s_y, h=1e-4):
    def k(a, b):
        return base(a[None], b[None])[0, 0]

    d, unit = len(x), np.eye(len(x))
    total = s_x @ s_y * k(x, y)
    for i in range(d):
        e = h * unit[i]
        total += s_x[i] * (k(x, y + e) - k(x, y - e)) / (2 * h) + s_y[i] * (k(x + e, y) - k(x - e, y)) / (2 * h)
        total += (k(x + e, y + e) - k(x + e, y - e) - k(x - e, y + e) + k(x - e, y - e)) / (4 * h * h)
    return total


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_the_stein_kernel_is_its_definition(base):
    X = RNG.normal(size=(4, 3))
    S = RNG.normal(size=(4, 3))
    found = SteinKernel(base)(np.hstack([X, S]))
    expected = [
        [finite_differences(base, x, y, s, t) for y, t in zip(X, S, strict=True)] for x, s in zip(X, S, strict=True)
    ]
    off = ~np.eye(4, dtype=bool)
    assert found[off] == pytest.approx(np.array(expected)[off], rel=1e-5, abs=1e-5)
    assert found.diagonal() == pytest.approx(SteinKernel(base).diag(np.hstack([X, S])), rel=1e-10)
    assert found.diagonal() == pytest.approx(np.diag(expected), rel=2e-3)


def test_the_inverse_multiquadric_has_the_published_form():
    x, s, c = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2)), 1.4
    found = SteinKernel(InverseMultiquadric(c))(np.hstack([x, s]))
    for i, j in itertools.product(range(6), repeat=2):
        r = x[i] - x[j]
        q = 1 + r @ r / c**2
        expected = s[i] @ s[j] * q**-0.5 + (2 + (s[i] - s[j]) @ r) * q**-1.5 / c**2 - 3 * (r @ r) * q**-2.5 / c**4
        assert found[i, j] == pytest.approx(expected, rel=1e-10, abs=1e-12)


def minus(X):
    return -X


@pytest.mark.parametrize("base", [InverseMultiquadric(1.3), Matern(2.5, 1.2), Gaussian(2.0) * Linear(0.5)], ids=repr)
def test_the_stein_kernel_keeps_the_laws_of_kernels(base, monkeypatch):
    monkeypatch.setattr(kernels, "SteinKernel", SteinKernel, raising=False)  # where printed kernels are looked up
    check_kernel(SteinKernel(base), X=RNG.normal(size=(20, 4)))


def normal_mixture(X):
    return torch.logsumexp(torch.stack([-0.5 * (X - 1).square().sum(1), -0.5 * (X + 1).square().sum(1)]), 0)


@pytest.mark.parametrize("name", ["normal", "mixture", "banana"])
def test_the_mean_of_the_stein_kernel_under_its_distribution_is_zero(name):
    rng, n = np.random.default_rng(1), 1500
    z = rng.normal(size=(n, 3))
    draws, log_prob = {
        "normal": (z, lambda X: -0.5 * X.square().sum(1)),
        "mixture": (z + np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0), normal_mixture),
        "banana": (np.c_[z[:, 0], z[:, 0] ** 2 + 0.5 * z[:, 1], z[:, 2]], banana),
    }[name]
    x = torch.tensor(draws)
    kernel = SteinKernel(InverseMultiquadric(1.5))
    values = kernel(torch.cat([x, score_of(log_prob, x)], 1)[:5], torch.cat([x, score_of(log_prob, x)], 1)).numpy()
    assert (np.abs(values[:, 5:].mean(1)) < 5 * values.std(1) / n**0.5).all()
    unbiased = ksd(draws, log_prob=log_prob, kernel=InverseMultiquadric(1.5), estimator="u", squared=True)
    assert abs(unbiased) < 20 / n
    assert ksd(draws + 0.3, log_prob=log_prob, kernel=InverseMultiquadric(1.5), estimator="u", squared=True) > 0.02


def test_the_discrepancy_is_the_double_sum():
    X, c = RNG.normal(size=(15, 2)), InverseMultiquadric(1.0)
    K = SteinKernel(c)(np.hstack([X, -X]))
    assert ksd(X, minus, kernel=c, squared=True) == pytest.approx(K.mean())
    off = (K.sum() - K.trace()) / (15 * 14)
    assert ksd(X, -X, kernel=c, estimator="u", squared=True) == pytest.approx(off)
    weights = RNG.normal(size=15)
    weights /= weights.sum()
    assert ksd(X, minus, kernel=c, sample_weight=weights, squared=True) == pytest.approx(weights @ K @ weights)


def test_scores_by_autograd_are_the_closed_forms():
    X = RNG.normal(size=(10, 2))
    by_hand = ksd(X, lambda x: -x, kernel=Gaussian(1.0))
    assert ksd(X, log_prob=lambda x: -0.5 * x.square().sum(1) + 7, kernel=Gaussian(1.0)) == pytest.approx(by_hand)
    in_numpy = ksd(X, in_numpy_only, kernel=Gaussian(1.0))
    assert in_numpy == pytest.approx(by_hand)


def in_numpy_only(x):
    if not isinstance(x, np.ndarray):
        raise TypeError("numpy only")
    return -x


def ising(X):
    return 0.8 * (X[:, 0] - 1) * (X[:, 1] - 1) + 0.3 * X[:, 0]


def test_the_discrete_stein_kernel_has_mean_zero():
    states = np.array(list(itertools.product(range(3), repeat=2)), dtype=float)
    p = torch.softmax(ising(torch.tensor(states)), 0).numpy()
    kernel = DiscreteSteinKernel(Gaussian(1.0), ising, 3)
    K = kernel(states)
    assert p @ K == pytest.approx(np.zeros(9), abs=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert kernel.diag(states) == pytest.approx(K.diagonal())
    draws = states[np.random.default_rng(0).choice(9, p=p, size=300)]
    assert goodness_of_fit_test(draws, kernel=kernel, n_resamples=200).pvalue > 0.05
    uniform = np.random.default_rng(0).integers(0, 3, (300, 2)).astype(float)
    assert goodness_of_fit_test(uniform, kernel=kernel, n_resamples=200).pvalue < 0.01
    with pytest.raises(InputError, match="expected an integer from 0 to 2"):
        kernel([[3.0, 0.0]])


@pytest.mark.parametrize("combine", ["fused", "min_p", "agg"])
def test_the_level_of_the_test_of_fit_holds_and_misfit_is_found(combine):
    pvalues = []
    for i in range(60):
        x = np.random.default_rng(i).normal(size=(60, 1))
        pvalues.append(goodness_of_fit_test(x, minus, combine=combine, n_resamples=99, random_state=i).pvalue)
    assert np.sum(np.array(pvalues) <= 0.1) <= binom.ppf(0.999, 60, 0.1)
    heavy = np.random.default_rng(0).standard_t(2, size=(200, 1))
    result = goodness_of_fit_test(heavy, minus, combine=combine, n_resamples=199)
    assert result.pvalue < 0.05
    assert np.abs(heavy[result.rows(3)]).min() > 2


def test_a_chain_is_not_taken_for_independent_rows():
    def chain(seed, n=250, rho=0.9):
        rng, x = np.random.default_rng(seed), np.zeros(n)
        for t in range(1, n):
            x[t] = rho * x[t - 1] + (1 - rho**2) ** 0.5 * rng.normal()
        return x[:, None]

    rejected = {}
    for order in (None, True):
        found = [
            goodness_of_fit_test(chain(i), minus, kernel="median", order=order, n_resamples=99).pvalue <= 0.05
            for i in range(25)
        ]
        rejected[order] = sum(found)
    assert rejected[None] > 8
    assert rejected[True] <= 5


def test_the_wrong_column_is_named():
    X = RNG.normal(size=(500, 3))
    X[:, 1] += 0.5
    result = goodness_of_fit_test(X, minus, n_resamples=200)
    assert result.pvalue < 0.01
    assert [c.name for c in result.columns() if c.pvalue < 0.01] == ["1"]


def fitted_normal(x):
    return torch.distributions.Normal(x.mean(0), x.std(0))


def test_a_family_is_tested_with_its_parameters_fitted_again():
    rng = np.random.default_rng(0)
    before = torch.get_rng_state()
    normal = goodness_of_fit_test(3 + 2 * rng.normal(size=(100, 1)), fit=fitted_normal, kernel="median", n_resamples=59)
    skew = goodness_of_fit_test(rng.exponential(size=(100, 1)), fit=fitted_normal, kernel="median", n_resamples=59)
    assert skew.pvalue == 1 / 60 < 0.05 < normal.pvalue
    assert torch.equal(before, torch.get_rng_state())


def test_a_sampler_does_not_draw_the_rows_of_the_user_again():
    """Rows of default_rng(0) against a sampler with the default seed were one sample twice, and p was 1."""
    X, drawn = np.random.default_rng(0).normal(size=(50, 1)), []

    def sampler(n, rng):
        drawn.append(rng.normal(size=(n, 1)))
        return drawn[-1]

    assert goodness_of_fit_test(X, sampler=sampler, n_resamples=99).pvalue < 1.0
    assert len(np.intersect1d(X, drawn[0])) == 0


def test_a_sampler_is_enough():
    X = RNG.normal(size=(150, 1))

    def right(n, rng):
        return rng.normal(size=(n, 1))

    assert goodness_of_fit_test(X, sampler=right, n_resamples=99).pvalue > 0.05
    assert goodness_of_fit_test(X + 1, sampler=right, n_resamples=99).pvalue == 0.01
    scipy = goodness_of_fit_test(X, sampler=lambda n, rng: norm.rvs(size=(n, 1), random_state=rng), n_resamples=99)
    assert scipy.pvalue > 0.05


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ksd([[0.0], [1.0]]), "Give either score"),
        (lambda: ksd([[0.0], [1.0]], [[0.0], [np.inf]]), "score contains infinity .first: row 1"),
        (lambda: ksd([[0.0], [1.0]], [[0.0]]), "score has shape"),
        (lambda: ksd([[0.0]], minus, estimator="u"), "at least two rows"),
        (lambda: SteinKernel(Laplace(1.0))([[0.0, 0.0]]), "too rough"),
        (lambda: SteinKernel(Laplace(1.0, "l1"))([[0.0, 0.0]]), "smooth function of squared distances"),
        (lambda: SteinKernel(Gaussian(1.0))([[0.0, 0.0, 0.0]]), "got 3 columns"),
        (lambda: goodness_of_fit_test([[0.0]], minus), "at least two"),
        (lambda: goodness_of_fit_test([[0.0], [1.0]], minus, log_prob=minus), "Give one of"),
        (lambda: goodness_of_fit_test([[0.0], [1.0]], fit=minus, order=True), "leave out order"),
    ],
)
def test_wrong_arguments_are_clear_errors(call, match):
    with pytest.raises(InputError, match=match):
        call()


def test_a_log_density_must_carry_gradients():
    with pytest.raises(InputTypeError, match="carries no gradient"):
        ksd([[0.0], [1.0]], log_prob=lambda x: torch.zeros(len(x)))
