"""Reading ahead: the next part is read while the one before is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Spec = TypeVar("Spec")
Value = TypeVar("Value")


def read_ahead(read: Callable[[Spec], Value], specs: Iterable[Spec]) -> Iterator[tuple[Spec, Value]]:
    """Each spec with what was read for it, in order; one more is being read meanwhile, by another thread.

    >>> list(read_ahead(str, [1, 2]))
    [(1, '1'), (2, '2')]
    """
    remaining = iter(specs)
    with ThreadPoolExecutor(1, thread_name_prefix="mercer-rows") as reader:
        current = next(remaining, None)
        if current is None:
            return
        coming = reader.submit(read, current)
        for following in remaining:
            value = coming.result()
            coming = reader.submit(read, following)
            yield current, value
            current = following
        yield current, coming.result()
