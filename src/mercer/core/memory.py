"""Memory is a budget: how much may be used, how much is free, and a clear error when a job cannot fit."""

from __future__ import annotations

import ctypes
import math
import numbers
import os
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch

from mercer.core import blocks
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError

UNITS = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024), ("", 1024))
}
CGROUP = Path("/sys/fs/cgroup")
CONTAINER_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
NO_LIMIT = 2**60
"""Bytes from which on a limit of a container is none."""
UNKNOWN_FREE = 2 * 1024**3
"""Bytes taken to be free where the system does not say."""

DASK_TRIM_THRESHOLD = "65536"

FRESH = 0.01
"""Seconds for which a reading of the free memory holds: no more than some megabytes can be filled meanwhile."""

REST = 10
"""Times as long as giving memory back took, until it is given back again."""

_rest_until = 0.0
_read_at, _found_free = -math.inf, 0

_EXPECTED = 'expected a positive number of bytes, text such as "2GiB" or "500 MB", or None for half of what is free'


def parse_budget(value: Any, name: str = "memory_budget") -> int | None:
    """A memory budget in bytes from a number of bytes or text with a unit; None stays None.

    >>> parse_budget("2GiB"), parse_budget("500 MB"), parse_budget(4096), parse_budget(None)
    (2147483648, 500000000, 4096, None)
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real | str):
        raise InputTypeError(f"{name}={value!r}: {_EXPECTED}.")
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", value)
        if match is None or match[2].lower() not in UNITS:
            raise InputError(f"{name}={value!r}: {_EXPECTED}.")
        value = float(match[1]) * UNITS[match[2].lower()]
    if not math.isfinite(value) or value < 1:
        raise InputError(f"{name}={value!r}: {_EXPECTED}.")
    return int(value)


def free_memory(device: torch.device | str = "cpu") -> int:
    """Bytes that could be allocated now on `device`, an estimate.

    >>> free_memory("cpu") > 0
    True
    """
    device = torch.device(device)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + cached
    return _free_here()


def resolve_budget(value: Any = None, device: torch.device | str = "cpu") -> int:
    """The budget in bytes: the one given, or half of what is free on `device`.

    >>> resolve_budget("1 KiB")
    1024
    """
    given = parse_budget(value)
    return free_memory(device) // 2 if given is None else given


def require(needed: float, budget: int, what: str, advice: str = "") -> None:
    """Raise `MemoryBudgetError` when `what` needs more bytes than the budget; `advice` says what would fit.

    >>> require(100, 1000, "the Gram matrix")
    >>> require(8e9, 2**30, "the Gram matrix", "At most 11,585 rows would fit.")
    Traceback (most recent call last):
    mercer.core.errors.MemoryBudgetError: the Gram matrix needs 7.5 GiB but the memory budget is 1.0 GiB. At most ...
    """
    if needed > budget:
        message = f"{what} needs {readable(needed)} but the memory budget is {readable(budget)}."
        raise MemoryBudgetError(f"{message} {advice}".rstrip())


def budget_beside(value: Any, taken: int, what: str) -> Any:
    """The budget that is left where `taken` bytes of it go to `what`; None stays None.

    >>> budget_beside("1 KiB", 24, "a copy"), budget_beside(None, 24, "a copy")
    (1000, None)
    """
    given = parse_budget(value)
    if given is None or not taken:
        return value
    require(taken + 1, given, what, "Use a larger memory_budget, or landmarks.")
    return given - taken


def give_back() -> None:
    """Return memory that has been freed to the system: allocators keep it for later, and it counts as used till then.

    It takes milliseconds, and does nothing where that would be more than a tenth of the time since it was last asked.

    >>> give_back()
    """
    global _rest_until
    started = time.perf_counter()
    if started < _rest_until:
        return
    blocks.let_go()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)
    ended = time.perf_counter()
    _rest_until = ended + REST * (ended - started)


@cache
def keep_buffers() -> None:
    """Let the allocator keep freed memory for the next buffer, where Dask's default makes workers give it back at once.

    Then every page of every buffer would be asked for anew. A value that a user has set is left alone.

    >>> keep_buffers()
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    if mallopt is not None and os.environ.get("MALLOC_TRIM_THRESHOLD_") == DASK_TRIM_THRESHOLD:
        mallopt(-3, 2**25)  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD: where glibc goes by itself
        mallopt(-1, 2**26)


@cache
def _c_library() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


def readable(size: float) -> str:
    """A number of bytes for people.

    >>> readable(300), readable(2**20), readable(3.5e9), readable(2**30 - 1)
    ('300 B', '1.0 MiB', '3.3 GiB', '1.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _free_here() -> int:
    """Read at most a hundred times a second: it takes as long as a small product."""
    global _read_at, _found_free
    now = time.monotonic()
    if now - _read_at > FRESH:
        _read_at, _found_free = now, min(_system_free(), _container_free())
    return _found_free


def _system_free() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(available.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return _physical_share()


def _physical_share() -> int:
    """Without a count of free pages, half of the physical memory; without that, a careful constant."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        if "SC_AVPHYS_PAGES" in os.sysconf_names:
            return page * os.sysconf("SC_AVPHYS_PAGES")
        return page * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_FREE


def _container_free() -> int:
    """What the memory limit of a container leaves; file cache that can be dropped counts as free."""
    for limit, used in CONTAINER_FILES:
        try:
            most = int((CGROUP / limit).read_text())
            if most > NO_LIMIT:
                break
            left = most - int((CGROUP / used).read_text())
            stat = (CGROUP / limit).with_name("memory.stat").read_text()
        except (OSError, ValueError):
            continue
        cache = re.search(r"^(?:total_)?inactive_file (\d+)$", stat, re.MULTILINE)
        return max(left + (int(cache[1]) if cache else 0), 0)
    return sys.maxsize
