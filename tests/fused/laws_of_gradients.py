"""Laws of fused gradients: the same as automatic differentiation in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from laws import DEVICE, columns, error, normal, points

from mercer.kernels import (
    NNGP,
    NTK,
    ArcCosine,
    ExponentialPower,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Subspace,
    WhiteNoise,
)
from mercer.operators.backends import fused
from mercer.testing.examples import tapered

TOLERANCE = 1e-5

FAMILIES = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "laplace_l1": lambda l: Laplace(l, metric="l1"),
    "matern32": lambda l: Matern(1.5, l),
    "matern72": lambda l: Matern(3.5, l),
    "rational quadratic": lambda l: RationalQuadratic(l, alpha=1.7),
    "exponential power": lambda l: ExponentialPower(l, power=1.5),
    "sum": lambda l: 2.0 * Gaussian(l) + Matern(2.5, l) * Linear(1.0),
    "scaled by a function": lambda l: tapered * Gaussian(l) + Polynomial(2),
    "warped": lambda l: Subspace(Periodic(1.0, 3.0), 0) * Gaussian(l),
}


@pytest.mark.parametrize(
    ("name", "length_scale"),
    [*((name, 1.5) for name in FAMILIES), *((name, (1.0, 2.0, 3.0)) for name in ("gaussian", "laplace_l1", "warped"))],
)
def test_gradients_by_points_weights_and_length_scale_equal_autograd(name: str, length_scale: Any) -> None:
    family = FAMILIES[name]
    x, z = points(normal(50, 3, 0, 9.0)), points(normal(40, 3, 1, 9.0))
    V, W = columns(40, 2), columns(50, 2, seed=2)
    found = fused.gradient(family(length_scale).program(x), x, z, V, W)

    a, b, v = (t.double().requires_grad_() for t in (x.values, z.values, V))
    scale = torch.tensor(length_scale, dtype=torch.float64, device=DEVICE, requires_grad=True)
    loss = (W.double() * (family(scale)(a, b) @ v)).sum()
    by_a, by_b, by_v, by_scale = torch.autograd.grad(loss, (a, b, v, scale))
    assert error(found.x, by_a) < TOLERANCE
    assert error(found.z, by_b) < TOLERANCE
    assert error(found.V, by_v) < TOLERANCE
    shared = [g for g in found.length_scales.values() if g.shape == by_scale.shape]
    expected = by_scale if name != "warped" or isinstance(length_scale, tuple) else by_scale + sum(shared) - shared[-1]
    assert error(torch.stack(shared).sum(0), expected) < TOLERANCE


@pytest.mark.parametrize("name", ["gaussian", "matern32", "sum"])
def test_gradients_of_many_features_and_columns(name: str) -> None:
    kernel = FAMILIES[name](1.5)
    x, z, V, W = points(normal(50, 70, 0)), points(normal(40, 70, 1)), columns(40, 20), columns(50, 20, seed=2)
    found = fused.gradient(kernel.program(x), x, z, V, W)
    a, b, v = (t.double().requires_grad_() for t in (x.values, z.values, V))
    expected = torch.autograd.grad((W.double() * (kernel(a, b) @ v)).sum(), (a, b, v))
    for ours, theirs in zip((found.x, found.z, found.V), expected, strict=True):
        assert error(ours, theirs) < TOLERANCE


@pytest.mark.parametrize("kernel", [NTK(2), NNGP(3, b_var=0.0), NNGP(2, "erf"), ArcCosine(2)], ids=repr)
def test_gradients_of_networks_equal_autograd(kernel: Any) -> None:
    x, z, V, W = points(normal(50, 5, 0)), points(normal(40, 5, 1)), columns(40), columns(50, seed=2)
    found = fused.gradient(kernel.program(x), x, z, V, W)
    a, b = (t.values.double().requires_grad_() for t in (x, z))
    by_a, by_b = torch.autograd.grad((W.double() * (kernel(a, b) @ V.double())).sum(), (a, b))
    assert error(found.x, by_a) < TOLERANCE
    assert error(found.z, by_b) < TOLERANCE


@pytest.mark.parametrize("scale", [3e-6, 1e-2])
@pytest.mark.parametrize("kernel", [Laplace(), Matern(1.5), Matern(2.5), ExponentialPower(power=1.5)], ids=repr)
def test_gradients_of_points_within_a_small_part_of_a_length_scale(kernel: Any, scale: float) -> None:
    x, z, V, W = points(scale * normal(50, 8, 0)), points(scale * normal(40, 8, 1)), columns(40), columns(50, seed=2)
    found = fused.gradient(kernel.program(x), x, z, V, W)
    a, b = (t.values.double().requires_grad_() for t in (x, z))
    by_a, by_b = torch.autograd.grad((W.double() * (kernel(a, b) @ V.double())).sum(), (a, b))
    assert error(found.x, by_a) < TOLERANCE
    assert error(found.z, by_b) < TOLERANCE


def test_gradients_by_constants_equal_the_kernels_they_multiply() -> None:
    x = points(normal(60, 3, 0))
    V = columns(60)
    kernel = 3.0 * Gaussian() + WhiteNoise(0.5)
    program = kernel.program(x)
    numbers = fused.gradient(program, x, x, V, V, same=True).numbers
    constants = {program.steps[i].value: float(value) for i, value in numbers.items()}
    v = V.double()
    assert constants[3.0] == pytest.approx(float(v @ (Gaussian()(x.values.double()) @ v)), rel=1e-5)
    assert constants[0.5] == pytest.approx(float(v @ v), rel=1e-5)


def test_coincident_points_have_finite_gradients() -> None:
    half = normal(40, 3, 0)
    x = points(torch.cat([half, half]))
    W = columns(80)
    found = fused.gradient(Laplace().program(x), x, x, W, W, same=True)
    rows = x.values.double().requires_grad_()
    (expected,) = torch.autograd.grad(W.double() @ (Laplace()(rows) @ W.double()), rows)
    assert error(found.x + found.z, expected) < TOLERANCE
