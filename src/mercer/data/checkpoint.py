"""Checkpoints: the state of a long fit in a file, so that it can go on after whatever ended it."""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import CheckpointError, InputError, ModelFileError
from mercer.core.files import remove_leftovers
from mercer.data.dials import SECONDS
from mercer.files.modelfile import read_model, write_model

CLASS = "Checkpoint"

State = tuple[int, dict[str, Tensor]]


class Checkpoint:
    """Arrays after so many steps, in one file that is replaced as a whole: a kill at any time leaves the one before.

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
        """The state of this fit, None when there is no file; raises an error where none could be written either."""
        remove_leftovers(self.path)
        self.check_place()
        if not self.path.exists():
            return None
        _, meta, arrays = read_model(self.path, {CLASS})
        saved = meta.get("identity")
        if saved != self.identity or not isinstance(meta.get("steps"), int):
            known = saved if isinstance(saved, dict) else {}
            different = [name for name in self.identity if known.get(name) != self.identity[name]]
            raise CheckpointError(
                f"The checkpoint {self.path} belongs to another fit ({', '.join(different)} differ): "
                "remove it, or give another path."
            )
        return meta["steps"], arrays

    def offer(self, steps: int, arrays: Callable[[], dict[str, Tensor]]) -> None:
        """Save when enough time has passed since the last time."""
        if time.perf_counter() - self.last >= self.seconds:
            self.save(steps, arrays())

    def save(self, steps: int, arrays: dict[str, Tensor]) -> None:
        """Write the state; a disk that is full is a warning, and the file before stays.

        A state that is not finite is not worth keeping: the solver will complain of it.
        """
        if all(bool(torch.isfinite(values).all()) for values in arrays.values()):
            try:
                write_model(self.path, CLASS, {"identity": self.identity, "steps": steps}, arrays)
            except ModelFileError as error:
                self._warn(error)
        self.last = time.perf_counter()

    def finish(self) -> None:
        """Remove the file of a fit that has ended well."""
        self.path.unlink(missing_ok=True)

    def check_place(self) -> None:
        """Raise an error where a checkpoint could never be written."""
        folder = Path(os.path.realpath(self.path)).parent
        try:
            if self.path.is_dir():
                raise InputError(f"checkpoint={str(self.path)!r} is a folder; give the path of a file.")
            if not folder.is_dir():
                raise InputError(f"checkpoint={str(self.path)!r}: the folder {folder} does not exist.")
            with tempfile.TemporaryFile(dir=folder):
                return
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"checkpoint={str(self.path)!r} cannot be written: {reason}.") from error

    def _warn(self, error: Exception) -> None:
        if self.warned:
            return
        self.warned = True
        kept = "the one before is kept and " if self.path.exists() else ""
        warnings.warn(f"The checkpoint could not be written; {kept}the fit goes on: {error}", stacklevel=3)
