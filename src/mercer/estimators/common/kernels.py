"""The kernel of a fit: its parameters found from the sample."""

from __future__ import annotations

from mercer.data.sample import Sample
from mercer.kernels import Kernel, resolve
from mercer.kernels.overflow import check_kernel_values


def resolved_kernel(kernel: Kernel, sample: Sample, seed: int) -> Kernel:
    """The kernel with its length scales found, which does not overflow at the rows."""
    found = resolve(kernel.bind(sample.rows.names), sample.rows, sample.weights, seed=seed)
    check_kernel_values(found, sample.rows)
    return found
