"""Ways to write a formula down for a processor: the same values in operations that it is quick at."""

from __future__ import annotations

import math
from typing import Any

from mercer.formula.simplify import Builder

QUICK_POWERS = frozenset({-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0})
"""Exponents that torch writes as a product, a root or a quotient; any other takes ten times an exponential."""

LARGEST_PRODUCT = 16
"""The largest exponent that is written as products."""


class InVectors(Builder):
    """Powers as products where the exponent is whole, else by a logarithm: what runs on many numbers at once."""

    def put(self, op: str, *args: int, value: Any = None) -> int:
        if op != "pow" or value in QUICK_POWERS:
            return super().put(op, *args, value=value)
        (base,) = args
        if value == int(value):
            small = 0 < value <= LARGEST_PRODUCT
            return self._product(base, int(value)) if small else super().put(op, base, value=value)
        return super().put("exp2", self.mul(super().put("log2", base), self.constant(value)))

    def _product(self, factor: int, exponent: int) -> int:
        if exponent == 1:
            return factor
        half = self._product(factor, exponent // 2)
        square = self.mul(half, half)
        return self.mul(square, factor) if exponent % 2 else square


class InBaseTwo(InVectors):
    """Exponentials as powers of two, their factor moved to where it costs nothing.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.formula.plans import plans
    >>> from mercer.kernels import Gaussian
    >>> plan = plans(Gaussian().program(as_points([[0.0]])), one_sample=False, spelling=InBaseTwo).off_diagonal
    >>> [step.op for step in plan.instructions], plan.factors
    (['input', 'exp2'], {0: -0.7213475204444817})
    """

    def put(self, op: str, *args: int, value: Any = None) -> int:
        if op != "exp":
            return super().put(op, *args, value=value)
        (exponent,) = args
        return super().put("exp2", self.mul(exponent, self.constant(math.log2(math.e))))
