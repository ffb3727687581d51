"""Matrix products of tiles, by the library that is quicker at them here."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.operators.backends.costs import costs
from mercer.operators.dials import LEAST_QUICK, MOST_QUICK


def quick(dtype: torch.dtype, device: torch.device, width: int, cells: int) -> bool:
    """Whether oneDNN makes products of so many cells, each a sum of `width` numbers, quicker than all others.

    It adds up all numbers in one go, which for many of them loses digits.
    """
    here = dtype == torch.float32 and device.type == "cpu" and costs().products_by_onednn and _linear() is not None
    return here and width <= MOST_QUICK and cells >= LEAST_QUICK


def quick_product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right`` by oneDNN, in memory of its own."""
    product: Tensor = _linear()(left, right.mT, None, "none", [], "")
    return product


def product(left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """``left @ right`` of few columns, written to `out`, by torch's library or by numpy's OpenBLAS."""
    if out.dtype in costs().products_by_openblas and out.device.type == "cpu" and left.shape[1] <= MOST_QUICK:
        np.matmul(left.numpy(), right.numpy(), out=out.numpy())
        return out
    return torch.mm(left, right, out=out)


def _linear() -> Any:
    """The operation of torch that calls oneDNN with ordinary tensors, if there is one."""
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
