"""What the arguments of the functions of networks may be, looked at before any work."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mercer.core.arrays import as_points
from mercer.core.errors import InputError
from mercer.core.rules import FLAG, Rule, Rules, check_arguments, is_integer, number, of_kind, whole

RULES: Rules = {
    "full": FLAG,
    "module": of_kind(lambda value: isinstance(value, nn.Module), "a torch.nn.Module"),
    "moments": whole(1),
    "n_modules": whole(1),
    "seed": Rule(is_integer, lambda value: 0 <= value < 2**63, "an integer >= 0"),
    "shape": Rule(
        lambda shape: shape is None or (isinstance(shape, tuple | list) and all(is_integer(size) for size in shape)),
        lambda shape: shape is None or all(size > 0 for size in shape),
        "a tuple of positive integers, the shape of a row, or None",
    ),
    "steps": whole(1, 10**7),
    "time": number(lambda value: value > 0, "a finite number > 0"),
    "width": Rule(
        is_integer, lambda value: 2 <= value <= 10**7 and value % 2 == 0, "an even number >= 2: units come in pairs"
    ),
}


def check(**given: object) -> None:
    """Raise an error that names the first argument that cannot be what it is."""
    check_arguments(RULES, **given)


def rows_of(X: Any, name: str = "X") -> Tensor:
    """Rows of numbers in float64, one or more."""
    found = as_points(X, name).values.detach().to(torch.float64)
    if not len(found):
        raise InputError(f"{name} has shape {tuple(found.shape)}: it has no rows.")
    return found
