"""Checkpoints: the state of a long fit in a file, so that it can go on after whatever ended it."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.core.modelfile import read_model, write_model

CLASS = "Checkpoint"
SECONDS = 10.0
"""Time between two checkpoints; what an interruption costs at most."""

State = tuple[int, dict[str, Tensor]]


class Checkpoint:
    """Arrays after so many steps, in one file that is replaced as a whole.

    `identity` are plain data that say which fit this is: a file of another fit is refused rather than continued.

    >>> import torch
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(f"{folder}/fit.checkpoint", {"seed": 0})
    ...     checkpoint.save(3, {"sum": torch.ones(1)})
    ...     checkpoint.load()
    (3, {'sum': tensor([1.])})
    """

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any], seconds: float | None = None) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"checkpoint={path!r}: give the path of a file.")
        self.path, self.seconds = Path(path), SECONDS if seconds is None else seconds
        self.identity = json.loads(json.dumps(identity))
        self.last = time.perf_counter()
        self.warned = False

    def load(self) -> State | None:
        """The state of this fit, None when there is no file."""
        if not self.path.exists():
            return None
        _, meta, arrays = read_model(self.path, {CLASS})
        saved = meta.get("identity")
        if saved != self.identity or not isinstance(meta.get("steps"), int):
            known = saved if isinstance(saved, dict) else {}
            different = [name for name in self.identity if known.get(name) != self.identity[name]]
            raise InputError(
                f"The checkpoint {self.path} belongs to another fit ({', '.join(different)} differ): "
                "remove it, or give another path."
            )
        return meta["steps"], arrays

    def offer(self, steps: int, arrays: Callable[[], dict[str, Tensor]]) -> None:
        """Save when enough time has passed since the last time."""
        if time.perf_counter() - self.last >= self.seconds:
            self.save(steps, arrays())

    def save(self, steps: int, arrays: dict[str, Tensor]) -> None:
        """Write the state; a disk that is full is a warning, and the file before stays."""
        try:
            write_model(self.path, CLASS, {"identity": self.identity, "steps": steps}, arrays)
        except ModelFileError as error:
            if not self.warned:
                warnings.warn(f"The checkpoint could not be written, the fit goes on without: {error}", stacklevel=2)
            self.warned = True
        self.last = time.perf_counter()

    def finish(self) -> None:
        """Remove the file of a fit that has ended well."""
        self.path.unlink(missing_ok=True)
