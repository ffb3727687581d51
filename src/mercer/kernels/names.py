"""Kernels from text and functions: what estimators and the command line accept."""

from __future__ import annotations

import difflib
from collections.abc import Callable as Function
from typing import Any, TypeAlias

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.objects import Callable
from mercer.kernels.registry import NAMED

OPEN = "auto"

KernelLike: TypeAlias = Kernel | str | Function[..., Any]
"""What stands for a kernel: a kernel, its name, or a function of two points."""


def kernel_from_name(name: str) -> Kernel:
    """The kernel of that name, with ``length_scale="auto"`` where it has one.

    >>> kernel_from_name("matern32")
    Matern(nu=1.5, length_scale='auto')
    """
    key = name.strip().lower()
    if key in NAMED:
        return NAMED[key]
    if key == "laplacian":
        raise InputError(
            'kernel="laplacian" is ambiguous: "laplace" uses the Euclidean (L2) distance, "laplace_l1" the L1 distance '
            "as scikit-learn's laplacian kernel does."
        )
    closest = difflib.get_close_matches(key, NAMED, n=1)
    hint = f' Did you mean "{closest[0]}"?' if closest else ""
    raise InputError(f"There is no kernel named {name!r}.{hint} Known names: {', '.join(sorted(NAMED))}.")


def is_open(kernel: KernelLike) -> bool:
    """Whether a kernel is "auto": the Laplace kernel, in whose place tuning may put another one."""
    return isinstance(kernel, str) and kernel.strip().lower() == OPEN


def as_kernel(kernel: KernelLike) -> Kernel:
    """A kernel from a kernel, a name, or a plain function of two objects.

    >>> as_kernel("linear")
    Linear(bias=0.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return kernel_from_name(kernel)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise InputTypeError(f"kernel={kernel.__name__} is a class; write {kernel.__name__}(...).")
    if callable(kernel):
        return Callable(kernel)
    raise InputTypeError(f"kernel={kernel!r} must be a kernel, a name or a function of two objects.")
