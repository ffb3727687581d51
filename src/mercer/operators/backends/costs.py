"""What operations cost on a kind of processor, measured once, and what follows from it for products on a CPU.

Nothing is timed while the library works: the kind is asked of the machine, and the table says the rest, so that one
machine gives the same numbers in every process. ``python -m benchmarks processor_costs`` measures a machine.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

RATES = {
    "Intel, AVX-512": {"exp": 6.4, "exp2": 3.9, "numpy exp2": 5.1, "sqrt": 8.3, "numpy sqrt": 4.7, "log": 4.4},
    "Intel, AVX2": {"exp": 6.4, "exp2": 2.5, "numpy exp2": 0.5, "sqrt": 8.3, "numpy sqrt": 4.7, "log": 4.4},
    "other, AVX-512": {"exp": 1.2, "exp2": 3.9, "numpy exp2": 5.1, "sqrt": 2.2, "numpy sqrt": 4.7, "log": 1.1},
    "other, AVX2": {"exp": 1.2, "exp2": 2.5, "numpy exp2": 0.5, "sqrt": 2.2, "numpy sqrt": 4.7, "log": 1.1},
}
"""1e9 float32 values a second of one thread in the caches of a Xeon of 2.6 GHz, by kind; float64 has the same order.

"Other" processors have MKL's ways for SSE4.2, which are those it takes where a processor is not Intel's
(MKL_ENABLE_INSTRUCTIONS=SSE4_2 shows them); those of torch itself and of numpy depend on the instruction set alone.
"""

TILE_BYTES = {"Intel": 2**20, "other": 2**22}
"""Size of a tile. On Intel's processors products with few features are as fast in small tiles, which the second cache
holds; elsewhere MKL needs larger ones."""

MANY_THREADS = 4
"""Threads from which on tiles grow with them: each tile takes some Python, which is for one thread at a time."""


@dataclass(frozen=True)
class Costs:
    """What is fastest on a kind of processor.

    `powers_of_two` where the exponential is quicker in base two; `by_numpy` are the operations numpy is quicker at.
    """

    kind: str
    tile_bytes: int
    powers_of_two: bool = False
    by_numpy: frozenset[str] = frozenset()

    @property
    def intel(self) -> bool:
        """Whether torch's MKL takes its fast ways here, or is not there."""
        return self.kind.startswith("Intel")


@cache
def costs() -> Costs:
    """The costs of this machine."""
    return costs_of(_vendor(), torch.backends.cpu.get_cpu_capability())


def costs_of(vendor: str, instructions: str) -> Costs:
    """The costs of a kind of processor; one without a row in the table computes as torch does.

    >>> costs_of("GenuineIntel", "AVX512").powers_of_two, costs_of("AuthenticAMD", "AVX512").powers_of_two
    (False, True)
    >>> sorted(costs_of("AuthenticAMD", "AVX512").by_numpy), sorted(costs_of("AuthenticAMD", "AVX2").by_numpy)
    (['exp2', 'log2', 'sqrt'], ['sqrt'])
    """
    intel = vendor == "GenuineIntel" and os.environ.get("MKL_ENABLE_INSTRUCTIONS") != "SSE4_2"
    maker = "Intel" if intel or not torch.backends.mkl.is_available() else "other"
    kind = f"{maker}, {instructions.replace('AVX512', 'AVX-512')}"
    rates = RATES.get(kind)
    if rates is None:
        return Costs(kind, TILE_BYTES[maker])
    vectors = sys.platform == "linux"  # elsewhere numpy takes exponentials and logarithms one by one
    in_numpy = rates["numpy exp2"] if vectors else 0.0
    powers_of_two = max(rates["exp2"], in_numpy) > rates["exp"]
    faster = {"exp2", "log2"} if powers_of_two and in_numpy > rates["exp2"] else set()
    faster |= {"sqrt"} if rates["numpy sqrt"] > rates["sqrt"] else set()
    return Costs(kind, TILE_BYTES[maker], powers_of_two, frozenset(faster))


def tile_bytes(threads: int) -> int:
    """The size of a tile where so many threads work on tiles."""
    return costs().tile_bytes * max(1, threads // MANY_THREADS)


def _vendor() -> str:
    """The maker of the processor, as it names itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "GenuineIntel" if "GenuineIntel" in platform.processor() else platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), platform.machine())
