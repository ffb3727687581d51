"""What this machine can do at most: rates of single operations, with all threads, each on tiles of its own.

``python -m benchmarks.processor_costs`` prints what `mercer.operators.backends.costs` keeps of a kind of processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.processor import processor
from mercer.core.threads import side_by_side
from mercer.operators.backends.products import quick, quick_product

ROWS, COLUMNS = 512, 992
SECONDS = 0.15
"""Time for each rate."""

Work = Callable[[], Any]

OPERATIONS: dict[str, Callable[[Tensor, Tensor, Tensor], Work]] = {
    "exp": lambda x, y, out: lambda: torch.exp(x, out=out),
    "exp2": lambda x, y, out: lambda: torch.exp2(x, out=out),
    "numpy exp2": lambda x, y, out: lambda: np.exp2(x.numpy(), out=out.numpy()),
    "sqrt": lambda x, y, out: lambda: torch.sqrt(y, out=out),
    "numpy sqrt": lambda x, y, out: lambda: np.sqrt(y.numpy(), out=out.numpy()),
    "power": lambda x, y, out: lambda: torch.pow(y, -0.5, out=out).reciprocal_(),
    "log2": lambda x, y, out: lambda: torch.log2(y, out=out),
    "numpy log2": lambda x, y, out: lambda: np.log2(y.numpy(), out=out.numpy()),
    "arcsin": lambda x, y, out: lambda: torch.asin(torch.mul(y, 0.1, out=out), out=out),
    "numpy arcsin": lambda x, y, out: lambda: np.arcsin(torch.mul(y, 0.1, out=out).numpy(), out=out.numpy()),
    "product with a vector": lambda x, y, out: lambda: x @ out[0],
}


def rate(make: Callable[[], Work], cells: int, threads: int) -> float:
    """1e9 values a second of all threads, the best of some rounds."""

    def tools() -> Callable[[int], float]:
        work = make()
        work()

        def part(_: int) -> float:
            best, stop = 0.0, time.perf_counter() + SECONDS
            while time.perf_counter() < stop:
                start = time.perf_counter()
                for _repeat in range(4):
                    work()
                best = max(best, 4 * cells / (time.perf_counter() - start))
            return best

        return part

    return sum(side_by_side(list(range(threads)), tools, threads)) / 1e9


@cache
def operation_rate(name: str, dtype: torch.dtype, threads: int) -> float:
    """The rate of an operation on numbers up to 10, those of exponentials below zero."""

    def make() -> Work:
        x = 10.0 * torch.rand(ROWS, COLUMNS, dtype=dtype)
        return OPERATIONS[name](-x, x, torch.empty_like(x))

    return rate(make, ROWS * COLUMNS, threads)


@cache
def product_rate(d: int, dtype: torch.dtype, threads: int, by_onednn: bool | None = None) -> float:
    """Pairs a second of the matrix product that gives squared distances of d features, which has two columns more.

    It is made by oneDNN or by torch's MKL; None for the one that `mercer` takes here.
    """
    chosen = quick(dtype, torch.device("cpu"), d + 2, ROWS * COLUMNS) if by_onednn is None else by_onednn

    def make() -> Work:
        x, z = torch.rand(ROWS, d + 2, dtype=dtype), torch.rand(COLUMNS, d + 2, dtype=dtype).T
        out = torch.empty(ROWS, COLUMNS, dtype=dtype)
        return (lambda: quick_product(x, z)) if chosen else (lambda: torch.mm(x, z, out=out))

    return rate(make, ROWS * COLUMNS, threads)


def main() -> None:
    print(processor())
    for threads in sorted({1, torch.get_num_threads()}):
        for dtype in (torch.float32, torch.float64):
            found = {name: operation_rate(name, dtype, threads) for name in OPERATIONS}
            libraries = {"MKL": False, "oneDNN": True} if dtype == torch.float32 else {"MKL": False}
            found |= {
                f"distances, d={d}, {name}": product_rate(d, dtype, threads, by_onednn)
                for d in (3, 10, 32, 90)
                for name, by_onednn in libraries.items()
            }
            numbers = "  ".join(f"{name} {value:.2f}" for name, value in found.items())
            print(f"{threads} threads, {dtype}, 1e9 a second: {numbers}", flush=True)


if __name__ == "__main__":
    main()
