"""Losses register themselves: one decorator makes the class, and tells names and model files of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform, overload

from mercer.core.errors import InputError, InputTypeError, MercerError, ModelFileError
from mercer.files.classes import check_free
from mercer.losses.loss import Loss

LOSSES: dict[str, type[Loss]] = {}
"""The losses by name."""

SAVED: dict[str, type[Loss]] = {}
"""The classes that a model file may name."""

L = TypeVar("L", bound=type[Loss])


@overload
def register(cls: L) -> L: ...
@overload
def register(cls: str) -> Callable[[L], L]: ...
@dataclass_transform(frozen_default=True)
def register(cls: Any) -> Any:
    """Class decorator: make a loss a frozen dataclass that model files may hold; `@register("name")` names it, too.

    A loss of your own is saved and loaded once the program that loads it has registered it, too: a model file imports
    nothing. What a file gives as parameters is checked by `__post_init__` alone.

    >>> import torch
    >>> @register
    ... class Welsch(Loss):
    ...     convex = False
    ...     scale: float = 1.0
    ...
    ...     def value(self, y, f):
    ...         return 1 - torch.exp(-(((y - f) / self.scale) ** 2))
    >>> from_dict(to_dict(Welsch(2.0)))
    Welsch(scale=2.0)
    """
    if not isinstance(cls, str):
        return _registered(cls)

    def named(made: L) -> L:
        check_free(cls, made, LOSSES.get(cls))
        LOSSES[cls] = _registered(made)
        return LOSSES[cls]  # type: ignore[return-value]

    return named


def get_loss(loss: Any, **parameters: Any) -> Loss:
    """The loss of that name with these parameters; a `Loss` is given back as it is.

    >>> get_loss("quantile", level=0.1)
    Quantile(level=0.1)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(f"loss={loss!r}: give a name or a mercer.losses.Loss.")
    if loss not in LOSSES:
        raise InputError(f"loss={loss!r} is unknown; the losses are {', '.join(map(repr, LOSSES))}.")
    return LOSSES[loss](**parameters)


def names_for(what: str) -> tuple[str, ...]:
    """The names of the losses for "classes", or for "numbers".

    >>> names_for("classes")
    ('hinge', 'squared', 'logistic', 'squared_hinge')
    """
    return tuple(name for name, cls in LOSSES.items() if getattr(cls, f"for_{what}"))


def to_dict(loss: Loss) -> dict[str, Any]:
    """The loss as plain data that JSON can hold.

    >>> to_dict(get_loss("huber", delta=2.0))
    {'class': 'Huber', 'params': {'delta': 2.0}}
    """
    name = type(loss).__name__
    if SAVED.get(name) is not type(loss):
        raise InputError(
            f"The loss {loss!r} cannot be saved in a model file: {name} is not registered (see "
            "mercer.losses.register); use pickle."
        )
    params = {f.name: getattr(loss, f.name) for f in fields(loss)}
    odd = [key for key, value in params.items() if not isinstance(value, int | float | str)]
    if odd:
        raise InputError(
            f"The loss {loss!r} cannot be saved in a model file: {odd[0]} is neither a number nor text; use pickle."
        )
    return {"class": name, "params": params}


def from_dict(data: Any) -> Loss:
    """The loss that `to_dict` wrote; raises ModelFileError for anything else."""
    if not isinstance(data, dict) or set(data) != {"class", "params"} or not isinstance(data["params"], dict):
        raise ModelFileError(f'A loss in a model file has the keys "class" and "params", got {data!r:.80}.')
    name, params = data["class"], data["params"]
    if not isinstance(name, str) or name not in SAVED:
        raise ModelFileError(
            f"The model file names an unknown loss {name!r:.60}. If it is one of your own, register it before loading: "
            "see mercer.losses.register."
        )
    known = {f.name for f in fields(SAVED[name])}
    needed = {f.name for f in fields(SAVED[name]) if f.default is MISSING}
    if not needed <= set(params) <= known or not all(isinstance(value, int | float | str) for value in params.values()):
        raise ModelFileError(
            f"{name} has the parameters {sorted(known)}, numbers or text, but the model file gives {params!r:.80}."
        )
    try:
        return SAVED[name](**params)
    except MercerError as error:
        raise ModelFileError(f"The model file contains an invalid loss: {error}") from error


def _registered(cls: Any) -> Any:
    if not isinstance(cls, type) or not issubclass(cls, Loss):
        raise InputTypeError(f"register({cls!r}): must be a class of losses, derived from mercer.losses.Loss.")
    if "__dataclass_fields__" not in vars(cls):
        cls = dataclass(frozen=True)(cls)
    check_free(cls.__name__, cls, SAVED.get(cls.__name__))
    SAVED[cls.__name__] = cls
    return cls
