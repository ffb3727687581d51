"""Products are the same to the last bit with any number of threads, and right in each way to write a formula down."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mercer.core.arrays import as_points
from mercer.core.threads import GRAIN
from mercer.formula.plans import plans
from mercer.formula.spelling import InBaseTwo, InVectors
from mercer.kernels import ExponentialPower, Gaussian, Kernel, Laplace, Linear, Matern, RationalQuadratic
from mercer.operators import gram
from mercer.operators.backends import costs, products, tiles
from mercer.operators.backends.statistics import tile_inputs
from mercer.operators.backends.steps import powers_are_normal
from mercer.operators.backends.sums import Sum, VectorSum
from mercer.testing.examples import EXAMPLES
from mercer.testing.samples import sample_for

KERNELS = [
    Gaussian(),
    Laplace(),
    Matern(1.5),
    Matern(2.5),
    RationalQuadratic(alpha=0.7),
    Gaussian(2.0) * Laplace() + 0.3 * Matern(1.5),
]


def with_threads(count: int, job):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return job()
    finally:
        torch.set_num_threads(before)


@pytest.fixture(params=["Haswell", "SkylakeX"])
def not_intel(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    """The ways that are taken on processors that are not Intel's, with these kernels of OpenBLAS."""
    monkeypatch.setattr(costs, "_vendor", lambda: "AuthenticAMD")
    monkeypatch.setattr(costs, "openblas_kernels", lambda: frozenset({request.param}))
    costs.costs.cache_clear()
    yield
    costs.costs.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_number_of_threads_changes_no_bit(kernel: Kernel, dtype: torch.dtype, monkeypatch) -> None:
    monkeypatch.setattr(tiles, "TILE_BYTES", 2**15)
    monkeypatch.setattr(tiles, "THREADED_CELLS", 1)
    X = torch.randn(700, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    V = torch.randn(700, 5, generator=torch.Generator().manual_seed(1), dtype=dtype)

    def products() -> list[torch.Tensor]:
        one, two = gram(kernel, X), gram(kernel, X, X[:600].clone())
        some = torch.tensor([3, 650, 17])
        dense = [one.dense(), two.dense(), one.rows(some)]
        return [one @ V[:, 0], one @ V, two @ V[:600], two.T @ V[:, 0], one.quadratic(V), *dense]

    alone, many = with_threads(1, products), with_threads(3, products)
    assert all(torch.equal(a, b) for a, b in zip(alone, many, strict=True))


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
@pytest.mark.usefixtures("not_intel", "small_tiles")
def test_products_are_right_in_the_ways_for_other_processors(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    X, Z = sample_for(kernel, 45, rng), sample_for(kernel, 31, rng)
    if not isinstance(X, np.ndarray) or kernel.domain == "matrix":
        pytest.skip("only formulas of rows of numbers are written down")
    kernel = mercer_resolved(kernel, X)
    for operator, K in ((gram(kernel, X, Z), kernel(X, Z)), (gram(kernel, X), kernel(X))):
        np.testing.assert_allclose(operator.dense(), K, rtol=0, atol=1e-12 * np.abs(K).max())


def mercer_resolved(kernel: Kernel, X: np.ndarray) -> Kernel:
    from mercer.kernels import resolve

    return resolve(kernel, X)


@pytest.mark.parametrize("spelling", [InVectors, InBaseTwo])
@pytest.mark.parametrize(
    ("kernel", "ops"),
    [
        (RationalQuadratic(alpha=0.7), ["input", "add", "log2", "mul", "exp2"]),
        (RationalQuadratic(alpha=1.0), ["input", "add", "pow"]),
        (Linear(1.0) ** 5, ["input", "add", "mul", "mul", "mul"]),
        (ExponentialPower(power=0.5), ["input", "log2", "mul", "exp2", "mul", "exp"]),
    ],
)
def test_powers_are_written_as_what_is_quick(kernel: Kernel, ops: list[str], spelling) -> None:
    plan = plans(kernel.program(as_points([[0.0, 1.0]])), one_sample=False, spelling=spelling).off_diagonal
    last = ["exp2"] if spelling is InBaseTwo and ops[-1] == "exp" else ops[-1:]
    assert [step.op for step in plan.instructions] == ops[:-1] + last


def test_the_factor_of_a_power_of_two_moves_into_the_product() -> None:
    plan = plans(Laplace(2.0).program(as_points([[0.0]])), one_sample=False, spelling=InBaseTwo).off_diagonal
    assert [step.op for step in plan.instructions] == ["input", "sqrt", "mul", "exp2"]
    assert plan.rooted == {0}


def test_each_thread_has_buffers_within_the_budget() -> None:
    X = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    operator = gram(Gaussian(), X, memory_budget="64 MiB")

    def bytes_and_threads() -> tuple[int, int]:
        layout = operator.backend._layout(1, 2**26)
        return operator.backend._bytes(layout, 1), layout.threads

    (one, _), (eight, threads) = with_threads(1, bytes_and_threads), with_threads(8, bytes_and_threads)
    assert threads == 8
    assert one < eight <= 2**26
    least = with_threads(8, lambda: operator.backend._layout(1, 2**20))
    assert operator.backend._bytes(least, 1) <= 2**20


class LargestInThisThread(TorchDispatchMode):
    """The most numbers that an operation reads or writes; those that only look at memory in another way do neither."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.is_view and "empty" not in func.__name__ and func.__name__ != "lift_fresh.default":
            self.most = max([self.most, *(a.numel() for a in (*args, result) if isinstance(a, torch.Tensor))])
        return result


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_product_wakes_none_of_the_threads_of_torch_which_would_spin_beside_its_tiles(kernel: Kernel) -> None:
    X = np.random.default_rng(0).normal(size=(4000, 40)).astype(np.float32)
    v = np.ones(4000, dtype=np.float32)

    def largest() -> int:
        with LargestInThisThread() as found:
            gram(kernel, X) @ v, gram(kernel, X, X[:3000]) @ v[:3000]
        return found.most

    assert with_threads(2, largest) <= GRAIN


@pytest.mark.parametrize("d", [1, 3, 30, 250])
def test_products_by_onednn_are_as_exact_as_those_of_torch(d: int) -> None:
    if products._linear() is None:
        pytest.skip("torch was built without oneDNN")
    x, z = torch.randn(2, 500, d, generator=torch.Generator().manual_seed(d))
    exact, size = x.double() @ z.double().T, x.abs().double() @ z.abs().double().T
    error = (products.quick_product(x, z.T) - exact).abs()
    assert bool((error <= d * 2.0**-24 * size).all())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.usefixtures("not_intel", "small_tiles")
def test_products_on_tiles_that_onednn_or_numpy_has_made_are_right(kernel: Kernel, monkeypatch) -> None:
    monkeypatch.setattr(products, "LEAST_QUICK", 1)
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(150, 3)).astype(np.float32), rng.normal(size=(150, 40)).astype(np.float32)
    K = kernel(X.astype(np.float64))
    one, two = gram(kernel, X), gram(kernel, X[:90], X)
    bound = 1e-5 * np.abs(K).max()
    assert np.abs(one.dense() - K).max() < bound
    assert np.abs(two.rows([3, 80]) - K[[3, 80]]).max() < bound
    for columns in (V[:, 0], V[:, :2], V):
        size = np.abs(K).sum(1).max() * np.abs(columns).max()
        assert np.abs(one @ columns - K @ columns).max() < 1e-5 * size
        assert np.abs(two @ columns - K[:90] @ columns).max() < 1e-5 * size


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_by_numpy_equal_those_by_torch(dtype: torch.dtype, empty: bool) -> None:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype)

    tile, v, before = draw(7, 30, 20), draw(20), draw(30).double()
    before = torch.full_like(before, torch.nan) if empty else before
    ours, theirs = before.clone(), before.clone()
    by_numpy, by_torch = VectorSum(ours.numpy(), empty=empty), Sum(theirs, dtype, empty=empty)
    for some in tile:
        by_numpy.add(some.numpy(), v.numpy())
        by_torch.add(some, v)
        by_numpy.add(some[3:9].numpy(), v.numpy(), slice(3, 9))
        by_torch.add(some[3:9], v, slice(3, 9))
    by_numpy.finish()
    by_torch.finish()
    expected = torch.zeros_like(before) if empty else before.clone()
    expected += (tile.double() @ v.double()).sum(0)
    expected[3:9] += (tile[:, 3:9].double() @ v.double()).sum(0)
    for found in (ours, theirs):
        torch.testing.assert_close(found, expected, rtol=0, atol=14 * 20 * torch.finfo(dtype).eps * 10)


@pytest.mark.parametrize(("spread", "normal"), [(1.0, True), (30.0, False)])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(0.1), 2.0 * Matern(1.5, 0.1)], ids=repr)
def test_numpy_takes_powers_of_two_where_they_are_normal_numbers(kernel: Kernel, spread: float, normal: bool) -> None:
    X = torch.linspace(-spread, spread, 10).unsqueeze(1)
    program = kernel.program(as_points(X))
    plan = plans(program, one_sample=False, spelling=InBaseTwo).off_diagonal
    inputs = tile_inputs(program, plan, as_points(X), as_points(X.clone()), torch.float32)
    assert powers_are_normal(plan, inputs, torch.float32) is normal
    assert (float(kernel(X.double()).min()) >= torch.finfo(torch.float32).tiny) is normal
