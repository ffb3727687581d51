"""Eigenpairs of matrices in memory, found with one vector at a time, are those of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.core.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.operators import Centred, Stored
from mercer.solvers.top_eigenpairs import top_eigenpairs

N = 500


def matrix(values: np.ndarray) -> torch.Tensor:
    """A matrix of N rows with these largest eigenvalues; the others fall from the last of them to zero."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((N, N)))[0]
    all_values = np.append(values, values[-1] * 0.9 ** np.arange(1, N - len(values) + 1))
    return torch.from_numpy((Q * all_values) @ Q.T)


def stored(values: np.ndarray) -> Stored:
    A = matrix(values)
    return Stored((A + A.T) / 2, symmetric=True)


@pytest.mark.parametrize(
    "values", [np.array([5.0, 4.0, 3.0, 2.0]), 1.0 / np.arange(1, 30) ** 2, np.array([1.0, 1e-9, 1e-11])], ids=len
)
def test_eigenpairs_are_those_of_the_whole_matrix(values):
    A, count = stored(values), min(4, len(values))
    found, whole = top_eigenpairs(A, count, solver="krylov"), top_eigenpairs(A, count, solver="dense")
    assert found.report.converged
    assert "Lanczos" in found.report.reason
    assert torch.allclose(found.values, whole.values, rtol=0, atol=1e-11 * float(whole.values[0]))
    residuals = (A.matrix @ found.vectors - found.vectors * found.values).norm(dim=0)
    assert float(residuals.max()) <= 1e-11 * float(whole.values[0])
    assert torch.allclose(found.vectors.T @ found.vectors, torch.eye(count).double(), atol=1e-10)


@pytest.mark.parametrize("values", [[3.0, 3.0, 3.0, 1.0], [3.0, 2.0, 2.0, 2.0, 2.0, 1.0], [1.0] * 6])
def test_equal_eigenvalues_are_found_as_often_as_they_are_there(values):
    found = top_eigenpairs(stored(np.array(values)), 4, solver="krylov")
    assert np.allclose(found.values, sorted(values, reverse=True)[:4], atol=1e-10)


def test_a_matrix_of_few_directions_has_zeros_after_them():
    V = torch.from_numpy(np.random.default_rng(1).standard_normal((N, 2)))
    for A in (Stored(V @ V.T, symmetric=True), Centred(Stored(V @ V.T, symmetric=True))):
        found = top_eigenpairs(A, 4, solver="krylov")
        whole = top_eigenpairs(A, 4, solver="dense")
        assert torch.allclose(found.values, whole.values, atol=1e-11 * float(whole.values[0]))


def test_a_matrix_that_is_not_semidefinite_or_no_number_is_named():
    A = stored(np.array([5.0, 4.0])).matrix
    with pytest.raises(NotPositiveDefiniteError):
        top_eigenpairs(
            Stored(A - 4.5 * torch.outer(A[0], A[0]) / A[0].square().sum() + 0.0, symmetric=True), 2, solver="krylov"
        )
    A[3, 7] = A[7, 3] = torch.nan
    with pytest.raises(NotFiniteError):
        top_eigenpairs(Stored(A, symmetric=True), 2, solver="krylov")


def test_a_product_with_half_of_a_symmetric_matrix_is_that_with_all():
    A = matrix(np.array([2.0, 1.0]))
    A, v = (A + A.T) / 2, torch.from_numpy(np.random.default_rng(2).standard_normal(N))
    half, whole = Stored(A, symmetric=True), Stored(A)
    rounding = 4 * torch.finfo(torch.float64).eps * float((A.abs() @ v.abs()).max()) * N**0.5
    for V in (v, v.unsqueeze(1)):
        assert half.matmul(V).shape == V.shape
        assert torch.allclose(half.matmul(V), whole.matmul(V), rtol=0, atol=rounding)
