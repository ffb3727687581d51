"""What is saved of a class: its fields declared once, by which a model is written to a file and read back, checked.

Each entry says what a field is, where the model has it, and, of arrays, the shape: letters are sizes, and one letter is
the same size everywhere, that of the first field that has it ("d or d d" are two shapes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.files.kinds import TEXTS, Kind
from mercer.files.persistence import rebuilt, state_of

Where = str | Callable[[Any], Any] | None
"""Where a model has a value: an attribute, with dots between those of parts (empty: its name), or a function of the
model; None for what only older files have.
"""

NEEDED: Any = object()
"""The value of what no file may lack."""


@dataclass
class File:
    """Plain data and arrays: those written so far, or those not yet read, with the sizes that are known."""

    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def array(self, name: str) -> Tensor:
        """An array, taken out."""
        if name not in self.arrays:
            raise ModelFileError(f"array {name!r} is missing")
        found: Tensor = self.arrays.pop(name)
        return found

    def check_shape(self, name: str, array: Tensor, shape: str) -> None:
        """Compare with the letters of a shape, or of one of several; new ones get their sizes from it."""
        shapes = [option.split() for option in shape.split("or")]
        letters = next((option for option in shapes if len(option) == array.ndim), shapes[0])
        sizes = [int(s) if s.isdigit() else self.sizes.get(s) for s in letters]
        fits = array.ndim == len(sizes) and all(s in (None, n) for s, n in zip(sizes, array.shape, strict=True))
        if not fits:
            wanted = str(tuple(sizes)).replace("None", "*")
            raise ModelFileError(f"array {name!r} has the shape {tuple(array.shape)}, expected {wanted}")
        self.sizes |= dict(zip(letters, array.shape, strict=True))


class Entry(Protocol):
    """A part of a file; `at` is where the model has it."""

    @property
    def at(self) -> Where: ...

    def write(self, name: str, value: Any, file: File) -> None:
        """Add a value."""

    def read(self, name: str, file: File) -> Any:
        """Take it out."""


@dataclass(frozen=True)
class Field:
    """A value among the plain data; `sizes` are letters that it gives a meaning."""

    kind: Kind
    at: Where = ""
    lacking: Any = NEEDED
    sizes: Callable[[Any], dict[str, int]] | None = None

    def write(self, name: str, value: Any, file: File) -> None:
        file.meta[name] = self.kind.plain(value)

    def read(self, name: str, file: File) -> Any:
        if name not in file.meta:
            if self.lacking is NEEDED:
                raise ModelFileError(f"meta lacks {name!r}")
            return self.lacking
        value = self.kind.read(file.meta.pop(name), f"meta.{name}")
        file.sizes |= {} if self.sizes is None else self.sizes(value)
        return value


@dataclass(frozen=True)
class Array:
    """An array of that shape and type (None for any), no entry of which is below `least`; a file `may_lack` it."""

    shape: str
    at: Where = ""
    least: float = -float("inf")
    may_lack: bool = False
    dtype: torch.dtype | None = torch.float64

    def write(self, name: str, value: Any, file: File) -> None:
        if value is not None or not self.may_lack:
            file.arrays[name] = value

    def read(self, name: str, file: File) -> Tensor | None:
        if self.may_lack and name not in file.arrays:
            return None
        array = file.array(name)
        if self.dtype not in (None, array.dtype):
            raise ModelFileError(f"array {name!r} is {array.dtype}, expected {self.dtype}")
        file.check_shape(name, array, self.shape)
        if bool((array < self.least).any()):
            raise ModelFileError(f"array {name!r} has entries below {self.least:g}")
        return array


@dataclass(frozen=True)
class Group:
    """A dictionary of arrays, named with a prefix in the file, for a reader who checks them."""

    prefix: str
    at: Where = ""

    def write(self, name: str, value: Mapping[str, Any], file: File) -> None:
        file.arrays |= {self.prefix + key: array for key, array in value.items()}

    def read(self, name: str, file: File) -> dict[str, Tensor]:
        names = [key for key in file.arrays if key.startswith(self.prefix)]
        return {key.removeprefix(self.prefix): file.arrays.pop(key) for key in names}


@dataclass(frozen=True)
class Model:
    """A part that is a saved model itself; its arrays have its name before theirs."""

    cls: type[Any]
    at: Where = ""

    def write(self, name: str, value: Any, file: File) -> None:
        file.meta[name], arrays = state_of(value)
        Group(f"{name}.").write(name, arrays, file)

    def read(self, name: str, file: File) -> Any:
        if not isinstance(file.meta.get(name), dict):
            raise ModelFileError(f"meta.{name} is {file.meta.get(name)!r:.60}, expected an object")
        return rebuilt(self.cls, file.meta.pop(name), Group(f"{name}.").read(name, file))


@dataclass(frozen=True)
class Rows:
    """Points: the array X, "m d", or strings among the plain data; None where a file that `may_lack` them does."""

    at: Where = ""
    may_lack: bool = False

    def write(self, name: str, value: Points | None, file: File) -> None:
        file.meta["objects"] = None
        if value is not None and value.is_tensor:
            file.arrays["X"] = value.values
        elif value is not None:
            file.meta["objects"] = _strings(value)

    def read(self, name: str, file: File) -> Points | None:
        if self.may_lack and file.meta.get("objects") == []:  # as files of 0.2.0 say that there are none
            file.meta["objects"] = None
        if file.meta.get("objects", ()) is not None:
            objects = Field(TEXTS).read("objects", file)
            if not objects:
                raise ModelFileError("meta.objects is empty")
            if "d" in file.sizes:
                raise ModelFileError(f"there are strings and {file.sizes['d']} columns")
            file.sizes["m"] = len(objects)
            return Points(objects)
        del file.meta["objects"]
        if self.may_lack and "X" not in file.arrays:
            return None
        X = file.array("X")
        if X.ndim != 2 or 0 in X.shape or X.dtype not in (torch.float32, torch.float64):
            raise ModelFileError(f"array 'X' is {X.dtype} {tuple(X.shape)}")
        file.check_shape("X", X, "m d")
        return Points(X)


Fields = Mapping[str, Entry]
"""The entries of a class by name, in the order in which they are read."""


def written(fields: Fields, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays of a model."""
    file = File()
    for name, entry in fields.items():
        if entry.at is not None:
            entry.write(name, _found(model, entry.at or name), file)
    return file.meta, file.arrays


def read(
    fields: Fields, meta: Mapping[str, Any], arrays: Mapping[str, Tensor], owner: str = "model"
) -> tuple[dict[str, Any], dict[str, int]]:
    """The values that `written` had, by name, and the sizes of letters; a ModelFileError for anything else.

    >>> from mercer.files.kinds import TEXT
    >>> read({"note": Field(TEXT), "coef": Array("n 2")}, {"note": "?"}, {"coef": torch.ones(3, 1).double()})
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: array 'coef' has the shape (3, 1), expected (*, 2)
    """
    file = File(dict(meta), dict(arrays))
    found = {name: entry.read(name, file) for name, entry in fields.items()}
    if file.meta:
        raise ModelFileError(f"meta has an unknown field {min(file.meta)!r:.60}")
    if file.arrays:
        raise ModelFileError(f"the arrays {sorted(file.arrays)} do not belong to a {owner}")
    return found, file.sizes


def _found(model: Any, at: str | Callable[[Any], Any]) -> Any:
    """What a model has there; None where it lacks a part on the way."""
    if callable(at):
        return at(model)
    return reduce(lambda part, name: None if part is None else getattr(part, name), at.split("."), model)


def _strings(points: Points) -> list[str]:
    for i, item in enumerate(points.values):
        if not isinstance(item, str):
            raise InputError(
                f"X[{i}] is a {type(item).__name__}: only strings and numbers fit a model file. Use pickle instead."
            )
    return list(points.values)
