"""Falkon on rows that are made chunk by chunk and never stored: one billion of them on one GPU.

The target is Friedman's first function of nine features, of which it uses five, with noise of variance one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Kernel
from mercer.operators import gram
from mercer.solvers.falkon import Falkon
from mercer.solvers.row_blocks import Block

FEATURES = 9
NOISE = 1.0
SIGNAL = 23.8
"""Variance of the target without noise."""


@dataclass(frozen=True)
class Chunks:
    """The blocks of `n` made-up rows, with landmarks among them.

    Each chunk has a counter-based generator of its own and is made again each time it is read, so that no more than one
    is ever in memory.
    """

    kernel: Kernel
    n: int
    m: int
    size: int
    device: torch.device
    seed: int = 0

    def rows(self, index: int, count: int) -> tuple[Tensor, Tensor]:
        """The features and the noisy targets of a chunk."""
        generator = torch.Generator(self.device).manual_seed(1_000_003 * self.seed + index)
        X = torch.rand(count, FEATURES, device=self.device, generator=generator)
        noise = torch.randn(count, device=self.device, generator=generator)
        return X, friedman(X).add_(noise, alpha=math.sqrt(NOISE)).unsqueeze(1)

    @property
    def landmarks(self) -> Tensor:
        """The first rows of the first chunk."""
        return self.rows(0, min(self.size, self.n))[0][: self.m].clone()

    def __iter__(self) -> Iterator[Block]:
        Z = Points(self.landmarks)
        for index, start in enumerate(range(0, self.n, self.size)):
            X, y = self.rows(index, min(self.size, self.n - start))
            yield Block(gram(self.kernel, Points(X), Z), y)

    def sample(self, count: int, generator: torch.Generator) -> Block:
        """Rows of the first chunk for the preconditioner."""
        X, y = self.rows(0, min(self.size, self.n))
        places = torch.randperm(len(X), generator=generator)[:count].to(self.device)
        return Block(gram(self.kernel, Points(X[places]), Points(X[: self.m].clone())), y[places])


def friedman(X: Tensor) -> Tensor:
    """10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5, less its mean."""
    smooth = torch.sin(math.pi * X[:, 0] * X[:, 1]).mul_(10.0)
    return (
        smooth.add_((X[:, 2] - 0.5).square_(), alpha=20.0).add_(X[:, 3], alpha=10.0).add_(X[:, 4], alpha=5.0).sub_(14.4)
    )


def billion(
    n: int = 10**9,
    m: int = 10_000,
    size: int = 2 * 10**7,
    device: str = "cuda",
    *,
    length_scale: float = 0.75,
    ridge: float = 1e-6,
    tol: float = 2e-3,
    max_iter: int = 8,
) -> None:
    """Fit with alpha = `ridge` n, and compare the error on new rows with the noise."""
    kernel, alpha = Gaussian(length_scale), ridge * n
    chunks = Chunks(kernel, n, m, size, torch.device(device))
    print(f"{n:,} rows, d = {FEATURES}, m = {m:,}, chunks of {size:,}, {kernel}, alpha = {alpha:g}, tol = {tol:g}")
    overhead(chunks)
    started = time.perf_counter()

    def progress(iteration: int, residual: float) -> None:
        print(f"  iteration {iteration}: residual {residual:.1e}, {time.perf_counter() - started:.1f} s", flush=True)

    K_mm = gram(kernel, chunks.landmarks.double())
    solution = Falkon(tol=tol, max_iter=max_iter, callback=progress).solve(chunks, K_mm, alpha)
    seconds = time.perf_counter() - started
    new = Chunks(kernel, min(n, 10**6), m, size, chunks.device, seed=1)
    X, y = new.rows(0, new.n)
    values = torch.as_tensor(gram(kernel, Points(X), Points(chunks.landmarks)) @ solution.value.float())
    error = float((values - y).double().square().mean())
    excess = float((values.squeeze(1) - friedman(X)).double().square().mean())
    print(
        f"fit {seconds:.1f} s, {solution.iterations} iterations, residual {solution.residual:.1e}, "
        f"converged: {solution.converged} {solution.reason}\n"
        f"noise {NOISE:g}, test MSE {error:.5f} on {new.n:,} new rows; error of the function {excess:.2e}: "
        f"{100 * excess / NOISE:.2f}% of the noise, {100 * excess / SIGNAL:.3f}% of the signal",
        flush=True,
    )


def overhead(chunks: Chunks) -> None:
    """One chunk in detail: both products, and with them making its rows and its operator."""
    block = next(iter(chunks))
    c = torch.randn(chunks.m, 1, dtype=torch.float64, device=chunks.device)
    products = seconds_of(lambda: block.gram(c), chunks.device)
    rows = seconds_of(lambda: chunks.rows(1, chunks.size), chunks.device)
    everything = seconds_of(lambda: next(iter(chunks)).gram(c), chunks.device)
    pairs = 2e-12 * block.kernel.shape[0] * chunks.m
    print(
        f"{'; '.join(block.kernel.notes)}; one chunk: rows {1e3 * rows:.1f} ms, products {1e3 * products:.1f} ms, "
        f"{pairs / products:.2f} Tpair/s; all together {1e3 * everything:.1f} ms, {pairs / everything:.2f} Tpair/s",
        flush=True,
    )


def seconds_of(action: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Mean time after one run that compiles."""
    action()
    wait(device)
    started = time.perf_counter()
    for _ in range(repeats):
        action()
    wait(device)
    return (time.perf_counter() - started) / repeats


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
