"""Kernels in the words of reports."""

from __future__ import annotations

from mercer.kernels.base import Kernel
from mercer.kernels.dials import MANY
from mercer.kernels.parameters import AUTO


def kernel_text(kernel: Kernel, asked: Kernel | None = None) -> str:
    """The kernel with numbers cut to four digits, and long lists of length scales as their range.

    Length scales of several columns that were "auto" in what was `asked` for are shown as that.

    >>> from mercer.kernels import Gaussian
    >>> kernel_text(Gaussian((1.0, 20.0)), Gaussian("auto")), kernel_text(2.0 * Gaussian(list(range(1, 9))))
    ("Gaussian(length_scale='auto')", '2.0 * Gaussian(length_scale=<8 from 1 to 8>)')
    """
    kernel = kernel.rounded()
    automatic = {} if asked is None else asked.get_params()
    found = kernel.tunable()
    kept = {path: AUTO for path, value in found.items() if isinstance(value, tuple) and automatic.get(path) == AUTO}
    shown = repr(kernel.replace(**kept))
    for path, value in found.items():
        if path not in kept and isinstance(value, tuple) and len(value) > MANY:
            lowest, highest = min(value), max(value)
            span = f"of {lowest:g}" if lowest == highest else f"from {lowest:g} to {highest:g}"
            shown = shown.replace(repr(value), f"<{len(value)} {span}>")
    return shown
