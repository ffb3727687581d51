"""Names that stand for classes: in model files, and in what users write."""

from __future__ import annotations

from mercer.core.errors import InputError


def check_free(name: str, cls: type, holder: type | None) -> None:
    """Raise an error where a name belongs to another class; the same one may be defined again."""
    if holder is not None and (holder.__module__, holder.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InputError(f"Two classes are named {name}; one from {holder.__module__} is registered already.")
