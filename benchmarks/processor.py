"""What a number was measured on."""

from __future__ import annotations

import platform
from pathlib import Path

import sklearn  # noqa: F401  loads the OpenBLAS of NumPy and of SciPy
import torch
from threadpoolctl import threadpool_info


def processor() -> str:
    """The processor, and the kernels that NumPy, SciPy and torch have chosen for it."""
    blas = {library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}
    kernels = f"OpenBLAS {', '.join(sorted(blas)) or 'absent'}, torch {torch.backends.cpu.get_cpu_capability()}"
    return f"{_model()}: {kernels}; {torch.get_num_threads()} threads; torch {torch.__version__}"


def _model() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
