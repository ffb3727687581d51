"""OpenBLAS on one thread while others work beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _openblas() -> Any:
    """Those of numpy and scipy; to look for them takes two milliseconds."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(internal_api="openblas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which OpenBLAS wakes none of its threads: after each call these go on spinning on their cores.

    >>> with one_blas_thread():
    ...     all(library["num_threads"] == 1 for library in _openblas().info())
    True
    """
    with _openblas().limit(limits=1):
        yield
