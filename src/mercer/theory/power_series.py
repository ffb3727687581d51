"""Taylor coefficients of a kernel on the sphere: its formula evaluated on power series of the cosine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, NotTraceable
from mercer.formula.materns import matern_polynomial
from mercer.formula.symbols import Program, Statistic
from mercer.kernels import Kernel
from mercer.kernels.arc_cosine import Size
from mercer.kernels.directions import Direction, Variance
from mercer.kernels.hermite import Coefficient, LayerVariance
from mercer.theory.arguments import check

OF_LENGTH = (Variance, LayerVariance, Coefficient, Size)
"""Functions of a row that depend on its length alone."""


def taylor_coefficients(kernel: Kernel, terms: int, *, radius: float = 1.0) -> np.ndarray:
    r"""The coefficients a_m of :math:`k(x, z) = \sum_m a_m t^m` for x, z on a sphere, t the cosine of their angle.

    The kernel's formula runs over truncated power series (jets) instead of numbers: a product of series is their
    convolution, and :math:`y = e^u` follows from :math:`y' = u' y`. Raises `NotTraceable` where the formula has no
    series at t = 0.

    References: Griewank and Walther, *Evaluating Derivatives*, 2008, chapter 13.

    >>> from mercer.kernels import Polynomial
    >>> taylor_coefficients(Polynomial(degree=2), 4)
    array([1., 2., 1., 0.])
    """
    check(kernel=kernel, terms=terms, radius=radius)
    program = sphere_program(kernel)
    series = [_of_statistic(statistic, terms, radius) for statistic in program.inputs]
    values: list[np.ndarray] = []
    with np.errstate(under="ignore"):
        for step in program.steps:
            args = [values[i] for i in step.args]
            if step.op == "input":
                values.append(series[int(step.value or 0)])
            elif step.op == "constant":
                values.append(_constant(float(step.value or 0.0), terms))
            else:
                literal = () if step.value is None else (float(step.value),)
                values.append(_rule(step.op)(*args, *literal))
    return values[-1]


def sphere_program(kernel: Kernel) -> Program:
    """The kernel's formula, if on a sphere it depends on the angle alone."""
    program = kernel.program(as_points(np.zeros((1, 1))))
    for statistic in program.inputs:
        if not _turns(statistic) or not isinstance(statistic.length_scale, int | float):
            raise InputError(
                f"{kernel!r} is not a function of the angle between two points of a sphere: it depends on "
                f"{statistic.kind.replace('_', ' ')}{' after a warp' if statistic.warps else ''}. Use one length scale."
            )
    return program


def _turns(statistic: Statistic) -> bool:
    """Whether the statistic stays the same where both points are turned."""
    if statistic.kind in ("left", "right"):
        return isinstance(statistic.function, OF_LENGTH)
    known = statistic.kind in ("inner", "squared_distance", "squared_sum")
    return known and all(isinstance(warp, Direction) for warp in statistic.warps)


def _of_statistic(statistic: Statistic, terms: int, radius: float) -> np.ndarray:
    if statistic.kind not in ("inner", "squared_distance") or statistic.warps:
        raise NotTraceable("the formula of a network has no power series here")
    ratio = radius / float(statistic.length_scale)  # type: ignore[arg-type]
    scale = ratio * ratio
    if not math.isfinite(scale):
        raise InputError(f"radius / length_scale is {ratio:.2g}, whose square overflows: rescale the points.")
    first = (0.0, scale) if statistic.kind == "inner" else (2 * scale, -2 * scale)
    return np.concatenate([first, np.zeros(terms)])[:terms]


def _constant(value: float, terms: int) -> np.ndarray:
    series = np.zeros(terms)
    series[0] = value
    return series


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.convolve(a, b)[: len(a)]


def _exp(u: np.ndarray) -> np.ndarray:
    """k y_k = sum_j j u_j y_(k-j)."""
    slope, y = np.arange(len(u)) * u, np.zeros_like(u)
    y[0] = np.exp(u[0])
    for k in range(1, len(u)):
        y[k] = slope[1 : k + 1] @ y[k - 1 :: -1][:k] / k
    return y


def _power(u: np.ndarray, p: float) -> np.ndarray:
    """k u_0 y_k = sum_j (p j - (k - j)) u_j y_(k-j), from u y' = p u' y."""
    if p == int(p) and p >= 0:
        return _whole_power(u, int(p))
    if not u[0] > 0:
        raise NotTraceable(f"the power {p:g} of a formula that is zero at right angles has no series")
    j, y = np.arange(len(u)), np.zeros_like(u)
    y[0] = u[0] ** p
    for k in range(1, len(u)):
        y[k] = ((p * j[1 : k + 1] - (k - j[1 : k + 1])) * u[1 : k + 1]) @ y[k - 1 :: -1][:k] / (k * u[0])
    return y


def _whole_power(u: np.ndarray, p: int) -> np.ndarray:
    y = _constant(1.0, len(u))
    for bit in bin(p)[2:]:
        y = _times(y, y)
        y = _times(y, u) if bit == "1" else y
    return y


def _matern(u: np.ndarray, nu: float) -> np.ndarray:
    """exp(-u) times its polynomial, at nu = p + 1/2."""
    if nu - 0.5 != int(nu - 0.5):
        raise NotTraceable(f"a Matern kernel of order nu={nu:g} has no series here")
    value = np.zeros_like(u)
    for c in reversed(matern_polynomial(int(nu - 0.5))):
        value = _times(value, u)
        value[0] += c
    return _times(value, _exp(-u))


RULES: dict[str, Callable[..., np.ndarray]] = {
    "copy": lambda u: u,
    "add": lambda a, b: a + b,
    "mul": _times,
    "pow": _power,
    "safe_pow": _power,
    "exp": _exp,
    "sqrt": lambda u: _power(u, 0.5),
    "reciprocal_sqrt": lambda u: _power(u, -0.5),
    "matern": _matern,
}


def _rule(op: str) -> Callable[..., Any]:
    try:
        return RULES[op]
    except KeyError:
        raise NotTraceable(f"the operation {op!r} has no power series here") from None
