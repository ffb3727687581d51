"""Laws of preconditioned conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Laplace, Linear, Matern
from mercer.operators import Weighted, gram
from mercer.solvers import Cholesky
from mercer.solvers.pcg import PCG, automatic_rank
from mercer.solvers.preconditioners import EPS, LowRank, nystrom_preconditioner, pivoted_preconditioner
from mercer.testing.solvers import MatrixSystem, check_solver


def sample(n=200, d=3, seed=0, dtype=torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def dense(kernel, X):
    """The Gram matrix as a system: thousands of small products are faster this way."""
    return MatrixSystem(kernel(X))


def true_residual(A, solution, B, alpha):
    K = A.dense().double()
    x, b = solution.value.reshape(len(K), -1), B.double().reshape(len(K), -1)
    return float(((b - K @ x - torch.as_tensor(alpha, dtype=torch.float64) * x).norm(dim=0) / b.norm(dim=0)).max())


OPTIONS = [{}, {"rank": 10}, {"preconditioner": "nystrom", "rank": 15}, {"preconditioner": None}]


@pytest.mark.parametrize("options", OPTIONS)
def test_pcg_keeps_the_laws_of_solvers(options):
    check_solver(PCG(tol=1e-12, max_iter=200, **options), n=20)


def test_a_system_needs_no_rows():
    class Products:
        shape, matrix = (30, 30), Laplace()(sample(30))

        def diag(self):
            return self.matrix.diagonal()

        def matmul(self, V):
            return self.matrix @ V

    b = sample(30)[:, 0]
    expected = torch.linalg.solve(Products.matrix + torch.eye(30).double(), b)
    torch.testing.assert_close(PCG(tol=1e-10, rank=10).solve(Products(), b, 1.0).value, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("alpha", [1e-10, 1e-4, 1.0, 1e4])
def test_it_agrees_with_cholesky(options, alpha):
    K = dense(Matern(nu=1.5), sample(100))
    B = torch.stack([sample(100).sum(1).sin(), sample(100, seed=1)[:, 0]], dim=1)
    exact = Cholesky().solve(K, B, alpha)
    solution = PCG(tol=1e-9, max_iter=3000, **options).solve(K, B, alpha)
    assert solution.converged
    assert solution.residual <= 1e-9
    assert true_residual(K, solution, B, alpha) <= 1.1e-9
    condition = float(torch.linalg.cond(K.dense() + alpha * torch.eye(100).double()))
    assert float((solution.value - exact.value).norm() / exact.value.norm()) < 3e-9 * condition


@pytest.mark.parametrize("options", OPTIONS)
def test_duplicates_wild_scales_and_weights_are_solved_or_reported(options):
    X = sample(60) * torch.tensor([1e-3, 1.0, 1e3])
    X = torch.cat([X, X[:30]])
    weights = torch.logspace(-4, 4, 90, dtype=torch.float64)
    for kernel in (Gaussian(), Laplace(100.0), Linear()):
        A = MatrixSystem(Weighted(gram(kernel, X), weights.sqrt()).dense())
        solution = PCG(max_iter=1000, **options).solve(A, X[:, 1], 1e-2)
        assert bool(torch.isfinite(solution.value).all())
        rounding = 1e-15 * float(torch.linalg.matrix_norm(A.matrix, 2) * solution.value.norm() / X[:, 1].norm())
        assert true_residual(A, solution, X[:, 1], 1e-2) == pytest.approx(solution.residual, rel=1e-3, abs=rounding)
        assert solution.converged == (solution.residual <= 1e-6)
        assert solution.converged or "max_iter" in solution.reason or "best residual" in solution.reason


def test_a_search_cut_short_reports_its_true_residual_and_stays_finite():
    K, b = gram(Gaussian(), sample()), sample(seed=5)[:, 0]
    solution = PCG(max_iter=2, preconditioner=None).solve(K, b, 1e-8)
    assert not solution.converged
    assert solution.iterations == 2
    assert (
        "stopped after max_iter=2 iterations; increase max_iter, or use a larger alpha; no preconditioner"
        in solution.reason
    )
    assert bool(torch.isfinite(solution.value).all())
    assert true_residual(K, solution, b, 1e-8) == pytest.approx(solution.residual, rel=1e-9)


@pytest.mark.parametrize("preconditioner", ["pivoted", "nystrom"])
def test_a_preconditioner_saves_most_iterations_on_a_decaying_spectrum(preconditioner):
    K, b = dense(Matern(nu=1.5), sample(400)), sample(400)[:, 0].sin()
    plain = PCG(preconditioner=None, max_iter=3000).solve(K, b, 1e-3)
    helped = PCG(preconditioner=preconditioner, rank=200).solve(K, b, 1e-3)
    assert plain.converged
    assert helped.converged
    assert helped.iterations < plain.iterations / 4


def test_the_pivoted_preconditioner_is_the_inverse_it_claims_to_be():
    K = gram(Laplace(), sample(80))
    P = pivoted_preconditioner(K, 20)
    R, alpha = sample(80, 3, seed=3), torch.tensor([1e-8, 10.0, 1e-8]).double()
    for j in range(3):
        dense = P.F @ P.F.T + torch.diag(alpha[j] + P.tail)
        expected = torch.linalg.solve(dense, R[:, j])
        torch.testing.assert_close(P.inverse(R, float(alpha[j]))[:, j], expected, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(P.apply(R, alpha)[:, j], expected * (alpha[j] + P.tail).mean(), rtol=1e-8, atol=1e-8)
        assert P.log_determinant(float(alpha[j])) == pytest.approx(float(torch.logdet(dense)), rel=1e-10)
        root = P.root(torch.eye(100).double(), float(alpha[j]))
        torch.testing.assert_close(root @ root.T, dense)


def test_the_small_matrix_of_a_preconditioner_is_added_up_in_parts(monkeypatch):
    P = pivoted_preconditioner(gram(Laplace(), sample(80)), 20)
    monkeypatch.setattr("mercer.solvers.preconditioners.CORE_NUMBERS", 23 * 20)
    parts = LowRank(P.F, P.tail)
    R = sample(80, 3, seed=3)
    torch.testing.assert_close(parts.inverse(R, 0.1), P.inverse(R, 0.1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Laplace(), Gaussian(0.3)], ids=repr)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_weights_of_all_sizes_do_not_slow_it_down(kernel, spread):
    X = sample(1500)
    weights = sample(1500, 1, seed=4).squeeze(1).mul(spread).exp()
    K, b = dense(kernel, X).matrix, X[:, 0].sin()
    plain = PCG(rank=300).solve(MatrixSystem(K), b, 1e-3)
    s = weights.sqrt()
    found = PCG(rank=300).solve(MatrixSystem(s.unsqueeze(1) * K * s), s * b, 1e-3)
    assert found.converged
    assert found.iterations <= 1.5 * plain.iterations + 5


def test_a_preconditioner_of_a_steep_spectrum_keeps_its_small_answers():
    U = torch.linalg.qr(sample(50, 3)).Q
    P = LowRank(U * torch.tensor([1e13, 1e4, 1.0]).double().sqrt(), 1.0)
    inside = U.T @ P.apply(U @ torch.ones(3, 1).double(), torch.zeros(1).double())
    torch.testing.assert_close(inside[0, 0], torch.tensor(1e-13).double(), rtol=1e-2, atol=0)
    torch.testing.assert_close(inside[1:, 0], torch.tensor([1.0 / 10001.0, 0.5]).double(), rtol=1e-6, atol=0)


def test_a_steep_preconditioner_is_refined_with_its_own_diagonal():
    U = torch.linalg.qr(sample(50, 3)).Q
    P = LowRank(U * torch.tensor([1e13, 1e4, 1.0]).double().sqrt(), torch.linspace(0.1, 3.0, 50).double())
    R = sample(50, 2, seed=5)
    Z = P.inverse(R, 0.0)
    missed = R - P.tail.unsqueeze(1) * Z - P.F @ (P.F.T @ Z)
    assert float(missed.norm()) < EPS * P.trace * float(Z.norm())  # the digits of Z itself carry no further


def test_a_preconditioner_of_a_singular_factor_without_alpha_is_still_positive():
    F = torch.ones(6, 3).double()
    R = sample(6, 2, seed=4)
    Z = LowRank(F).apply(R, torch.zeros(2).double())
    assert bool(torch.isfinite(Z).all())
    assert bool(((R * Z).sum(0) > 0).all())


def test_the_nystrom_preconditioner_finds_the_top_of_the_spectrum():
    K = gram(Gaussian(2.0), sample(150, 1))
    exact = torch.linalg.eigvalsh(K.dense()).flip(0)
    found = torch.linalg.svdvals(nystrom_preconditioner(K, 30).F).square()
    torch.testing.assert_close(found[:8], exact[:8], rtol=1e-8, atol=0)


def test_right_hand_sides_together_equal_one_at_a_time():
    K = dense(Laplace(), sample())
    B, alphas = sample(200, 4, seed=2), torch.tensor([1e-3, 10.0, 1e-3, 0.1]).double()
    together = PCG(tol=1e-10, rank=50).solve(K, B, alphas)
    assert together.converged
    for j in range(4):
        alone = PCG(tol=1e-10, rank=50).solve(K, B[:, j], float(alphas[j]))
        torch.testing.assert_close(
            together.value[:, j], alone.value, rtol=0, atol=1e-6 * float(alone.value.abs().max())
        )


@dataclass(frozen=True, eq=False)
class Counting(MatrixSystem):
    widths: tuple = ()

    def matmul(self, V):
        self.widths.append(V.shape[1])
        return super().matmul(V)


def test_converged_columns_are_dropped_and_all_others_share_each_product():
    A = Counting(gram(Laplace(), sample()).dense(), [])
    B = torch.cat([A.matrix @ torch.ones(200, 1).double(), sample(200, 2)], dim=1)
    A.widths.clear()
    solution = PCG(tol=1e-8, preconditioner=None).solve(A, B, torch.tensor([1e4, 1e-2, 1e-2]).double())
    assert solution.converged
    assert A.widths[0] == 3
    assert A.widths[-1] <= 2
    assert sorted(A.widths, reverse=True) == A.widths
    assert len(A.widths) <= solution.iterations * 1.1 + 4


def test_a_warm_start_saves_iterations_and_a_bad_one_does_no_harm():
    K, b = dense(Laplace(), sample()), sample()[:, 0]
    solver = PCG(tol=1e-8, preconditioner=None)
    cold = solver.solve(K, b, 1e-2)
    near = replace(solver, warm_start=cold.value + 1e-6 * sample()[:, 1]).solve(K, b, 1e-2)
    assert near.converged
    assert near.iterations < cold.iterations
    assert replace(solver, warm_start=cold.value).solve(K, b, 1e-2).iterations == 0
    far = replace(solver, warm_start=1e6 * b).solve(K, b, 1e-2)
    assert far.converged
    assert far.iterations == cold.iterations
    with pytest.raises(ValueError, match="warm_start has shape"):
        replace(solver, warm_start=torch.ones(3)).solve(K, b, 1e-2)


def test_the_same_seed_gives_the_same_answer():
    K, b = dense(Gaussian(), sample()), sample()[:, 0]
    for preconditioner in ("pivoted", "nystrom"):
        first, again = (PCG(rank=80, preconditioner=preconditioner, seed=7).solve(K, b, 1e-3) for _ in range(2))
        assert torch.equal(first.value, again.value)


def test_float32_products_reach_their_floor_and_say_so():
    X = sample(400, dtype=torch.float32)
    K, b = gram(Gaussian(), X), X[:, 0].sin()
    good = PCG(tol=1e-5).solve(K, b, 1e-1)
    assert good.converged
    assert good.value.dtype == torch.float64
    assert true_residual(K, good, b, 1e-1) < 2e-5
    hopeless = PCG(tol=1e-10, rank=100).solve(K, b, 1e-2)
    assert not hopeless.converged
    assert "best residual that float32 products reach" in hopeless.reason
    assert hopeless.iterations < 300
    assert hopeless.residual < 1e-3


def test_float32_products_reach_what_float64_residuals_ask_for():
    X = sample(400, dtype=torch.float32)
    fast, accurate = gram(Gaussian(), X), gram(Gaussian(), X.double())
    B = torch.stack([X[:, 0].sin(), X[:, 1]], dim=1)
    slow_products = []
    matmul = accurate.matmul
    accurate.matmul = lambda V: slow_products.append(1) or matmul(V)
    refined = PCG(tol=1e-9, accurate=accurate).solve(fast, B, 1e-2)
    assert refined.converged
    assert len(slow_products) <= 8
    assert true_residual(accurate, refined, B, 1e-2) < 1.1e-9
    assert PCG(tol=1e-9).solve(fast, B, 1e-2).residual > 1e-8


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(3.0)], ids=repr)
@pytest.mark.parametrize("alpha", [1e-7, 1e-8])
def test_float64_products_take_over_where_float32_is_too_coarse(kernel, alpha):
    X = sample(300, dtype=torch.float32)
    fast, accurate = gram(kernel, X), gram(kernel, X.double())
    B, seen = X[:, :2].sin(), []
    alone = PCG().solve(fast, B, alpha)
    assert not alone.converged
    refined = PCG(accurate=accurate, callback=lambda iteration, _: seen.append(iteration)).solve(fast, B, alpha)
    assert refined.converged
    assert true_residual(accurate, refined, B, alpha) < 1.1e-6
    assert "float32 products are too coarse, float64 ones took over" in refined.reason
    assert seen == list(range(1, refined.iterations + 1))
    assert not PCG(accurate=accurate, switch=False).solve(fast, B, alpha).converged


def test_an_indefinite_system_stays_one_in_float64():
    K = torch.tensor([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    solution = PCG(accurate=MatrixSystem(K.double()), preconditioner=None).solve(MatrixSystem(K), torch.ones(3), 1e-3)
    assert not solution.converged
    assert "negative curvature" in solution.reason


def test_the_second_preconditioner_is_built_only_where_memory_allows_two():
    X = sample(300, dtype=torch.float32)
    fast, accurate, b = gram(Gaussian(3.0), X), gram(Gaussian(3.0), X.double()), X[:, 0].sin()
    tight = PCG(accurate=accurate, memory_budget=300 * 8 * 100).solve(fast, b, 1e-7)
    roomy = PCG(accurate=accurate).solve(fast, b, 1e-7)
    for solution in (tight, roomy):
        assert solution.converged
        assert "float64 ones took over" in solution.reason
    ranks = [int(solution.reason.split("rank ")[-1]) for solution in (tight, roomy)]
    assert ranks[0] <= 75 < ranks[1]
    assert 2 * roomy.iterations < tight.iterations


def test_products_that_turn_nan_end_the_search_with_the_best_iterate():
    class Failing(MatrixSystem):
        calls = 0

        def matmul(self, V):
            Failing.calls += 1
            return super().matmul(V) * (torch.nan if Failing.calls > 25 else 1.0)

    A = Failing(gram(Gaussian(), sample()).dense())
    solution = PCG(tol=1e-12, preconditioner=None).solve(A, sample()[:, 0], 1e-8)
    assert not solution.converged
    assert bool(torch.isfinite(solution.value).all())
    assert solution.residual < 1
    assert "finite" in solution.reason or "best residual" in solution.reason


def test_an_interrupt_keeps_the_best_iterate_and_the_callback_sees_progress():
    seen = []

    def stop_at_25(iteration, residual):
        seen.append((iteration, residual))
        if iteration == 25:
            raise KeyboardInterrupt

    K, b = gram(Gaussian(), sample()), sample()[:, 0]
    solution = PCG(tol=1e-12, preconditioner=None, callback=stop_at_25).solve(K, b, 1e-6)
    assert [iteration for iteration, _ in seen] == list(range(1, 26))
    assert not solution.converged
    assert "interrupted after 25 iterations" in solution.reason
    assert true_residual(K, solution, b, 1e-6) == pytest.approx(solution.residual, rel=1e-6)
    assert solution.residual < 1


@pytest.mark.parametrize("last", [1, 4, 13])
def test_an_interrupt_between_checks_loses_no_iteration(last):
    def stop(iteration, residual):
        if iteration == last:
            raise KeyboardInterrupt

    K, b = dense(Laplace(), sample()), sample()[:, 0]
    solver = PCG(tol=1e-12, preconditioner=None)
    interrupted = replace(solver, callback=stop).solve(K, b, 10.0)
    assert torch.equal(interrupted.value, replace(solver, max_iter=last).solve(K, b, 10.0).value)
    assert true_residual(K, interrupted, b, 10.0) == pytest.approx(interrupted.residual, rel=1e-9)
    assert interrupted.residual < 1
    assert f"interrupted after {last} iterations, this is the best iterate so far" in interrupted.reason


def test_an_interrupt_before_anything_was_found_says_so_and_ends_the_solve():
    class Interrupted(MatrixSystem):
        def matmul(self, V):
            raise KeyboardInterrupt

    A = Interrupted(Laplace()(sample(50)).float())
    solution = PCG(preconditioner=None, accurate=MatrixSystem(A.matrix.double())).solve(A, sample(50)[:, 0], 1.0)
    assert not solution.converged
    assert "interrupted after 0 iterations, none of which is closer to the solution than zero" in solution.reason
    assert float(solution.value.abs().max()) == 0.0


def test_zero_right_hand_sides_have_zero_solutions():
    K = gram(Laplace(), sample())
    solution = PCG().solve(K, torch.zeros(200, 2), 1.0)
    assert solution.converged
    assert solution.iterations == 0
    assert float(solution.value.abs().max()) == 0.0


def test_preparing_once_solves_for_every_alpha():
    K, b = gram(Laplace(), sample()), sample()[:, 0]
    prepared = PCG(tol=1e-9).prepare(K)
    for alpha in (1e-6, 1.0):
        torch.testing.assert_close(
            prepared.solve(b, alpha).value, Cholesky().solve(K, b, alpha).value, rtol=1e-4, atol=1e-6
        )


class Watched(MatrixSystem):
    """Knows how many columns each product had."""

    def matmul(self, V):
        self.__dict__.setdefault("widths", []).append(V.shape[1])
        return super().matmul(V)


@pytest.mark.parametrize("alphas", [torch.tensor(0.1), torch.logspace(2, -3, 40).double()], ids=["one", "many"])
@pytest.mark.parametrize("warm", [False, True])
def test_columns_that_do_not_fit_are_solved_in_groups(alphas, warm):
    K, B = Laplace()(sample(400)), sample(400, 40, seed=3) * torch.logspace(-9, 9, 40).double()
    options = {"tol": 1e-10, "rank": 50, "warm_start": B / 2 if warm else None}
    roomy, tight = Watched(K), Watched(K)
    together = PCG(**options).solve(roomy, B, alphas)
    counted = []
    grouped = PCG(**options, memory_budget="1MiB", callback=lambda i, _: counted.append(i)).solve(tight, B, alphas)
    assert together.converged
    assert grouped.converged
    assert max(roomy.widths) == 40
    assert max(tight.widths) <= 8  # 348 KiB are left, and a column takes 44
    assert grouped.iterations <= together.iterations
    assert counted == list(range(1, len(counted) + 1))
    scale = together.value.abs().amax(0)
    torch.testing.assert_close(grouped.value / scale, together.value / scale, rtol=0, atol=1e-7)


def test_an_interrupt_ends_all_groups():
    def stop(iteration, residual):
        if iteration == before + 2:
            raise KeyboardInterrupt

    K, B = dense(Laplace(), sample(400)), sample(400, 40, seed=3)
    solver, before = PCG(tol=1e-10, preconditioner=None, memory_budget="1MiB"), 0
    first = solver.prepare(K)._groups(torch.ones(40).double())[0]
    before = solver.solve(K, B[:, first], 1.0).iterations
    solution = replace(solver, callback=stop).solve(K, B, 1.0)
    assert not solution.converged
    assert "interrupted" in solution.reason
    assert true_residual(K, replace(solution, value=solution.value[:, first]), B[:, first], 1.0) < 1e-9
    assert float(solution.value[:, -1].abs().max()) == 0.0


def test_groups_follow_memory_and_share_the_factors_of_their_alphas():
    K, n = gram(Laplace(), sample(400)), 400
    alphas = torch.tensor([1.0, 2.0]).double().repeat(100)
    prepared = PCG(rank=100, memory_budget="2MiB").prepare(K)
    groups = prepared._groups(alphas)
    assert torch.equal(torch.cat(groups).sort().values, torch.arange(200))
    assert sum(len(alphas[columns].unique()) for columns in groups) <= len(groups) + 1
    assert max(map(len, groups)) <= 2**19 // (14 * 8 * n) + 1
    assert len(PCG(rank=100, memory_budget="1GiB").prepare(K)._groups(alphas)) == 1


def test_factors_of_alphas_that_are_done_are_given_back():
    P, R = LowRank(sample(30)), sample(30, 3)
    expected = P.apply(R, torch.tensor([1.0, 2.0, 3.0]).double())
    assert len(P._shifted) == 3
    assert torch.equal(P.apply(R[:, 1:], torch.tensor([2.0, 3.0]).double()), expected[:, 1:])
    assert len(P._shifted) == 2


def test_the_rank_follows_the_rows_and_the_memory():
    assert automatic_rank(50, 2**30) == 50
    assert automatic_rank(10_000, 2**30) == 1200
    assert automatic_rank(10**6, 2**40) == 12_000
    assert automatic_rank(10**6, 2**30) == 66
    assert automatic_rank(10**6, 2**20) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tol": 0.0}, "tol=0.0"),
        ({"tol": "a"}, "tol='a'"),
        ({"tol": None}, "tol=None"),
        ({"tol": float("nan")}, "tol=nan"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": "a"}, "max_iter='a'"),
        ({"max_iter": None}, "max_iter=None"),
        ({"max_iter": 2.5}, "max_iter=2.5"),
        ({"max_iter": True}, "max_iter=True"),
        ({"rank": 0}, "rank=0"),
        ({"preconditioner": "ilu"}, "preconditioner='ilu'"),
        ({"preconditioner": 3}, "preconditioner=3"),
    ],
)
def test_bad_options_are_named(options, complaint):
    with pytest.raises((InputError, InputTypeError), match=complaint):
        PCG(**options)
