"""Laws of the float32 Cholesky factor with float64 refinement."""

from __future__ import annotations

import pytest
import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Gaussian, Laplace
from mercer.operators import gram
from mercer.solvers import Cholesky
from mercer.solvers.mixed_precision import MixedCholesky
from mercer.testing.solvers import MatrixSystem, check_solver, true_backward_error


def sample(n=150, d=2, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_it_keeps_the_laws_of_solvers():
    check_solver(MixedCholesky())


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
def test_refinement_reaches_float64_accuracy(alpha):
    K, B = gram(Laplace(), sample()), sample(150, 2, seed=1)
    solution = MixedCholesky().solve(K, B, alpha)
    assert solution.converged
    assert 1 <= solution.iterations <= 6
    assert true_backward_error(K.dense(), solution.value, B, alpha) < 5e-14
    torch.testing.assert_close(solution.value, Cholesky().solve(K, B, alpha).value, rtol=0, atol=1e-10)


def test_scales_do_not_matter():
    scale = torch.logspace(-20, 20, 150, dtype=torch.float64)
    A = MatrixSystem(scale.unsqueeze(1) * Laplace()(sample()) * scale)
    assert MixedCholesky().solve(A, scale * sample()[:, 0], 0.0).converged


def test_a_condition_number_above_1e6_is_reported_not_hidden():
    K, b = gram(Gaussian(3.0), sample()), sample()[:, 0]
    solution = MixedCholesky().solve(K, b, 1e-10)
    assert not solution.converged
    assert "condition number is too large for a float32 factor" in solution.reason
    assert bool(torch.isfinite(solution.value).all())
    assert solution.residual > 1e-10


def test_float32_products_are_named_where_they_limit_the_refinement():
    K, b = MatrixSystem(Laplace()(sample()).float()), sample()[:, 0]
    solution = MixedCholesky().solve(K, b, 1.0)
    assert not solution.converged
    assert solution.residual < 1e-6
    assert "the products are float32" in solution.reason
    assert "condition number" not in solution.reason
    assert MixedCholesky().solve(MatrixSystem(K.matrix.double()), b, 1.0).converged


def test_indefinite_systems_are_refused():
    A = MatrixSystem(torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double())
    with pytest.raises(NotPositiveDefiniteError, match="float32.*not positive definite"):
        MixedCholesky().solve(A, torch.ones(2), 0.1)


def test_a_small_backward_error_with_wrong_predictions_is_not_called_converged():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    s = torch.randn(200, generator=generator, dtype=torch.float64).mul(2.5).exp()
    K, b = s.unsqueeze(1) * (X @ X.T) * s, s * X[:, 0].sin()
    found = MixedCholesky().solve(MatrixSystem(K), b, 1e-8)
    assert float((b - K @ found.value - 1e-8 * found.value).norm() / b.norm()) > 1e-2
    assert found.residual <= 1e-10
    assert not found.converged
    assert "float32 factor" in found.reason
