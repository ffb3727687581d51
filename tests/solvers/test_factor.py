"""One file factorises: with a jitter that is relative and told, and with errors that say what was wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import mercer
from mercer.core.errors import InputError, NotFiniteError, NotPositiveDefiniteError
from mercer.kernels import Gaussian
from mercer.solvers.decompose import eigh, eigh_in_place, eigvalsh, pinv, solve
from mercer.solvers.dials import FEW_ROWS
from mercer.solvers.factor import cholesky, factorise, independent_functions

DIRECT = re.compile(r"linalg\.cholesky(_ex)?\(|linalg import .*\bcholesky|cho_factor|dpotrf|dpstrf")


def test_no_other_file_factorises():
    root = Path(mercer.__file__).parent
    callers = {str(path.relative_to(root)) for path in root.rglob("*.py") if DIRECT.search(path.read_text("utf-8"))}
    assert callers == {"solvers/factor.py"}


OTHER = re.compile(r"(?<!>>> torch\.)linalg\.(eigh|eigvalsh|solve|solve_ex|inv|pinv|lstsq|svd|svdvals)\(")
CHECKED = {"solvers/decompose.py", "kernels/warps.py"}
"""Where decompositions are guarded; and a metric of a few columns, which is checked to be finite when it is given."""


def test_no_other_file_decomposes():
    root = Path(mercer.__file__).parent
    code = {str(path.relative_to(root)): path.read_text("utf-8") for path in root.rglob("*.py")}
    assert {path for path, text in code.items() if OTHER.search(text) and not path.startswith("testing/")} == CHECKED


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("of", [eigh, eigh_in_place, eigvalsh, pinv, lambda A: solve(A, A, "A")])
def test_decompositions_of_what_is_not_finite_or_singular_are_errors_of_ours(of, bad):
    A = torch.eye(3).double()
    A[1, 1] = bad
    with pytest.raises(NotFiniteError, match="NaN or infinity"):
        of(A)


def test_a_singular_solve_is_an_error_of_ours():
    with pytest.raises(InputError, match="The system cannot be decomposed: it is singular"):
        solve(torch.zeros(2, 2).double(), torch.ones(2, 1).double(), "The system")


def test_jitter_is_relative_to_the_own_diagonal_of_each_row():
    size = torch.tensor([1e-6, 1e-6, 1.0, 1.0, 1e6, 1e6]).double()
    groups = torch.arange(3).repeat_interleave(2)
    A = (groups.unsqueeze(1) == groups) * size  # three singular blocks of very different sizes
    found = factorise(A.clone)
    assert found.jitter == 1e-10
    torch.testing.assert_close(found.L @ found.L.mT, A + torch.diag(1e-10 * size), rtol=1e-12, atol=0)


def test_float32_starts_at_a_larger_jitter():
    assert factorise(lambda: torch.ones(2, 2)).jitter == pytest.approx(1e-6)


def test_errors_tell_what_is_indefinite_from_what_is_not_finite():
    indefinite, infinite = torch.diag(torch.tensor([1.0, -2.0])).double(), torch.diag(torch.tensor([1.0, torch.inf]))
    for factor in (lambda A: factorise(A.clone), lambda A: cholesky(A, "A", "use another")):
        with pytest.raises(NotPositiveDefiniteError, match="smallest eigenvalue is -2"):
            factor(indefinite)
        with pytest.raises(NotFiniteError, match="NaN or infinity"):
            factor(infinite.double())


@pytest.mark.parametrize("length_scale", [0.1, 1.0, 10.0, 1e3, 1e6])
def test_independent_functions_are_orthonormal_and_span_all_rows(length_scale):
    X = torch.rand(60, 1, generator=torch.Generator().manual_seed(0)).double()
    size = torch.logspace(-3, 3, 60).double()
    K = size * Gaussian(length_scale)(X) * size.unsqueeze(1)
    E = independent_functions(K, 1e-12)
    torch.testing.assert_close(E.mT @ K @ E, torch.eye(E.shape[1]).double(), rtol=0, atol=1e-3)
    left = (K - (K @ E) @ (K @ E).mT).diagonal()
    assert bool((left.abs() <= 1e-11 * K.diagonal()).all())


def test_zero_rows_are_no_functions_and_an_indefinite_matrix_has_none():
    assert independent_functions(torch.zeros(2, 2).double(), 1e-12).shape == (2, 0)
    assert independent_functions(torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double(), 1e-12) is None
    assert independent_functions(torch.tensor([[1.0, torch.nan], [torch.nan, 1.0]]).double(), 1e-12) is None


@pytest.mark.parametrize("n", [1, 30, FEW_ROWS, FEW_ROWS + 1])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_what_a_factor_solves_is_the_same_by_either_library(n, columns):
    A, B = torch.eye(n).double(), torch.randn(n, columns, generator=torch.Generator().manual_seed(n)).double()
    A += Gaussian(1.0)(torch.randn(n, 2, generator=torch.Generator().manual_seed(n)).double())
    factor = factorise(A.clone)
    rounding = {"rtol": 0.0, "atol": 1e-13 * n}  # eigenvalues of A are between 1 and n + 1
    assert torch.allclose(factor.L @ factor.L.T, A, **rounding)
    assert torch.allclose(A @ factor.solve(B), B, **rounding)
    assert torch.allclose(factor.L @ factor.half_solve(B), B, **rounding)
    assert torch.allclose(A @ factor.inverse(), torch.eye(n).double(), **rounding)
    assert factor.log_det() == pytest.approx(float(torch.logdet(A)), abs=1e-13 * n)
