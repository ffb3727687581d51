"""Fused products on the GPU: Gram matrices times vectors in Triton loops written for the kernel's formula.

Nothing here imports Triton before a product is asked for. `supports` says whether a program can run; the other
functions are the products themselves, and `FusedGram` keeps the packed data between them.
"""

from __future__ import annotations

from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.symbols import Program
from mercer.operators.backends.fused.gradient import Gradient, gradient
from mercer.operators.backends.fused.gram import FusedGram
from mercer.operators.backends.fused.support import supports

__all__ = ["FusedGram", "Gradient", "gradient", "product", "rows", "supports", "transposed_product"]


def product(program: Program, x: Points, z: Points, V: Tensor, same: bool = False) -> Tensor:
    """K(x, z) V for V of shape (m,) or (m, t)."""
    return FusedGram(program, x, z, same=same).product(V)


def transposed_product(program: Program, x: Points, z: Points, V: Tensor, same: bool = False) -> Tensor:
    """K(x, z)^T V for V of shape (n,) or (n, t)."""
    return FusedGram(program, x, z, same=same).transposed_product(V)


def rows(program: Program, x: Points, z: Points, same: Tensor | None = None) -> Tensor:
    """K(x, z) as a matrix, for a block of rows; `same` gives the place of each row of x among the rows of z."""
    return FusedGram(program, x, z).rows(same)
