"""float32 products stay accurate where float32 distances fail: offsets, near-duplicates, tiny length scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from mercer.kernels import ExponentialPower, Gaussian, Kernel, Laplace, Matern, RationalQuadratic
from mercer.kernels.maths import exp, sqrt
from mercer.kernels.pair import Pair
from mercer.operators import gram

Profile = Callable[[Tensor], Tensor]

SMOOTH: list[tuple[Kernel, Profile]] = [
    (Gaussian(), lambda r: torch.exp(-r * r / 2)),
    (Matern(1.5), lambda r: (1 + 3**0.5 * r) * torch.exp(-(3**0.5) * r)),
    (Matern(2.5), lambda r: (1 + 5**0.5 * r + 5 * r * r / 3) * torch.exp(-(5**0.5) * r)),
    (RationalQuadratic(alpha=1.5), lambda r: (1 + r * r / 3) ** -1.5),
]
ROUGH: list[tuple[Kernel, Profile]] = [
    (Laplace(), lambda r: torch.exp(-r)),
    (ExponentialPower(power=0.5), lambda r: torch.exp(-(r**0.5))),
    (ExponentialPower(power=1.5), lambda r: torch.exp(-(r**1.5))),
]
ALL = SMOOTH + ROUGH


def distances(X: Tensor, Z: Tensor) -> Tensor:
    """Euclidean distances in float64 from differences."""
    return torch.cdist(X.double(), Z.double(), compute_mode="donot_use_mm_for_euclid_dist")


def cloud(n: int, d: int, squared_radius: float, offset: float = 0.0, seed: int = 0) -> Tensor:
    """Float32 points whose largest squared distance from their middle is about `squared_radius`."""
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X -= X.mean(0)
    X *= (squared_radius / X.square().sum(1).max()).sqrt()
    return (X + offset).float()


def errors(kernel: Kernel, profile: Profile, X: Tensor, Z: Tensor | None = None) -> tuple[float, float]:
    """The largest error of K v for v >= 0, and the 2-norm error of K w for random w, relative to |K| |w|."""
    K = profile(distances(X, X if Z is None else Z))
    operator = gram(kernel, X, Z)
    generator = torch.Generator().manual_seed(5)
    v = torch.rand(K.shape[1], 2, generator=generator)
    w = torch.randn(K.shape[1], generator=generator)
    exact = K @ v.double()
    largest = ((operator @ v).double() - exact).abs().max() / exact.abs().max()
    spread = ((operator @ w).double() - K @ w.double()).norm() / (torch.linalg.matrix_norm(K, 2) * w.norm())
    return float(largest), float(spread)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 90])
@pytest.mark.parametrize(("kernel", "profile"), ALL, ids=lambda a: repr(a) if isinstance(a, Kernel) else "")
@pytest.mark.usefixtures("small_tiles")
def test_float32_products_are_accurate_to_2e_6(kernel: Kernel, profile: Profile, d: int, offset: float) -> None:
    X, Z = cloud(400, d, 24.0, offset), cloud(200, d, 20.0, offset, seed=1)
    assert max(errors(kernel, profile, X, Z)) < 2e-6
    assert max(errors(kernel, profile, X)) < 2e-6


@pytest.mark.parametrize("squared_radius", [300.0, 1e5, 1e8])
@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize(("kernel", "profile"), ALL, ids=lambda a: repr(a) if isinstance(a, Kernel) else "")
def test_tiny_length_scales_are_as_accurate(kernel: Kernel, profile: Profile, d: int, squared_radius: float) -> None:
    X = cloud(300, d, squared_radius)
    X[150:] = X[:150] + 0.3 * cloud(150, d, 1.0, seed=1)  # neighbours at the scale of the kernel
    assert max(errors(kernel, profile, X)) < 2e-6
    assert max(errors(kernel, profile, X, X[::2].clone())) < 2e-6


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("gap", [0.0, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize(("kernel", "profile"), ROUGH, ids=lambda a: repr(a) if isinstance(a, Kernel) else "")
@pytest.mark.usefixtures("small_tiles")
def test_near_duplicates_of_kernels_not_smooth_at_zero(
    kernel: Kernel, profile: Profile, gap: float, offset: float
) -> None:
    X = cloud(200, 5, 24.0, offset)
    Z = (X.double() + gap * cloud(200, 5, 1.0, seed=3).double()).float()
    worst = (gram(kernel, X, Z).dense().double() - profile(distances(X, Z))).abs().max()
    tolerance = 2e-3 if kernel == ExponentialPower(power=0.5) else 2e-5
    assert float(worst) < tolerance
    assert max(errors(kernel, profile, X, Z)) < 2e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", [k for k, _ in ALL], ids=repr)
@pytest.mark.usefixtures("small_tiles")
def test_the_diagonal_and_duplicate_rows_of_rough_kernels_are_exact(kernel: Kernel, dtype: torch.dtype) -> None:
    X = cloud(150, 4, 24.0, 1e4).to(dtype)
    X[100] = X[3]
    K = gram(kernel, X).dense()
    assert (K.diagonal() == 1.0).all()
    if kernel in [k for k, _ in ROUGH]:
        assert K[100, 3] == 1.0 == K[3, 100]


def test_float64_products_of_rough_kernels_keep_near_duplicates() -> None:
    X = cloud(100, 3, 24.0).double()
    Z = X + 1e-9
    worst = (gram(Laplace(), X, Z).dense() - torch.exp(-distances(X, Z))).abs().max()
    assert float(worst) < 1e-12


def test_notes_say_which_precision_the_product_has() -> None:
    assert gram(Gaussian(), cloud(50, 3, 20.0)).notes == ("squared distances by matrix product, float32",)
    assert gram(Gaussian(), cloud(50, 3, 20.0).double()).notes == ("squared distances by matrix product, float64",)
    (note,) = gram(Gaussian(), cloud(50, 3, 312.0)).notes
    assert note.startswith("float64 product: R2 = 3")
    assert note.endswith("> 25")


def test_many_right_hand_sides_are_each_the_product_with_one() -> None:
    X = cloud(120, 3, 10.0)
    V = torch.randn(120, 40, generator=torch.Generator().manual_seed(0))
    operator = gram(Laplace(), X)
    together = operator @ V
    alone = torch.stack([operator @ v for v in V.T], dim=1)
    assert ((together - alone).abs().max() / alone.abs().max()).item() < 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Smoothed(Kernel):
    """A kernel that adds next to nothing under its root."""

    def of(self, pair: Pair) -> Any:
        return exp(-sqrt(pair.squared_distance() + 1e-12))


def test_rounding_below_zero_never_reaches_a_root() -> None:
    X = cloud(200, 30, 24.0)
    K = gram(Smoothed(), X, X.clone()).dense()
    assert bool(torch.isfinite(K).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("far", [1e8, 1e18, 9.97e36, 1e160])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Matern(2.5), Matern(1.5) * Gaussian(2.0)], ids=repr)
def test_a_row_far_out_leaves_the_others_alone(kernel: Kernel, far: float, dtype: torch.dtype) -> None:
    if far > torch.finfo(dtype).max:
        pytest.skip("no such number")
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    rows = torch.cat([x, torch.tensor([[0.0, far, 0.0], [0.0, far, 0.0], [0.0, -far, 0.0]], dtype=dtype)])
    expected = torch.block_diag(kernel(x.double()), torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    one = torch.eye(63, dtype=dtype)
    rounding = 100 * torch.finfo(dtype).eps
    for other in (None, rows.clone()):
        torch.testing.assert_close(gram(kernel, rows, other) @ one, expected.to(dtype), rtol=rounding, atol=rounding)
