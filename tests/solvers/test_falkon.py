"""Laws of Falkon: it arrives where rounding lets it, says so where not, and multiplies in float64 where it has to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import NotPositiveDefiniteError
from mercer.data.checkpoint import Checkpoint
from mercer.kernels import Gaussian, Laplace, Linear, Matern
from mercer.operators import Stored
from mercer.solvers.dials import FEW_ALPHAS
from mercer.solvers.falkon import Falkon
from mercer.solvers.falkon_basis import FalkonBasis, orthonormal_functions
from mercer.solvers.row_blocks import Block, RowBlocks

ALPHAS = torch.tensor([0.01, 1.0, 100.0], dtype=torch.float64)


def problem(kernel, n=3000, m=300, dtype=torch.float64, t=1, memory_budget=None):
    """Rows, whose first are the landmarks; wiggly targets with noise; K_mm in float64."""
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.normal(size=(n, 3))).to(dtype)
    y = torch.stack([((1 + j) * X[:, 0].double()).sin() for j in range(t)], 1) + 0.1 * torch.from_numpy(
        rng.normal(size=(n, t))
    )
    blocks = RowBlocks(kernel, Points(X), Points(X[:m]), y, size=1000, options={"memory_budget": memory_budget})
    return blocks, kernel(X[:m].double())


def values_at_new_points(blocks, c):
    new = torch.from_numpy(np.random.default_rng(2).normal(size=(100, 3)))
    return blocks.kernel(new, blocks.landmarks.values.double()) @ c


def least_squares(blocks, alphas):
    """Values at new points of the solution of min |K c - y|^2 + alpha c^T K_mm c, by QR in an orthonormal basis."""
    X, Z = blocks.X.values.double(), blocks.landmarks.values.double()
    L, failed = torch.linalg.cholesky_ex(blocks.kernel(Z))
    if int(failed):
        values, vectors = torch.linalg.eigh(blocks.kernel(Z))
        E = vectors[:, values > 1e-15 * values[-1]] * values[values > 1e-15 * values[-1]].rsqrt()
    else:
        E = torch.linalg.inv(L).T
    features, columns = blocks.kernel(X, Z) @ E, []
    for y, alpha in zip(blocks.targets.T, alphas.expand(blocks.targets.shape[1]), strict=True):
        rows = torch.cat([features, alpha.sqrt() * torch.eye(E.shape[1], dtype=torch.float64)])
        rhs = torch.cat([y, torch.zeros(E.shape[1], dtype=torch.float64)]).unsqueeze(1)
        columns.append(E @ torch.linalg.lstsq(rows, rhs).solution)
    return values_at_new_points(blocks, torch.cat(columns, 1))


@pytest.mark.parametrize(
    ("kernel", "n", "m", "alpha"),
    [
        (Gaussian(2.0), 3000, 300, 1.0),
        (Gaussian(3.0), 3000, 300, 1e-2),
        (Gaussian(3.0), 3000, 300, 1e-3),
        (Gaussian(1.0), 10_000, 500, 1e-2),
    ],
)
def test_smooth_kernels_converge_to_the_default_tolerance(kernel, n, m, alpha):
    blocks, K_mm = problem(kernel, n, m)
    solution = Falkon().solve(blocks, K_mm, alpha)
    assert solution.converged
    assert solution.iterations <= 50
    exact = least_squares(blocks, torch.tensor([alpha], dtype=torch.float64))
    assert float((values_at_new_points(blocks, solution.value) - exact).abs().median()) < 2e-5


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0), Matern(nu=2.5)])
@pytest.mark.parametrize("alpha", [1e-4, 1.0, 100.0])
def test_float32_rows_converge_to_the_default_tolerance(kernel, alpha):
    blocks, K_mm = problem(kernel, n=1500, m=120, dtype=torch.float32)
    solution = Falkon().solve(blocks, K_mm, alpha)
    assert solution.converged
    assert "float64" in solution.reason
    exact = least_squares(blocks, torch.tensor([alpha], dtype=torch.float64))
    torch.testing.assert_close(values_at_new_points(blocks, solution.value), exact, rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_several_targets_with_an_alpha_each_converge(dtype):
    blocks, K_mm = problem(Gaussian(1.0), n=2000, m=120, dtype=dtype, t=3)
    solution = Falkon().solve(blocks, K_mm, ALPHAS)
    assert solution.converged
    torch.testing.assert_close(
        values_at_new_points(blocks, solution.value), least_squares(blocks, ALPHAS), rtol=0, atol=2e-5
    )


def test_float32_products_alone_serve_a_tolerance_that_they_reach(monkeypatch):
    def none(*_):
        raise AssertionError("a float64 product over all rows")

    for work in ("image", "missed", "cross"):
        monkeypatch.setattr(f"mercer.solvers.falkon._accurate_{work}", none)
    blocks, K_mm = problem(Laplace(1.0), m=100, dtype=torch.float32)
    solution = Falkon(tol=1e-3).solve(blocks, K_mm, 1.0)
    assert solution.converged
    assert solution.reason == ""
    with pytest.raises(AssertionError, match="float64 product"):
        Falkon(tol=1e-6).solve(blocks, K_mm, 1.0)


def test_products_without_rounding_errors_have_none():
    """Of small integers: float32 and float64 agree to the last bit."""
    X = torch.randint(-3, 4, (200, 4), generator=torch.Generator().manual_seed(0)).float()
    blocks = RowBlocks(Linear(), Points(X), Points(X[:10]), X.double().sum(1, keepdim=True))
    K_mm = Linear()(X[:10].double())
    basis = FalkonBasis.orthonormal(K_mm, next(iter(blocks)), 200.0, ALPHAS[:1], K_mm)
    solution = Falkon().solve(blocks, K_mm, 0.01)
    assert basis.E.shape == (10, 4)
    assert solution.converged
    assert solution.reason == ("residuals are from float64 products; 4 of 10 landmarks are independent to rounding")


def test_an_interrupt_keeps_what_was_found():
    def stop(iteration, _):
        if iteration == 6:
            raise KeyboardInterrupt

    blocks, K_mm = problem(Gaussian(1.0), m=60)
    solution = Falkon(tol=1e-10, callback=stop).solve(blocks, K_mm, 1e-3)
    assert "interrupted after 5 iterations" in solution.reason or "interrupted after 6 iterations" in solution.reason
    assert 1e-10 < solution.residual < 0.1


def test_where_rounding_ends_it_the_reason_says_so_and_blames_no_kernel():
    blocks, K_mm = problem(Gaussian(3.0))
    solution = Falkon(max_iter=1000).solve(blocks, K_mm, 1e-9)
    assert not solution.converged
    assert solution.iterations < 300
    assert "the best residual that float64 products reach: use a larger alpha" in solution.reason
    assert "semi-definite" not in solution.reason
    more = Falkon(max_iter=1000).solve(blocks, K_mm, 1e-1)
    assert more.converged


def test_landmarks_given_twice_change_nothing_and_are_counted():
    blocks, K_mm = problem(Gaussian(0.7), n=800, m=60)
    twice = RowBlocks(blocks.kernel, blocks.X, blocks.X.take(torch.arange(60).repeat(2)), blocks.targets)
    once, both = Falkon(tol=1e-9).solve(blocks, K_mm, 0.1), Falkon(tol=1e-9).solve(twice, K_mm.repeat(2, 2), 0.1)
    assert both.converged
    assert both.reason == "60 of 120 landmarks are independent to rounding"
    torch.testing.assert_close(
        values_at_new_points(twice, both.value), values_at_new_points(blocks, once.value), rtol=1e-7, atol=1e-7
    )


def test_orthonormal_functions_are_so_beyond_the_reach_of_eigenvectors():
    """Products of extended precision are the judge."""
    Z = np.random.default_rng(1).normal(size=(150, 3)).astype(np.longdouble)
    K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(2) / np.longdouble(8))
    matrix = torch.from_numpy(K.astype(np.float64))
    E = orthonormal_functions(matrix, matrix).numpy().astype(np.longdouble)
    values, vectors = np.linalg.eigh(matrix.numpy())
    assert values[0] < 1e-13 * values[-1]
    assert E.shape[1] >= 149
    off = abs(E.T @ K @ E - np.eye(E.shape[1])).max()
    by_eigenvectors = vectors / np.sqrt(abs(values))
    assert off < 0.05
    assert off < 0.1 * abs(by_eigenvectors.T @ K @ by_eigenvectors - np.eye(150)).max()


def test_a_jitter_stays_out_of_the_penalty():
    blocks, K_mm = problem(Laplace(1.0), n=400, m=30, t=2)
    block, alphas = next(iter(RowBlocks(blocks.kernel, blocks.X, blocks.landmarks, blocks.targets))), ALPHAS[1:]
    basis = FalkonBasis.jittered(K_mm, block, 400.0, alphas, K_mm)
    assert basis.added is not None
    assert float(basis.added.min()) == 1e-2
    columns, eye = torch.arange(2), torch.eye(30).double()
    K = block.kernel.dense()
    for column, alpha in enumerate(alphas):
        this = columns[[column]]
        M = torch.cat([basis.product(e.unsqueeze(1), this, alphas, block.gram) for e in eye], 1)
        beta = torch.linalg.solve(M, basis.project(block.cross()[:, this], this))
        exact = torch.linalg.solve(K.T @ K + alpha * K_mm, block.cross()[:, this])
        torch.testing.assert_close(basis.coefficients(basis.functions(beta, this)), exact, rtol=1e-8, atol=1e-8)


def test_many_alphas_share_one_matrix_and_equal_separate_solves():
    blocks, K_mm = problem(Laplace(1.0), n=600, m=40, t=FEW_ALPHAS + 2)
    alphas = torch.logspace(-3, 2, FEW_ALPHAS + 2, dtype=torch.float64)
    rows = blocks.sample(400, torch.Generator())
    basis = FalkonBasis.orthonormal(K_mm, rows, 600.0, alphas, K_mm)
    assert sum(A.numel() for A in basis.roots) == 40 * len(alphas)
    solution = Falkon(tol=1e-10).solve(blocks, K_mm, alphas)
    assert solution.converged
    for column, alpha in enumerate(alphas):
        one = Falkon(tol=1e-10).solve(blocks, K_mm, float(alpha)).value[:, column]
        torch.testing.assert_close(solution.value[:, column], one, rtol=1e-6, atol=1e-7)
    assert Falkon(warm_start=solution.value).solve(blocks, K_mm, alphas).iterations == 0


@pytest.mark.parametrize("power", [-600, 600])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_targets_of_any_size_give_the_same_bits_times_their_size(power, dtype):
    blocks, K_mm = problem(Laplace(1.0), n=600, m=40, dtype=dtype, t=2)
    sizes = torch.tensor([1.0, 2.0**power], dtype=torch.float64)
    scaled = RowBlocks(blocks.kernel, blocks.X, blocks.landmarks, blocks.targets * sizes, size=1000)
    plain, other = Falkon().solve(blocks, K_mm, 0.1), Falkon().solve(scaled, K_mm, 0.1)
    assert other.converged
    assert other.residual == plain.residual > 0
    torch.testing.assert_close(other.value, plain.value * sizes, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_landmark_that_is_zero_everywhere_is_left_out_and_one_that_is_not_is_refused(dtype):
    rng = np.random.default_rng(0)
    K = torch.from_numpy(rng.normal(size=(50, 4)))
    K[:, 3] = 0.0
    y = torch.from_numpy(rng.normal(size=(50, 1)))
    K_mm = torch.diag(torch.tensor([1.0, 2.0, 3.0, 0.0])).double()
    solution = Falkon(tol=1e-5).solve([Block(Stored(K.to(dtype)), y)], K_mm, 1.0)
    exact = torch.linalg.solve(K.T @ K + K_mm + torch.diag(torch.tensor([0.0, 0.0, 0.0, 1.0])), K.T @ y)
    torch.testing.assert_close(solution.value, exact, rtol=1e-4, atol=1e-4)
    K_mm[3, 0] = K_mm[0, 3] = 0.3
    with pytest.raises(NotPositiveDefiniteError, match="landmarks"):
        Falkon().solve([Block(Stored(K.to(dtype)), y)], K_mm, 1.0)


def test_the_sample_keeps_a_small_memory_budget():
    blocks, K_mm = problem(Laplace(1.0), memory_budget="1MiB")
    roomy, _ = problem(Laplace(1.0))
    small, large = (Falkon(tol=1e-9).solve(b, K_mm, 1.0) for b in (blocks, roomy))
    torch.testing.assert_close(small.value, large.value, rtol=1e-7, atol=1e-7)


def test_a_block_knows_its_float64_products():
    blocks, _ = problem(Gaussian(1.0), n=50, m=10, dtype=torch.float32)
    block = next(iter(blocks))
    exact = blocks.kernel(blocks.X.values.double(), blocks.landmarks.values.double())
    V = torch.randn(10, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(block.accurate().gram(V), exact.T @ (exact @ V), rtol=1e-12, atol=1e-12)
    c, column = V * 0.1, torch.tensor([0, 0])
    missed = exact.T @ (blocks.targets[:, column] - exact @ c)
    torch.testing.assert_close(block.accurate().missed(c, column), missed, rtol=1e-12, atol=1e-12)
    assert block._replace(kernel=Stored(exact.float())).accurate() is None


@pytest.mark.parametrize("alpha", [1.0, 1e-4])
def test_a_solve_with_float64_residuals_goes_on_from_its_checkpoint_to_the_same_bits(alpha, tmp_path):
    blocks, K_mm = problem(Gaussian(1.0), m=60, dtype=torch.float32)
    whole = Falkon(tol=1e-8).solve(blocks, K_mm, alpha)
    assert whole.iterations > 4

    def stop(iteration, _):
        if iteration == 4:
            raise RuntimeError("power cut")

    checkpoint = Checkpoint(tmp_path / "falkon.checkpoint", {"fit": 1}, seconds=0.0)
    with pytest.raises(RuntimeError, match="power cut"):
        Falkon(tol=1e-8, callback=stop, checkpoint=checkpoint).solve(blocks, K_mm, alpha)
    again = Falkon(tol=1e-8, checkpoint=checkpoint).solve(blocks, K_mm, alpha)
    assert again.iterations == whole.iterations
    assert torch.equal(again.value, whole.value)


def test_float32_products_that_cannot_reach_the_tolerance_or_a_direction_are_not_used():
    blocks, K_mm = problem(Gaussian(1.0), dtype=torch.float32)
    rough = Falkon(tol=5e-5).solve(blocks, K_mm, 1.0)
    assert rough.converged
    assert "float64" in rough.reason
    assert "products are float64: the rounding" in Falkon().solve(blocks, K_mm, 1e-4).reason


def test_alphas_below_rounding_have_finite_roots():
    blocks, K_mm = problem(Gaussian(3.0), n=600, m=60)
    alphas = torch.logspace(-16, -12, FEW_ALPHAS + 1, dtype=torch.float64)
    basis = FalkonBasis.orthonormal(K_mm, next(iter(blocks)), 600.0, alphas, K_mm)
    assert all(bool(torch.isfinite(A).all()) for A in basis.roots)
