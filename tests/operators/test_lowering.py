"""Programs become short plans: constants move into the product, and buffers are written over."""

from __future__ import annotations

import pytest

from mercer.core.arrays import as_points
from mercer.formula.plans import Plan, plans
from mercer.kernels import AllSubsets, Constant, Gaussian, Kernel, Laplace, Linear, Matern, WhiteNoise

SAMPLE = as_points([[0.0, 1.0], [2.0, 3.0]])


def plan_of(kernel: Kernel, *, same: bool = False) -> Plan:
    return plans(kernel.program(SAMPLE), one_sample=same).on_diagonal


def ops(plan: Plan) -> list[str]:
    return [step.op for step in plan.instructions]


def test_the_product_of_a_gaussian_is_its_exponent() -> None:
    plan = plan_of(Gaussian(2.0))
    assert ops(plan) == ["input", "exp"]
    assert plan.factors == {0: -0.5}
    assert plan.n_buffers == 1
    assert not plan.nonnegative


def test_the_root_of_a_matern_takes_its_constant_inside() -> None:
    plan = plan_of(Matern(1.5))
    assert plan.factors[0] == pytest.approx(3.0)
    assert ops(plan) == ["input", "sqrt", "mul", "exp", "addcmul"]
    assert plan.nonnegative == {0}


def test_a_laplace_kernel_runs_in_one_buffer() -> None:
    assert plan_of(Laplace()).n_buffers == 1


def test_many_terms_reuse_the_buffers_of_those_that_are_done() -> None:
    kernel: Kernel = Gaussian(1.0)
    for i in range(2, 12):
        kernel = kernel + 0.5 * Matern(2.5, float(i))
    assert plan_of(kernel).n_buffers <= 4
    assert plan_of(AllSubsets()).n_buffers == 2


def test_noise_is_dropped_off_the_diagonal() -> None:
    kernel = Gaussian() + 0.3 * WhiteNoise(2.0)
    assert "axpy" in ops(plan_of(kernel, same=True)) or "add" in ops(plan_of(kernel, same=True))
    assert ops(plan_of(kernel)) == ["input", "exp"]
    assert ops(plan_of(Gaussian() * WhiteNoise())) == ["constant"]


def test_plans_of_one_program_share_their_factors() -> None:
    kernel = Gaussian() + WhiteNoise() * Gaussian(1.0) ** 2 + Laplace() * WhiteNoise()
    with_diagonal = plan_of(kernel, same=True)
    without = plans(kernel.program(SAMPLE), one_sample=True).off_diagonal
    assert without.factors == with_diagonal.factors


def test_factors_multiply_and_neutral_elements_vanish() -> None:
    assert plan_of(2.0 * (3.0 * Linear())).factors == {0: 6.0}
    assert ops(plan_of(1.0 * Linear() + 0.0)) == ["input"]
    assert plan_of(2.0 * Constant(3.0) + 1.0).instructions[-1].value == 7.0


def test_an_input_used_twice_keeps_no_factor() -> None:
    plan = plan_of(Gaussian() + Matern(1.5))
    assert plan.factors == {}
    assert plan.nonnegative == {0}
