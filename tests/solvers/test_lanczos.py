"""Laws of log-determinants and solutions from Krylov spaces."""

from __future__ import annotations

import pytest
import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Laplace, Matern
from mercer.solvers.lanczos import krylov
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.preconditioners import pivoted_preconditioner, preconditioner_at
from mercer.testing.solvers import MatrixSystem


def sample(n, d=2, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def system(n=80, noise=0.1, rank=20):
    """A = K + noise I, with its preconditioner."""
    K = Matern(nu=1.5)(sample(n))
    return K + noise * torch.eye(n).double(), pivoted_preconditioner(MatrixSystem(K), rank), noise


def test_probes_that_span_everything_give_the_log_determinant_itself():
    A, P, noise = system()
    B = P.root(torch.eye(80 + P.F.shape[1]).double(), noise)
    found = krylov(lambda V: A @ V, lambda R: P.inverse(R, noise), B, tol=1e-10, max_iter=200)
    assert float(found.logs.sum()) + P.log_determinant(noise) == pytest.approx(float(torch.logdet(A)), abs=1e-8)


def test_random_probes_are_right_in_the_mean():
    A, P, noise = system()
    normal = torch.randn(80 + P.F.shape[1], 400, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = krylov(lambda V: A @ V, lambda R: P.inverse(R, noise), P.root(normal, noise), tol=1e-6, max_iter=200)
    error = float(found.logs.std()) / 20.0
    assert abs(float(found.logs.mean()) + P.log_determinant(noise) - float(torch.logdet(A))) < 4 * error
    assert error < 1.0


def test_it_solves_the_systems_and_applies_the_preconditioner():
    A, P, noise = system()
    B = sample(80, 3, seed=2)
    found = krylov(lambda V: A @ V, lambda R: P.inverse(R, noise), B, tol=1e-11, max_iter=200)
    torch.testing.assert_close(found.solved, torch.linalg.solve(A, B), rtol=0, atol=1e-8)
    dense = P.F @ P.F.T + torch.diag(noise + P.tail)
    torch.testing.assert_close(found.preconditioned, torch.linalg.solve(dense, B), rtol=0, atol=1e-9)
    assert found.residual <= 1e-11


def test_columns_that_end_early_stay_as_they_are():
    A = torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    B = torch.stack([torch.tensor([0.0, 1.0, 0.0, 0.0]), torch.ones(4), torch.zeros(4)], dim=1).double()
    found = krylov(lambda V: A @ V, lambda R: R, B, tol=1e-13, max_iter=20)
    torch.testing.assert_close(found.solved, torch.linalg.solve(A, B))
    logs = A.diagonal().log()
    torch.testing.assert_close(found.logs, torch.stack([logs[1], logs.sum(), logs[0] * 0]), rtol=0, atol=1e-12)


def test_negative_curvature_is_an_error():
    A = torch.diag(torch.tensor([1.0, -1.0]).double())
    with pytest.raises(NotPositiveDefiniteError, match="negative curvature"):
        krylov(lambda V: A @ V, lambda R: R, torch.tensor([[1.0], [2.0]]).double(), tol=1e-8, max_iter=5)


def test_the_preconditioner_at_given_pivots_is_that_of_the_search_for_them():
    K = MatrixSystem(Laplace()(sample(60)))
    pivots = pivoted_cholesky(K, 20).pivots
    found, searched = preconditioner_at(K, pivots), pivoted_preconditioner(K, 20)
    torch.testing.assert_close(found.F @ found.F.T, searched.F @ searched.F.T, rtol=0, atol=1e-9)
    assert found.tail == pytest.approx(searched.tail, rel=1e-9)


def test_the_root_of_a_preconditioner_has_it_as_square():
    _, P, noise = system()
    root = P.root(torch.eye(80 + P.F.shape[1]).double(), noise)
    torch.testing.assert_close(P.inverse(root @ root.T, noise), torch.eye(80).double(), rtol=0, atol=1e-9)
