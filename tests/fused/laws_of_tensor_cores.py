"""The order in which products are added up, on tensor cores and where the interpreter stands in for them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from laws import DEVICE


@triton.jit
def _product(A, B, OUT, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    product = tl.dot(tl.load(A + i * K + k[None, :]), tl.load(B + k[:, None] * N + j))
    tl.store(OUT + i * N + j, product)


def test_sixteen_columns_are_added_up_before_those_that_follow() -> None:
    """What cancels in the first sixteen leaves no trace in the digits of the others."""
    first = torch.tensor([4096.0, 1.0, -4096.0] + 13 * [0.0])
    left = torch.cat([first, torch.full((48,), 2.0**-10)]).half().expand(64, 64).contiguous().to(DEVICE)
    right = torch.cat([first.abs(), torch.full((48,), 2.0**-10)]).half().unsqueeze(1).expand(64, 16).contiguous()
    out = torch.empty(64, 16, device=DEVICE)
    _product[(1,)](left, right.to(DEVICE), out, 64, 16, 64)
    assert torch.equal(out.cpu(), torch.full((64, 16), 1.0 + 48 * 2.0**-20))
