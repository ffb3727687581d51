"""Laws of fused products: the same numbers as float64, for every kernel, shape, offset and radius."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from laws import (
    DEVICE,
    NEAR_TOLERANCE,
    TOLERANCE,
    columns,
    dense,
    error,
    every_pair,
    gram,
    normal,
    points,
    product_error,
    reference,
    samples,
)

from mercer.core.arrays import as_points
from mercer.formula.simplify import merged, reduced
from mercer.kernels import (
    NNGP,
    FeatureMap,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    WhiteNoise,
    resolve,
)
from mercer.operators.backends import fused
from mercer.operators.backends.fused.profile import profile
from mercer.testing.compositions import random_differences, random_kernel
from mercer.testing.examples import FUNCTION_KERNELS, VECTOR_KERNELS, numpy_waves

BESSEL = (Matern(0.8), Matern(3.3, 1.7))
NUMPY = (FeatureMap(numpy_waves),) if DEVICE == "cuda" else ()  # functions of numpy arrays see no GPU
SERIES = (NNGP(1, "tanh", 1.0),)  # too many functions of one point
FUSED = [kernel for kernel in VECTOR_KERNELS + FUNCTION_KERNELS if kernel not in BESSEL + NUMPY + SERIES]


@pytest.mark.parametrize("kernel", FUSED, ids=repr)
def test_products_transposes_and_rows_equal_float64(kernel: Kernel) -> None:
    x, z = samples(kernel, 70, 50)
    kernel = resolve(kernel, z.values.cpu().double())
    K = reference(kernel, x, z)
    fast = gram(kernel, x, z)
    V, W = columns(50), columns(70)
    assert error(fast.product(V), K @ V.double().cpu()) < TOLERANCE
    assert error(fast.T.product(W), K.T @ W.double().cpu()) < TOLERANCE
    assert error(dense(fast), K) < TOLERANCE


@pytest.mark.parametrize("kernel", [Gaussian(), 3.0 * Laplace() * Linear(1.0)], ids=repr)
@pytest.mark.parametrize("t", [(), (3,)])
@pytest.mark.parametrize("span", [64, 192])  # the last one is then as long as the others, or shorter
def test_sums_of_spans_are_added_up(
    kernel: Kernel, t: tuple[int, ...], span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused.launch, "SPAN", span)
    x, z = points(normal(70, 3, 0)), points(normal(300, 3, 1))
    V = columns(300, *t)
    assert error(gram(kernel, x, z).product(V), reference(kernel, x, z) @ V.double().cpu()) < TOLERANCE


@pytest.mark.parametrize(("tiles", "length"), [(1, 64), (3, 640), (5000, 20_096), (5000, 1_000_064), (1, 1_000_064)])
def test_spans_cover_all_and_none_is_too_long(tiles: int, length: int) -> None:
    span, spans = fused.launch._spans(tiles, length, 64, 8)
    assert (spans - 1) * span < length <= spans * span
    assert span % 64 == 0
    assert span <= fused.launch.SPAN


@pytest.mark.parametrize(("passed", "kept"), [(16, 64), (64, 64), (64, 128), (256, 128)])  # of the tiles in use
@pytest.mark.parametrize("n", [256, 2048, 20_224, 1_000_192])
@pytest.mark.parametrize("m", [256, 2048, 20_224, 1_000_192])
def test_the_sums_of_all_spans_are_counted(n: int, m: int, passed: int, kept: int) -> None:
    _, spans = fused.launch._spans(n // kept, m, passed, 8)
    assert 4 * spans * n <= fused.launch.bytes_of_product((n, m), 1)


@pytest.mark.parametrize("t", [2, 20, 40, 100])
@pytest.mark.parametrize(
    ("kernel", "d"),
    [(Gaussian() + Laplace(2.0) * Linear(1.0), 60), (Gaussian() + Matern(1.5, 2.0) * Linear(1.0), 90), (Laplace(), 90)],
)
def test_many_columns_of_many_features(kernel: Kernel, d: int, t: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, z = points(normal(70, d, 0)), points(normal(140, d, 1))
    assert product_error(kernel, x, z, t) < TOLERANCE
    monkeypatch.setattr(fused.samples, "truncation_harms", lambda *_: True)  # as where points cluster
    assert product_error(kernel, x, z, t) < TOLERANCE


@pytest.mark.parametrize("d", [33, 48, 118])  # a sum that is one feature long, whole sums, and a shorter last one
@pytest.mark.parametrize("metric", ["l1", "l2"])
def test_distances_over_many_features_add_up_to_float32(d: int, metric: str) -> None:
    kernel = Laplace(metric=metric) if metric == "l1" else Gaussian(0.03)
    two = kernel + type(kernel)(tuple(np.linspace(0.8, 1.5, d)), **({"metric": "l1"} if metric == "l1" else {}))
    x, z = points(normal(70, d, 0)), points(normal(50, d, 1) if metric == "l1" else normal(70, d, 0)[:50] + 1e-3)
    assert metric == "l1" or any("differences" in note for note in gram(kernel, x, z).notes)
    for some in (kernel, two):
        assert product_error(some, x, z) < TOLERANCE
        assert product_error(some, x, z, 3) < TOLERANCE


@pytest.mark.parametrize(
    ("d", "t", "kernel"),
    every_pair([12, 44, 130], [1, 3, 40], [Gaussian(), Laplace(2.0), Laplace(2.0) * Linear(1.0)]),
)
def test_distances_added_up_beside_matrix_products(kernel: Kernel, d: int, t: int) -> None:
    kernel = Laplace(3.0, metric="l1") + kernel
    half = normal(35, d, 0)
    x, z = points(torch.cat([half, half + 1e-4 * normal(35, d, 1)])), points(normal(50, d, 2))
    assert product_error(kernel, x, z, t) < TOLERANCE
    assert product_error(kernel, x, x.take(slice(20, 60)), t) < NEAR_TOLERANCE


@pytest.mark.parametrize("seed", range(50))
def test_random_compositions_equal_float64(seed: int) -> None:
    kernel = random_kernel(np.random.default_rng(seed), 4)
    x, z = points(normal(60, 4, seed)), points(normal(50, 4, seed + 1000))
    assert product_error(kernel, x, z) < TOLERANCE


@pytest.mark.parametrize("seed", range(20))
def test_distances_with_a_negative_factor_equal_float64(seed: int) -> None:
    kernel = random_differences(np.random.default_rng(seed), 4)
    x, z = points(normal(60, 4, seed)), points(normal(50, 4, seed + 1000))
    assert product_error(kernel, x, z) < TOLERANCE
    assert error(dense(gram(kernel, x, z)), reference(kernel, x, z)) < TOLERANCE
    assert product_error(kernel, x, x, same=True) < TOLERANCE


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Matern(1.5), RationalQuadratic(), Linear(), Polynomial()])
def test_offsets_of_ten_thousand_do_no_harm(kernel: Kernel) -> None:
    x, z = points(normal(70, 5, 0) + 1e4), points(normal(50, 5, 1) + 1e4)
    assert product_error(kernel, x, z) < TOLERANCE


@pytest.mark.parametrize(
    ("kernel", "d", "far"),
    every_pair([Gaussian(), Laplace(), Laplace(metric="l1"), Matern(2.5)], [3, 20, 40], [1e6, 1e18, 9.97e36, 1e10]),
)
def test_a_row_far_out_leaves_the_others_alone(kernel: Kernel, d: int, far: float) -> None:
    rows = normal(70, d, 0)
    rows[7, 1] = far
    x, z, V = points(rows), points(normal(50, d, 1)), columns(50)
    expected = reference(kernel, points(np.delete(rows.numpy(), 7, axis=0)), z) @ V.double().cpu()
    fast = gram(kernel, x, z)
    found = fast.product(V).cpu()
    assert bool(fast.T.product(columns(70)).isfinite().all())
    assert error(torch.cat([found[:7], found[8:]]), expected) < NEAR_TOLERANCE
    assert abs(float(found[7])) < 1e-6


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Matern(1.5)])
@pytest.mark.parametrize(("radius", "word"), [(60.0, "three-term"), (3e4, "differences")])
def test_wide_data_take_a_slower_path_and_say_so(kernel: Kernel, radius: float, word: str) -> None:
    near = normal(60, 6, 0, radius)
    x, z = points(near), points(near[:50] + 0.2 * normal(50, 6, 1))
    assert product_error(kernel, x, z) < TOLERANCE
    assert any(word in note for note in gram(kernel, x, z).notes)


def test_steep_exponents_count_as_wide_data() -> None:
    x, z = points(normal(60, 4, 0)), points(normal(50, 4, 1))
    steep = Gaussian(1.0) ** 8
    narrow = Gaussian(8.0**-0.5)
    assert error(dense(gram(steep, x, z)), reference(narrow, x, z)) < 4 * TOLERANCE


@pytest.mark.parametrize("shape", [(1, 1), (65, 129), (200, 3)])
@pytest.mark.parametrize("t", [(), (1,), (5,), (16,), (130,)])
def test_any_shape_multiplies(shape: tuple[int, int], t: tuple[int, ...]) -> None:
    x, z = points(normal(shape[0] + 1, 3, 0)[1:]), points(normal(shape[1] + 1, 3, 1)[1:])
    kernel = Matern(1.5) + Linear(30.0)
    V = columns(shape[1], *t)
    result = gram(kernel, x, z).product(V)
    assert result.shape == (shape[0], *t)
    assert error(result, reference(kernel, x, z) @ V.double().cpu()) < TOLERANCE


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Gaussian() + Matern(1.5, 2.0) * Linear(1.0)])
@pytest.mark.parametrize("d", [40, 100, 300])
def test_many_features_are_read_in_chunks(kernel: Kernel, d: int) -> None:
    x, z = points(normal(40, d, 0)), points(normal(30, d, 1))
    assert product_error(kernel, x, z, 3) < TOLERANCE


@pytest.mark.parametrize(("kernel", "d", "word"), [(Gaussian(), 200, "rounded"), (Matern(1.5), 90, "split")])
def test_clusters_of_many_columns_are_summed_with_care_and_say_so(kernel: Kernel, d: int, word: str) -> None:
    far = normal(40, d, 0)
    x, near = points(far), points(0.9 * far[:30] + 0.1 * normal(30, d, 1))
    assert product_error(kernel, x, near) < TOLERANCE
    assert any(word in note for note in gram(kernel, x, near).notes)
    assert not gram(kernel, x, points(normal(30, d, 1))).notes


def test_inner_products_of_many_columns_have_three_terms_and_say_so() -> None:
    x, z = points(3.0 + normal(40, 200, 0, 1e4)), points(normal(30, 200, 1, 1e4))
    kernel = Polynomial(2)
    assert product_error(kernel, x, z) < TOLERANCE
    assert any("three-term products" in note for note in gram(kernel, x, z).notes)


@pytest.mark.parametrize(
    ("kernel", "d", "far", "side"),
    every_pair(
        [Linear(1.0), Linear(0.0), Polynomial(3), Gaussian(2.0) + Linear(1.0)],
        [3, 20, 200],
        [10.0, 1e3, 1e5, 1e8],
        [0, 1],
    ),
)
def test_inner_products_keep_ordinary_rows_beside_a_large_one(kernel: Kernel, d: int, far: float, side: int) -> None:
    rows = [normal(40, d, 0), normal(30, d, 1)]
    rows[side][7] *= far
    x, z = map(points, rows)
    operator, V = gram(kernel, x, z), columns(30)
    V[7] *= 1.0 - side
    K, v = reference(kernel, x, z), V.double().cpu()
    found, expected = operator.product(V).cpu(), K @ v
    ordinary = torch.arange(40) != (7 if side == 0 else 40)
    assert error(found[ordinary], expected[ordinary]) < TOLERANCE
    assert bool(((found - expected).abs() <= 1e-5 * (K.abs() @ v.abs())).all())
    assert any("differ in length" in note for note in operator.notes) == (far > 1e4)


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        (Linear(0.0), 1e16),
        (Linear(1.0), 1e-16),
        (Polynomial(3), 1e-12),
        (Polynomial(3, scale=1e-20), 1e10),
        (Polynomial(2, scale=1e18), 1e-9),
    ],
    ids=repr,
)
@pytest.mark.parametrize("far", [1.0, 1e5])
def test_inner_products_of_very_large_and_very_small_data(kernel: Kernel, size: float, far: float) -> None:
    rows = size * normal(40, 3, 0)
    rows[7] *= far
    rows[3] = 0.0
    x, z, V = points(rows), points(size * normal(30, 3, 1)), columns(30)
    found, expected = gram(kernel, x, z).product(V).cpu(), reference(kernel, x, z) @ V.double().cpu()
    others = torch.arange(40) != 7
    assert error(found[others], expected[others]) < TOLERANCE
    assert error(found[[3]], expected[[3]]) < TOLERANCE


def test_a_row_of_zeros_stays_zero_beside_data_whose_products_overflow() -> None:
    rows = 1e25 * normal(40, 3, 0)
    rows[3] = 0.0
    found = gram(Linear(0.0), points(rows), points(1e25 * normal(30, 3, 1))).product(columns(30))
    assert float(found[3]) == 0.0


def test_inner_products_of_rows_that_are_zero_or_all_alike() -> None:
    x, z = points(np.zeros((20, 3))), points(np.full((9, 3), 2.0))
    for a, b in ((x, x), (x, z), (z, z)):
        assert product_error(Linear(1.0), a, b) < TOLERANCE


def test_noise_is_on_the_diagonal_of_one_sample_only() -> None:
    kernel = Gaussian() * (Linear() + WhiteNoise(0.5))
    x = points(normal(70, 3, 0))
    assert product_error(kernel, x, x, 2, same=True) < TOLERANCE
    assert product_error(kernel, x, x, 2) < TOLERANCE
    some = torch.tensor([3, 60, 7], device=DEVICE)
    block = gram(kernel, x, x, same=True).block(some, torch.arange(70, device=DEVICE))
    assert error(block, reference(kernel, x)[some.cpu()]) < TOLERANCE


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Matern(1.5), Laplace(metric="l1") + Linear(2.0)], ids=repr)
def test_the_diagonal_of_one_sample_is_exact(kernel: Kernel) -> None:
    x = points(normal(70, 5, 0) + 1e3)
    expected = reference(kernel, x).diagonal()
    one = gram(kernel, x, x, same=True)
    assert torch.equal(dense(one).diagonal().cpu(), expected.float())
    unit = torch.eye(70, device=DEVICE)
    torch.testing.assert_close(one.product(unit).diagonal().cpu(), expected.float(), rtol=5e-7, atol=0.0)


def test_new_numbers_compile_nothing() -> None:
    def text(kernel: Kernel) -> tuple[str, ...]:
        return profile(merged(reduced(kernel.program(as_points(np.zeros((1, 3))))))).lines

    assert text(2.0 * Gaussian(0.5) + Matern(1.5, 2.0)) == text(7.0 * Gaussian(1.5) + Matern(1.5, 0.3))
    assert text(Gaussian((1.0, 2.0, 3.0))) == text(Gaussian((3.0, 1.0, 2.0)))


@pytest.mark.parametrize("kernel", BESSEL)
def test_what_cannot_be_fused_gives_a_reason(kernel: Kernel) -> None:
    x = points(normal(5, 3, 0))
    assert "Bessel" in str(fused.supports(kernel.program(x), x, x))


def test_float64_empty_and_crowded_formulas_are_declined() -> None:
    x = points(normal(5, 4, 0))
    program = Gaussian().program(x)
    wide = as_points(x.values.double())
    assert "float32" in str(fused.supports(program, wide, wide))
    assert "empty" in str(fused.supports(program, x, x.take(slice(0, 0))))
    crowd = sum((Gaussian((1.0, 1.0 + i, 2.0, 3.0)) for i in range(5)), start=Linear(1.0))
    assert "different distances" in str(fused.supports(crowd.program(x), x, x))
