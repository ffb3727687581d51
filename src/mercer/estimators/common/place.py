"""Where and in which precision the products of an estimator run, and the memory that they may take."""

from __future__ import annotations

from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.memory import budget_beside, parse_budget
from mercer.data.given import Budget, Device, Precision
from mercer.data.sample import Seen

COPY = "a copy of the rows, which the model keeps,"


def device_of(device: Device, seen: Seen) -> torch.device:
    """Where products run: where `device` says, else where tensors are."""
    return choose_device(device, torch.empty(0, device=seen.device) if seen.torch_in else None)


def dtype_of(dtype: Precision, seen: Seen, *, single: bool) -> torch.dtype:
    """The precision of kernel values; "auto" is float32 for float32 data where a solver can do with it."""
    if isinstance(dtype, str) and dtype == "auto":
        return torch.float32 if single and seen.dtype == torch.float32 else torch.float64
    return choose_dtype(dtype)


def budget_if_kept(memory_budget: Budget, rows: Points) -> int | None:
    """What a budget would leave if these rows were kept; None for the default."""
    given = parse_budget(memory_budget)
    return None if given is None else max(1, given - rows.borrowed_bytes)


def budget_left(memory_budget: Budget, rows: Points, *, kept: bool) -> Any:
    """What a budget leaves beside a copy of the rows, where they are kept; an error where that does not fit."""
    return budget_beside(memory_budget, rows.borrowed_bytes if kept else 0, COPY)
