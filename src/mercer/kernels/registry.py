"""Kernels register themselves: one decorator makes the class, and tells names, model files and laws of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, overload

from mercer.core.errors import InputTypeError
from mercer.files.classes import check_free
from mercer.kernels.base import Kernel

NAMED: dict[str, Kernel] = {}
"""The kernel that each name stands for; widths are found from the data."""

SAVED: dict[str, type[Kernel]] = {}
"""The classes that a model file may name."""

PARTS: dict[str, type] = {}
"""Frozen dataclasses that parameters of kernels in a model file may be, such as the layers of a network."""

EXAMPLES: dict[str, tuple[Kernel, ...]] = {}
"""Kernels with typical parameters, by class, for laws to run over."""

Parameters = Mapping[str, Any]
K = TypeVar("K", bound=type[Kernel])
T = TypeVar("T", bound=type)


@overload
def register(cls: K) -> K: ...
@overload
def register(*, names: Mapping[str, Parameters] = ..., examples: Iterable[Parameters] = ...) -> Callable[[K], K]: ...
@dataclass_transform(frozen_default=True, eq_default=False)
def register(
    cls: Any = None, *, names: Mapping[str, Parameters] | None = None, examples: Iterable[Parameters] = ()
) -> Any:
    """Class decorator: make a kernel a frozen dataclass that model files may hold.

    A kernel of your own is saved and loaded like the others once the program that loads it has registered it, too: a
    model file imports nothing. What a file gives as parameters is checked by `parameter` and by `__post_init__` alone.

    Parameters
    ----------
    names : Mapping[str, Parameters] or None
        What the kernel is called in text, and its parameters then.
    examples : Iterable[Parameters]
        Typical parameters, for the laws in `mercer.testing`.

    Examples
    --------
    >>> from mercer.formula.maths import exp
    >>> from mercer.kernels import as_kernel, from_dict, to_dict
    >>> from mercer.kernels.parameters import length_scale
    >>> @register(names={"hill": {"length_scale": "auto"}}, examples=[{"length_scale": 0.5}])
    ... class Hill(Kernel):
    ...     length_scale: float = length_scale()
    ...
    ...     def of(self, pair):
    ...         return exp(-pair.squared_distance(self.length_scale))
    >>> as_kernel("hill")
    Hill(length_scale='auto')
    >>> from_dict(to_dict(2.0 * Hill(0.5)))
    2.0 * Hill(length_scale=0.5)
    """
    if cls is None:
        return lambda made: _registered(made, dict(names or {}), tuple(examples))
    return _registered(cls, {}, ())


def register_part(cls: T) -> T:
    """Class decorator: a frozen dataclass, checked when it is made, that kernels in model files may hold."""
    check_free(cls.__name__, cls, PARTS.get(cls.__name__) or SAVED.get(cls.__name__))
    PARTS[cls.__name__] = cls
    return cls


def _registered(cls: Any, names: Mapping[str, Parameters], examples: tuple[Parameters, ...]) -> Any:
    if not isinstance(cls, type) or not issubclass(cls, Kernel):
        raise InputTypeError(f"register({cls!r}): must be a class of kernels, derived from mercer.kernels.Kernel.")
    if "__dataclass_fields__" not in vars(cls):
        cls = dataclass(frozen=True, eq=False, repr=False)(cls)
    check_free(cls.__name__, cls, SAVED.get(cls.__name__))
    for name in names:
        check_free(name, cls, type(NAMED[name]) if name in NAMED else None)
    named = {name: cls(**parameters) for name, parameters in names.items()}
    shown = tuple(cls(**parameters) for parameters in examples)
    NAMED.update(named)
    SAVED[cls.__name__], EXAMPLES[cls.__name__] = cls, shown
    return cls
