"""Closed forms of Matern kernels: exp(-u) times a polynomial of u, written out and found again in a program.

Their slope is -u times a Matern kernel of the order below. As the slope of a product it would cancel near zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

from mercer.formula.symbols import Program, Step

LARGEST_MATERN = 6
"""The largest p for which nu = p + 1/2 is written out."""


@lru_cache
def matern_polynomial(p: int) -> tuple[float, ...]:
    """The coefficients of 1, u, u^2, ... at nu = p + 1/2: (2p-k)! / (k! (p-k)!) 2^k p! / (2p)!.

    >>> matern_polynomial(2)
    (1.0, 1.0, 0.3333333333333333)
    """
    whole = math.factorial(p) / math.factorial(2 * p)
    shares = (math.factorial(2 * p - k) / (math.factorial(k) * math.factorial(p - k)) for k in range(p + 1))
    return tuple(share * 2.0**k * whole for k, share in enumerate(shares))


def with_materns(program: Program) -> Program:
    """The same program with each closed form as one step."""
    known = {_rounded(matern_polynomial(p)): p + 0.5 for p in range(1, LARGEST_MATERN + 1)}
    steps = list(program.steps)
    for i, step in enumerate(program.steps):
        for a, b in (step.args, step.args[::-1]) if step.op == "mul" else ():
            u = _decay(steps, b)
            found = None if u is None else _polynomial(steps, a, u)
            if u is not None and found is not None and (order := known.get(_rounded(found))) is not None:
                steps[i] = Step("matern", (u,), order)
                break
    return Program(program.inputs, tuple(steps), program.exact)


def _rounded(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(number, 12) for number in numbers)


def _decay(steps: Sequence[Step], i: int) -> int | None:
    """u where step i is exp(-u)."""
    inner = steps[steps[i].args[0]] if steps[i].op == "exp" else steps[i]
    if steps[i].op != "exp" or inner.op != "mul":
        return None
    pairs = (inner.args, inner.args[::-1])
    return next((b for a, b in pairs if steps[a].op == "constant" and steps[a].value == -1.0), None)


def _polynomial(steps: Sequence[Step], i: int, u: int) -> tuple[float, ...] | None:
    """Coefficients of 1, u, u^2, ... of step i, None where it is no polynomial of low degree."""
    step = steps[i]
    if i == u:
        return 0.0, 1.0
    if step.op == "constant":
        return (float(step.value or 0.0),)
    if step.op not in ("add", "mul"):
        return None
    a, b = (_polynomial(steps, arg, u) for arg in step.args)
    if a is None or b is None or len(a) + len(b) > LARGEST_MATERN + 2:
        return None
    if step.op == "add":
        return tuple(x + y for x, y in zip_longest(a, b, fillvalue=0.0))
    product = [0.0] * (len(a) + len(b) - 1)
    for j, x in enumerate(a):
        for k, y in enumerate(b):
            product[j + k] += x * y
    return tuple(product)
