"""Cholesky: jitter, refinement, failure."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.core.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.kernels import Gaussian, Laplace
from mercer.operators import gram
from mercer.solvers import Cholesky
from mercer.solvers.factor import factorise_by_panels
from mercer.testing.solvers import MatrixSystem, true_backward_error


def spectrum_matrix(values, seed=0):
    Q = torch.linalg.qr(torch.randn(len(values), len(values), generator=torch.Generator().manual_seed(seed)).double()).Q
    A = (Q * torch.tensor(values).double()) @ Q.T
    return (A + A.T) / 2


def test_the_diagonal_of_the_inverse_is_that_of_the_inverse():
    for n in (1, 7, 600):  # below and above one block of columns
        X = torch.rand(n, 2, generator=torch.Generator().manual_seed(n)).double()
        K = gram(Gaussian(0.2), X)
        found = Cholesky().prepare(K, 0.3).inverse_diag()
        reference = np.diag(np.linalg.inv(K.dense().numpy() + 0.3 * np.eye(n)))
        np.testing.assert_allclose(found.numpy(), reference, rtol=1e-10)


def test_a_well_conditioned_system_needs_no_jitter():
    solution = Cholesky().solve(MatrixSystem(torch.eye(4).double()), torch.ones(4), 1e-3)
    assert solution.jitter == 0.0
    assert solution.reason == ""
    assert str(solution).startswith("cholesky: converged")


@pytest.mark.parametrize(("negative", "jitter"), [(-5e-11, 1e-10), (-5e-9, 1e-8), (-3e-6, 1e-5)])
def test_jitter_grows_by_ten_until_the_factorisation_succeeds_and_is_reported(negative, jitter):
    A = torch.diag(torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    A[0, 1] = A[1, 0] = 1.0 - negative  # eigenvalues 2 and `negative`
    factor = Cholesky().prepare(MatrixSystem(A), 0.0)
    assert factor.jitter == pytest.approx(jitter)
    solution = factor.solve(torch.tensor([1.0, 1.0, 2.0, 3.0]))
    assert solution.jitter == factor.jitter
    assert "jitter" in str(solution)


def test_jitter_is_relative_to_each_row():
    A = torch.diag(torch.tensor([1e6, 1e6, 1e-6, 1e-6], dtype=torch.float64))
    A[0, 1] = A[1, 0] = 1e6 * (1 + 1e-9)
    factor = Cholesky().prepare(MatrixSystem(A), 0.0)
    assert 0 < factor.jitter <= 1e-8
    solved = factor.solve(torch.tensor([0.0, 0.0, 1e-6, 1e-6])).value
    torch.testing.assert_close(solved[2:], torch.ones(2).double(), rtol=1e-6, atol=0.0)


def test_refinement_removes_the_effect_of_jitter_on_a_consistent_system():
    X = torch.rand(150, 1, generator=torch.Generator().manual_seed(0)).double()
    A = gram(Gaussian(1.0), X)  # numerically singular
    b = A.matmul(torch.randn(150, generator=torch.Generator().manual_seed(1)).double())
    factor = Cholesky(initial_jitter=1e-8).prepare(A, 0.0)
    assert factor.jitter >= 1e-8
    solution = factor.solve(b)
    plain = factor.factor.solve(b.unsqueeze(1))
    assert solution.iterations >= 1
    assert true_backward_error(A.dense(), solution.value, b, 0.0) < 0.1 * true_backward_error(A.dense(), plain, b, 0.0)


def test_a_singular_inconsistent_system_is_reported_not_solved():
    solution = Cholesky().solve(MatrixSystem(torch.ones(2, 2).double()), torch.tensor([1.0, -1.0]), 0.0)
    assert solution.jitter > 0
    assert not solution.converged
    assert "larger alpha" in solution.reason
    assert torch.isfinite(solution.value).all()


def test_an_indefinite_matrix_raises_with_its_smallest_eigenvalue_and_advice():
    A = spectrum_matrix([-0.25, 1.0, 2.0, 3.0])
    with pytest.raises(NotPositiveDefiniteError, match=r"alpha=0.1 .* smallest eigenvalue is -0.15.*larger alpha"):
        Cholesky().prepare(MatrixSystem(A), 0.1)
    assert Cholesky().solve(MatrixSystem(A), torch.ones(4), 0.3).converged


def test_a_matrix_with_nan_is_named_as_such():
    A = torch.eye(3).double()
    A[1, 1] = torch.nan
    with pytest.raises(NotFiniteError, match="NaN"):
        Cholesky().prepare(MatrixSystem(A), 1.0)


def test_jitter_options_are_checked():
    with pytest.raises(ValueError, match="initial_jitter=0"):
        Cholesky(initial_jitter=0)
    with pytest.raises(ValueError, match="max_jitter"):
        Cholesky(initial_jitter=1e-3, max_jitter=1e-4)


def test_a_factor_solves_many_times_and_leaves_the_operator_as_it_was():
    A = MatrixSystem(spectrum_matrix([1.0, 2.0, 3.0]))
    before = A.matrix.clone()
    factor = Cholesky().prepare(A, 1.0)
    for seed in range(3):
        b = torch.randn(3, generator=torch.Generator().manual_seed(seed)).double()
        torch.testing.assert_close(before @ factor.solve(b).value + factor.solve(b).value, b)
    assert torch.equal(A.matrix, before)


@pytest.mark.parametrize("n", [1, 16, 50])
def test_a_factor_by_panels_is_that_of_lapack(n):
    X = torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    A = Laplace()(X) + 0.1 * torch.eye(n).double()
    L = A.clone().mT
    assert factorise_by_panels(L, 16)
    torch.testing.assert_close(L, torch.linalg.cholesky(A), rtol=0, atol=1e-12)
    assert not factorise_by_panels(A - 10.0 * torch.eye(n).double(), 16)
    assert not factorise_by_panels(A * torch.nan, 16)
