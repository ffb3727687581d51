"""`FileMark`: whether a file is still the one that was opened."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from mercer.core.errors import InputError


@dataclass(frozen=True)
class FileMark:
    """Size and time of a file when its rows were counted. A fit reads rows several times, and they must stay the same.

    Other machines may have copies of the file with times of their own, so that times are compared on one machine only.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows")
    ...     _ = path.write_bytes(b"old")
    ...     mark = FileMark.of(path)
    ...     mark.check(path)
    ...     _ = path.write_bytes(b"newer")
    ...     mark.check(path)
    Traceback (most recent call last):
    mercer.core.errors.InputError: .../rows has changed since it was opened (it had 3 bytes, now 5); ...
    """

    size: int
    time: int
    machine: str

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """That of a file as it is now."""
        found = _status(path)
        return cls(found.st_size, found.st_mtime_ns, platform.node())

    def check(self, path: Path) -> None:
        """Raise an error where the file is another one by now."""
        now = FileMark.of(path)
        if now.size != self.size:
            raise changed(path, f"it had {self.size:,} bytes, now {now.size:,}")
        if now.machine == self.machine and now.time != self.time:
            raise changed(path, "it was written again")


def changed(path: Path, how: str) -> InputError:
    """The error for a file whose rows may be others than before."""
    return InputError(
        f"{path} has changed since it was opened ({how}); it must stay the same during a fit. Create the source again, "
        "from a copy if the file is still being written."
    )


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError:
        raise InputError(f"{path} has vanished since it was opened.") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
