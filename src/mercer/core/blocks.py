"""Memory for large results on the CPU: the system takes about as long to clear it as a product takes to fill it."""

from __future__ import annotations

import mmap
import weakref
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from mercer.core.threads import side_by_side

LARGE_PAGE = 2**21
PAGE = 4096
"""Bytes of an ordinary page."""
KEPT_BYTES = 2**26
"""The largest block that waits for the next result once nobody needs it."""

_free: list[np.ndarray] = []


def new_matrix(n: int, m: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """An (n, m) matrix of any numbers; a large one on the CPU has pages of its own, large pages where there are some.

    It begins where such a page does, and all threads share the work of clearing its pages. The system has them back as
    soon as nobody needs them, while an allocator's heap keeps holes that nothing else fits into. But where results of
    about one size follow each other and are used up, as when rows come in parts, they are written to the same memory.
    """
    size = n * m * dtype.itemsize
    if device.type != "cpu" or size < 2 * LARGE_PAGE:
        return torch.empty(n, m, dtype=dtype, device=device)
    memory = _taken(size)
    if memory is not None:
        return _lent(memory, size).view(dtype).view(n, m)
    numbers = _lent(_pages(size + LARGE_PAGE), size).view(dtype)
    _clear(numbers)
    return numbers.view(n, m)


def _clear(numbers: Tensor) -> None:
    """Touch each page, by threads that do not spin on afterwards."""
    threads = torch.get_num_threads()
    parts = list(numbers.chunk(threads))

    def touch(part: Tensor) -> None:
        part[:: PAGE // part.element_size()] = 0.0

    side_by_side(parts, lambda: touch, threads)


def _pages(size: int) -> np.ndarray:
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    memory = mmap.mmap(-1, size, **private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)


def _lent(memory: np.ndarray, size: int) -> Tensor:
    """So many bytes of a block, which is free again when no tensor or array shows them any more."""
    start = -memory.ctypes.data % LARGE_PAGE
    shown = memory[start : start + size]
    if len(memory) <= KEPT_BYTES:
        weakref.finalize(shown, _give_back, memory).atexit = False
    return torch.from_numpy(shown)  # holds `shown` itself, not just its memory


def _give_back(memory: np.ndarray) -> None:
    _free[:] = [memory]


def let_go() -> None:
    """Give the block that waits for the next result back to the system."""
    _free.clear()


def _taken(size: int) -> np.ndarray | None:
    """The free block if it is of about that size; another one is let go."""
    try:
        memory = _free.pop()
    except IndexError:
        return None
    return memory if size <= len(memory) - LARGE_PAGE <= 2 * size else None


PART_NUMBERS = {"cpu": 2**21, "cuda": 2**25}
LEAST_ROWS = 1024
"""Kernel values that are stored at a time, by device: enough to keep a GPU busy, few enough for the caches of a CPU;
but those of enough rows that adding their products to a large sum does not count."""


def rows_at_once(m: int, device: torch.device | str) -> int:
    """Rows whose m kernel values are stored at a time on a device."""
    return max(LEAST_ROWS, PART_NUMBERS.get(torch.device(device).type, PART_NUMBERS["cpu"]) // m)
