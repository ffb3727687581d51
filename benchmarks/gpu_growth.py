"""How the cost of a pass grows: over rows for fixed landmarks, over landmarks, and over rows without landmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from mercer.core.arrays import Points
from mercer.kernels import Gaussian
from mercer.operators import gram
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.row_blocks import RowBlocks

KERNEL, FEATURES = Gaussian(3.0), 9


def growth(small: bool, device: str) -> None:
    scale = 100 if small else 1
    rows = [n // scale for n in (1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000)]
    many = [m // scale for m in (2_500, 5_000, 10_000, 20_000, 40_000)]
    few = [m // scale for m in (500, 1_000, 2_000, 4_000)]
    square = [n // scale for n in (50_000, 100_000, 200_000, 400_000, 800_000)]
    fixed, n, less = 10_000 // scale, 2_000_000 // scale, 1_000_000 // scale
    table(f"one Falkon iteration over n, m = {fixed:,}", rows, lambda n: falkon_pass(n, fixed, device), 1, fixed)
    table(f"one Falkon iteration over m, n = {n:,}", many, lambda m: falkon_pass(n, m, device), 1, n)
    table(f"one pass of normal equations over n, m = {few[2]:,}", rows[:3], lambda n: sums_pass(n, few[2], device), 1)
    table(f"one pass of normal equations over m, n = {less:,}", few, lambda m: sums_pass(less, m, device), 2)
    table("one product of all rows with all, as in PCG, over n", square, lambda n: full_product(n, device), 2)


def table(
    title: str, sizes: list[int], make: Callable[[int], Callable[[], object]], power: int, pairs_per: int | None = None
) -> None:
    """Seconds, and how they grew from one line to the next beside what is expected at large sizes."""
    print(f"\n{title}\n{'size':>12}{'seconds':>11}{'growth':>9}{'expected':>10}{'Tpair/s':>9}", flush=True)
    before: tuple[int, float] | None = None
    for size in sizes:
        took = seconds(make(size))
        grown = "" if before is None else f"{took / before[1]:.2f}"
        expected = "" if before is None else f"{(size / before[0]) ** power:.0f}"
        rate = "" if pairs_per is None else f"{2 * size * pairs_per / took / 1e12:.2f}"
        if pairs_per is None and "product" in title:
            rate = f"{size * size / took / 1e12:.2f}"
        print(f"{size:>12,}{took:>11.4f}{grown:>9}{expected:>10}{rate:>9}", flush=True)
        before = size, took


def falkon_pass(n: int, m: int, device: str) -> Callable[[], object]:
    """K^T (K c) over all rows."""
    blocks = blocks_of(n, m, device)
    c = torch.randn(m, 1, dtype=torch.float64, device=device)
    return lambda: sum(block.gram(c) for block in blocks)


def sums_pass(n: int, m: int, device: str) -> Callable[[], object]:
    """K^T K and K^T y."""
    blocks = blocks_of(n, m, device)
    return lambda: NystromSums.of(blocks)


def full_product(n: int, device: str) -> Callable[[], object]:
    operator = gram(KERNEL, Points(normal(n, device)))
    v = torch.randn(n, device=device)
    return lambda: operator @ v


def blocks_of(n: int, m: int, device: str) -> RowBlocks:
    X, y = Points(normal(n, device)), torch.randn(n, 1, dtype=torch.float64, device=device)
    return RowBlocks(KERNEL, X, X.take(slice(0, m)), y, options={"dtype": torch.float32})


def normal(n: int, device: str) -> torch.Tensor:
    return torch.randn(n, FEATURES, device=device, generator=torch.Generator(device).manual_seed(n))


def seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """Median time after one run that compiles and packs."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return median(times[1:])
