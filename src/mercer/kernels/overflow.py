"""Whether a kernel overflows at some rows, asked before a fit starts."""

from __future__ import annotations

from mercer.core.arrays import Points, checked_values
from mercer.kernels.base import Kernel
from mercer.kernels.dials import CHECKED_ROWS
from mercer.kernels.objects import is_unproven
from mercer.kernels.pair import DiagonalPair


def check_kernel_values(kernel: Kernel, rows: Points, first: int = 0) -> None:
    """Raise an error that names the rows with which the kernel overflows: k(x, x) bounds all its values.

    `first` is the number of the first row. Kernels that users bring look at each value themselves, and those with
    k(x, x) = 1 never overflow.
    """
    if is_unproven(kernel) or kernel.is_normalised:
        return
    for start in range(0, len(rows), CHECKED_ROWS):
        part = slice(start, start + CHECKED_ROWS)
        checked_values(kernel.on(DiagonalPair(rows.take(part).double())), "Kernel values", first + start)
