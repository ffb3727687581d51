"""Fused products on one GPU: accuracy against float64 and pairs per second against dense blocks in torch.

``python -m benchmarks.gpu_products [speed] [accuracy] [gradients]`` prints tables; it needs a CUDA device and Triton.
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

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
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
from mercer.operators.backends import fused
from mercer.testing.compositions import random_kernel
from mercer.testing.examples import FUNCTION_KERNELS, VECTOR_KERNELS
from mercer.testing.samples import sample_for

N, M = 200_000, 20_000
RADIUS = 24.9
COMPOSITION = Gaussian(1.0) + Matern(1.5, 2.0) * Linear(1.0)

SPEED: list[tuple[Kernel, int, int, float | None]] = [
    *((Gaussian(1.0), d, 1, target) for d, target in ((3, 2.6), (10, 2.6), (32, 2.2), (90, 0.9), (784, 0.12))),
    *((Laplace(1.0), d, 1, 1.7 if d <= 32 else None) for d in (3, 10, 32, 90, 784)),
    *((Matern(1.5, 1.0), d, 1, 1.7 if d <= 32 else None) for d in (3, 10, 32, 90)),
    (COMPOSITION, 10, 1, None),
    (COMPOSITION, 784, 1, None),
    (Gaussian((1.0,) * 10) + Matern(1.5, 2.0) * Linear(1.0), 10, 1, None),
    (Laplace(1.0, metric="l1"), 10, 1, None),
    *((Gaussian(1.0), 10, t, None) for t in (2, 16, 64, 128)),
    (Gaussian(1.0), 784, 16, None),
]
"""Kernel, features, right-hand sides, and the goal in Tpair/s."""


def main(names: list[str]) -> None:
    import triton

    properties = torch.cuda.get_device_properties(0)
    print(
        f"{properties.name}, torch {torch.__version__}, triton {triton.__version__}, n = {N:,}, m = {M:,}", flush=True
    )
    parts = {"accuracy": accuracy, "gradients": gradients, "speed": speed}
    for name in names or parts:
        start = time.perf_counter()
        parts[name]()
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


# Speed


def speed() -> None:
    """Pairs per second of both, in the same run, with the error of the fused product on 512 rows."""
    print(f"{'kernel':<74}{'d':>5}{'t':>5}{'Tpair/s':>9}{'goal':>6}{'error':>9}{'dense':>8}{'error':>9}{'ratio':>7}")
    for kernel, d, t, goal in SPEED:
        x, z = normal(N, d, 0), normal(M, d, 1)
        V = torch.randn(M, t, device="cuda") if t > 1 else torch.randn(M, device="cuda")
        gram = fused.FusedGram(kernel.program(Points(x)), Points(x), Points(z))
        ours = N * M / seconds(lambda: gram.product(V)) / 1e12  # noqa: B023
        dense = float("nan")
        error_dense = float("nan")
        some = slice(0, 512)
        expected = kernel(x[some].double(), z.double()) @ V.double()
        if kernel in DENSE:
            rows = x[: N // 5]
            dense = len(rows) * M / seconds(lambda: in_blocks(DENSE[kernel], rows, z, V), 3) / 1e12  # noqa: B023
            error_dense = error(in_blocks(DENSE[kernel], x[some], z, V), expected)
        found = error(gram.product(V)[some], expected)
        name = repr(kernel).replace("length_scale=", "")[:73]
        print(
            f"{name:<74}{d:>5}{t:>5}{ours:>9.3f}{goal or '':>6}{found:>9.1e}{dense:>8.3f}{error_dense:>9.1e}"
            f"{ours / dense:>7.1f}  {'; '.join(gram.notes)}",
            flush=True,
        )


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
    jobs += [(name, i) for name in ("offset", "near", "wide") for i in range(len(PICKED) * len(WIDTHS))]
    with multiprocessing.get_context("spawn").Pool(12) as pool:
        results = pool.map(check, jobs, chunksize=4)
    limits = {"near": 5e-5}
    for name in dict.fromkeys(job for job, _ in jobs):
        found = [r for r in results if r[0] == name]
        run = [r for r in found if isinstance(r[2], float)]
        worst = max(run, key=lambda r: r[2])
        over = [r for r in run if not r[2] <= limits.get(name, 2e-6)]
        print(f"{name:<12}{len(run):>4} products, worst error {worst[2]:.1e} ({worst[1]}), {len(over)} over the limit")
        for _, kernel, value in over + [r for r in found if not isinstance(r[2], float)]:
            print(f"    {kernel}: {value if isinstance(value, str) else f'{value:.1e}'}")


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


def check(job: tuple[str, int]) -> tuple[str, str, float | str]:
    """The error of one product, or why there is none."""
    kind, i = job
    if kind in ("registry", "composition"):
        rng = np.random.default_rng(i)
        kernel = REGISTRY[i] if kind == "registry" else random_kernel(rng, 4)
        x, z = (torch.as_tensor(sample_for(kernel, n, rng)).float().cuda() for n in (3000, 2000))
        if kind == "composition":
            x, z = normal(3000, 4, i), normal(2000, 4, i + 1000)
        kernel = resolve(kernel, z.cpu().double())
        return kind, repr(kernel), product_error(kernel, x, z, same=False)
    kernel, d = PICKED[i // len(WIDTHS)], WIDTHS[i % len(WIDTHS)]
    x, z = normal(3000, d, i), normal(2000, d, i + 1000)
    if kind == "near":
        x = torch.cat([z, z + 1e-4 * normal(2000, d, i)]) + 100.0
        return kind, f"{kernel!r}, d = {d}", product_error(kernel, x, x, same=True)
    if kind == "wide":  # clusters far apart
        centres = 4.0 * normal(10, d, i)
        x, z = x / 3.0 + centres.repeat(300, 1), z / 3.0 + centres.repeat(200, 1)
    else:
        x, z = x + 1e4, z + 1e4
    return kind, f"{kernel!r}, d = {d}", product_error(kernel, x, z, same=False)


def product_error(kernel: Kernel, x: Tensor, z: Tensor, *, same: bool) -> float | str:
    try:
        program = kernel.program(Points(x))
    except NotTraceable as reason:
        return str(reason)
    declined = fused.supports(program, Points(x), Points(z))
    if declined is not None:
        return declined
    V = 0.3 + torch.randn(len(z), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    K = kernel(x.double()) if same else kernel(x.double(), z.double())
    return error(fused.product(program, Points(x), Points(z), V, same), K @ V.double())


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
    print(f"{'gradients, n = 3,000, m = 2,000, d = 10, t = 4':<50}{'x':>9}{'z':>9}{'V':>9}{'scale':>9}")
    x, z = normal(3000, 10, 0), normal(2000, 10, 1)
    V, W = torch.randn(2000, 4, device="cuda"), torch.randn(3000, 4, device="cuda")
    for name, family in families.items():
        found = fused.gradient(family(1.3).program(Points(x)), Points(x), Points(z), V, W)
        a, b, v = (t.double().requires_grad_() for t in (x, z, V))
        scale = torch.tensor(1.3, dtype=torch.float64, device="cuda", requires_grad=True)
        loss = (W.double() * (family(scale)(a, b) @ v)).sum()
        expected = torch.autograd.grad(loss, (a, b, v, scale))
        ours = found.x, found.z, found.V, torch.stack(list(found.length_scales.values())).sum()
        print(f"{name:<50}" + "".join(f"{error(g, e):>9.1e}" for g, e in zip(ours, expected, strict=True)), flush=True)


# Samples and measures


def normal(n: int, d: int, seed: int, radius: float = RADIUS) -> Tensor:
    """Normal rows whose largest squared norm is `radius`."""
    x = torch.randn(n, d, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
    x -= x.mean(0)
    return x * (radius / x.square().sum(1).max()).sqrt()


def error(found: Tensor, expected: Tensor) -> float:
    expected = expected.double()
    return float((found.double() - expected).norm() / expected.norm().clamp(min=1e-300))


def seconds(action: Callable[[], object], repeats: int = 7) -> float:
    """Median time of an action on the device, after one run that compiles and packs."""
    action()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        action()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return median(times)


if __name__ == "__main__":
    main(sys.argv[1:])
