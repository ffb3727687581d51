"""Laws of the solvers that descend: gradient descent and EigenPro."""

from __future__ import annotations

import pytest
import torch

from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.core.memory import parse_budget
from mercer.kernels import Gaussian, Laplace
from mercer.operators import Weighted, gram
from mercer.solvers import Cholesky
from mercer.solvers.eigenpro import EigenPro
from mercer.solvers.flattened import Flattened
from mercer.solvers.gradient_descent import GradientDescent, largest_eigenvalue
from mercer.solvers.products import Products
from mercer.testing.solvers import MatrixSystem


def sample(n=120, d=2, seed=0, dtype=torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def noisy(n=300, noise=0.5):
    X = sample(n)
    return X, X.sum(1).sin() + noise * sample(n, 1, seed=7)[:, 0]


# Gradient descent


@pytest.mark.parametrize("steps", [1, 7, 60])
def test_gradient_descent_is_its_spectral_filter(steps):
    A, B = Laplace()(sample()), sample(120, 2, seed=1)
    alphas = torch.tensor([0.0, 0.5]).double()
    solution = GradientDescent(max_iter=steps, step=0.01).solve(MatrixSystem(A), B, alphas)
    values, vectors = torch.linalg.eigh(A)
    shifted = values.unsqueeze(1) + alphas
    expected = vectors @ ((1 - (1 - 0.01 * shifted) ** steps) / shifted * (vectors.T @ B))
    assert solution.iterations == steps
    torch.testing.assert_close(solution.value, expected, rtol=1e-10, atol=1e-12)


def test_the_step_is_one_over_the_largest_eigenvalue():
    turned = torch.linalg.qr(sample(40, 40)).Q
    for A in (Gaussian()(sample()), torch.zeros(5, 5).double(), torch.eye(4).double(), turned @ turned.T):
        exact = float(torch.linalg.eigvalsh(A)[-1])
        found = largest_eigenvalue(Products.of(MatrixSystem(A)), torch.Generator().manual_seed(0))
        assert exact * (1 - 1e-12) <= found <= exact * 1.001


@pytest.mark.parametrize("scale", [1e-60, 1e44])
def test_the_step_follows_the_scale_of_the_kernel(scale):
    A, b = Laplace()(sample()), sample()[:, 0]
    plain, scaled = (GradientDescent(max_iter=50).solve(MatrixSystem(s * A), b) for s in (1.0, scale))
    torch.testing.assert_close(scaled.value * scale, plain.value, rtol=1e-6, atol=0)


def test_gradient_descent_arrives_at_the_ridge_solution():
    A, b = MatrixSystem(Laplace()(sample())), sample()[:, 0]
    solution = GradientDescent(max_iter=3000, tol=1e-8).solve(A, b, 1.0)
    assert solution.converged
    torch.testing.assert_close(solution.value, Cholesky().solve(A, b, 1.0).value, rtol=0, atol=1e-7)


def test_early_stopping_comes_close_to_the_best_ridge_and_leaves_held_out_rows_alone():
    X, y = noisy()
    test, truth = sample(400, seed=3), sample(400, seed=3).sum(1).sin()
    A = MatrixSystem(Gaussian(0.5)(X))
    ridge = min(
        float((Gaussian(0.5)(test, X) @ Cholesky().solve(A, y, alpha).value - truth).norm())
        for alpha in torch.logspace(-3, 2, 11).tolist()
    )
    seen = []
    solver = GradientDescent(max_iter=2000, validation=0.2, callback=lambda step, error: seen.append(error))
    solution = solver.solve(A, y)
    stopped = float((Gaussian(0.5)(test, X) @ solution.value - truth).norm())
    assert solution.converged
    assert solution.iterations < 2000
    assert "like a ridge of about" in solution.reason
    assert "60 rows held out, residual over the others" in solution.reason
    assert int((solution.value == 0).sum()) == 60
    assert stopped < 1.3 * ridge
    assert min(seen) < seen[-1]


def test_gradient_descent_that_diverges_or_is_cut_short_says_so():
    A, b = MatrixSystem(Laplace()(sample())), sample()[:, 0]
    short = GradientDescent(max_iter=3).solve(A, b)
    assert not short.converged
    assert "stopped after max_iter=3 " in short.reason
    wild = GradientDescent(step=10.0).solve(A, b)
    assert not wild.converged
    assert "too long" in wild.reason
    assert bool(torch.isfinite(wild.value).all())


def test_the_ridge_that_stopping_acts_like_counts_alpha_and_is_none_on_arrival():
    A, b = MatrixSystem(Laplace()(sample())), sample()[:, 0]
    short = GradientDescent(max_iter=10, step=0.01).solve(A, b, 3.0)
    assert "like a ridge of about 13" in short.reason
    assert "like a ridge" not in GradientDescent(max_iter=3000, tol=1e-4).solve(A, b, 3.0).reason


@pytest.mark.parametrize("solver", [GradientDescent(max_iter=5), EigenPro(max_iter=2)])
@pytest.mark.parametrize("alpha", [0.5, 1e4])
def test_with_a_ridge_no_row_is_held_out_and_the_residual_is_that_of_the_system(solver, alpha):
    A, B = MatrixSystem(Gaussian()(sample())), sample(120, 2, seed=1) * torch.tensor([1.0, 1e3])
    solution = solver.solve(A, B, alpha)
    truth = (B - A.matrix @ solution.value - alpha * solution.value).norm(dim=0) / B.norm(dim=0)
    assert solution.residual == pytest.approx(float(truth.max()), rel=1e-8)
    assert "held out" not in solution.reason
    assert bool((solution.value != 0).all())


@pytest.mark.parametrize("solver", [GradientDescent(max_iter=50, validation=0.1), EigenPro(max_iter=5)])
def test_rows_held_out_are_counted_and_the_residual_is_that_of_the_others(solver):
    X, y = noisy()
    A = MatrixSystem(Laplace(2.0)(X))
    solution = solver.solve(A, y)
    learned = solution.value != 0
    truth = (y - A.matrix @ solution.value)[learned].norm() / y[learned].norm()
    assert int((~learned).sum()) == 30
    assert solution.residual == pytest.approx(float(truth), rel=1e-8)
    assert "30 rows held out, residual over the others" in solution.reason


# EigenPro


def test_eigenpro_without_validation_solves_the_system():
    A, b = MatrixSystem(Laplace(3.0)(sample())), sample().sum(1).sin()
    solution = EigenPro(max_iter=400, validation=0.0, tol=1e-5).solve(A, b)
    assert solution.converged
    assert float((A.matrix @ solution.value - b).norm() / b.norm()) == pytest.approx(solution.residual, rel=1e-6)
    assert solution.residual <= 1e-5


def test_eigenpro_with_a_ridge_solves_the_ridge_system():
    A, B = MatrixSystem(Gaussian()(sample())), sample(120, 2, seed=1)
    solution = EigenPro(max_iter=300, validation=0.0, tol=1e-6).solve(A, B, torch.tensor([0.3, 1.0]))
    assert solution.converged
    exact = Cholesky().solve(A, B, torch.tensor([0.3, 1.0]))
    torch.testing.assert_close(solution.value, exact.value, rtol=0, atol=1e-4)


def test_flattening_the_spectrum_saves_epochs():
    A, b = MatrixSystem(Laplace(3.0)(sample(300))), sample(300).sum(1).sin()
    few, many = (EigenPro(30, 0.0, n_eigenpairs=q, batch_size=30).solve(A, b).residual for q in (1, 30))
    assert many < few / 3


def test_the_flattened_kernel_has_the_promised_eigenvalues_on_the_whole_sample():
    A = Laplace(3.0)(sample())
    rows = torch.arange(120)
    flat = Flattened.of(Products.of(MatrixSystem(A)), rows, rows, 10)
    dense = A - flat.images.T @ (flat.damping.unsqueeze(1) * flat.images)
    before, after = (torch.linalg.eigvalsh(M).flip(0) for M in (A, dense))
    torch.testing.assert_close(after[:11], before[10].expand(11))
    assert flat.peak == pytest.approx(float(dense.diagonal().max()))
    assert flat.slope == pytest.approx(float(before[10]) / 120)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(3.0)], ids=repr)
@pytest.mark.parametrize("alpha", [1.0, 100.0, 1e4])
def test_a_ridge_needs_few_epochs_whatever_the_spectrum(kernel, alpha):
    A, b = MatrixSystem(kernel(sample(400))), sample(400).sum(1).sin()
    for q in (None, 40):
        assert EigenPro(max_iter=30, validation=0.0, tol=1e-3, n_eigenpairs=q).solve(A, b, alpha).converged


def test_no_more_eigenpairs_are_flattened_than_an_epoch_can_learn():
    X = sample(1500, 3)
    A, b = MatrixSystem(Gaussian(2.0)(X)), X.sum(1).sin()
    chosen, many = (EigenPro(10, 0.0, n_eigenpairs=q, subsample=1000).solve(A, b).residual for q in (None, 100))
    assert chosen < 0.1
    assert chosen < many / 3


def test_eigenpro_has_arrived_only_where_every_target_and_every_row_has():
    X = sample(1200)
    A = MatrixSystem(Laplace(1.0)(X))
    B = torch.stack([X[:, 0].sin(), 1e-3 * sample(1200, seed=4)[:, 0]], dim=1)
    solution = EigenPro(max_iter=60, tol=1e-3).solve(A, B, 1.0)
    assert solution.converged
    residual = B - A.matrix @ solution.value - solution.value
    assert float((residual.norm(dim=0) / B.norm(dim=0)).max()) <= 1e-3


@pytest.mark.parametrize("budget", ["300KiB", "1MiB"])
def test_eigenpro_stores_no_more_rows_than_the_memory_budget_allows(budget):
    X = sample(600)
    K, y = gram(Laplace(2.0), X, memory_budget=budget), X.sum(1).sin()
    weighted = Weighted(K, torch.linspace(0.5, 2.0, 600))
    limit, largest, rows = parse_budget(budget), [], K.backend.write_rows
    K.backend.write_rows = lambda index, out, room: largest.append(out.numel() * 8) or rows(index, out, room)
    for A in (K, weighted):
        assert A.memory_budget == budget
        assert EigenPro(max_iter=40, tol=1e-2).solve(A, y, 1.0).converged
    assert 0 < max(largest) <= limit / 4


def test_eigenpro_decomposes_its_subsample_once_for_all_alphas(monkeypatch):
    counted, of = [], Flattened.of.__func__
    monkeypatch.setattr(Flattened, "of", classmethod(lambda cls, *options: counted.append(1) or of(cls, *options)))
    A, B, alphas = MatrixSystem(Laplace(2.0)(sample())), sample(120, 4, seed=1), torch.tensor([0.1, 1.0, 0.1, 50.0])
    together = EigenPro(max_iter=5).solve(A, B, alphas)
    assert len(counted) == 1
    for j, alpha in enumerate(alphas.double().tolist()):
        alone = EigenPro(max_iter=5).solve(A, B[:, j], alpha)
        torch.testing.assert_close(together.value[:, j], alone.value, rtol=0, atol=1e-12)


def test_eigenpro_holds_rows_out_for_targets_without_a_ridge_alone():
    X, y = noisy()
    A, Y = MatrixSystem(Laplace(2.0)(X)), torch.stack([y, y], dim=1)
    solution = EigenPro(max_iter=5).solve(A, Y, torch.tensor([0.0, 1.0]))
    assert (solution.value == 0).sum(0).tolist() == [30, 0]
    assert torch.equal(solution.value[:, 0], EigenPro(max_iter=5).solve(A, y).value)
    assert EigenPro(max_iter=5).solve(MatrixSystem(A.matrix[:4, :4]), y[:4]).value.all()  # too few to hold any out


@pytest.mark.parametrize("solver", [GradientDescent(validation=0.1), EigenPro()])
def test_a_descent_that_never_lowers_the_validation_error_says_so(solver):
    solution = solver.solve(MatrixSystem(torch.eye(100).double()), sample(100)[:, 0])
    assert not solution.converged
    assert "no step lowered the validation error" in solution.reason


def test_eigenpro_stops_by_validation_at_an_error_close_to_ridge():
    X, y = noisy(noise=0.3)
    test, truth = sample(400, seed=3), sample(400, seed=3).sum(1).sin()
    K = gram(Laplace(2.0), X)
    ridge = float((Laplace(2.0)(test, X) @ Cholesky().solve(K, y, 0.3).value - truth).norm())
    solution = EigenPro(max_iter=60).solve(K, y)
    assert solution.converged
    assert solution.iterations < 60
    assert "validation error" in solution.reason
    assert int((solution.value == 0).sum()) == 30
    assert float((Laplace(2.0)(test, X) @ solution.value - truth).norm()) < 1.3 * ridge


def test_eigenpro_repeats_with_its_seed_and_takes_duplicates_and_float32():
    X = torch.cat([sample(80, dtype=torch.float32)] * 2)
    K, y = gram(Gaussian(), X), X[:, 0]
    first, again, other = (EigenPro(5, seed=s).solve(K, y) for s in (1, 1, 2))
    assert torch.equal(first.value, again.value)
    assert not torch.equal(first.value, other.value)
    assert bool(torch.isfinite(first.value).all())


def test_a_step_that_is_too_long_is_shortened(monkeypatch):
    A, b = MatrixSystem(Laplace(3.0)(sample())), sample().sum(1).sin()
    epoch = EigenPro._descend

    def too_long(self, descent, generator):
        descent.step *= 12
        return epoch(self, descent, generator)

    monkeypatch.setattr(EigenPro, "_descend", too_long)
    solution = EigenPro(max_iter=30, validation=0.0).solve(A, b)
    assert bool(torch.isfinite(solution.value).all())
    assert solution.residual < 0.1


@pytest.mark.parametrize("solver", [GradientDescent, EigenPro])
def test_an_interrupt_keeps_what_was_found(solver):
    def stop(step, error):
        if step == 2:
            raise KeyboardInterrupt

    A, b = MatrixSystem(Laplace()(sample())), sample()[:, 0]
    solution = solver(callback=stop).solve(A, b)
    assert not solution.converged
    assert "interrupted" in solution.reason
    assert solution.residual < 1


def test_bad_options_are_named():
    A = MatrixSystem(torch.eye(4).double())
    shared = [{"max_iter": bad} for bad in (0, "a", None, 2.5)] + [{"tol": bad} for bad in (0.0, "a", None)]
    for options in (*shared, {"step": -1.0}, {"patience": 0}):
        with pytest.raises((InputError, InputTypeError), match=rf"GradientDescent\({next(iter(options))}="):
            GradientDescent(**options)
    for options in (*shared, {"batch_size": 0}, {"subsample": 2.5}, {"n_eigenpairs": "a"}):
        with pytest.raises((InputError, InputTypeError), match=rf"EigenPro\({next(iter(options))}="):
            EigenPro(**options)
    with pytest.raises(ValueError, match=r"validation=1\.5"):
        GradientDescent(validation=1.5).solve(A, torch.ones(4))
    with pytest.raises(ValueError, match="leaves nothing"):
        EigenPro(validation=0.01).solve(A, torch.ones(4))
    with pytest.raises(NotPositiveDefiniteError):
        EigenPro(validation=0.0).solve(MatrixSystem(torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double()), torch.ones(2))


@pytest.mark.parametrize("solver", [EigenPro(max_iter=300, validation=0.0), GradientDescent(max_iter=3000, tol=1e-5)])
def test_a_large_alpha_of_one_target_does_not_slow_another(solver):
    X = sample(80)
    K = gram(Laplace(2.0), X)
    y = X[:, 0].sin()
    together = solver.solve(K, torch.stack([y, y], dim=1), torch.tensor([0.1, 1e4], dtype=torch.float64))
    alone = solver.solve(K, y, 0.1)
    assert alone.converged
    torch.testing.assert_close(together.value[:, 0], alone.value, atol=1e-12, rtol=0.0)
    assert together.value.shape == (80, 2)


@pytest.mark.parametrize("tol", [1e-1, 3e-2, 1e-2, 3e-3])
def test_arriving_means_all_rows_and_not_some(tol):
    X = sample(2500, seed=3)
    solution = EigenPro(tol=tol, max_iter=200).solve(gram(Gaussian(0.5), X), X.sin(), 1.0)
    assert solution.converged
    assert solution.residual <= tol
