"""Kernels of wide networks: against quadrature, many digits, Monte Carlo and networks that are finite."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import erf, roots_hermitenorm
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import NNGP, NTK, ArcCosine, to_dict
from mercer.operators import gram

KINKED = {"relu": (1.0, 0.0), "leaky_relu": (1.0, 0.3), "abs": (1.0, -1.0)}
SMOOTH = {
    "erf": erf,
    "sin": np.sin,
    "gelu": lambda u: u * 0.5 * (1.0 + erf(u / math.sqrt(2.0))),
    "tanh": np.tanh,
    "cos": np.cos,
    "sigmoid": lambda u: 1.0 / (1.0 + np.exp(-u)),
    "silu": lambda u: u / (1.0 + np.exp(-u)),
    "softplus": lambda u: np.logaddexp(u, 0.0),
}
SLOPE = 0.3
X = np.random.default_rng(0).normal(size=(6, 4))
SPECIAL = np.vstack([X[:3], -X[:3], X[:2] + 1e-7, 1e-4 - X[:2], 1e-6 * X[2:3], np.zeros((1, 4)), 30.0 * X[3:4]])


def pieces(activation: str):
    a, b = KINKED[activation]
    return lambda u: np.where(u > 0, a, b) * u, lambda u: np.where(u > 0, a, b)


def covariances(w: float, b: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q = b + w * X @ X.T / X.shape[1]
    p = np.diagonal(q)
    return q, np.broadcast_to(p[:, None], q.shape), np.broadcast_to(p, q.shape)


def smooth_means(phi, q: np.ndarray, p: np.ndarray, r: np.ndarray) -> np.ndarray:
    """E phi(u) phi(v) by two-dimensional quadrature."""
    nodes, weights = roots_hermitenorm(120)
    weights = weights / weights.sum()
    slope = (q / np.sqrt(p))[..., None, None]
    rest = np.sqrt(np.maximum(r - q * q / p, 0.0))[..., None, None]
    u, v = np.sqrt(p)[..., None] * nodes, slope * nodes[:, None] + rest * nodes
    return np.einsum("ijk,k,ijkl,l->ij", phi(u), weights, phi(v), weights)


def angular_mean(f, q: float, p: float, r: float, degree: int) -> float:
    """E f(u) f(v) of a function homogeneous of a degree, by an integral over the circle between its kinks."""
    t = math.acos(min(max(q / math.sqrt(p * r), -1.0), 1.0))
    cuts = np.unique(np.concatenate([np.arange(-2, 6) * math.pi / 2, t + np.arange(-4, 4) * math.pi / 2]))
    cuts = np.unique(np.clip(cuts, 0.0, 2.0 * math.pi))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for a, b in itertools.pairwise(cuts):
        s = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        total += 0.5 * (b - a) * float((f(np.cos(s)) * f(np.cos(s - t))) @ weights)
    radius = 2.0 if degree else 1.0  # E |g|^(2 degree)
    return total * radius * math.sqrt(p * r) ** degree / (2.0 * math.pi)


@pytest.mark.parametrize("activation", SMOOTH)
def test_one_smooth_layer_is_its_mean_and_slope(activation: str) -> None:
    phi, w, b = SMOOTH[activation], 0.8, 0.2
    q, p, r = covariances(w, b)
    step = 1e-5
    slope = lambda u: (phi(u + step) - phi(u - step)) / (2.0 * step)  # noqa: E731
    series = activation not in ("erf", "sin", "gelu")
    tolerance = 2e-5 if series else 1e-10
    mean = b + w * smooth_means(phi, q, p, r)
    np.testing.assert_allclose(NNGP(1, activation, w, b)(X), mean, atol=tolerance)
    tangent = mean + w * smooth_means(slope, q, p, r) * q
    np.testing.assert_allclose(NTK(1, activation, w, b)(X), tangent, atol=3e-4 if series else 1e-8)


@pytest.mark.parametrize("activation", KINKED)
def test_one_kinked_layer_is_its_mean_and_slope(activation: str) -> None:
    (phi, slope), w, b = pieces(activation), 1.3, 0.2
    q, p, r = covariances(w, b)
    mean = b + w * np.vectorize(lambda *a: angular_mean(phi, *a, 1))(q, p, r)
    np.testing.assert_allclose(NNGP(1, activation, w, b, SLOPE)(X), mean, rtol=1e-12)
    tangent = mean + w * np.vectorize(lambda *a: angular_mean(slope, *a, 0))(q, p, r) * q
    np.testing.assert_allclose(NTK(1, activation, w, b, SLOPE)(X), tangent, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("activation", [*SMOOTH, *KINKED])
def test_means_and_slopes_are_those_of_ten_million_draws(activation: str) -> None:
    phi = SMOOTH[activation] if activation in SMOOTH else pieces(activation)[0]
    q, p, r = (0.7, 1.4, 0.9)
    total, square, n = 0.0, 0.0, 10**7
    rng = np.random.default_rng(1)
    for _ in range(10):
        g, h = rng.normal(size=(2, n // 10))
        draws = phi(math.sqrt(p) * g) * phi(q / math.sqrt(p) * g + math.sqrt(r - q * q / p) * h)
        total, square = total + draws.sum() / n, square + (draws * draws).sum() / n
    x, z = np.array([[math.sqrt(p), 0.0]]), np.array([[q / math.sqrt(p), math.sqrt(r - q * q / p)]])
    found = NNGP(1, activation, 2.0, 0.0, SLOPE)(x, z).item() / 2.0
    assert abs(found - total) < 5.0 * math.sqrt((square - total**2) / n) + 2e-5 * (activation in ("tanh", "cos"))


def many_digits(x: np.ndarray, z: np.ndarray, depth: int, w: float, b: float, above: float, below: float):
    """NNGP and NTK from arc cosines in 60 digits."""
    with mpmath.workdps(60):
        x, z = ([mpmath.mpf(float(v)) for v in row] for row in (x, z))
        w, b, above, below = (mpmath.mpf(v) for v in (w, b, above, below))
        q, p, r = (b + w * mpmath.fdot(i, j) / len(x) for i, j in ((x, z), (x, x), (z, z)))
        tangent, mean_square, kink = q, (above**2 + below**2) / 2, (above - below) ** 2 / (2 * mpmath.pi)
        for _ in range(depth):
            size = mpmath.sqrt(p * r)
            t = mpmath.acos(min(max(q / size, -1), 1)) if size else mpmath.mpf(0)
            slope = mean_square - kink * t
            q = b + w * size * (kink * mpmath.sin(t) + slope * mpmath.cos(t))
            tangent = q + w * slope * tangent
            p, r = b + w * mean_square * p, b + w * mean_square * r
        return float(q), float(tangent)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("depth", [1, 20])
@pytest.mark.parametrize("b", [0.0, 1e-6, 0.1])
def test_rounding_does_not_grow_near_and_opposite_points_included(activation: str, depth: int, b: float) -> None:
    above, below = KINKED[activation]
    w = 2.0 / (above**2 + below**2)
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 1e-6)):
        x, z = torch.from_numpy(X[:2]).to(dtype), torch.from_numpy(SPECIAL).to(dtype)
        pairs = [[many_digits(i, j, depth, w, b, above, below) for j in z.double()] for i in x.double()]
        for kernel, exact in zip((NNGP, NTK), torch.tensor(pairs, dtype=torch.float64).permute(2, 0, 1), strict=True):
            k = kernel(depth, activation, w, b, below)
            size = (k.diag(x.double()).unsqueeze(1) * k.diag(z.double())).sqrt() + 1e-300
            for found in (k(x, z), gram(k, x, z).dense()):
                assert float(((found.double() - exact).abs() / size).max()) < tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("b", [0.0, 0.1])
@pytest.mark.parametrize("activation", [*KINKED, "erf", "sin", "gelu", "tanh"])
def test_values_and_gradients_are_finite_everywhere(activation: str, b: float, dtype: torch.dtype) -> None:
    depth = 1 if activation == "tanh" else 4
    for kernel in (NNGP(depth, activation, 1.0, b, SLOPE), NTK(depth, activation, 1.0, b, SLOPE)):
        x = torch.from_numpy(SPECIAL[:-1]).to(dtype).requires_grad_()
        for value in (kernel(x), kernel(x, -x.detach()), kernel.diag(x), gram(kernel, x) @ torch.ones(len(x), 1).to(x)):
            assert bool(value.isfinite().all())
            (slope,) = torch.autograd.grad(value.sum(), x)
            assert bool(slope.isfinite().all())


@pytest.mark.parametrize("kernel", [ArcCosine(0), ArcCosine(1), ArcCosine(2)], ids=repr)
def test_arc_cosine_gradients_are_finite_everywhere(kernel: ArcCosine) -> None:
    x = torch.from_numpy(SPECIAL).requires_grad_()
    for value in (kernel(x), kernel(x, -x.detach()), kernel.diag(x)):
        (slope,) = torch.autograd.grad(value.sum(), x)
        assert bool(slope.isfinite().all())


@pytest.mark.parametrize("activation", [*KINKED, "erf", "sin", "gelu"])
@pytest.mark.parametrize("kernel", [NNGP, NTK])
def test_deep_gram_matrices_are_positive_semi_definite(activation: str, kernel: type) -> None:
    points = np.vstack([SPECIAL[:-1], np.random.default_rng(2).normal(size=(40, 4))])
    values = np.linalg.eigvalsh(kernel(20, activation, 1.5, 0.05, SLOPE)(points))
    assert values[0] >= -1e-13 * values[-1]


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_a_network_with_fixed_hidden_layers_is_its_covariance(activation: str) -> None:
    np.testing.assert_allclose(NTK(3, activation, n_fixed=3)(X), NNGP(3, activation)(X), rtol=1e-14)
    parts = [NTK(2, activation, n_fixed=f)(X) for f in range(3)]
    for more, fewer in itertools.pairwise(parts):  # each layer adds a kernel
        assert np.linalg.eigvalsh(more - fewer)[0] > -1e-12


def test_arc_cosines_are_those_of_the_paper() -> None:
    norms = np.linalg.norm(X, axis=1)
    t = np.arccos(np.clip(X @ X.T / np.outer(norms, norms), -1.0, 1.0))
    rest = math.pi - t
    parts = (rest, np.sin(t) + rest * np.cos(t), 3.0 * np.sin(t) * np.cos(t) + rest * (1.0 + 2.0 * np.cos(t) ** 2))
    for order, part in enumerate(parts):
        expected = np.outer(norms, norms) ** order * part / math.pi
        np.testing.assert_allclose(ArcCosine(order)(X), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ArcCosine(1)(X), NNGP(1, "relu", 4.0, 0.0)(X) / 2.0, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_finite_networks_come_near_with_the_root_of_their_width(activation: str) -> None:
    """The covariance of a last hidden layer, and the tangent kernel, at two hidden layers of growing width."""
    phi = {"relu": torch.relu, "erf": torch.erf, "tanh": torch.tanh}[activation]
    w, b = 1.5, 0.1
    x = torch.from_numpy(X)
    exact = torch.from_numpy(NTK(2, activation, w, b)(X))
    widths, errors = [64, 256, 1024], []
    for width in widths:
        off = [(finite_tangent(x, phi, width, w, b, seed) - exact).square().mean() for seed in range(12)]
        errors.append(float(torch.stack(off).mean().sqrt()))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35, (slope, errors)


def finite_tangent(x: Tensor, phi, width: int, w: float, b: float, seed: int) -> Tensor:
    """The tangent kernel of a network of standard normal parameters, scaled in the forward pass."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [x.shape[1], width, width, 1]
    shapes = [s for i, o in itertools.pairwise(sizes) for s in ((i, o), (o,))]
    params = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]

    def outputs(*params: Tensor) -> Tensor:
        values = x
        for i in range(3):
            W, bias = params[2 * i], params[2 * i + 1]
            values = (phi(values) if i else values) @ W * (w / len(W)) ** 0.5 + b**0.5 * bias
        return values[:, 0]

    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(f, params, retain_graph=True)]) for f in outputs(*params)
    ]
    jacobian = torch.stack(rows)
    return jacobian @ jacobian.T


def test_a_function_of_the_user_is_expanded_and_not_saved() -> None:
    own = NNGP(1, lambda u: torch.tanh(u), 1.0)
    np.testing.assert_allclose(own(X), NNGP(1, "tanh", 1.0)(X), rtol=1e-14)
    with pytest.raises(InputError, match="activation is a Python function"):
        to_dict(own)


def test_what_makes_no_network_is_refused() -> None:
    with pytest.raises(InputError, match="give one of relu, leaky_relu"):
        NNGP(1, "swish9")
    with pytest.raises(InputTypeError, match="smooth function"):
        NNGP(1, torch.nn.ReLU)
    with pytest.raises(InputError, match="at most all 2 hidden layers"):
        NTK(2, n_fixed=3)
    with pytest.raises(InputError, match="misses .* of its size at row 0"):
        NNGP(1, "tanh")(1e3 * X)
