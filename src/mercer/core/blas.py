"""OpenBLAS, the library of numpy and scipy: what it has chosen for this processor, and on one thread for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = Lock()
_inside: list[Any] = []
"""The limit to one thread, once for each caller that is inside of it now."""


@cache
def _openblas() -> Any:
    """Those of numpy and scipy; to look for them takes two milliseconds."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(internal_api="openblas")


def openblas_kernels() -> frozenset[str]:
    """The kernels that OpenBLAS has chosen; none where numpy has another library, or one that shares torch's threads.

    >>> openblas_kernels() <= {library["architecture"] for library in _openblas().info()}
    True
    """
    found = _openblas().info()
    own = all(library["threading_layer"] in ("pthreads", "disabled") for library in found)
    return frozenset(library["architecture"] for library in found if own)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which OpenBLAS wakes none of its threads: after each call these go on spinning on their cores.

    Callers in several threads share it: the first one sets the limit, the last one takes it back.

    >>> with one_blas_thread():
    ...     all(library["num_threads"] == 1 for library in _openblas().info())
    True
    """
    with _lock:
        _inside.append(_inside[-1] if _inside else _openblas().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                _release()  # the first caller may be another thread, which threadpoolctl would hold on to
                limit.restore_original_limits()
                _release()


def _release() -> None:
    """Let any thread set limits; before version 3.8 of threadpoolctl all could."""
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
