"""Laws of Nyström regression, by sums and by conjugate gradients."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Gaussian, Laplace, Linear, Matern
from mercer.solvers import Cholesky
from mercer.solvers.falkon import Falkon
from mercer.solvers.falkon_basis import FalkonBasis
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.row_blocks import Block, RowBlocks
from mercer.solvers.whitening import rounding_of, whitening
from mercer.testing.solvers import MatrixSystem


def sample(n=300, d=3, seed=0, dtype=torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def problem(kernel, n=300, m=40, weights=None, size=61):
    X = sample(n)
    Z = sample(m, seed=9)
    Y = torch.stack([X.sum(1).sin(), X[:, 0] * X[:, 1]], dim=1)
    return RowBlocks(kernel, Points(X), Points(Z), Y, weights, size), kernel(Z)


def normal_equations(blocks, K_mm, alpha):
    """The solution by LAPACK, from the definition."""
    K = blocks.kernel(blocks.X.values, blocks.landmarks.values).numpy()
    W = np.eye(len(K)) if blocks.weights is None else np.diag(blocks.weights.numpy())
    return np.linalg.solve(K.T @ W @ K + alpha * K_mm.numpy(), K.T @ W @ blocks.targets.numpy())


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
def test_sums_solve_the_normal_equations(alpha):
    blocks, K_mm = problem(Laplace(), weights=torch.linspace(0.1, 3.0, 300).double())
    solution = NystromSums.of(blocks).solve(K_mm, alpha)
    assert solution.converged
    assert solution.jitter == 0.0
    np.testing.assert_allclose(solution.value, normal_equations(blocks, K_mm, alpha), rtol=1e-8, atol=1e-10)


def test_one_alpha_per_target_equals_separate_solves():
    blocks, K_mm = problem(Laplace())
    spectrum = NystromSums.of(blocks).prepare(K_mm)
    both = spectrum.solve(torch.tensor([1e-3, 10.0])).value
    torch.testing.assert_close(both[:, 0], spectrum.solve(1e-3).value[:, 0])
    torch.testing.assert_close(both[:, 1], spectrum.solve(10.0).value[:, 1])


def test_sums_in_pieces_in_any_order_equal_one_pass():
    blocks, K_mm = problem(Matern(nu=1.5), weights=torch.linspace(0.1, 3.0, 300).double())
    once = NystromSums.of(blocks)
    pieces = [NystromSums(40, 2).add_block(block) for block in blocks]
    merged = pieces[3].merge(pieces[1]).merge(pieces[4].merge(pieces[0])).merge(pieces[2])
    assert merged.rows == once.rows == 300
    torch.testing.assert_close(merged.gram, once.gram, rtol=1e-12, atol=1e-12)
    for alpha in (1e-2, 1.0):
        one, other = once.solve(K_mm, alpha).value, merged.solve(K_mm, alpha).value
        torch.testing.assert_close(other, one, rtol=0, atol=1e-10 * float(one.abs().max()))


def test_weights_equal_repeated_rows():
    repeats = torch.randint(0, 4, (300,), generator=torch.Generator().manual_seed(1))
    blocks, K_mm = problem(Laplace(), weights=repeats.double())
    index = torch.arange(300).repeat_interleave(repeats)
    repeated = RowBlocks(blocks.kernel, blocks.X.take(index), blocks.landmarks, blocks.targets[index], size=50)
    weighted, rows = NystromSums.of(blocks).solve(K_mm, 0.1).value, NystromSums.of(repeated).solve(K_mm, 0.1).value
    torch.testing.assert_close(weighted, rows, rtol=1e-9, atol=1e-10)
    falkon, again = (Falkon(tol=1e-10).solve(b, K_mm, 0.1).value for b in (blocks, repeated))
    torch.testing.assert_close(falkon, weighted, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(again, weighted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_all_points_as_landmarks_give_full_kernel_ridge_regression(alpha):
    X, kernel = sample(80), Laplace()
    y = X.sum(1, keepdim=True).sin()
    K = kernel(X)
    blocks = RowBlocks(kernel, Points(X), Points(X), y, size=30)
    full = K @ Cholesky().solve(MatrixSystem(K), y, alpha).value
    torch.testing.assert_close(K @ NystromSums.of(blocks).solve(K, alpha).value, full, rtol=0, atol=1e-7)
    falkon = Falkon(tol=1e-10, max_iter=300).solve(blocks, K, alpha)
    assert falkon.converged
    torch.testing.assert_close(K @ falkon.value, full, rtol=0, atol=1e-6)


def test_repeated_landmarks_and_zero_landmarks_do_no_harm():
    X, kernel = sample(100), Linear()
    y = X @ torch.tensor([[1.0], [2.0], [-1.0]]).double()
    Z = torch.cat([X[:5], X[:5], torch.zeros(1, 3)])
    blocks, K_mm = RowBlocks(kernel, Points(X), Points(Z), y), kernel(Z)
    solution = NystromSums.of(blocks).solve(K_mm, 1e-6)
    assert "3 of 11 landmarks are independent" in solution.reason
    torch.testing.assert_close(kernel(X, Z) @ solution.value, y, rtol=1e-5, atol=1e-5)
    falkon = Falkon().solve(blocks, K_mm, 1e-6)
    torch.testing.assert_close(kernel(X, Z) @ falkon.value, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian(3.0), Gaussian(1000.0), Linear()])
@pytest.mark.parametrize("alpha", [0.0, 1e-10, 1e-4, 1e4])
def test_no_alpha_and_no_scale_makes_the_fit_explode(kernel, alpha):
    blocks, K_mm = problem(kernel)
    fit = kernel(blocks.X.values, blocks.landmarks.values) @ NystromSums.of(blocks).solve(K_mm, alpha).value
    assert bool(torch.isfinite(fit).all())
    assert float(fit.norm()) < 1.2 * float(blocks.targets.norm())


def test_an_alpha_below_the_rounding_of_the_sums_is_reported():
    blocks, K_mm = problem(Gaussian(2.0), m=100)
    found = NystromSums.of(blocks).solve(K_mm, 1e-12)
    assert re.search("below the rounding error|may be off by", found.reason)  # processors round differently
    assert not found.converged
    assert NystromSums.of(blocks).solve(K_mm, 10.0).reason == ""


@pytest.mark.parametrize("sample_rows", [0, 10])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
def test_falkon_equals_the_direct_solve(alpha, sample_rows):
    blocks, K_mm = problem(Laplace(), weights=torch.linspace(0.1, 3.0, 300).double())
    direct = NystromSums.of(blocks).solve(K_mm, alpha).value
    solution = Falkon(tol=1e-10, sample=sample_rows).solve(blocks, K_mm, alpha)
    assert solution.converged
    assert solution.jitter == 0.0
    torch.testing.assert_close(solution.value, direct, rtol=0, atol=1e-7 * float(direct.abs().max()))


def test_falkon_takes_one_alpha_per_target_and_a_warm_start():
    blocks, K_mm = problem(Laplace())
    alphas = torch.tensor([1e-2, 10.0]).double()
    solution = Falkon(tol=1e-9).solve(blocks, K_mm, alphas)
    direct = NystromSums.of(blocks).solve(K_mm, alphas).value
    torch.testing.assert_close(solution.value, direct, rtol=0, atol=1e-6 * float(direct.abs().max()))
    assert Falkon(tol=1e-6, warm_start=direct).solve(blocks, K_mm, alphas).iterations == 0


def test_a_sample_of_rows_preconditions_better_than_the_landmarks_when_alpha_is_small():
    blocks, K_mm = problem(Gaussian(1.0), n=1000, m=60, size=1000)
    classical, sampled = (Falkon(sample=s, max_iter=400).solve(blocks, K_mm, 1e-5) for s in (0, 10))
    assert sampled.converged
    assert sampled.iterations < classical.iterations / 2


@pytest.mark.parametrize(("m", "expected"), [(40, 400), (44, 440), (46, 900), (200, 900)])
def test_the_sample_is_ten_rows_per_landmark_or_all(m, expected, monkeypatch):
    blocks, K_mm = problem(Laplace(), n=900, m=m)
    drawn, draw = [], RowBlocks.sample
    monkeypatch.setattr(RowBlocks, "sample", lambda self, count, seed: drawn.append(count) or draw(self, count, seed))
    assert Falkon(tol=1e-8).solve(blocks, K_mm, 0.1).converged
    assert drawn == [expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_landmarks_that_are_rows_stand_for_themselves_in_the_preconditioner(dtype):
    X = 3.0 * sample(3000, d=6, dtype=dtype)
    kernel, Z, y = Laplace(), Points(X[:100]), X.sum(1, keepdim=True).sin()
    blocks, K_mm = RowBlocks(kernel, Points(X), Z, y), kernel(Z.values.double())
    apart, among = (Falkon(max_iter=300, among_rows=own).solve(blocks, K_mm, 1e-3) for own in (False, True))
    assert among.converged
    assert among.iterations < 25 < apart.iterations / 2
    direct = NystromSums.of(blocks).solve(K_mm, 1e-3).value
    torch.testing.assert_close(among.value, direct, rtol=0, atol=1e-4 * float(direct.abs().max()))


@pytest.mark.parametrize("weights", [None, torch.linspace(0.1, 3.0, 300).double()])
@pytest.mark.parametrize("own", [0.0, 0.25, None])
def test_the_basis_makes_the_sampled_system_the_identity(weights, own):
    blocks, K_mm = problem(Laplace(), weights=weights, size=300)
    rows, alphas = next(iter(blocks)), torch.tensor([0.5]).double()
    given = (K_mm, None if own is None else rows, 1000.0, alphas, K_mm)
    basis = FalkonBasis.orthonormal(*given) if own is None else FalkonBasis.orthonormal(*given, own)
    K = blocks.kernel(blocks.X.values, blocks.landmarks.values)
    w = torch.ones(300).double() if weights is None else weights
    share = 1.0 if own is None else own
    system = share * K_mm @ K_mm / 40 + (1 - share) * K.T @ (w.unsqueeze(1) * K) / w.sum()
    A = 1000.0 * system + 0.5 * K_mm
    root = basis.E @ torch.linalg.inv(basis.roots[0]).mT
    torch.testing.assert_close(root.T @ A @ root, torch.eye(40).double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("spread", [2.0, 3.0])
@pytest.mark.parametrize("among_rows", [False, True])
def test_few_rows_with_most_of_the_weight_do_not_slow_falkon_down(spread, among_rows):
    n, m = 8000, 200
    X = Points(sample(n))
    weights = sample(n, 1, seed=4).squeeze(1).mul(spread).exp()
    kernel, Z = Matern(nu=1.5), X.take(slice(0, m))
    blocks = RowBlocks(kernel, X, Z, X.values[:, :1].sin(), weights)
    found = Falkon(max_iter=30, among_rows=among_rows).solve(blocks, kernel(Z.values), 1e-2)
    assert found.converged


def weighted_fit(weights, n=8000, m=200):
    X = Points(sample(n))
    kernel, Z = Matern(nu=1.5), X.take(slice(0, m))
    blocks = RowBlocks(kernel, X, Z, X.values[:, :1].sin(), weights)
    return Falkon(among_rows=True).solve(blocks, kernel(Z.values), 1e-2)


def test_one_heavy_row_does_not_make_heavy_landmarks():
    plain = weighted_fit(None)
    found = weighted_fit(torch.ones(8000).double().index_fill(0, torch.tensor([7000]), 1e6))
    assert found.converged
    assert found.iterations <= plain.iterations + 2


def test_rows_without_weight_do_not_count():
    """The others are few enough to be taken all, which leaves nothing to iterate."""
    found = weighted_fit((torch.arange(8000) < 1600).double())
    assert found.converged
    assert found.iterations <= 2


def test_a_sample_by_weight_stands_for_all_rows():
    """Sums over it are unbiased, and rows without weight are left out."""
    weights = torch.linspace(0.0, 3.0, 300).double().square()
    blocks, _ = problem(Laplace(), weights=weights)
    samples = [blocks.sample(60, torch.Generator().manual_seed(seed)) for seed in range(200)]
    assert all(bool((block.weights > 0).all()) for block in samples)
    mean = torch.stack([block.cross() for block in samples]).mean(0)
    exact = sum(block.cross() for block in blocks)
    assert float((mean - exact).norm() / exact.norm()) < 0.03
    everything = blocks.sample(300, torch.Generator().manual_seed(0))
    torch.testing.assert_close(everything.cross(), exact)


def test_a_sample_of_all_rows_leaves_nothing_to_iterate():
    blocks, K_mm = problem(Laplace(), weights=torch.linspace(0.1, 3.0, 300).double())
    assert Falkon(sample=10, tol=1e-8).solve(blocks, K_mm, 0.1).iterations <= 2


def test_falkon_needs_only_blocks_that_can_be_read_again():
    blocks, K_mm = problem(Laplace())

    class Streamed:
        reads = 0

        def __iter__(self):
            Streamed.reads += 1
            return iter(blocks)

    solution = Falkon(tol=1e-10).solve(Streamed(), K_mm, 0.1)
    direct = NystromSums.of(blocks).solve(K_mm, 0.1).value
    torch.testing.assert_close(solution.value, direct, rtol=0, atol=1e-6 * float(direct.abs().max()))
    assert Streamed.reads <= 1.1 * solution.iterations + 4


def test_falkon_in_float32_comes_close_and_reports_how_close():
    X, Z = sample(2000, dtype=torch.float32), sample(40, seed=9, dtype=torch.float32)
    y = X.sum(1, keepdim=True).sin().double()
    kernel = Laplace()
    K_mm = kernel(Z.double())
    exact = NystromSums.of(RowBlocks(kernel, Points(X.double()), Points(Z.double()), y)).solve(K_mm, 1e-2).value
    solution = Falkon(tol=1e-4).solve(RowBlocks(kernel, Points(X), Points(Z), y, size=500), K_mm, 1e-2)
    assert solution.converged
    K = kernel(X.double(), Z.double())
    assert float((K @ (solution.value - exact)).norm() / (K @ exact).norm()) < 1e-3


def test_falkon_in_float32_stays_useful_when_landmarks_nearly_span_each_other():
    X = torch.rand(3000, 5, generator=torch.Generator().manual_seed(0))
    y = (3 * X.sum(1, keepdim=True)).sin().double()
    kernel, Z, alpha = Gaussian(1.5), X[:400], 0.03
    K_mm = kernel(Z.double())
    exact = NystromSums.of(RowBlocks(kernel, Points(X.double()), Points(Z.double()), y)).solve(K_mm, alpha).value
    solution = Falkon(tol=1e-4, max_iter=30).solve(RowBlocks(kernel, Points(X), Points(Z), y), K_mm, alpha)
    K = kernel(X.double(), Z.double())
    assert float((K @ (solution.value - exact)).norm() / (K @ exact).norm()) < 0.02


def test_a_falkon_cut_short_reports_it_and_stays_finite():
    blocks, K_mm = problem(Gaussian(1.0))
    solution = Falkon(max_iter=2, sample=0, tol=1e-12).solve(blocks, K_mm, 1e-8)
    assert not solution.converged
    assert "max_iter=2" in solution.reason
    assert bool(torch.isfinite(solution.value).all())


def test_whitening_keeps_every_direction_above_rounding():
    """Eigenvalues of 1e-14 beside one of 1 are far above its rounding error, however many there are."""
    vectors = torch.linalg.qr(sample(200, 200))[0]
    values = torch.cat([torch.full((100,), 1e-14), torch.ones(100)]).double()
    K = vectors * values @ vectors.T
    basis = whitening((K + K.T) / 2, torch.finfo(torch.float64).eps)
    assert basis.shape == (200, 200)


@pytest.mark.parametrize("m", [50, 300, 1000])
@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 3), (Linear(1.0) ** 2, 10)], ids=repr)
def test_whitening_leaves_dependent_directions_out(kernel, rank, m):
    K = kernel(sample(m))
    basis = whitening(K, torch.finfo(torch.float64).eps)
    assert basis.shape == (m, rank)
    torch.testing.assert_close(basis.T @ K @ basis, torch.eye(rank).double(), rtol=0, atol=1e-10)


def test_float32_values_tell_fewer_landmarks_apart():
    K = Gaussian(3.0)(sample(100))
    ranks = [whitening(K, rounding_of(dtype, 100)).shape[1] for dtype in (torch.float32, torch.float64)]
    assert ranks[0] < ranks[1]
    magnified = whitening(K, rounding_of(torch.float32, 100)).norm(dim=0).max()
    assert 3e3 < float(magnified) < 2e4


@pytest.mark.parametrize("diagonal", [0.0, -1.0])
def test_what_a_zero_on_the_diagonal_hides_is_seen(diagonal):
    K = torch.tensor([[1.0, 0.3, 0.0], [0.3, diagonal, 0.0], [0.0, 0.0, 2.0]]).double()
    smallest = float(torch.linalg.eigvalsh(K)[0])
    with pytest.raises(NotPositiveDefiniteError, match=f"eigenvalue {smallest:.3g} .the largest is 2."):
        whitening(K, torch.finfo(torch.float64).eps)
    K[0, 1] = K[1, 0] = 1e-12  # rounding
    if diagonal == 0.0:
        assert whitening(K, torch.finfo(torch.float64).eps).shape == (3, 2)


def test_landmarks_that_are_zero_give_the_zero_function():
    blocks, _ = problem(Linear())
    sums = NystromSums.of(RowBlocks(Linear(), blocks.X, Points(torch.zeros(4, 3).double()), blocks.targets))
    for alpha in (0.0, 1.0, torch.tensor([1.0, 2.0])):
        solution = sums.solve(torch.zeros(4, 4), alpha)
        assert solution.converged
        assert not bool(solution.value.any())


def test_bad_input_is_named():
    blocks, K_mm = problem(Laplace())
    sums = NystromSums(40, 2)
    with pytest.raises(ValueError, match="were added; expected"):
        sums.add(torch.ones(3, 39), torch.ones(3, 2))
    with pytest.raises(ValueError, match="Weights must be >= 0"):
        sums.add(torch.ones(3, 40), torch.ones(3, 2), -torch.ones(3))
    with pytest.raises(ValueError, match="cannot take in"):
        sums.merge(NystromSums(40, 1))
    with pytest.raises(ValueError, match="K_mm has shape"):
        NystromSums.of(blocks).solve(K_mm[:5, :5], 1.0)
    with pytest.raises(NotPositiveDefiniteError, match="landmarks"):
        NystromSums.of(blocks).solve(K_mm - 2 * torch.eye(40), 1.0)
    with pytest.raises(NotPositiveDefiniteError, match="landmarks"):
        Falkon().solve(blocks, K_mm - torch.eye(40) / 2, 1.0)
    with pytest.raises(ValueError, match="contains NaN"):
        NystromSums(40, 1).add(torch.full((1, 40), torch.nan), torch.ones(1, 1)).solve(K_mm, 1.0)
    with pytest.raises(ValueError, match="no rows"):
        NystromSums.of([])
    with pytest.raises(ValueError, match="no rows"):
        Falkon().solve([], K_mm, 1.0)
    with pytest.raises(ValueError, match="alpha=0"):
        Falkon().solve(blocks, K_mm, 0.0)
    with pytest.raises(ValueError, match="warm_start has shape"):
        Falkon(warm_start=torch.ones(3, 2)).solve(blocks, K_mm, 1.0)
    for wrong in (torch.nan, torch.inf):
        targets = blocks.targets.index_fill(0, torch.tensor([7]), wrong)
        with pytest.raises(ValueError, match="kernel values times targets contains"):
            Falkon().solve(RowBlocks(Laplace(), blocks.X, blocks.landmarks, targets), K_mm, 1.0)
    for wrong in (-1.0, torch.nan):
        weights = torch.ones(300).double().index_fill(0, torch.tensor([7]), wrong)
        with pytest.raises(ValueError, match="Weights must be >= 0"):
            Falkon().solve(RowBlocks(Laplace(), blocks.X, blocks.landmarks, blocks.targets, weights), K_mm, 1.0)
    with pytest.raises(ValueError, match="targets have shape"):
        RowBlocks(Laplace(), blocks.X, blocks.landmarks, torch.ones(300))
    for options in ({"tol": 2.0}, {"max_iter": 0}, {"sample": -1}):
        with pytest.raises(ValueError, match="Falkon"):
            Falkon(**options)


def test_a_block_multiplies_by_its_weighted_rows():
    blocks, _ = problem(Laplace(), weights=torch.linspace(0.1, 3.0, 300).double(), size=300)
    block = next(iter(blocks))
    assert isinstance(block, Block)
    K, V = block.kernel.dense(), sample(40, 2)
    W = blocks.weights.unsqueeze(1)
    torch.testing.assert_close(block.gram(V), K.T @ (W * (K @ V)))
    torch.testing.assert_close(block.cross(), K.T @ (W * blocks.targets))


@pytest.mark.parametrize(("budget", "rows"), [("1 GiB", 5000), ("500 MiB", 4096), ("260 MiB", 2048), ("1 MiB", 1024)])
def test_blocks_are_as_long_as_products_with_all_targets_fit(budget, rows):
    X = torch.linspace(0.0, 1.0, 5000).double().unsqueeze(1)
    Y = torch.zeros(5000, 400).double()
    blocks = RowBlocks(Gaussian(), Points(X), Points(X[:2]), Y, options={"memory_budget": budget})
    assert len(next(iter(blocks)).targets) == rows
    assert sum(len(block.targets) for block in blocks) == 5000
