"""Eigenpairs of a matrix that is rounding error of larger numbers are not called converged."""

import warnings

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.kernels import Linear, Polynomial

X = np.random.default_rng(0).normal(size=(420, 2))


@pytest.mark.parametrize("rows", [60, 420])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e7, 1e8])
def test_converged_eigenvalues_are_those_of_the_data(offset, solver, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KernelPCA(2, Linear(1.0), solver=solver).fit(X[:rows] + offset)
    right = np.linalg.svd(X[:rows] - X[:rows].mean(0), compute_uv=False) ** 2
    if offset <= 1e3:
        assert found.solver_report_.converged
    if found.solver_report_.converged:
        np.testing.assert_allclose(found.eigenvalues_, right, rtol=1e-3)
    else:
        assert "nearly constant" in found.solver_report_.reason


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_the_dense_path_tells_its_residual(solver):
    report = KernelPCA(2, Polynomial(2), solver=solver).fit(X[:60]).solver_report_
    assert report.converged
    assert 0 < report.residual < 1e-12
