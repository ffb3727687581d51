"""Mean embeddings, discrepancies and other distances of samples."""

import numpy as np
import pytest
import torch
from naive import hsic_u, hsic_v, mmd_u, mmd_v
from scipy.stats import ks_2samp, multivariate_normal, norm, wasserstein_distance

from mercer.core.errors import InputError, InputTypeError
from mercer.functions import RKHSFunction
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial, Precomputed
from mercer.stats import (
    MeanEmbedding,
    characteristic_function,
    hsic,
    kolmogorov,
    mmd,
    total_variation,
    wasserstein,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(17, 3)), RNG.normal(size=(13, 3)) + 0.5
POOLED, FIRST = np.vstack([X, Y]), np.arange(30) < 17


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(2.0, "l1"), Polynomial(2), Matern(1.5) + Linear()], ids=repr)
def test_the_quadratic_estimators_are_the_double_sums(kernel):
    K = kernel(POOLED)
    assert mmd(X, Y, kernel, squared=True) == pytest.approx(mmd_v(K, FIRST), rel=1e-10)
    assert mmd(X, Y, kernel, estimator="u", squared=True) == pytest.approx(mmd_u(K, FIRST), rel=1e-10, abs=1e-12)
    ready = mmd(K[:17], K[17:], "precomputed", squared=True)
    assert ready == pytest.approx(mmd_v(K, FIRST), rel=1e-10)


def test_integer_weights_are_repeated_rows():
    kernel, counts = Gaussian(1.0), RNG.integers(1, 4, size=17)
    assert mmd(X, Y, kernel, weights_x=counts) == pytest.approx(mmd(np.repeat(X, counts, 0), Y, kernel), rel=1e-10)


def test_signed_weights_take_mass_away():
    kernel = Gaussian(1.0)
    weights = np.array([2.0, -1.0])
    expected = kernel(X[:2]) @ weights @ weights + kernel(Y).mean() - 2 * weights @ kernel(X[:2], Y).mean(1)
    assert mmd(X[:2], Y, kernel, weights_x=weights, squared=True) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("estimator", ["linear", "block", "incomplete", "cross"])
def test_estimators_for_many_rows_are_unbiased(estimator):
    kernel = Gaussian(1.0)
    truth = MeanEmbedding.of((0.0, 1.0), kernel).distance(MeanEmbedding.of((1.0, 1.0), kernel)) ** 2
    draws = [
        mmd(
            r.normal(size=(40, 1)),
            r.normal(size=(40, 1)) + 1,
            kernel,
            estimator=estimator,
            squared=True,
            random_state=i,
        )
        for i, r in enumerate(map(np.random.default_rng, range(150)))
    ]
    values = np.array(draws)
    roots = np.mean(values) - truth  # the root of an estimate is not unbiased, its square is
    assert abs(roots) < 4 * values.std() / len(values) ** 0.5 + 1e-12


def test_expectations_of_functions_are_inner_products():
    kernel = Gaussian(0.7)
    f = RKHSFunction(kernel, POOLED[:5], RNG.normal(size=5))
    embedding = MeanEmbedding(kernel).fit(X)
    assert embedding.expectation(f) == pytest.approx(f(X).mean(), rel=1e-10)
    normal = MeanEmbedding.of((np.zeros(3), np.eye(3)), kernel)
    draws = f(np.random.default_rng(1).normal(size=(200_000, 3)))
    assert normal.expectation(f) == pytest.approx(draws.mean(), abs=4 * draws.std() / 200_000**0.5)


def test_closed_forms_of_normal_distributions_match_sampling():
    S = np.array([[1.0, 0.4], [0.4, 0.5]])
    kernel = Gaussian((0.8, 1.5))
    closed = MeanEmbedding.of((np.array([0.3, -0.2]), S), kernel)
    draws = np.random.default_rng(0).multivariate_normal([0.3, -0.2], S, size=400_000)
    at = np.array([[0.0, 0.0], [1.0, 1.0]])
    values = kernel(at, draws)
    assert closed(at) == pytest.approx(values.mean(1), abs=4 * values.std() / 400_000**0.5)
    assert closed.norm() ** 2 == pytest.approx(closed(draws).mean(), abs=1e-3)
    for same in (
        multivariate_normal([0.3, -0.2], S),
        torch.distributions.MultivariateNormal(torch.tensor([0.3, -0.2]).double(), torch.tensor(S)),
    ):
        assert MeanEmbedding.of(same, kernel)(at) == pytest.approx(closed(at))
    assert MeanEmbedding.of(norm(1.0, 2.0), Gaussian(1.0)).norm() == pytest.approx((1 + 2 * 4) ** -0.25)


def test_shrinkage_comes_closer_to_the_truth_where_there_are_few_rows():
    kernel = Gaussian(1.0)
    truth = MeanEmbedding.of((np.zeros(5), np.eye(5)), kernel)
    samples = [np.random.default_rng(i).normal(size=(5, 5)) for i in range(60)]
    plain = np.mean([MeanEmbedding(kernel).fit(x).distance(truth) ** 2 for x in samples])
    shrunk = np.mean([MeanEmbedding(kernel, shrinkage="auto").fit(x).distance(truth) ** 2 for x in samples])
    assert shrunk < 0.8 * plain


def test_a_characteristic_kernel_sees_what_a_polynomial_does_not():
    """Equal means and variances, other fourth moments: degree 2 sees nothing."""
    a = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    b = np.array([[-(2**0.5)], [2**0.5], [0.0], [0.0]])
    assert mmd(a, b, Polynomial(2)) == pytest.approx(0.0, abs=1e-7)
    assert mmd(a, b, Gaussian(1.0)) > 0.1


def test_the_discrepancy_is_at_most_the_wasserstein_distance_over_the_width():
    for width in (0.3, 1.0, 5.0):
        assert mmd(X[:13], Y, Gaussian(width)) <= wasserstein(X[:13], Y) / width + 1e-12


def test_the_discrepancy_is_at_most_twice_the_total_variation():
    a, b = RNG.integers(0, 5, 40), RNG.integers(1, 6, 50)
    assert mmd(a[:, None], b[:, None], Gaussian(0.2)) <= 2 * total_variation(a, b)


@pytest.mark.parametrize("d", [1, 10, 100])
def test_the_error_of_an_embedding_falls_like_the_root_of_n_in_every_dimension(d):
    kernel = Gaussian(d**0.5)
    truth = MeanEmbedding.of((np.zeros(d), np.eye(d)), kernel)
    sizes = [20, 80, 320]
    errors = [
        np.mean(
            [
                MeanEmbedding(kernel).fit(np.random.default_rng(i).normal(size=(n, d))).distance(truth) ** 2
                for i in range(40 if d == 1 else 12)
            ]
        )
        for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), 0.5 * np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_the_discrepancy_is_the_mean_difference_of_characteristic_functions():
    frequencies = np.random.default_rng(2).normal(size=(100_000, 3))
    gaps = np.abs(characteristic_function(X, frequencies) - characteristic_function(Y, frequencies)) ** 2
    assert mmd(X, Y, Gaussian(1.0), squared=True) == pytest.approx(gaps.mean(), abs=5 * gaps.std() / 100_000**0.5)


def test_distances_of_samples_agree_with_scipy():
    assert wasserstein(X[:, :1], Y[:, :1]) == pytest.approx(wasserstein_distance(X[:, 0], Y[:, 0]))
    assert kolmogorov(X[:, 0], Y[:, 0]) == pytest.approx(ks_2samp(X[:, 0], Y[:, 0]).statistic)
    shift = np.array([3.0, 4.0, 0.0])
    assert wasserstein(X, X + shift, method="sliced", n_projections=4000) == pytest.approx(5.0, rel=0.03)


def test_hsic_is_the_trace_and_its_unbiased_form_the_mean_over_different_rows():
    x, y = X[:8], X[:8, :1] ** 2
    K, L = Gaussian(1.0)(x), Laplace(0.5)(y)
    assert hsic(x, y, Gaussian(1.0), Laplace(0.5)) == pytest.approx(hsic_v(K, L))
    assert hsic(x, y, Gaussian(1.0), Laplace(0.5), estimator="u") == pytest.approx(hsic_u(K, L))
    labels = ["a", "b", "a", "b", "c", "c", "a", "a"]
    same = np.array([[float(a == b) for a in labels] for b in labels])
    assert hsic(x, labels, Gaussian(1.0)) == pytest.approx(hsic_v(K, same))


def test_one_row_each_is_answered_where_it_can_be():
    assert mmd([[0.0]], [[0.0]], Gaussian(1.0)) == 0.0
    assert mmd([[0.0]], [[1.0]], Gaussian(1.0), squared=True) == pytest.approx(2 - 2 * np.exp(-0.5))
    with pytest.raises(InputError, match="at least two rows of positive weight in X"):
        mmd([[0.0]], [[1.0], [2.0]], Gaussian(1.0), estimator="u")


@pytest.mark.parametrize(
    ("X", "Y", "match"),
    [
        ([[np.nan]], [[0.0]], "X contains NaN"),
        ([[0.0]], [[0.0, 1.0]], "X has 1 columns but Y has 2"),
        (np.empty((0, 1)), [[0.0]], "X has no rows"),
    ],
)
def test_wrong_samples_are_clear_errors(X, Y, match):
    with pytest.raises(InputError, match=match):
        mmd(X, Y)


def test_wrong_arguments_are_clear_errors():
    with pytest.raises(InputError, match="estimator='w'"):
        mmd(X, Y, estimator="w")
    with pytest.raises(InputError, match="sum to zero"):
        mmd(X[:2], Y, weights_x=[1.0, -1.0])
    with pytest.raises(InputError, match="different kernels"):
        MeanEmbedding(Gaussian(1.0)).fit(X).distance(MeanEmbedding(Gaussian(2.0)).fit(X))
    with pytest.raises(InputTypeError, match="No closed form is known"):
        MeanEmbedding.of(torch.distributions.Cauchy(0.0, 1.0))
    with pytest.raises(InputError, match="Gaussian kernels"):
        MeanEmbedding.of((0.0, 1.0), Precomputed())
