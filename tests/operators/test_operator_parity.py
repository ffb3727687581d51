"""Lazy products are the products of the kernel's own matrix, for every kernel there is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mercer.kernels
from mercer.kernels import Gaussian, Kernel, Laplace, Matern, Precomputed, WhiteNoise, resolve
from mercer.operators import Weighted, gram
from mercer.testing.examples import EXAMPLES
from mercer.testing.operators import check_operator
from mercer.testing.samples import sample_for

SIZES = [(1, 1), (1, 90), (90, 1), (2, 3), (127, 129), (150, 70)]


def samples(kernel: Kernel, n: int, m: int, seed: int = 0) -> tuple[Kernel, object, object]:
    """A kernel without open widths, and two samples for it."""
    rng = np.random.default_rng(seed)
    Z = sample_for(kernel, m, rng)
    X = rng.normal(size=(n, m)) if kernel.domain == "matrix" else sample_for(kernel, n, rng)
    if kernel.domain != "matrix" and isinstance(Z, np.ndarray):
        kernel = resolve(kernel, sample_for(kernel, 20, rng))
    return kernel, X, Z


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


def test_every_kernel_class_has_an_example() -> None:
    classes = {c for c in vars(mercer.kernels).values() if isinstance(c, type) and issubclass(c, Kernel)}
    seen = set()
    todo = list(EXAMPLES)
    while todo:
        kernel = todo.pop()
        seen.add(type(kernel))
        todo += [child for _, child in kernel.children()]
    assert classes - seen <= {Kernel}


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
@pytest.mark.usefixtures("small_tiles")
def test_products_of_two_samples_are_those_of_the_kernel_matrix(kernel: Kernel) -> None:
    kernel, X, Z = samples(kernel, 60, 45)
    V = np.random.default_rng(1).normal(size=(45, 3))
    K = kernel(X, Z)
    operator = gram(kernel, X, Z)
    assert relative(operator @ V, K @ V) < 1e-12
    assert relative(operator.T @ K[:, 0], K.T @ K[:, 0]) < 1e-12
    assert relative(operator.dense(), K) < 1e-12


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
@pytest.mark.usefixtures("small_tiles")
def test_products_of_one_sample_are_those_of_the_kernel_matrix(kernel: Kernel) -> None:
    kernel, _, X = samples(kernel, 2, 101)
    V = np.random.default_rng(1).normal(size=(101, 2))
    K = kernel(X)
    operator = gram(kernel, X)
    assert relative(operator @ V, K @ V) < 1e-12
    assert relative(operator @ V[:, 0], K @ V[:, 0]) < 1e-12
    assert relative(operator.dense(), K) < 1e-12
    assert relative(operator.diag(), K.diagonal()) < 1e-12
    assert relative(operator.rows([3, 99, 3]), K[[3, 99, 3]]) < 1e-12


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
def test_check_operator_holds_for_every_kernel(kernel: Kernel) -> None:
    kernel, X, Z = samples(kernel, 17, 13)
    check_operator(gram(kernel, X, Z))
    check_operator(gram(kernel, Z))


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
@pytest.mark.usefixtures("small_tiles")
def test_float32_products_have_float32_accuracy(kernel: Kernel) -> None:
    kernel, X, Z = samples(kernel, 40, 70)
    if not isinstance(X, np.ndarray) or kernel.domain == "matrix":
        pytest.skip("only rows of numbers have a dtype to choose")
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    V = np.random.default_rng(1).random((70, 2), dtype=np.float32)
    for operator, K in (
        (gram(kernel, X, Z), kernel(X.astype(np.float64), Z.astype(np.float64))),
        (gram(kernel, Z), kernel(Z.astype(np.float64))),
    ):
        product = operator @ V
        assert product.dtype == np.float32
        size = float((np.abs(K) @ V).max())
        assert np.abs(product - K @ V).max() <= 2e-6 * size


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplace(2.0), Matern(2.5) + WhiteNoise(0.5)], ids=repr)
@pytest.mark.usefixtures("small_tiles")
def test_odd_sizes(kernel: Kernel, n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    check_operator(gram(kernel, rng.normal(size=(n, 2)), rng.normal(size=(m, 2))))
    check_operator(gram(kernel, rng.normal(size=(n, 2))))


@pytest.mark.parametrize("n", [63, 64, 65, 1023, 1025])
@pytest.mark.usefixtures("small_tiles")
def test_sizes_around_the_tile(n: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 3))
    V = np.random.default_rng(0).normal(size=n)
    assert relative(gram(Gaussian(), X) @ V, Gaussian()(X) @ V) < 1e-12


def test_an_operator_without_rows_gives_empty_products() -> None:
    X = np.zeros((0, 2))
    assert (gram(Gaussian(), X, np.ones((3, 2))) @ np.ones((3, 2))).shape == (0, 2)
    assert (gram(Gaussian(), np.ones((3, 2)), X) @ np.ones(0)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.usefixtures("small_tiles")
def test_the_same_product_twice_is_the_same_to_the_last_bit() -> None:
    X = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    v = torch.randn(500, generator=torch.Generator().manual_seed(1))
    operator = gram(Laplace(), X)
    first = operator @ v
    assert all(torch.equal(first, operator @ v) for _ in range(5))


def test_reduced_precision_allowed_by_the_user_is_kept_out_and_put_back() -> None:
    before = torch.get_float32_matmul_precision()
    X = torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    try:
        torch.set_float32_matmul_precision("medium")
        product = gram(Gaussian(5.0), X) @ torch.ones(50)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    expected = Gaussian(5.0)(X.double()).sum(1)
    assert ((product - expected).abs().max() / expected.max()).item() < 2e-6


@pytest.mark.usefixtures("small_tiles")
def test_weighted_is_the_operator_between_two_diagonals() -> None:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(90, 2)), rng.random(90)
    operator = Weighted(gram(Laplace(), X), s)
    assert relative(operator.dense(), s[:, None] * Laplace()(X) * s) < 1e-14
    check_operator(operator)
    check_operator(Weighted(gram(Precomputed(), Laplace()(X)), s))


def test_a_kernel_that_is_not_symmetric_is_noticed() -> None:
    from mercer.core.errors import InputError
    from mercer.kernels import Callable

    kernel = Callable(lambda x, z: float(x[0] + 2 * z[0]))
    X = np.arange(6.0).reshape(-1, 1)
    with pytest.raises(InputError, match="symmetric"):
        gram(kernel, X).dense()
    with pytest.raises(InputError, match="symmetric"):
        gram(kernel, X) @ np.ones(6)


@pytest.mark.parametrize("shape", [(130, 130), (130, 100), (60, 130), (300, 210), (90, 0), (1, 60)])
def test_products_with_triangular_factors_leave_out_nothing_but_zeros(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X, Z, V = rng.normal(size=(70, 3)), rng.normal(size=(shape[0], 3)), rng.normal(size=shape)
    K = Gaussian()(X, Z)
    for factor in (V, np.tril(V), np.tril(V, -20), np.triu(V), 0 * V):
        np.testing.assert_allclose(gram(Gaussian(), X, Z) @ factor, K @ factor, atol=1e-12)
    if min(shape) > 1:
        V = np.tril(V)
        V[0, -1] = 1.0
        np.testing.assert_allclose(gram(Gaussian(), X, Z) @ V, K @ V, atol=1e-12)
