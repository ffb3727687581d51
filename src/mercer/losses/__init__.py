"""Losses: how much a prediction f costs when the target is y, with what solvers need to know of it."""

from __future__ import annotations

from mercer.losses.kinks import EpsilonInsensitive, Hinge, PiecewiseLinear, Quantile
from mercer.losses.loss import Loss
from mercer.losses.registry import LOSSES, from_dict, get_loss, register, to_dict
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
    "from_dict",
    "get_loss",
    "register",
    "to_dict",
]
