"""What the passes of a search over rows have found, pass after pass, kept in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from mercer.data.checkpoint import Checkpoint
from mercer.data.engines import Arrays


class Journal:
    """Answers that a search has had. It goes on by asking again: what was answered before costs no pass.

    So the state of a search needs no format of its own: the same questions have the same answers, and lead to the same
    place.

    >>> import torch
    >>> journal = Journal(None)
    >>> journal.answer(lambda: {"value": torch.ones(1)})
    {'value': tensor([1.])}
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        self.entries: list[Arrays] = []
        self.read = 0
        saved = None if checkpoint is None else checkpoint.load()
        if saved is not None:
            self.entries = [{} for _ in range(saved[0])]
            for name, value in saved[1].items():
                number, own = name.split("/", 1)
                self.entries[int(number)][own] = value

    def answer(self, ask: Callable[[], Arrays]) -> Arrays:
        """The next answer: the one that was had before, or a new one."""
        if self.read == len(self.entries):
            try:
                self.entries.append(ask())
            except BaseException:
                if self.checkpoint is not None and self.entries:
                    self.checkpoint.save(len(self.entries), self.to_arrays())
                raise
            if self.checkpoint is not None:
                self.checkpoint.offer(len(self.entries), self.to_arrays)
        self.read += 1
        return self.entries[self.read - 1]

    def to_arrays(self) -> Arrays:
        return {f"{i}/{name}": value.cpu() for i, entry in enumerate(self.entries) for name, value in entry.items()}
