"""Laws of fused products where points nearly coincide, and of tiles that serve twice."""

from __future__ import annotations

import pytest
import torch
from laws import DEVICE, NEAR_TOLERANCE, TOLERANCE, columns, dense, error, gram, normal, points, reference

from mercer.kernels import ExponentialPower, Gaussian, Kernel, Laplace, Linear, Matern, WhiteNoise
from mercer.operators.backends import fused
from mercer.operators.backends.fused.tiles import Tile


@pytest.mark.parametrize("kernel", [Laplace(), ExponentialPower(power=0.7), Laplace() * Linear(1.0)])
@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("symmetric", [False, True])
def test_near_duplicates_keep_their_distance(kernel: Kernel, d: int, symmetric: bool) -> None:
    half = normal(40, d, 0)
    rows = torch.cat([half, half + 1e-5 * normal(40, d, 1)])
    x = points(rows + 100.0)
    K, fast = reference(kernel, x), gram(kernel, x, x, same=True, symmetric=symmetric)
    for t in ((), (), (3,)):  # the second product knows from the first where points are near
        V = columns(80, *t)
        assert error(fast.product(V), K @ V.double().cpu()) < NEAR_TOLERANCE


@pytest.mark.parametrize(
    ("kernel", "d"),
    [
        (Gaussian(), 3),
        (Gaussian(4.0), 150),
        (Laplace(), 2),
        (Gaussian() + Matern(1.5, 2.0) * Linear(1.0) + WhiteNoise(0.5), 4),
        (Laplace(metric="l1") * Linear(1.0), 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [1, 64, 65, 150])
def test_each_tile_of_one_sample_serves_twice(kernel: Kernel, d: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(*_: object) -> None:
        raise AssertionError("a plain product")

    for name in ("_launch_over_rows", "_launch_over_columns"):
        monkeypatch.setattr(fused.launch, name, plain)
    x = points(normal(n + 1, d, 0)[1:])
    K, V, fast = reference(kernel, x), columns(n), gram(kernel, x, x, same=True, symmetric=True)
    for _ in range(2):
        assert error(fast.product(V), K @ V.double().cpu()) < TOLERANCE
    if d < 100:
        assert error(fast.product(columns(n, 2)), K @ columns(n, 2).double().cpu()) < TOLERANCE


@pytest.mark.skipif(DEVICE == "cuda", reason="tiles of a GPU are tall anyway")
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace()], ids=repr)
@pytest.mark.parametrize("programs", [1, 20])
def test_tall_tiles_and_long_passes_serve_twice_too(
    kernel: Kernel, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused.launch, "PROGRAMS", programs)  # few, so that each passes over several tiles
    monkeypatch.setattr(fused.tiles, "INTERPRETED_PAD", 128)
    monkeypatch.setattr(fused.launch, "_tile", lambda *_: Tile(128, 64, POLY=-1))
    half = normal(250, 3, 0)
    x = points(torch.cat([half, half + 1e-5 * normal(250, 3, 1)]))
    K, V, fast = reference(kernel, x), columns(500), gram(kernel, x, x, same=True, symmetric=True)
    for _ in range(2):
        assert error(fast.product(V), K @ V.double().cpu()) < TOLERANCE


@pytest.mark.parametrize("d", [20, 150])
def test_near_points_are_found_where_one_sample_is_longer(d: int) -> None:
    kernel, rows = Laplace(4.0), normal(300, d, 0)
    places = [1, 70, 140, 200, 290]  # each in a tile of its own
    z = points(torch.cat([rows[places] + 1e-5 * normal(5, d, 1), normal(80, d, 2)]))
    K, fast = reference(kernel, points(rows), z), gram(kernel, points(rows), z)
    for t in ((), (), (3,)):
        V, W = columns(85, *t), columns(300, *t)
        assert error(fast.product(V), K @ V.double().cpu()) < NEAR_TOLERANCE
        assert error(fast.T.product(W), K.T @ W.double().cpu()) < NEAR_TOLERANCE
    unit = torch.eye(85, device=V.device)[:5].T.contiguous()
    for column, place in zip(unit.T, places, strict=True):
        assert abs(float(fast.product(column)[place]) - float(K[place] @ column.double().cpu())) < 1e-6


@pytest.mark.parametrize("d", [20, 150])
def test_a_large_tile_with_near_points_is_taken_again_in_parts(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cpu":  # as large as on a GPU
        monkeypatch.setattr(fused.samples, "pad_of", lambda *, chunked: 128)
        monkeypatch.setattr(fused.launch, "tile", lambda *_, **__: Tile(128, 128, POLY=-1))
    kernel, rows = Laplace(4.0), normal(300, d, 0)
    rows[290] = rows[70] + 1e-5
    x, z = points(rows), points(torch.cat([normal(180, d, 2), rows[[1, 200]] + 1e-5]))
    K, fast = reference(kernel, x, z), gram(kernel, x, z)
    for t in ((), (3,)):
        V, W = columns(182, *t), columns(300, *t)
        assert error(fast.product(V), K @ V.double().cpu()) < TOLERANCE
        assert error(fast.T.product(W), K.T @ W.double().cpu()) < TOLERANCE
    assert any(flags.any for flags in fast.operands.flags.values())
    assert not all(flags.tiles.all() for flags in fast.operands.flags.values())
    assert error(dense(fast), K) < TOLERANCE
    whole, W = gram(kernel, x, x, same=True, symmetric=True), columns(300)
    assert error(whole.product(W), reference(kernel, x) @ W.double().cpu()) < TOLERANCE


def test_a_wide_gaussian_takes_near_points_from_differences() -> None:
    kernel = Gaussian(4.0)
    rows = normal(150, 150, 0)
    x, z = points(rows), points(torch.cat([rows[:2] + 1e-5 * normal(2, 150, 1), normal(130, 150, 2)]))
    K, fast = reference(kernel, x, z), gram(kernel, x, z)
    assert not fast.notes
    for t in ((), (), (3,)):
        V, W = columns(132, *t), columns(150, *t)
        assert error(fast.product(V), K @ V.double().cpu()) < TOLERANCE
        assert error(fast.T.product(W), K.T @ W.double().cpu()) < TOLERANCE
    assert any(flags.any for flags in fast.operands.flags.values())
    assert error(dense(fast), K) < TOLERANCE
