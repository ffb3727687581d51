"""The choice of a solver, made before any work."""

from __future__ import annotations

import re

import pytest
import torch

from mercer.core.errors import MemoryBudgetError
from mercer.solvers import choose, memory_needed
from mercer.solvers.choose import landmark_count


@pytest.mark.parametrize(
    ("alpha", "name", "word"),
    [
        (1.0, "cholesky", "alpha > 0"),
        (0.0, "eigh", "rank"),
        ("loo", "eigh", "path"),
        ("gcv", "eigh", "path"),
        (torch.tensor([1.0, 2.0, 1.0, 2.0] * 10), "cholesky", "alpha > 0"),
        (torch.tensor([1.0, 0.0] * 20), "eigh", "rank"),
        (torch.arange(1.0, 41.0), "eigh", "40 different alphas"),
    ],
)
def test_auto_takes_the_cheapest_exact_solver(alpha, name, word):
    chosen, reason = choose(500, 40, alpha, memory_budget="1GiB")
    assert chosen == name
    assert word in reason


def test_many_alphas_use_cholesky_where_an_eigendecomposition_does_not_fit():
    budget = (memory_needed(1000, "cholesky", 40) + memory_needed(1000, "eigh", 40)) // 2
    chosen, reason = choose(1000, 40, torch.arange(1.0, 41.0), memory_budget=budget)
    assert chosen == "cholesky"
    assert "does not fit" in reason


def test_a_solver_asked_for_is_taken():
    assert choose(100, 1, 1.0, "eigh", "1GiB") == ("eigh", "asked for by solver='eigh'")
    assert choose(100, 1, 0.0, "cholesky", "1GiB")[0] == "cholesky"
    assert "eigendecomposition" in choose(100, 1, "loo", "cholesky", "1GiB")[1]


def test_unknown_solvers_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="solver='magic': must be 'auto', 'cholesky', 'eigenpro', 'eigh', 'falkon'"):
        choose(10, 1, 1.0, "magic", "1GiB")
    with pytest.raises(ValueError, match="alpha=-2"):
        choose(10, 1, -2.0, "auto", "1GiB")


def test_a_job_that_does_not_fit_says_what_would():
    with pytest.raises(MemoryBudgetError) as caught:
        choose(50_000, 1, 1.0, "cholesky", "1GiB")
    text = str(caught.value)
    for part in ("50,000 x 50,000", "27.9 GiB", "1.0 GiB", "float32 is not accurate enough", "At most 9,457 rows fit"):
        assert part in text, text
    assert "half of the free memory" not in text
    suggested = re.search(r"memory_budget='(.*?)' would do", text)[1]
    assert choose(50_000, 1, 1.0, "auto", suggested)[0] == "cholesky"
    assert choose(9_457, 1, 1.0, memory_budget="1GiB")[0] == "cholesky"
    with pytest.raises(MemoryBudgetError):
        choose(9_458, 1, 1.0, "cholesky", "1GiB")


def test_the_default_budget_is_named_and_a_cheaper_solver_is_offered():
    with pytest.raises(MemoryBudgetError, match="half of the free memory"):
        choose(10**7, 1, 1.0, "cholesky")
    with pytest.raises(MemoryBudgetError, match="alpha > 0 with solver='cholesky' fits"):
        choose(8_000, 1, "loo", "eigh", memory_budget="1GiB")


def test_conjugate_gradients_take_over_where_the_matrix_does_not_fit():
    chosen, reason = choose(9_458, 1, 1.0, memory_budget="1GiB")
    assert chosen == "pcg"
    assert "1.0 GiB" in reason
    assert choose(9_457, 1, 1.0, memory_budget="1GiB")[0] == "cholesky"
    for alpha in ("loo", 0.0):
        with pytest.raises(MemoryBudgetError, match="solver='pcg' needs no matrix"):
            choose(50_000, 1, alpha, "eigh", memory_budget="1GiB")
    with pytest.raises(ValueError, match="alpha=0.0: solver='pcg' needs alpha > 0"):
        choose(100, 1, 0.0, "pcg")


def test_auto_follows_the_size_of_the_job():
    assert choose(50_000, 1, "loo", memory_budget="1GiB")[0] == "nystrom"
    assert choose(50_000, 1, 0.0, memory_budget="1GiB")[0] == "eigenpro"
    assert choose(100_000, 1, 1.0, memory_budget="1GiB")[0] == "pcg"
    assert choose(100_001, 1, 1.0, memory_budget="1GiB")[0] == "nystrom"


def test_landmarks_and_features_that_are_given_decide():
    assert choose(1000, 1, 1.0, n_landmarks=100)[0] == "nystrom"
    assert choose(10**6, 1, 1.0, n_landmarks=10_000)[0] == "falkon"
    assert choose(10**6, 1, "loo", n_landmarks=10_000)[0] == "nystrom"
    assert choose(1000, 1, 1.0, n_features=100)[0] == "random_features"
    with pytest.raises(ValueError, match="n_landmarks=10 has no meaning for solver='pcg'"):
        choose(1000, 1, 1.0, "pcg", n_landmarks=10)
    with pytest.raises(ValueError, match="n_features=10 has no meaning for solver='nystrom'"):
        choose(1000, 1, 1.0, "nystrom", n_features=10)
    with pytest.raises(ValueError, match="n_landmarks=5 has no meaning for solver='random_features'"):
        choose(1000, 1, 1.0, n_landmarks=5, n_features=10)
    with pytest.raises(ValueError, match="solver='falkon' needs a number"):
        choose(1000, 1, "loo", "falkon")
    with pytest.raises(ValueError, match="solver='falkon' needs alpha > 0"):
        choose(1000, 1, 0.0, "falkon")


def test_landmarks_that_do_not_fit_are_refused_with_the_number_that_does():
    with pytest.raises(MemoryBudgetError, match="At most 2,937 landmarks fit"):
        landmark_count(10**6, 10_000, "nystrom", "1GiB", "cpu")
    assert landmark_count(10**6, 2_937, "nystrom", "1GiB", "cpu") == 2_937
    assert landmark_count(10**6, None, "nystrom", "64MiB", "cpu") == 734
    assert landmark_count(20, 10_000, "nystrom", "1GiB", "cpu") == 20


def test_many_landmarks_without_a_ridge_or_more_than_rows_are_not_iterated_over():
    assert choose(10_000, 1, 0.0, n_landmarks=5000)[0] == "nystrom"
    assert choose(200, 1, 1.0, n_landmarks=10**9)[0] == "nystrom"
    assert choose(10_000, 1, 1.0, n_landmarks=5000)[0] == "falkon"
    assert choose(10_000, 2, [1.0, 0.0], n_landmarks=5000)[0] == "nystrom"
