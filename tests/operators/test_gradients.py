"""Gradients of lazy products are those of the dense matrix, and take no more memory than the product."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from mercer import gram
from mercer.core.errors import InputError
from mercer.kernels import Callable, Gaussian, Kernel, Laplace, Linear, Matern, Periodic, RationalQuadratic, Subspace
from mercer.operators import Weighted, ZeroDiagonal, pull_back
from mercer.testing.examples import VECTOR_KERNELS
from mercer.testing.samples import sample_for

RNG = np.random.default_rng(0)


def tensor(*shape: int) -> Tensor:
    return torch.from_numpy(RNG.normal(size=shape))


def differentiable(kernel: Kernel) -> tuple[Kernel, list[Tensor]]:
    """The kernel with all its tunable parameters as tensors that gather gradients."""
    found = {
        path: torch.tensor(value, dtype=torch.float64, requires_grad=True) for path, value in kernel.tunable().items()
    }
    return kernel.replace(**found), list(found.values())


def both(kernel: Kernel, X: Tensor, Z: Tensor | None, V: Tensor, parameters: list[Tensor]) -> tuple[list, list]:
    """Gradients of a weighted sum of the product, lazy and dense."""
    n = len(X)
    W = torch.from_numpy(np.random.default_rng(1).normal(size=(n, *V.shape[1:])))
    wanted = [X, V, *parameters] if Z is None else [X, Z, V, *parameters]
    lazy = torch.autograd.grad((W * (gram(kernel, X, Z) @ V)).sum(), wanted, allow_unused=True)
    matrix = kernel(X) if Z is None else kernel(X, Z)
    dense = torch.autograd.grad((W * (matrix @ V)).sum(), wanted, allow_unused=True)
    return list(lazy), list(dense)


def assert_equal(lazy: list, dense: list) -> None:
    for found, expected in zip(lazy, dense, strict=True):
        if expected is None:
            assert found is None or not bool(found.any())
            continue
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10 * float(expected.abs().max()) + 1e-14)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
def test_gradients_to_points_factors_and_parameters(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pull_back.TILE_NUMBERS, "cpu", 20)  # many tiles, also across the diagonal
    if any(isinstance(value, str) for value in kernel.get_params().values()):
        pytest.skip("a length scale that is found from data")
    X, Z = (torch.from_numpy(np.asarray(sample_for(kernel, n, RNG), dtype=float)) for n in (9, 7))
    kernel, parameters = differentiable(kernel)
    for other in (None, Z.clone().requires_grad_()):
        V = tensor(9 if other is None else 7, 2).requires_grad_()
        assert_equal(*both(kernel, X.clone().requires_grad_(), other, V, parameters))


def test_gradients_through_vectors_scalings_and_what_is_built_on_products() -> None:
    X = tensor(8, 3).requires_grad_()
    kernel, parameters = differentiable(2.0 * Matern(1.5, (0.5, 1.0, 2.0)) + Subspace(Linear(0.3), [0]))
    v = tensor(8).requires_grad_()
    assert_equal(*both(kernel, X, None, v, parameters))
    s = tensor(8).abs()
    weighted = (Weighted(gram(kernel, X), s) @ v).square().sum()
    expected = (s * (kernel(X) @ (s * v))).square().sum()
    assert_equal(torch.autograd.grad(weighted, [X, v]), torch.autograd.grad(expected, [X, v]))


def test_only_what_requires_gradients_is_differentiated() -> None:
    X, v = tensor(6, 2), tensor(6)
    kernel, (scale,) = differentiable(Gaussian(0.7))
    (gram(kernel, X) @ v).sum().backward()
    assert scale.grad is not None
    assert X.grad is None
    assert not (gram(Gaussian(0.7), X) @ v).requires_grad
    with torch.no_grad():
        assert not (gram(kernel, X) @ v).requires_grad


def test_float32_data_and_float64_parameters() -> None:
    X, v = tensor(30, 3).float().requires_grad_(), tensor(30).float()
    kernel, (scale,) = differentiable(Laplace(0.7))
    product = gram(kernel, X) @ v
    assert product.dtype == torch.float32
    found = torch.autograd.grad(product.sum(), [X, scale])
    exact = torch.autograd.grad((kernel(X.double()) @ v.double()).sum(), [X, scale])
    torch.testing.assert_close(found[0], exact[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[1], exact[1], rtol=1e-4, atol=1e-4)


def test_kernels_that_cannot_be_traced_carry_gradients_too() -> None:
    def dot(x, z):
        return (x * z).sum() + 1.0

    X = tensor(5, 2).requires_grad_()
    kernel = Gaussian() + Periodic(period=2.0) * RationalQuadratic()
    assert_equal(*both(kernel, X, None, tensor(5, 2).requires_grad_(), []))
    assert Callable(dot)(X.detach()).shape == (5, 5)


def test_other_ways_than_products_refuse_gradients() -> None:
    operator = gram(Gaussian(), tensor(4, 2).requires_grad_())
    for ask in (operator.dense, lambda: operator.rows([0]), lambda: operator.quadratic(torch.ones(4, 1).double())):
        with pytest.raises(InputError, match="has no gradients"):
            ask()
        with torch.no_grad():
            ask()
    assert operator.diag().shape == (4,)


KERNELS = [Gaussian(0.8), Laplace(0.8), 2.0 * Matern(2.5) + Linear(0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("budget", [None, "400kB"])
def test_quadratic_forms_column_by_column(kernel: Kernel, budget: str | None) -> None:
    X, Z, V, U = tensor(300, 3), tensor(200, 3), tensor(200, 4), tensor(300, 4)
    pair, one = gram(kernel, X, Z, memory_budget=budget), gram(kernel, X, memory_budget=budget)
    torch.testing.assert_close(pair.quadratic(V, U), (U * (kernel(X, Z) @ V)).sum(0), rtol=1e-10, atol=1e-8)
    torch.testing.assert_close(one.quadratic(U), (U * (kernel(X) @ U)).sum(0), rtol=1e-10, atol=1e-8)
    matrix = kernel(X).fill_diagonal_(0.0)
    none = ZeroDiagonal(one)
    torch.testing.assert_close(none.quadratic(U), (U * (matrix @ U)).sum(0), rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(none @ U, matrix @ U, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(none.rows([3, 0]), matrix[[3, 0]], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(Weighted(one, torch.ones(300)).quadratic(U), one.quadratic(U))


def test_quadratic_needs_matching_columns() -> None:
    operator = gram(Gaussian(), tensor(4, 2))
    with pytest.raises(InputError, match="same number of columns"):
        operator.quadratic(torch.ones(4, 2), torch.ones(4, 3))
    with pytest.raises(InputError, match="same number of columns"):
        operator.quadratic(torch.ones(4))
