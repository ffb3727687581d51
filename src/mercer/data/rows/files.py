"""Arrays in files, of which rows are read when they are asked for."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.data.rows.marks import FileMark, changed


@dataclass(frozen=True)
class FileArray:
    """An array in a file: a slice reads those rows, into memory of its own.

    Unlike a memory map it is small when pickled, its pages never count as memory of this process, and a file that is
    written again or cut short while it is read is an error rather than a crash.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/a.npy", np.arange(6.0).reshape(3, 2))
    ...     FileArray.npy(f"{folder}/a.npy")[1:3]
    array([[2., 3.],
           [4., 5.]])
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0
    by_columns: bool = False
    mark: FileMark | None = None

    def __post_init__(self) -> None:
        if self.mark is None:
            object.__setattr__(self, "mark", FileMark.of(self.path))

    @classmethod
    def npy(cls, path: str | os.PathLike[str]) -> FileArray:
        """The array of a `.npy` file."""
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"There is no file {os.fspath(path)}.") from None
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{os.fspath(path)} is not an array that numpy can read: {error}") from error
        if not isinstance(mapped, np.memmap):
            raise InputError(f"{os.fspath(path)} holds several arrays; give a .npy file with one.")
        by_columns = mapped.ndim > 1 and not mapped.flags.c_contiguous
        return cls(Path(path), mapped.dtype, mapped.shape, mapped.offset, by_columns)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        assert self.mark is not None
        try:
            values = self._rows(start, max(0, stop - start))
        except OSError as error:
            self.mark.check(self.path)
            raise InputError(f"Cannot read {self.path}: {error.strerror or error}.") from error
        self.mark.check(self.path)
        return values

    def _rows(self, start: int, count: int) -> np.ndarray:
        width = int(np.prod(self.shape[1:], dtype=int))
        with self.path.open("rb", buffering=0) as file:
            if not self.by_columns:
                return self._read(file, start * width, count * width).reshape(count, *self.shape[1:])
            return np.stack([self._read(file, j * len(self) + start, count) for j in range(width)], axis=1)

    def _read(self, file: Any, first: int, count: int) -> np.ndarray:
        values = np.empty(count, dtype=self.dtype)
        file.seek(self.offset + first * self.dtype.itemsize)
        view, done = values.view(np.uint8).data, 0
        while done < len(view):
            read = file.readinto(view[done:])
            if not read:
                raise changed(self.path, "it has become shorter")
            done += read
        return values


def forget_pages(array: Any) -> None:
    """Give back the pages of a memory map that have been read: the system keeps them, this process need not."""
    mapped, mode = getattr(array, "_mmap", None), getattr(array, "mode", None)
    if isinstance(mapped, mmap.mmap) and mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
