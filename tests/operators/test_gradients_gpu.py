"""Gradients and quadratic forms of fused products on a GPU agree with dense float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mercer import gram
from mercer.kernels import Gaussian, Kernel, Laplace, Linear, Matern

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]

KERNELS = [Gaussian(1.3), Laplace(1.3), 2.0 * Matern(1.5, (0.5, 1.0, 2.0)) + Linear(0.3)]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).cuda()


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert float((found.double() - expected).norm()) <= 2e-5 * float(expected.norm())


@pytest.mark.parametrize("one_sample", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_to_points_and_factors(kernel: Kernel, one_sample: bool) -> None:
    m = 3000 if one_sample else 2000
    samples = [normal(3000, 3)] if one_sample else [normal(3000, 3), normal(m, 3, seed=1)]
    leaves = [t.requires_grad_() for t in (*samples, normal(m, 2, seed=2))]
    W = normal(3000, 2, seed=3)
    operator = gram(kernel, *leaves[:-1])
    assert operator.notes[0] == "fused on the GPU"
    found = torch.autograd.grad((W * (operator @ leaves[-1])).sum(), leaves)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = torch.autograd.grad((W.double() * (kernel(*exact[:-1]) @ exact[-1])).sum(), exact)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b)


def test_gradients_to_a_parameter() -> None:
    X, v = normal(3000, 3), normal(3000, seed=1)
    scales = [
        torch.tensor(1.3, device="cuda", dtype=dtype, requires_grad=True) for dtype in (torch.float32, torch.float64)
    ]
    (gram(Gaussian().replace(length_scale=scales[0]), X) @ v).square().sum().backward()
    (Gaussian().replace(length_scale=scales[1])(X.double()) @ v.double()).square().sum().backward()
    assert_close(scales[0].grad, scales[1].grad)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_quadratic_forms(kernel: Kernel) -> None:
    X, Z, U, V = normal(3000, 3), normal(2000, 3, seed=1), normal(3000, 40, seed=2), normal(2000, 40, seed=3)
    K = kernel(X.double(), Z.double())
    assert_close(gram(kernel, X, Z).quadratic(V, U), (U.double() * (K @ V.double())).sum(0))
