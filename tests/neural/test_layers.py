"""Kernels of wide networks put together from layers, and of random networks of any shape."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mercer import KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import NNGP, NTK
from mercer.neural import (
    Activation,
    AveragePool,
    Conv,
    Dense,
    Flatten,
    LayerKernel,
    MonteCarloNNGP,
    Residual,
    empirical_ntk,
)

ROWS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
IMAGES = torch.randn(3, 2 * 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
SHAPE = (2, 4, 4)
W, B = 1.7, 0.3


class Scaled(nn.Module):
    """A layer with standard normal parameters, multiplied by the roots of their variances."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.fan = inner, inner.weight[0].numel()
        self.weight = nn.Parameter(torch.randn_like(inner.weight, dtype=torch.float64))
        self.bias = nn.Parameter(torch.randn_like(inner.bias, dtype=torch.float64))
        inner.weight.requires_grad_(False)
        inner.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        given = {"weight": (W / self.fan) ** 0.5 * self.weight, "bias": B**0.5 * self.bias}
        return torch.func.functional_call(self.inner, given, (x,))


class Sum(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def conv(into: int, out: int, padding: str) -> nn.Module:
    return Scaled(nn.Conv2d(into, out, 3, padding=1, padding_mode=padding))


def finite(name: str, width: int) -> nn.Module:
    dense = {"plain": 16, "pooled": 4, "residual": 4}[name] * width
    layers = {
        "plain": lambda: [conv(2, width, "zeros"), nn.ReLU(), conv(width, width, "zeros"), nn.ReLU()],
        "pooled": lambda: [
            conv(2, width, "circular"),
            nn.ReLU(),
            nn.AvgPool2d(2),
            conv(width, width, "circular"),
            nn.ReLU(),
        ],
        "residual": lambda: [conv(2, width, "zeros"), Sum(nn.ReLU(), conv(width, width, "zeros")), nn.AvgPool2d(2)],
    }[name]()
    return nn.Sequential(*layers, nn.Flatten(), Scaled(nn.Linear(dense, 1)))


def infinite(name: str, *, tangent: bool = True) -> LayerKernel:
    zero, circular, relu = Conv(3, W, B), Conv(3, W, B, "circular"), Activation("relu")
    layers = {
        "plain": [zero, relu, zero, relu],
        "pooled": [circular, relu, AveragePool(2), circular, relu],
        "residual": [zero, Residual((relu, zero)), AveragePool(2)],
    }[name]
    return LayerKernel([*layers, Flatten(), Dense(W, B)], shape=SHAPE, tangent=tangent)


def seeded(name: str, width: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return finite(name, width)


@pytest.mark.parametrize("name", ["plain", "pooled", "residual"])
def test_the_tangent_kernel_of_wide_convolutional_networks_is_the_limit(name: str) -> None:
    found = torch.stack([empirical_ntk(seeded(name, 96, k), IMAGES, shape=SHAPE) for k in range(12)])
    expected = infinite(name)(IMAGES)
    spread = found.std(0) / 12**0.5
    assert float((spread / expected.abs().mean()).max()) < 0.06
    assert bool(((found.mean(0) - expected).abs() < 4 * spread + 0.02 * expected.abs().mean()).all())


@pytest.mark.parametrize("name", ["plain", "pooled", "residual"])
def test_the_covariance_of_wide_convolutional_networks_is_the_limit(name: str) -> None:
    kernel = MonteCarloNNGP(lambda: finite(name, 24), n_modules=500, shape=SHAPE)
    expected = infinite(name, tangent=False)(IMAGES)
    root = expected.diagonal().sqrt()
    assert float(((kernel(IMAGES) - expected) / torch.outer(root, root)).abs().max()) < 0.2


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "erf", "gelu", "sin", "tanh"])
def test_dense_layers_are_the_kernels_of_connected_networks(activation: str) -> None:
    layers = [Dense(W, B), *([Activation(activation), Dense(W, B)] * 2)]
    rows = 0.5 * ROWS
    for tangent, known in ((True, NTK(2, activation, W, B)), (False, NNGP(2, activation, W, B))):
        kernel = LayerKernel(layers, tangent=tangent)
        torch.testing.assert_close(kernel(rows), known(rows), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(kernel(rows, rows[:2]), known(rows)[:, :2], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(kernel.diag(rows), known.diag(rows), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(kernel(rows[:2], rows[2:]), known(rows[:2], rows[2:]), rtol=1e-11, atol=0.0)


def test_what_comes_in_has_no_weights_to_train() -> None:
    inputs = ROWS @ ROWS.T / 3
    first = W * inputs + B
    sums = W * (inputs + first) + B
    k = LayerKernel([Residual([Dense(W, B)]), Dense(W, B)])
    torch.testing.assert_close(k(ROWS), sums + W * first)


def test_images_of_one_place_are_rows() -> None:
    layers = [Conv(1, W, B), Activation(), Conv(1, W, B), Activation(), AveragePool(1), Flatten(), Dense(W, B)]
    torch.testing.assert_close(
        LayerKernel(layers, shape=(3, 1, 1))(ROWS), NTK(2, "relu", W, B)(ROWS), rtol=1e-6, atol=1e-6
    )


def neighbours(size: int, padding: str, height: int, width: int) -> list[Tensor]:
    """For each part of a filter, the matrix that takes a place to the one seen through it."""
    found = []
    for down, right in product(range(-(size // 2), size // 2 + 1), repeat=2):
        move = torch.zeros(height * width, height * width).double()
        for row, column in product(range(height), range(width)):
            to = row + down, column + right
            if padding == "circular" or (0 <= to[0] < height and 0 <= to[1] < width):
                move[row * width + column, to[0] % height * width + to[1] % width] = 1.0
        found.append(move)
    return found


def relu(S: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    size = torch.outer(left.sqrt(), right.sqrt())
    angle = (S / size).clamp(-1.0, 1.0).acos()
    slope = (np.pi - angle) / (2.0 * np.pi)
    return size * angle.sin() / (2.0 * np.pi) + slope * S, slope


def by_all_pairs_of_places(layers: list[object], x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """S and T of two images (channels, H, W), from matrices of all pairs of their places."""
    (height, width), images = x.shape[1:], {"xz": (x, z), "xx": (x, x), "zz": (z, z)}
    S = {key: a.flatten(1).T @ b.flatten(1) / len(a) for key, (a, b) in images.items()}
    T = torch.zeros_like(S["xz"])
    for layer in layers:
        if isinstance(layer, Conv):
            moves = neighbours(layer.size, layer.padding, height, width)
            S = {key: B + W * sum(m @ part @ m.T for m in moves) / len(moves) for key, part in S.items()}
            T = S["xz"] + W * sum(m @ T @ m.T for m in moves) / len(moves)
        elif isinstance(layer, Activation):
            ends = {"x": S["xx"].diagonal(), "z": S["zz"].diagonal()}
            found = {key: relu(part, ends[key[0]], ends[key[1]]) for key, part in S.items()}
            S, T = {key: value for key, (value, _) in found.items()}, found["xz"][1] * T
        else:
            blocks = torch.zeros(height * width // layer.size**2, height * width).double()
            for row, column in product(range(height), range(width)):
                block = row // layer.size * (width // layer.size) + column // layer.size
                blocks[block, row * width + column] = layer.size**-2.0
            S, T = {key: blocks @ part @ blocks.T for key, part in S.items()}, blocks @ T @ blocks.T
            height, width = height // layer.size, width // layer.size
    return S["xz"].diagonal().mean(), T.diagonal().mean()


@pytest.mark.parametrize("padding", ["zero", "circular"])
@pytest.mark.parametrize("pool", [None, 2, 3])
def test_sheets_of_one_displacement_are_the_matrices_of_all_pairs_of_places(padding: str, pool: int | None) -> None:
    layers = [Conv(3, W, B, padding), Activation(), Conv(5, W, B), Activation()]
    layers += [] if pool is None else [AveragePool(pool), Conv(3, W, B, padding), Activation()]
    x = torch.randn(2, 2 * 6 * 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[0, :20] = 0.0
    found = LayerKernel([*layers, Flatten(), Dense(W, B)], shape=(2, 6, 12))(x)
    for i, j in product(range(2), repeat=2):
        S, T = by_all_pairs_of_places(layers, x[i].reshape(2, 6, 12), x[j].reshape(2, 6, 12))
        torch.testing.assert_close(found[i, j], B + W * (S + T), rtol=1e-7, atol=1e-7)


def test_gradients_are_those_of_differences_and_finite_for_equal_images() -> None:
    kernel, x = infinite("pooled"), IMAGES[:2].clone().requires_grad_()
    torch.autograd.gradcheck(lambda rows: kernel(rows, IMAGES[2:]), (x,), rtol=1e-4, atol=1e-6)
    (gradient,) = torch.autograd.grad(kernel(x).sum() + kernel(x, IMAGES).sum() + kernel.diag(x).sum(), x)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("name", ["plain", "pooled", "residual"])
def test_tiles_say_the_same_as_one_matrix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.cat([IMAGES, 0.5 * IMAGES.flip(0)])
    whole, between = infinite(name)(images), infinite(name)(images[:4], images[3:])
    monkeypatch.setattr("mercer.neural.layer_kernel.CACHED", 4 * 16**2)
    torch.testing.assert_close(infinite(name)(images), whole, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(infinite(name)(images[:4], images[3:]), between, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(whole[:4, 3:], between, rtol=1e-6, atol=1e-6)


def test_pooling_all_places_after_circular_convolutions_makes_shifts_equal() -> None:
    layers = [
        Conv(3, W, B, "circular"),
        Activation(),
        Conv(3, W, B, "circular"),
        Activation(),
        AveragePool(4),
        Flatten(),
    ]
    moved = torch.roll(IMAGES.reshape(3, *SHAPE), (1, 2), (2, 3)).reshape(3, -1)
    pooled = LayerKernel([*layers, Dense(W, B)], shape=SHAPE)
    plain = LayerKernel([*layers[:4], Flatten(), Dense(W, B)], shape=SHAPE)
    torch.testing.assert_close(pooled(IMAGES, moved), pooled(IMAGES), rtol=1e-7, atol=1e-7)
    assert float((plain(IMAGES, moved) - plain(IMAGES)).abs().max()) > 0.1


def test_estimators_take_them_and_matrices_are_positive_semidefinite() -> None:
    rows = torch.randn(12, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64).numpy()
    kernels = [
        infinite("pooled"),
        infinite("plain", tangent=False),
        MonteCarloNNGP(lambda: finite("plain", 4), 5, SHAPE),
    ]
    for kernel in kernels:
        assert np.linalg.eigvalsh(kernel(rows)).min() > -1e-10
        model = KernelRidge(kernel, alpha=1e-6).fit(rows, rows[:, 0])
        assert model.predict(rows).shape == (12,)
        np.testing.assert_allclose(kernel.diag(rows), kernel(rows).diagonal(), rtol=1e-7)


def test_networks_that_cannot_be_say_so() -> None:
    for layers, words in (
        ([Conv(), Activation()], "the last layer must be Dense"),
        ([Conv(), Dense()], "put Flatten"),
        ([Flatten(), Conv(), Dense()], "it needs images"),
        ([AveragePool(3), Flatten(), Dense()], "cannot be divided into squares"),
        ([Residual((AveragePool(2),)), Flatten(), Dense()], "keep the shape"),
    ):
        with pytest.raises(InputError, match=words):
            LayerKernel(layers, shape=SHAPE)(IMAGES)
    with pytest.raises(InputError, match="it needs images"):
        LayerKernel([Conv(), Flatten(), Dense()])(IMAGES)
    with pytest.raises(InputError, match="of 27 numbers, but rows have 32"):
        LayerKernel([Flatten(), Dense()], shape=(3, 3, 3))(IMAGES)
    with pytest.raises(InputTypeError, match="is no layer"):
        LayerKernel([nn.Linear(2, 2), Dense()])
    with pytest.raises(InputTypeError, match="not a module"):
        MonteCarloNNGP(nn.Linear(2, 2))
    with pytest.raises(InputError, match="odd number"):
        Conv(2)
