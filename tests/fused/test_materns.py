"""Closed forms of Matern kernels are found in programs, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.core.arrays import as_points
from mercer.formula.derivatives import derivatives
from mercer.formula.materns import with_materns
from mercer.formula.simplify import reduced
from mercer.kernels import Gaussian, Kernel, Laplace, Linear, Matern, RationalQuadratic

POINTS = as_points(np.zeros((1, 2)))


def orders(kernel: Kernel) -> list[float]:
    found = with_materns(reduced(kernel.program(POINTS)))
    return [float(step.value or 0.0) for step in found.steps if step.op == "matern"]


@pytest.mark.parametrize("nu", [1.5, 2.5, 3.5, 6.5])
def test_closed_forms_are_found(nu: float) -> None:
    assert orders(Matern(nu, 0.7)) == [nu]
    assert orders(2.0 * Matern(nu, (0.5, 2.0)) + Gaussian()) == [nu]
    assert orders(Matern(nu) * Linear(1.0) + Matern(nu + 1.0 if nu < 6 else 1.5)) == [nu, nu + 1.0 if nu < 6 else 1.5]


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Linear(1.0) * Laplace(), RationalQuadratic()])
def test_other_products_are_left_alone(kernel: Kernel) -> None:
    assert orders(kernel) == []


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_the_slope_is_a_matern_kernel_of_the_order_below(nu: float) -> None:
    program = Matern(nu).program(POINTS)
    (slope,) = (found for i, found in derivatives(program).items() if program.steps[i].op == "input")
    assert [step.value for step in slope.steps if step.op == "matern"] == [nu - 1.0]
