"""Laws of partial Cholesky factors."""

from __future__ import annotations

import pytest
import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.operators import gram
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.testing.solvers import MatrixSystem


def sample(n=150, d=2, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("how", ["random", "greedy"])
def test_the_factor_is_exact_on_its_pivots_and_never_exceeds_the_matrix(how):
    K = gram(Laplace(), sample())
    factor = pivoted_cholesky(K, 40, how=how)
    A = K.dense()
    left = A - factor.F @ factor.F.T
    assert factor.rank == 40
    assert len(factor.pivots.unique()) == 40
    assert float(left[factor.pivots].abs().max()) < 1e-12
    assert float(torch.linalg.eigvalsh(left)[0]) > -1e-12
    torch.testing.assert_close(left.diagonal(), factor.left, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", ["random", "greedy"])
def test_it_stops_when_the_trace_is_exhausted(how):
    X = sample(80, 3)
    K = gram(Linear(), torch.cat([X, X]))
    factor = pivoted_cholesky(K, 100, how=how)
    assert factor.rank == 3
    torch.testing.assert_close(factor.F @ factor.F.T, K.dense(), rtol=0, atol=1e-10)


def test_it_stops_when_what_is_left_is_enough():
    K = gram(Gaussian(), sample())
    factor = pivoted_cholesky(K, 150, enough=1.0)
    assert factor.rank < 60
    assert float(factor.left.sum()) <= 1.0


def test_greedy_takes_the_largest_entry_that_is_left():
    K = gram(Laplace(), sample(60))
    A = K.dense()
    pivots = pivoted_cholesky(K, 6, how="greedy").pivots
    for k in range(6):
        F = pivoted_cholesky(K, k, how="greedy").F if k else A.new_zeros(60, 0)
        left = (A - F @ F.T).diagonal()
        assert float(left[pivots[k]]) == pytest.approx(float(left.max()), abs=1e-12)


def test_blocks_of_proposals_have_the_law_of_single_draws():
    """Second pivots, given all first ones: their frequencies follow the diagonal of what is left."""
    A = torch.tensor([[4.0, 3.9, 0.0], [3.9, 4.0, 0.0], [0.0, 0.0, 1.0]]).double()
    exact = torch.zeros(3, 3, dtype=torch.float64)
    for first in range(3):
        left = A.diagonal() - A[first].square() / A[first, first]
        left[first] = 0.0
        exact[first] = A[first, first] / A.diagonal().sum() * left / left.sum()
    counted = torch.zeros(3, 3, dtype=torch.float64)
    generator, draws = torch.Generator().manual_seed(0), 1000
    for _ in range(draws):
        first, second = pivoted_cholesky(MatrixSystem(A), 2, seed=generator, block=8).pivots.tolist()
        counted[first, second] += 1
    deviation = (counted / draws - exact).abs() / (exact * (1 - exact) / draws).sqrt().clamp(min=1e-3)
    assert float(deviation.max()) < 4


def test_random_pivots_repeat_with_their_seed_and_leave_the_global_generator_alone():
    K = gram(Laplace(), sample())
    state = torch.random.get_rng_state()
    first, again, other = (pivoted_cholesky(K, 20, seed=s).pivots for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_random_pivots_come_close_to_the_best_factor_of_that_rank():
    K = gram(Gaussian(1.0), sample(300))
    values = torch.linalg.eigvalsh(K.dense()).flip(0)
    left = float(pivoted_cholesky(K, 60).left.sum())
    assert left < 3 * float(values[40:].sum())


def test_indefinite_matrices_are_refused():
    A = torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double()
    with pytest.raises(NotPositiveDefiniteError, match="positive semi-definite"):
        pivoted_cholesky(MatrixSystem(A), 2)
    with pytest.raises(NotPositiveDefiniteError, match="diagonal entry -1"):
        pivoted_cholesky(MatrixSystem(-torch.eye(2)), 2)
    with pytest.raises(ValueError, match="rank=0"):
        pivoted_cholesky(MatrixSystem(torch.eye(2)), 0)
    with pytest.raises(ValueError, match="how='best'"):
        pivoted_cholesky(MatrixSystem(torch.eye(2)), 1, how="best")


def test_rounding_of_float32_ends_a_factor_and_is_not_blamed_on_the_kernel():
    x = torch.randn(1500, 3, generator=torch.Generator().manual_seed(1))
    K = Gaussian(1.0)(x)
    factor = pivoted_cholesky(MatrixSystem(K), rank=700)
    assert 100 < factor.rank < 700
    assert torch.allclose(factor.F @ factor.F.T, K.double(), atol=1e-3)
    with pytest.raises(NotPositiveDefiniteError, match="left the diagonal entry"):
        pivoted_cholesky(MatrixSystem(K - 0.5 * torch.ones_like(K)), rank=700)
