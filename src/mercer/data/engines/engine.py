"""`Engine`: work on groups of rows, and the sum of what comes out, in an order that does not depend on who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Protocol, TypeVar

from torch import Tensor

from mercer.data.dials import BUNCH
from mercer.data.rows.source import Part, RowSource

Arrays = dict[str, Tensor]
"""What work gives back: named tensors that can be added to those of other rows."""

Work = Callable[..., Arrays]
"""``work(rows, parts, *shared)``: reads these parts from a source of rows. Pickle must be able to name it."""

Merge = Callable[[Arrays, Arrays], Arrays]


Item = TypeVar("Item")


class Engine(Protocol):
    """Where work runs. Results are merged in the order of the groups, so that who did which does not matter.

    Attributes
    ----------
    group_rows : int or None
        Rows of a group; None leaves it to the caller, who knows what a row costs.
    """

    group_rows: int | None

    def broadcast(self, value: Any) -> Any:
        """Send a value to wherever work runs; what comes back stands for it among the `shared` of `map_groups`."""

    def map_groups(self, work: Work, source: RowSource, groups: Sequence[list[Part]], *shared: Any) -> list[Any]:
        """What stands for ``work(rows, group, *shared)`` of each group of parts, where `rows` can read them."""

    def reduce(
        self,
        merge: Merge,
        results: Sequence[Any],
        start: Arrays | None = None,
        after: Callable[[int, Arrays], None] | None = None,
    ) -> Arrays:
        """Do the work and merge the results, onto `start`; `after` is told how many are in, and the sum so far."""

    def close(self) -> None:
        """Forget everything that was sent, and end connections of its own; the next work may begin anew."""


def added(a: Arrays, b: Arrays) -> Arrays:
    """The sum, name by name.

    >>> import torch
    >>> added({"h": torch.ones(1)}, {"h": torch.ones(1)})
    {'h': tensor([2.])}
    """
    return {name: value + b[name] for name, value in a.items()}


def folded(merge: Merge, results: Iterable[Arrays]) -> Arrays:
    """The results merged one after the other."""
    return reduce(merge, results)


def bunches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The items, `BUNCH` at a time."""
    return (items[start : start + BUNCH] for start in range(0, len(items), BUNCH))


def grouped(parts: Sequence[Part], rows: int) -> list[list[Part]]:
    """Parts that follow each other in groups of about so many rows.

    The last rows of a table may make a small group; a part is never cut. Groups that begin with the first part of
    another group are the same as those, so that work can go on from the end of any group.

    >>> from mercer.data.rows.source import equal_parts
    >>> [[len(part) for part in group] for group in grouped(equal_parts([7], at_once=2), rows=4)]
    [[2, 2], [2, 1]]
    """
    groups: list[list[Part]] = []
    count = rows
    for part in parts:
        if count >= rows:
            groups.append([])
            count = 0
        groups[-1].append(part)
        count += len(part)
    return groups
