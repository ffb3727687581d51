"""Samples of centres: joined, and with equal ones found."""

from __future__ import annotations

import torch

from mercer.core.arrays import Points, promote
from mercer.core.errors import InputError, InputTypeError


def joined(a: Points, b: Points) -> Points:
    """The rows of both samples, one after the other."""
    check_alike(a, b)
    names = a.names or b.names
    if a.is_tensor:
        return Points(torch.cat(promote(a.values, b.values)), names)
    return Points([*a.values, *b.values], names)


def check_alike(a: Points, b: Points) -> None:
    """An error when the samples cannot be points of one space."""
    if a.is_tensor != b.is_tensor:
        raise InputTypeError("One sample holds rows of numbers, the other objects; both must be of one kind.")
    if a.is_tensor and a.values.shape[1] != b.values.shape[1]:
        raise InputError(f"X has {b.values.shape[1]} columns but the function takes {a.values.shape[1]}.")
    if a.names and b.names and a.names != b.names:
        raise InputError(f"X has the columns {list(b.names)} but the function takes {list(a.names)}.")
