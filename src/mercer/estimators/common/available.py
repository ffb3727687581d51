"""Methods that an object has only where it can do them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils import metaestimators

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """A decorator of methods that only those objects have for which `check` holds, as in scikit-learn."""
    marked: Callable[[Method], Method] = metaestimators.available_if(check)
    return marked
