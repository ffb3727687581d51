"""Full float32 precision in matrix products, whatever the program around us has allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Keep TensorFloat-32 and bfloat16 out of float32 products: distances lose all accuracy in them."""
    products: Any = getattr(torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn, "matmul", None)
    if hasattr(products, "fp32_precision"):
        before = products.fp32_precision
        if before in ("none", "ieee"):
            yield
            return
        products.fp32_precision = "ieee"
        try:
            yield
        finally:
            products.fp32_precision = before
        return
    legacy = torch.get_float32_matmul_precision()  # before torch 2.9
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(legacy)
