"""Losses: how much a prediction f costs when the target is y, with what solvers need to know of it."""

from __future__ import annotations

from typing import Any

from mercer.core.errors import InputError, InputTypeError
from mercer.losses.kinks import EpsilonInsensitive, Hinge, PiecewiseLinear, Quantile
from mercer.losses.loss import Loss
from mercer.losses.smooth import Huber, Logistic, Multinomial, Squared, SquaredHinge

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "PiecewiseLinear",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "get_loss",
]

LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "quantile": Quantile,
    "epsilon_insensitive": EpsilonInsensitive,
}
"""The losses by name."""


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
