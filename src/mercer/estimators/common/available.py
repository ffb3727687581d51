"""Methods that an object has only where it can do them."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

from sklearn.utils import metaestimators

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """A decorator of methods that only those objects have for which `check` holds, as in scikit-learn."""
    marked: Callable[[Method], Method] = metaestimators.available_if(check)
    return marked


class Where:
    """A decorator of methods that objects have where `check` raises no error; its `AttributeError` says why not."""

    def __init__(self, check: Callable[[Any], object]) -> None:
        self.check = check
        self.method: Any = None

    def __call__(self, method: Callable[..., Any]) -> Any:
        self.method = method
        self.__doc__, self.__name__ = method.__doc__, method.__name__
        return self

    def __get__(self, found: Any, owner: type) -> Any:
        if found is None:
            return self.method
        self.check(found)
        return MethodType(self.method, found)
