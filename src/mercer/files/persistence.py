"""Saving and loading: classes register themselves, and `load` makes only those that did."""

from __future__ import annotations

import os
from typing import Any, Protocol, Self, TypeVar

from torch import Tensor

from mercer.core.errors import InputTypeError, MercerError, ModelFileError
from mercer.files.classes import check_free
from mercer.files.modelfile import listed, read_model, unreadable, write_model

__all__ = ["Persistable", "load", "read_model", "rebuilt", "register", "save", "state_of", "write_model"]


class Persistable(Protocol):
    """What a class must offer to be saved: plain data and arrays out, an equal object back."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays."""

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""


C = TypeVar("C", bound=type[Persistable])
P = TypeVar("P", bound=Persistable)
_registry: dict[str, type[Persistable]] = {}


def register(cls: C) -> C:
    """Class decorator: put the class on the list of those that model files may hold, under its name.

    The class has `to_state() -> (meta, arrays)`, where meta is plain JSON data, and the classmethod
    `from_state(meta, arrays)`, which checks that the two fit together.

    >>> @register
    ... class Shift:
    ...     def __init__(self, by):
    ...         self.by = by
    ...     def to_state(self):
    ...         return {"by": self.by}, {}
    ...     @classmethod
    ...     def from_state(cls, meta, arrays):
    ...         return cls(meta["by"])
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save(Shift(3), f"{folder}/shift.safetensors")
    ...     load(f"{folder}/shift.safetensors").by
    3
    """
    check_free(cls.__name__, cls, _registry.get(cls.__name__))
    _registry[cls.__name__] = cls
    return cls


def save(model: Persistable, path: str | os.PathLike[str]) -> None:
    """Write an object of a registered class to one file, in full or not at all.

    >>> save({}, "model.safetensors")
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: An object of class dict cannot be saved; those that can: ...
    """
    name = type(model).__name__
    if _registry.get(name) is not type(model):
        raise InputTypeError(f"An object of class {name} cannot be saved; those that can: {listed(_registry)}.")
    write_model(path, name, *model.to_state())


def load(path: str | os.PathLike[str]) -> Any:
    """The object that `save` wrote; a `ModelFileError` says what is wrong with a file that cannot be used.

    Safe on files from strangers: nothing in the file is run, and only classes known to mercer are made.

    >>> load("missing.safetensors")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: Cannot load missing.safetensors: the file does not exist.
    """
    name, meta, arrays = read_model(path, _registry.keys())
    try:
        return _registry[name].from_state(meta, arrays)
    except Exception as error:
        reason = str(error) if isinstance(error, MercerError) else f"{type(error).__name__}: {error}"
        raise unreadable(path, f"its content does not make a {name} ({reason:.300})") from error


def state_of(model: Persistable) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays of an object that is a part of another one."""
    return model.to_state()


def class_named(name: str) -> type[Persistable]:
    """The registered class of that name, of which a part of a file may be."""
    if name not in _registry:
        raise ModelFileError(f"it names the unknown class {name!r:.60}")
    return _registry[name]


def rebuilt(cls: type[P], meta: dict[str, Any], arrays: dict[str, Tensor]) -> P:
    """The part of which `state_of` told."""
    return cls.from_state(meta, arrays)
