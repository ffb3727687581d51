"""Leave-one-out and generalised cross-validation against refitting and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refitting import loo_by_refitting, ridge_fit

from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.operators import Weighted, gram
from mercer.selection import gcv_error, loo_error, loo_predictions, loo_residuals, select_alpha
from mercer.solvers import Cholesky, Eigh

ALPHAS = [0.0, 1e-6, 1e-2, 1.0, 100.0]


def data(n=14, seed=0, t=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    Y = np.stack([np.sin(3 * X[:, 0]) + X[:, 1], rng.normal(size=n)][:t], axis=1)
    return X, Y


def system(kernel, X, w=None):
    K = gram(kernel, torch.from_numpy(X))
    return K if w is None else Weighted(K, torch.from_numpy(np.sqrt(w)))


def residuals(kernel, X, Y, w, alpha, solver="eigh"):
    A = system(kernel, X, w)
    prepared = Eigh().prepare(A) if solver == "eigh" else Cholesky().prepare(A, alpha)
    weights = None if w is None else torch.from_numpy(w)
    return Y - loo_predictions(prepared, torch.from_numpy(Y), weights, alpha).numpy()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("solver", ["eigh", "cholesky"])
def test_leave_one_out_equals_refitting_without_each_row(alpha, solver):
    X, Y = data()
    K = Laplace(0.8)(X)
    found = residuals(Laplace(0.8), X, Y, None, alpha, solver)
    for j in range(2):
        np.testing.assert_allclose(found[:, j], loo_by_refitting(K, Y[:, j], np.ones(14), alpha), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("solver", ["eigh", "cholesky"])
def test_weighted_leave_one_out_removes_one_unit_of_weight(alpha, solver):
    X, Y = data()
    w = np.array([0.2, 0.9, 1.0, 1.0, 1.5, 2.0, 3.0, 7.5, 0.5, 1.0, 2.0, 4.0, 1.1, 1.0])
    K = Laplace(0.8)(X)
    found = residuals(Laplace(0.8), X, Y, w, alpha, solver)
    np.testing.assert_allclose(found[:, 0], loo_by_refitting(K, Y[:, 0], w, alpha), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", [Laplace(0.8), Polynomial(degree=2, offset=1.0), Linear(), Gaussian(1.0)])
def test_ridgeless_leave_one_out_is_right_on_singular_matrices(kernel):
    X, Y = data()
    X = np.concatenate([X, X[:5], X[:2]])  # duplicates, with the same targets and with others
    Y = np.concatenate([Y, Y[:5], Y[:2] + 1.0])
    K = kernel(X)
    found = residuals(kernel, X, Y, None, 0.0)
    if isinstance(kernel, Gaussian):  # its spectrum has no gap, so the rank is a matter of taste
        assert np.isfinite(found).all()
        return
    np.testing.assert_allclose(found[:, 1], loo_by_refitting(K, Y[:, 1], np.ones(21), 0.0), rtol=1e-6, atol=1e-8)


def test_ridgeless_leave_one_out_is_the_limit_of_small_alpha():
    X, Y = data()
    X, Y = np.concatenate([X, X[:5]]), np.concatenate([Y, Y[:5] + 0.5])
    limit = residuals(Laplace(0.8), X, Y, None, 0.0)
    near = residuals(Laplace(0.8), X, Y, None, 1e-9)
    np.testing.assert_allclose(near, limit, atol=1e-6)


def test_unit_weights_reduce_to_the_textbook_formula():
    X, Y = data()
    G = np.linalg.inv(Gaussian(0.5)(X) + 0.3 * np.eye(14))
    c = torch.from_numpy(G @ Y)
    found = loo_residuals(c, torch.from_numpy(np.diag(G).copy()), 0.3)
    np.testing.assert_allclose(found.numpy(), (G @ Y) / np.diag(G)[:, None], rtol=1e-12)
    ones = loo_residuals(c, torch.from_numpy(np.diag(G).copy()), 0.3, torch.ones(14))
    assert torch.equal(found, ones)


@pytest.mark.parametrize("alpha", [1e-4, 0.3, 20.0])
def test_gcv_equals_its_definition(alpha):
    X, Y = data()
    K = Laplace(0.8)(X)
    G = np.linalg.inv(K + alpha * np.eye(14))
    expected = 14 * np.sum((G @ Y) ** 2, axis=0) / np.trace(G) ** 2
    found = select_alpha(Eigh().prepare(system(Laplace(0.8), X)), torch.from_numpy(Y), None, [alpha], "gcv").errors[0]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_weighted_gcv_equals_its_definition():
    X, Y = data()
    w = np.array([0.2, 0.9, 1.0, 1.0, 1.5, 2.0, 3.0, 7.5, 0.5, 1.0, 2.0, 4.0, 1.1, 1.0])
    K, alpha = Laplace(0.8)(X), 0.3
    hat = np.stack([K @ ridge_fit(K, e, w, alpha) for e in np.eye(14)], axis=1)
    N = np.maximum(w, 1.0).sum()
    expected = N * (w @ (Y - hat @ Y) ** 2) / (N - np.trace(hat)) ** 2
    spectrum = Eigh().prepare(system(Laplace(0.8), X, w))
    found = select_alpha(spectrum, torch.from_numpy(Y), torch.from_numpy(w), [alpha], "gcv").errors[0]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("kernel", [Laplace(0.8), Polynomial(degree=2, offset=1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_at_alpha_zero_are_the_limit(criterion, kernel, weighted):
    X, Y = data()
    w = np.where(np.arange(14) % 3 == 0, 2.0, 1.0) if weighted else np.ones(14)
    spectrum = Eigh().prepare(system(kernel, X, w))
    path = select_alpha(spectrum, torch.from_numpy(Y), torch.from_numpy(w), [0.0, 1e-9], criterion)
    torch.testing.assert_close(path.errors[0], path.errors[1], rtol=1e-5, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=9, max_size=9), st.sampled_from(ALPHAS), st.integers(0, 50))
def test_integer_weights_equal_repeated_rows(counts, alpha, seed):
    X, Y = data(9, seed)
    w = np.array(counts, dtype=float)
    index = np.repeat(np.arange(9), counts)
    kernel = Laplace(0.8)
    weighted = residuals(kernel, X, Y, w, alpha)
    repeated = residuals(kernel, X[index], Y[index], None, alpha)
    np.testing.assert_allclose(repeated, weighted[index], rtol=1e-6, atol=1e-8)
    for criterion in ("loo", "gcv"):
        a = select_alpha(
            Eigh().prepare(system(kernel, X, w)), torch.from_numpy(Y), torch.from_numpy(w), [alpha], criterion
        )
        b = select_alpha(Eigh().prepare(system(kernel, X[index])), torch.from_numpy(Y[index]), None, [alpha], criterion)
        torch.testing.assert_close(a.errors, b.errors, rtol=1e-6, atol=1e-14)


def test_errors_are_means_over_the_weight():
    e = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double()
    torch.testing.assert_close(loo_error(e), torch.tensor([5.0, 10.0]).double())
    torch.testing.assert_close(loo_error(e, torch.tensor([3.0, 1.0])), torch.tensor([3.0, 7.0]).double())


def test_bad_weights_are_named():
    x = torch.ones(3).double()
    with pytest.raises(ValueError, match=r"weights\[1\]=0.0: must be positive"):
        loo_residuals(x, x, 1.0, torch.tensor([1.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="one for each of 3 rows"):
        gcv_error(x, x, 1.0, torch.ones(2))
