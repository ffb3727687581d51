"""Products of Triton's interpreter, added up in the order of the tensor cores it stands for.

The interpreter leaves a product to `np.matmul`, whose order is that of the processor at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

COLUMNS = 16
"""Columns that tensor cores multiply at a time."""


def stand_in() -> None:
    """Let the interpreter multiply as tensor cores do."""
    InterpreterBuilder.create_dot = _dot


def _dot(_: Any, a: TensorHandle, b: TensorHandle, total: TensorHandle, *precision: Any) -> TensorHandle:
    """Sixteen columns at a time are added to the sum so far, which is rounded to float32 each time."""
    left, right, sums = a.data.astype(np.float64), b.data.astype(np.float64), total.data
    for at in range(0, left.shape[1], COLUMNS):
        sums = (sums + left[:, at : at + COLUMNS] @ right[at : at + COLUMNS]).astype(np.float32)
    return TensorHandle(sums, total.dtype.scalar)
