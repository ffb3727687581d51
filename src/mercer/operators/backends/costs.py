"""What operations cost on a kind of processor, measured once, and what follows from it for products on a CPU.

Nothing is timed while the library works: the kind is asked of the machine, and the table says the rest, so that one
machine gives the same numbers in every process. ``python -m benchmarks processor_costs`` measures a machine.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from mercer.core.blas import openblas_kernels

RATES = {
    "Intel, AVX-512": {"exp": 6.4, "exp2": 3.9, "numpy exp2": 5.1, "sqrt": 8.3, "numpy sqrt": 4.7},
    "Intel, AVX2": {"exp": 6.4, "exp2": 2.5, "numpy exp2": 0.5, "sqrt": 8.3, "numpy sqrt": 4.7},
    "other, AVX-512": {
        **{"exp": 1.7, "exp2": 7.6, "numpy exp2": 10.6, "arcsin": 0.65, "numpy arcsin": 2.6},
        **{"sqrt": 2.9, "numpy sqrt": 3.8, "power": 6.1, "numpy log2": 6.8},
        **{"product": 1.7, "oneDNN product": 3.8},
    },
    "other, AVX2": {
        **{"exp": 1.7, "exp2": 4.0, "sqrt": 2.9, "numpy sqrt": 3.9, "power": 3.5, "numpy log2": 0.6},
        **{"product": 1.7, "oneDNN product": 1.9},
    },
}
"""1e9 float32 values a second of one thread in the caches, by kind; float64 has the same order. "power" is a root as
1 / x^(-1/2), which torch computes itself; "product" are sums of 34 numbers by torch's MKL. Arcsines were measured on
an AMD EPYC (Zen 4), busy with other work; in float64 they are .26 and .78.

Intel's were measured on a Xeon of 2.6 GHz, those of others on an AMD EPYC (Zen 5), where MKL takes its ways for
SSE4.2; those of torch itself and of numpy depend on the instruction set alone. A rate that is not there was not asked.
Numpy's exp2 was measured on an AMD EPYC (Zen 4), 5.0 against 3.6 by torch (1.45 and 1.20 in float64), and stands there
in that proportion: it is the quicker one for exponents within the range of normal numbers, and 40 times slower below.
Cosines in float32 were measured there, too: 1.85 by numpy, 0.76 by torch, which asks MKL.
"""

WIDE_OPENBLAS = frozenset({"SkylakeX", "Cooperlake", "Sapphirerapids"})
"""Kernels of OpenBLAS that take AVX-512.

What OpenBLAS gains over torch's MKL on AMD (Zen 4, tiles of 512 x 992 numbers, with its kernels for AVX-512 and those
for AVX2 alike): products with a vector 1.4 times in float32, 1.2 in float64; distances at d = 3, 10 and 32 1.2, 1.06
and 1.03 times in both. oneDNN's are as quick in large tiles there (Zen 5: twice as quick as AVX2), but not in place.
"""

NUMPY = ("arcsin", "exp2", "log2", "sqrt")
"""What numpy may be quicker at."""

IN_BASE_TWO = frozenset({"exp2", "log2"})
"""Of these, what formulas ask for only where exponentials are powers of two."""

LOG2 = 1.3
"""The rate of log2 by torch on processors of other makers."""

TILE_BYTES = {"Intel": 2**20, "other": 2**22}
"""Size of a tile: what the second cache holds on Intel's processors, and everywhere for products with many columns,
which read a tile many times; elsewhere fewer calls are faster."""

FEW_COLUMNS = {"Intel": 3, "other": 32}
"""Columns up to which a product of a matrix with V is quicker, up to three times, with V as rows on the left."""

MANY_THREADS = 4
"""Threads from which on tiles grow with them: each tile takes some Python, which is for one thread at a time."""


@dataclass(frozen=True)
class Costs:
    """What is fastest on a kind of processor.

    `powers_of_two` where the exponential is quicker in base two; `by_numpy` are the operations numpy is quicker at;
    `roots_as_powers` where a root is quicker as 1 / x^(-1/2); `products_by_onednn` where it makes float32 products
    quicker than all others, `products_by_openblas` the numbers of which numpy's does, `vectors_by_openblas` where
    products with a vector are; `cosines_by_numpy` where numpy is quicker at cosines in float32; `few_columns` up to
    which V goes left.
    """

    kind: str
    tile_bytes: int
    powers_of_two: bool = False
    by_numpy: frozenset[str] = frozenset()
    roots_as_powers: bool = False
    products_by_onednn: bool = False
    products_by_openblas: frozenset[torch.dtype] = frozenset()
    vectors_by_openblas: bool = False
    cosines_by_numpy: bool = False
    few_columns: int = FEW_COLUMNS["Intel"]

    @property
    def intel(self) -> bool:
        """Whether torch's MKL takes its fast ways here, or is not there."""
        return self.kind.startswith("Intel")


@cache
def costs() -> Costs:
    """The costs of this machine."""
    return costs_of(_vendor(), torch.backends.cpu.get_cpu_capability(), openblas_kernels())


def costs_of(vendor: str, instructions: str, openblas: frozenset[str] = frozenset()) -> Costs:
    """The costs of a kind of processor with these kernels of OpenBLAS; one without a row computes as torch does.

    >>> costs_of("GenuineIntel", "AVX512").powers_of_two, costs_of("AuthenticAMD", "AVX512").powers_of_two
    (False, True)
    >>> costs_of("AuthenticAMD", "AVX512").roots_as_powers, sorted(costs_of("AuthenticAMD", "AVX2").by_numpy)
    (True, ['sqrt'])
    >>> costs_of("AuthenticAMD", "AVX512", frozenset({"Haswell"})).products_by_openblas
    frozenset({torch.float64})
    """
    intel = vendor == "GenuineIntel" and os.environ.get("MKL_ENABLE_INSTRUCTIONS") != "SSE4_2"
    maker = "Intel" if intel or not torch.backends.mkl.is_available() else "other"
    kind = f"{maker}, {instructions.replace('AVX512', 'AVX-512')}"
    rates = RATES.get(kind)
    if rates is None:
        return Costs(kind, TILE_BYTES[maker], few_columns=FEW_COLUMNS[maker])
    vectors = sys.platform == "linux"  # elsewhere numpy takes exponentials and logarithms one by one
    in_numpy = {op: rates.get(f"numpy {op}", 0.0) * (vectors or op == "sqrt") for op in NUMPY}
    powers_of_two = max(rates["exp2"], in_numpy["exp2"]) > rates["exp"]
    in_torch = rates | {"log2": LOG2, "sqrt": max(rates["sqrt"], rates.get("power", 0.0))}
    faster = {op for op in NUMPY if in_numpy[op] > in_torch.get(op, 0.0) and (op not in IN_BASE_TWO or powers_of_two)}
    as_powers = "sqrt" not in faster and rates.get("power", 0.0) > rates["sqrt"]
    by_onednn = rates.get("oneDNN product", 0.0) > rates.get("product", math.inf) and not openblas & WIDE_OPENBLAS
    numbers = {torch.float64} if by_onednn else {torch.float32, torch.float64}
    by_openblas = maker == "other" and bool(openblas)
    return Costs(
        kind,
        TILE_BYTES[maker],
        powers_of_two,
        frozenset(faster),
        as_powers,
        by_onednn,
        frozenset(numbers if by_openblas else ()),
        by_openblas,
        maker == "other",
        FEW_COLUMNS[maker],
    )


def tile_bytes(threads: int, t: int) -> int:
    """The size of a tile where so many threads work on tiles, which they multiply with t columns."""
    least = costs().tile_bytes if t <= costs().few_columns else TILE_BYTES["Intel"]
    return least * max(1, threads // MANY_THREADS)


def _vendor() -> str:
    """The maker of the processor, as it names itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "GenuineIntel" if "GenuineIntel" in platform.processor() else platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), platform.machine())
