"""Files written in full or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A new, empty file beside `target` that takes its place when the block ends well, and is removed otherwise.

    The old file, if any, is never seen half written: not after an error, a full disk, Ctrl-C or a power cut. A link is
    followed, and permissions are kept.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = Path(os.path.realpath(target))
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
    try:
        temporary.open("xb").close()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # a writer may have made the file anew, for its owner alone
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def remove_leftovers(target: str | os.PathLike[str]) -> None:
    """Remove what `replacing` left beside `target` in a process that was killed while it wrote."""
    target = Path(os.path.realpath(target))
    with contextlib.suppress(OSError):
        for file in target.parent.iterdir():
            if file.name.startswith(_prefix(target)) and file.name.endswith(".tmp"):
                file.unlink(missing_ok=True)


def _prefix(target: Path) -> str:
    return f".mercer-{target.name[:150]}-"


def _flush_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some systems cannot flush a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
