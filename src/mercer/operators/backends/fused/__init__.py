"""Fused products on the GPU: Gram matrices times vectors in Triton loops written for the kernel's formula.

Nothing here imports Triton before it is needed. `supports` says whether a program can run, `FusedTiles` is the back
end of `gram`, `FusedGram` the matrix behind it and `gradient` its derivatives.
"""

from __future__ import annotations

from mercer.operators.backends.fused.backend import FusedTiles
from mercer.operators.backends.fused.gradient import Gradient, gradient
from mercer.operators.backends.fused.gram import FusedGram
from mercer.operators.backends.fused.support import supports

__all__ = ["FusedGram", "FusedTiles", "Gradient", "gradient", "supports"]
