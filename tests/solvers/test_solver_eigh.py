"""Eigendecomposition: ridgeless solutions, the rank decision, alpha per target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mercer.core.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.kernels import Gaussian, Laplace, Polynomial
from mercer.operators import gram
from mercer.selection.alpha import select_alpha
from mercer.selection.loo import loo_predictions
from mercer.solvers import Cholesky, Eigh
from mercer.testing.solvers import MatrixSystem


def duplicated_rows(seed=0):
    X = torch.rand(12, 2, generator=torch.Generator().manual_seed(seed)).double()
    return torch.cat([X, X[:4]])


def low_rank():
    F = torch.randn(60, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return F @ F.T


def test_alpha_zero_is_the_pseudo_inverse():
    X = duplicated_rows()
    K = gram(Laplace(1.0), X)
    y = torch.randn(16, 2, generator=torch.Generator().manual_seed(1)).double()
    spectrum = Eigh().prepare(K)
    reference = np.linalg.pinv(K.dense().numpy(), rcond=1e-12, hermitian=True)
    assert spectrum.rank == 12
    np.testing.assert_allclose(spectrum.solve(y, 0.0).value.numpy(), reference @ y.numpy(), atol=1e-9)
    np.testing.assert_allclose(spectrum.inverse(0.0).diag.numpy(), np.diag(reference), atol=1e-9)
    projector = np.eye(16) - K.dense().numpy() @ reference
    np.testing.assert_allclose(spectrum.null_diag().numpy(), np.diag(projector), atol=1e-9)
    np.testing.assert_allclose(spectrum.null_part(y).numpy(), projector @ y.numpy(), atol=1e-9)


def test_a_singular_consistent_system_is_interpolated_with_the_smallest_norm():
    X = duplicated_rows()
    K = gram(Gaussian(0.4), X).dense()
    y = X.sum(1).sin()  # equal on equal rows
    c = Eigh().prepare(MatrixSystem(K)).solve(y, 0.0).value
    torch.testing.assert_close(K @ c, y, atol=1e-9, rtol=0)
    norm = c @ K @ c
    generator = torch.Generator().manual_seed(3)
    extra = torch.rand(5, 2, generator=generator).double()
    points = torch.cat([X, extra])
    big = gram(Gaussian(0.4), points).dense()
    for _ in range(20):  # other interpolants: the values at extra points are anything
        values = torch.cat([y, torch.randn(5, generator=generator).double()])
        other = Eigh().prepare(MatrixSystem(big)).solve(values, 0.0).value
        torch.testing.assert_close((big @ other)[:16], y, atol=1e-6, rtol=0)
        assert other @ big @ other > norm


def test_an_inconsistent_system_gets_least_squares_and_says_so():
    K = torch.ones(2, 2).double()
    solution = Eigh().prepare(MatrixSystem(K)).solve(torch.tensor([1.0, 3.0]), 0.0)
    torch.testing.assert_close(solution.value, torch.ones(2).double())
    assert solution.converged
    assert "rank 1 of 2" in solution.reason
    assert "least squares" in solution.reason
    consistent = Eigh().prepare(MatrixSystem(K)).solve(torch.tensor([2.0, 2.0]), 0.0)
    assert "least squares" not in consistent.reason


def test_alpha_zero_is_the_limit_of_small_alpha():
    X = duplicated_rows()
    K = gram(Laplace(0.7), X)
    spectrum = Eigh().prepare(K)
    y = torch.randn(16, generator=torch.Generator().manual_seed(2)).double()
    limit = K.dense() @ spectrum.solve(y, 0.0).value
    gaps = [float((K.dense() @ spectrum.solve(y, a).value - limit).norm()) for a in (1e-3, 1e-5, 1e-7)]
    assert gaps[0] > 50 * gaps[1] > 2500 * gaps[2] > 0


def test_polynomial_kernels_have_the_rank_of_their_feature_space():
    X = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)).double()
    assert Eigh().prepare(gram(Polynomial(degree=2, offset=1.0), X)).rank == 6
    assert Eigh().prepare(gram(Polynomial(degree=3, offset=1.0), X)).rank == 10


def test_rank_tol_decides_the_rank():
    A = MatrixSystem(torch.diag(torch.tensor([1.0, 1e-3, 1e-6, 0.0]).double()))
    assert [Eigh(rank_tol=t).prepare(A).rank for t in (None, 0.0, 1e-5, 1e-2)] == [3, 3, 2, 1]
    with pytest.raises(ValueError, match="rank_tol=-1"):
        Eigh(rank_tol=-1)


def test_one_alpha_per_target_equals_cholesky_and_zero_may_be_among_them():
    X = torch.rand(25, 2, generator=torch.Generator().manual_seed(0)).double()
    K = gram(Laplace(1.0), X)
    B = torch.randn(25, 3, generator=torch.Generator().manual_seed(1)).double()
    spectrum = Eigh().prepare(K)
    alphas = torch.tensor([1e-6, 0.0, 10.0]).double()
    solution = spectrum.solve(B, alphas)
    for j, alpha in enumerate(alphas.tolist()):
        expected = Cholesky().solve(K, B[:, j], alpha).value
        torch.testing.assert_close(solution.value[:, j], expected, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(spectrum.inverse(alphas).diag[:, j], spectrum.inverse(alpha).diag)
    assert "full rank 25" in solution.reason


def test_an_alpha_below_rounding_is_treated_as_none_for_its_own_target_alone():
    K, Y = low_rank(), torch.randn(60, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    spectrum = Eigh().prepare(MatrixSystem(K))
    found = spectrum.solve(Y, torch.tensor([1e-20, 1.0, 0.0]))
    assert not found.converged
    assert "below the rounding errors" in found.reason
    torch.testing.assert_close(found.value[:, 0], spectrum.solve(Y[:, 0], 0.0).value)
    torch.testing.assert_close(found.value[:, 1], spectrum.solve(Y[:, 1], 1.0).value)
    assert spectrum.solve(K @ Y, 1e-20).converged


def test_an_alpha_below_rounding_does_no_harm_where_the_others_explain_the_targets():
    K = low_rank()
    noise = torch.randn(60, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    b = K[:, 0] / K[:, 0].norm() + 1e-4 * noise[:, 0]
    found = Eigh().solve(MatrixSystem(K), b, 1e-20)
    assert found.converged
    torch.testing.assert_close(found.value, Eigh().solve(MatrixSystem(K), b, 0.0).value)


def test_leave_one_out_of_an_alpha_below_rounding_is_that_of_least_squares():
    K = low_rank()
    y = torch.randn(60, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    Q = torch.linalg.svd(K).U[:, :5]
    expected = y - (y - Q @ (Q.T @ y)) / (1 - Q.square().sum(1))
    spectrum = Eigh().prepare(MatrixSystem(K))
    torch.testing.assert_close(loo_predictions(spectrum, y, alpha=1e-20), expected)
    error = (y - expected).square().mean()
    torch.testing.assert_close(select_alpha(spectrum, y, alphas=[1e-20, 0.0]).errors.squeeze(), error.expand(2))


def test_negative_eigenvalues_beyond_rounding_raise_and_rounding_is_clamped():
    with pytest.raises(NotPositiveDefiniteError, match=r"eigenvalue -0.5 \(the largest is 1\)"):
        Eigh().prepare(MatrixSystem(torch.diag(torch.tensor([1.0, -0.5]).double())))
    spectrum = Eigh().prepare(MatrixSystem(torch.diag(torch.tensor([1.0, -1e-14]).double())))
    assert float(spectrum.values[0]) == 0.0
    assert spectrum.rank == 1
    noisy = torch.diag(torch.tensor([1.0, 1e-3, 1e-11, -2e-11]).double())
    assert Eigh().prepare(MatrixSystem(noisy)).rank == 2  # what is as small as the noise is noise
    with pytest.raises(NotPositiveDefiniteError, match="eigenvalue"):
        Eigh().prepare(MatrixSystem(-torch.eye(2).double()))
    with pytest.raises(NotFiniteError, match="NaN"):
        Eigh().prepare(MatrixSystem(torch.full((2, 2), torch.nan).double()))


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 0.1, 1.0, 100.0])
def test_float32_entries_are_solved_to_their_own_precision(alpha):
    X = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    for kernel in (Gaussian(1.0), Gaussian(3.0), Laplace(1.0)):
        solution = Eigh().solve(gram(kernel, X), X[:, 0].sin(), alpha)
        assert solution.converged
        assert solution.residual < 1e-6
        assert solution.residual <= 1e-10 or "entries of the Gram matrix are rounded to 1e-07" in solution.reason


def test_a_solution_that_is_not_one_comes_with_a_reason():
    spectrum = Eigh().prepare(MatrixSystem(Laplace(1.0)(duplicated_rows()[:12])))
    wrong = replace(spectrum, vectors=spectrum.vectors.flip(1)).solve(torch.ones(12), 1.0)
    assert not wrong.converged
    assert "the backward error is above 1e-10" in wrong.reason


def test_the_zero_matrix_has_rank_zero_and_the_zero_solution():
    spectrum = Eigh().prepare(MatrixSystem(torch.zeros(3, 3).double()))
    assert spectrum.rank == 0
    assert torch.equal(spectrum.solve(torch.ones(3), 0.0).value, torch.zeros(3).double())
    torch.testing.assert_close(spectrum.solve(torch.ones(3), 2.0).value, torch.full((3,), 0.5).double())
