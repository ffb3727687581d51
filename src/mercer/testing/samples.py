"""Samples on which a given kernel can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from mercer.kernels import Brownian, Categorical, ChiSquared, Kernel, Spectrum, Subspace


def leaves(kernel: Kernel) -> Iterator[Kernel]:
    """The kernels of an expression that hold no other kernel."""
    inner = [child for _, child in kernel.children()]
    for child in inner:
        yield from leaves(child)
    if not inner:
        yield kernel


def column_names_of(kernel: Kernel) -> list[str]:
    """The names of columns that a kernel asks for."""
    own = [c for c in kernel.columns if isinstance(c, str)] if isinstance(kernel, Subspace) else []
    return sorted({*own, *(name for _, child in kernel.children() for name in column_names_of(child))})


def column_count(kernel: Kernel, default: int = 3) -> int:
    """The number of columns of data that a kernel takes."""
    counts = set(_counts(kernel))
    exact = {count for count, is_exact in counts if is_exact}
    return max(exact) if exact else max([default, *(count for count, _ in counts)])


def sample_for(kernel: Kernel, n: int, rng: np.random.Generator) -> Any:
    """A sample of n points of the kind the kernel takes: rows, strings, or a Gram matrix."""
    if kernel.domain == "matrix":
        factor = rng.normal(size=(n, n + 1))
        return factor @ factor.T / n
    if any(isinstance(leaf, Spectrum) for leaf in leaves(kernel)):
        return ["".join(rng.choice(list("abc"), size=rng.integers(1, 12))) for _ in range(n)]
    rows = rng.normal(size=(n, column_count(kernel)))
    if any(isinstance(leaf, Categorical) for leaf in leaves(kernel)):
        return np.abs(rows).round()
    return np.abs(rows) if any(isinstance(leaf, Brownian | ChiSquared) for leaf in leaves(kernel)) else rows


def _counts(kernel: Kernel) -> Iterator[tuple[int, bool]]:
    """Numbers of columns with whether they are exact: one per column, or enough for a selection."""
    if isinstance(kernel, Subspace):
        yield max(c + 1 if c >= 0 else -c for c in kernel.columns), False
        return
    for f in fields(kernel):
        value = getattr(kernel, f.name)
        if isinstance(value, Kernel):
            yield from _counts(value)
        elif isinstance(value, tuple) and f.metadata.get("parameter") is not None:
            yield len(value), True
