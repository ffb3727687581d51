"""Names that parameters and attributes had in earlier versions: each use is an error that gives the new name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from mercer.core.errors import InputTypeError

Owner = TypeVar("Owner", bound=type)


class Renamed:
    """A class attribute where a parameter or attribute was before."""

    def __init__(self, owner: type, before: str, now: str) -> None:
        self.words = f"{owner.__name__}.{before} is now {now}."

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(self.words)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError(self.words)


def renamed(**names: str) -> Callable[[Owner], Owner]:
    """A class whose old names give the new ones: as attributes and as parameters of its constructor.

    >>> @renamed(n_inducing="n_landmarks")
    ... class Model:
    ...     def __init__(self, n_landmarks=None):
    ...         self.n_landmarks = n_landmarks
    >>> Model(n_inducing=3)
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: Model.n_inducing is now n_landmarks.
    """

    def mark(owner: Owner) -> Owner:
        for before, now in names.items():
            setattr(owner, before, Renamed(owner, before, now))
        if "__init__" in vars(owner):
            owner.__init__ = _refusing(owner.__init__)  # type: ignore[misc]
        return owner

    return mark


def refuse_old_names(owner: type, names: Iterable[str]) -> None:
    """Raise an error for the first of these parameters that has another name now."""
    for name in names:
        old = inspect.getattr_static(owner, name, None)
        if isinstance(old, Renamed):
            raise InputTypeError(old.words)


def _refusing(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def checked(self: Any, *args: Any, **parameters: Any) -> None:
        refuse_old_names(type(self), parameters)
        init(self, *args, **parameters)

    return checked
