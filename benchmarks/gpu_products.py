"""Fused products on one GPU: accuracy against float64, and pairs per second against dense blocks in torch and peers.

``python -m benchmarks.gpu_products [few] [speed] [accuracy] [gradients]`` prints Markdown tables, "few" some rows of
that of speed; it needs a CUDA device and Triton. GPyTorch and pykeops take part where they are installed.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu_peers import PEERS
from mercer.core.arrays import Points
from mercer.kernels import (
    ExponentialPower,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    resolve,
)
from mercer.operators import gram
from mercer.operators.backends import fused
from mercer.testing.compositions import random_kernel
from mercer.testing.examples import FUNCTION_KERNELS, VECTOR_KERNELS
from mercer.testing.samples import sample_for

N, M = 200_000, 20_000
RADIUS = 24.9
PAUSE = 0.1
"""Seconds between timings."""

COMPOSITION = Gaussian(1.0) + Matern(1.5, 2.0) * Linear(1.0)

SPEED: list[tuple[Kernel, int, int, float | None]] = [
    *((Gaussian(1.0), d, 1, target) for d, target in ((3, 2.6), (10, 2.6), (32, 2.2), (90, 0.9), (784, 0.12))),
    *((Laplace(1.0), d, 1, 1.7 if d <= 32 else None) for d in (3, 10, 32, 90, 784)),
    *((Matern(1.5, 1.0), d, 1, 1.7 if d <= 32 else None) for d in (3, 10, 32, 90)),
    (COMPOSITION, 10, 1, None),
    (COMPOSITION, 784, 1, None),
    (Gaussian((1.0,) * 10) + Matern(1.5, 2.0) * Linear(1.0), 10, 1, None),
    (Laplace(1.0, metric="l1"), 10, 1, None),
    *((Laplace(2.0, metric="l1"), d, 1, None) for d in (48, 118)),  # not in DENSE: torch.cdist is too slow
    (Laplace(2.0, metric="l1") + Gaussian(1.0), 48, 1, None),
    *((Gaussian(1.0), 10, t, None) for t in (2, 16, 64, 128)),
    *((Gaussian(1.0), 90, t, None) for t in (16, 64)),
    (Gaussian(1.0), 784, 16, None),
]
"""Kernel, features, right-hand sides, and what is asked for in Tpair/s."""

FEW = [row for row in SPEED if (row[1] in (3, 10, 32, 90) and row[2] in (1, 16) and row[3] is not None) or row[2] == 16]
"""Enough to see whether products became slower."""


def main(names: list[str]) -> None:
    import triton

    properties = torch.cuda.get_device_properties(0)
    print(
        f"{properties.name}, torch {torch.__version__}, triton {triton.__version__}, n = {N:,}, m = {M:,}", flush=True
    )
    parts = {"accuracy": accuracy, "gradients": gradients, "speed": speed, "few": lambda: speed(FEW)}
    for name in names or ("accuracy", "gradients", "speed"):
        start = time.perf_counter()
        parts[name]()
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


# Speed


def speed(table: list[tuple[Kernel, int, int, float | None]] = SPEED) -> None:
    """Pairs per second of all in the same run, with the error of the product on 512 rows.

    "mercer" and the peers are timed after a pause; "sustained" is the rate of mercer without one, where the card may be
    at its power limit. "one sample" is the symmetric matrix of the first 100,000 rows, all of whose entries count.
    """
    peers = {name: found for name, load in PEERS.items() if (found := load()) is not None}
    titles = ["kernel", "d", "t", "mercer", "sustained", "asked", "error", "one sample", "error"]
    titles += ["dense", "error", "ratio", *peers, "notes"]
    print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    for kernel, d, t, goal in table:
        x, z = normal(N, d, 0), normal(M, d, 1)
        V = columns(M, t)
        operator = gram(kernel, x, z)
        ours = tera(len(x), lambda: operator @ V)  # noqa: B023
        some = slice(0, 512)
        expected = kernel(x[some].double(), z.double()) @ V.double()
        lasting = len(x) * M / sustained_seconds(lambda: operator @ V) / 1e12  # noqa: B023
        cells = [f"{ours:.3f}", f"{lasting:.3f}", f"{goal or ''}", f"{error((operator @ V)[some], expected):.1e}"]
        cells += one_sample(kernel, x[: N // 2]) if t == 1 else [""] * 2
        if kernel in DENSE:
            rows = x[: N // 5]
            dense = tera(len(rows), lambda: in_blocks(DENSE[kernel], rows, z, V), 3)  # noqa: B023
            found = error(in_blocks(DENSE[kernel], x[some], z, V), expected)
            cells += [f"{dense:.3f}", f"{found:.1e}", f"{ours / dense:.0f}"]
        else:
            cells += [""] * 3
        rows = x[: N // 10]
        for peer in peers.values():
            product = peer(kernel, rows, z, V)
            cells.append("" if product is None else f"{tera(len(rows), product, 3):.3f}")
        name = repr(kernel).replace("length_scale=", "")
        print(f"| {name} | {d} | {t} | " + " | ".join([*cells, "; ".join(operator.notes[1:])]) + " |", flush=True)


def one_sample(kernel: Kernel, x: Tensor) -> list[str]:
    """The rate of products with the symmetric matrix of one sample, and their error."""
    V = columns(len(x))
    operator = gram(kernel, x)
    some = slice(0, 512)
    expected = kernel(x[some].double(), x.double()) @ V.double()
    rate = len(x) ** 2 / seconds(lambda: operator @ V, 7) / 1e12
    return [f"{rate:.3f}", f"{error((operator @ V)[some], expected):.1e}"]


def tera(rows: int, action: Callable[[], object], repeats: int = 7) -> float:
    """Kernel evaluations per second, in units of 1e12."""
    return rows * M / seconds(action, repeats) / 1e12


def squared_distances(x: Tensor, z: Tensor) -> Tensor:
    norms = x.square().sum(1, keepdim=True), z.square().sum(1)
    return torch.addmm(norms[1], x, z.T, alpha=-2.0).add_(norms[0]).clamp_(min=0.0)


def dense_gaussian(x: Tensor, z: Tensor) -> Tensor:
    return squared_distances(x, z).mul_(-0.5).exp_()


def dense_laplace(x: Tensor, z: Tensor) -> Tensor:
    return squared_distances(x, z).sqrt_().neg_().exp_()


def dense_matern(x: Tensor, z: Tensor, length_scale: float = 1.0) -> Tensor:
    u = squared_distances(x, z).sqrt_().mul_(math.sqrt(3.0) / length_scale)
    return (1.0 + u).mul_(u.neg_().exp_())


def dense_composition(x: Tensor, z: Tensor) -> Tensor:
    return dense_gaussian(x, z) + dense_matern(x, z, 2.0) * (x @ z.T).add_(1.0)


DENSE: dict[Kernel, Callable[[Tensor, Tensor], Tensor]] = {
    Gaussian(1.0): dense_gaussian,
    Laplace(1.0): dense_laplace,
    Laplace(1.0, metric="l1"): lambda x, z: torch.cdist(x, z, p=1.0).neg_().exp_(),
    Matern(1.5, 1.0): dense_matern,
    COMPOSITION: dense_composition,
}


def in_blocks(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, z: Tensor, V: Tensor) -> Tensor:
    return torch.cat([function(block, z) @ V for block in x.split(10_000)])


# Accuracy


def accuracy() -> None:
    """Every kernel of the registry, 50 random compositions, offsets, near-duplicates and wide data."""
    jobs = [("registry", i) for i in range(len(REGISTRY))] + [("composition", i) for i in range(50)]
    jobs += [(name, i) for name in ("offset", "near", "clusters", "wide") for i in range(len(PICKED) * len(WIDTHS))]
    with multiprocessing.get_context("spawn").Pool(15) as pool:
        results = pool.map(check, jobs, chunksize=4)
    print("| samples | products | fused | worst error | of | limit | over |\n|" + " --- |" * 7)
    over = []
    for name in dict.fromkeys(job for job, _ in jobs):
        found = [r for r in results if r[0] == name]
        worst = max(found, key=lambda r: r[2])
        limit = 5e-5 if name == "near" else 2e-6
        beyond = [r for r in found if not r[2] <= limit]
        fused_too = sum(r[3][0].startswith("fused") for r in found)
        print(f"| {name} | {len(found)} | {fused_too} | {worst[2]:.1e} | {worst[1]} | {limit:.0e} | {len(beyond)} |")
        over += beyond
    for name, kernel, value, notes in over:
        print(f"- over: {name}, {kernel}: {value:.1e} ({'; '.join(notes)})")
    for name, kernel, _, notes in results:
        if not notes[0].startswith("fused"):
            print(f"- not fused: {name}, {kernel}: {notes[0]}")


REGISTRY = VECTOR_KERNELS + FUNCTION_KERNELS
PICKED: tuple[Kernel, ...] = (
    Gaussian(1.0),
    Laplace(1.0),
    ExponentialPower(1.0, power=0.7),
    Matern(0.5, 1.0),
    Matern(1.5, 1.0),
    Matern(2.5, 1.0),
    RationalQuadratic(1.0),
    Gaussian(1.0) + Laplace(2.0) * Linear(1.0),
    Polynomial(2),
)
WIDTHS = 3, 10, 32, 90, 784


def check(job: tuple[str, int]) -> tuple[str, str, float, tuple[str, ...]]:
    """The kernel of one product, its error, and how it was computed."""
    kind, i = job
    if kind in ("registry", "composition"):
        rng = np.random.default_rng(i)
        kernel = REGISTRY[i] if kind == "registry" else random_kernel(rng, 4)
        x, z = (torch.as_tensor(sample_for(kernel, n, rng)).float().cuda() for n in (3000, 2000))
        if kind == "composition":
            x, z = normal(3000, 4, i), normal(2000, 4, i + 1000)
        kernel = resolve(kernel, z.cpu().double())
        return kind, repr(kernel), *product_error(kernel, x, z)
    kernel, d = PICKED[i // len(WIDTHS)], WIDTHS[i % len(WIDTHS)]
    x, z = normal(3000, d, i), normal(2000, d, i + 1000)
    name = f"{kernel!r}, d = {d}"
    if kind == "near":
        return kind, name, *product_error(kernel, torch.cat([z, z + 1e-4 * normal(2000, d, i)]) + 100.0)
    if kind in ("clusters", "wide"):
        centres = normal(10, d, i) if kind == "clusters" else 4.0 * normal(10, d, i)
        width = 0.1 if kind == "clusters" else 1.0 / 3.0
        x, z = width * x + centres.repeat(300, 1), width * z + centres.repeat(200, 1)
        if kind == "clusters":
            shrink = (RADIUS / max(float((rows - z.mean(0)).square().sum(1).max()) for rows in (x, z))) ** 0.5
            x, z = shrink * x, shrink * z
    else:
        x, z = x + 1e4, z + 1e4
    return kind, name, *product_error(kernel, x, z)


def product_error(kernel: Kernel, x: Tensor, z: Tensor | None = None) -> tuple[float, tuple[str, ...]]:
    """The error of the product that `gram` chooses, and its notes: the larger one of x with z and of x with itself."""
    alone = (0.0, ()) if z is None else product_error(kernel, x)
    try:
        operator = gram(kernel, x, z)
        K = kernel(x.double()) if z is None else kernel(x.double(), z.double())
    except TypeError:
        return 0.0, ("a function of numpy arrays does not take data on a GPU",)
    V = 0.3 + torch.randn(operator.shape[1], device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    return max(alone[0], error(operator @ V, K @ V.double())), operator.notes


# Gradients


def gradients() -> None:
    """Gradients by points, right-hand sides and length scale against autograd in float64."""
    families: dict[str, Callable[[Tensor], Kernel]] = {
        "Gaussian": Gaussian,
        "Laplace": Laplace,
        "Matern 3/2": lambda l: Matern(1.5, l),
        "Laplace l1": lambda l: Laplace(l, metric="l1"),
        "Gaussian + Matern * Linear": lambda l: Gaussian(l) + Matern(1.5, l) * Linear(1.0),
    }
    print("| gradients, n = 3,000, m = 2,000, d = 10, t = 4 | x | z | V | length scale |\n|" + " --- |" * 5)
    x, z = normal(3000, 10, 0), normal(2000, 10, 1)
    V, W = 0.3 + normal(2000, 4, 2), 0.3 + normal(3000, 4, 3)
    for name, family in families.items():
        found = fused.gradient(family(1.3).program(Points(x)), Points(x), Points(z), V, W)
        a, b, v = (t.double().requires_grad_() for t in (x, z, V))
        scale = torch.tensor(1.3, dtype=torch.float64, device="cuda", requires_grad=True)
        loss = (W.double() * (family(scale)(a, b) @ v)).sum()
        expected = torch.autograd.grad(loss, (a, b, v, scale))
        ours = found.x, found.z, found.V, torch.stack(list(found.length_scales.values())).sum()
        errors = " | ".join(f"{error(g, e):.1e}" for g, e in zip(ours, expected, strict=True))
        print(f"| {name} | {errors} |", flush=True)


# Samples and measures


def normal(n: int, d: int, seed: int, radius: float = RADIUS) -> Tensor:
    """Normal rows whose largest squared norm is `radius`."""
    x = torch.randn(n, d, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
    x -= x.mean(0)
    return x * (radius / x.square().sum(1).max()).sqrt()


def columns(m: int, t: int = 1) -> Tensor:
    """Normal right-hand sides."""
    return torch.randn(m, t, device="cuda", generator=torch.Generator("cuda").manual_seed(2)).squeeze(1)


def error(found: Tensor, expected: Tensor) -> float:
    expected = expected.double()
    return float((found.double() - expected).norm() / expected.norm().clamp(min=1e-300))


def seconds(action: Callable[[], object], repeats: int = 7, at_once: int = 3) -> float:
    """Median time of an action on the device, a few in a row, each time after a pause and one that is not timed.

    The pause lets the card leave its power limit, which otherwise depends on what ran before.
    """
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        time.sleep(PAUSE)
        action()
        times.append(_seconds_in_a_row(action, at_once))
    return median(times)


def sustained_seconds(action: Callable[[], object]) -> float:
    """Time of an action after half a second of the same without a pause, as in a long fit."""
    count = max(3, int(0.5 / _seconds_in_a_row(action, 3)))
    _seconds_in_a_row(action, count)
    return _seconds_in_a_row(action, count)


def _seconds_in_a_row(action: Callable[[], object], count: int) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        action()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count / 1e3


if __name__ == "__main__":
    main(sys.argv[1:])
