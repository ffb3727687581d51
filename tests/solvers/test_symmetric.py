"""Sums of A^T A."""

import pytest
import torch

from mercer.solvers.dials import SYMMETRIC_STRIP
from mercer.solvers.symmetric import add_gram


@pytest.mark.parametrize(
    "columns", [1, SYMMETRIC_STRIP - 1, SYMMETRIC_STRIP, SYMMETRIC_STRIP + 1, 3 * SYMMETRIC_STRIP + 7]
)
def test_half_of_the_blocks_and_their_mirror_images_are_the_whole_product(columns):
    generator = torch.Generator().manual_seed(columns)
    A, B = (torch.randn(n, columns, generator=generator).double() for n in (5, 40))
    total = add_gram(add_gram(torch.zeros(columns, columns).double(), A), B)
    assert torch.allclose(total, A.T @ A + B.T @ B, rtol=1e-12, atol=1e-12)
    assert float((total - total.T).abs().max()) <= 1e-13
