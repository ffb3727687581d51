"""Plans are kept by the shape of a formula, and are right for the numbers that they are filled in with."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import GaussianProcessRegressor, gram
from mercer.core.arrays import as_points
from mercer.formula import plans as module
from mercer.formula.plans import lower, plans
from mercer.kernels import Constant, Gaussian, Kernel, Laplace, Linear, Matern, RationalQuadratic, WhiteNoise

SAMPLE = as_points([[0.0, 1.0], [2.0, 3.0]])


@pytest.fixture
def lowerings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often a formula is lowered, from an empty memory."""
    count: list[int] = []

    def counted(*args, **kwargs):
        count.append(1)
        return lower(*args, **kwargs)

    monkeypatch.setattr(module, "_kept", type(module._kept)())
    monkeypatch.setattr(module, "lower", counted)
    return count


def test_other_numbers_lower_nothing(lowerings: list[int]) -> None:
    for i in range(1, 20):
        kernel = 0.3 * i * Matern(1.5, (0.1 * i, 0.2 * i)) + 0.7 * i * WhiteNoise() * Gaussian(0.9 * i)
        plans(kernel.program(SAMPLE), one_sample=True)
    assert len(lowerings) == 1


def test_the_order_of_a_matern_and_a_power_belong_to_the_shape(lowerings: list[int]) -> None:
    for kernel in (Matern(1.5), Matern(2.5), Linear(1.0) ** 2, Linear(1.0) ** 3):
        plans(kernel.program(SAMPLE), one_sample=False)
    assert len(lowerings) == 4


def test_numbers_that_change_what_is_folded_are_lowered_for_themselves(lowerings: list[int]) -> None:
    for factor in (4.0, 1.0, 3.0, 0.5, 1.0):
        kernel = factor * Laplace(0.5) + Linear(bias=0.0 if factor == 3.0 else 2.0)
        X = np.random.default_rng(0).normal(size=(6, 2))
        np.testing.assert_allclose(gram(kernel, X).dense(), kernel(X), rtol=1e-12)
    assert len(lowerings) == 3


@pytest.mark.parametrize("method", ["exact", "iterative", "sgpr"])
def test_a_fit_of_a_process_lowers_each_shape_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    shapes: list[object] = []

    def noted(program, *, one_sample, spelling):
        shapes.append((program.shape, one_sample, spelling))
        return lower(program, one_sample=one_sample, spelling=spelling)

    monkeypatch.setattr(module, "_kept", type(module._kept)())
    monkeypatch.setattr(module, "lower", noted)
    X = np.random.default_rng(0).normal(size=(300, 3))
    kernel = 2.0 * Gaussian() + Matern(1.5)
    GaussianProcessRegressor(kernel, method=method).fit(X, np.sin(X[:, 0])).predict(X[:100], return_std=True)
    assert len(shapes) == len(set(shapes)) <= 4


numbers = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, -0.5, math.pi, 1e-3])


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=4, max_size=4), st.lists(numbers, min_size=4, max_size=4))
def test_a_plan_that_is_used_again_is_the_one_that_would_be_made(first: list[float], second: list[float]) -> None:
    module._kept.clear()
    plans(formula(first).program(SAMPLE), one_sample=True)
    kept = plans(formula(second).program(SAMPLE), one_sample=True)
    module._kept.clear()
    assert kept == plans(formula(second).program(SAMPLE), one_sample=True)


def formula(numbers: list[float]) -> Kernel:
    class Formula(Kernel):
        def of(self, pair):
            a, b, c, d = numbers
            s, inner = pair.squared_distance(), pair.inner()
            return (s * a) * b + (inner + c) * (s * d) + c * pair.same() + (s + c * c) ** 0.5 * b

    return Formula()


def test_a_constant_kernel_has_a_plan() -> None:
    plan = plans(Constant(3.0).program(SAMPLE), one_sample=False).off_diagonal
    assert [step.value for step in plan.instructions] == [3.0]
    torch.testing.assert_close(gram(2.0 * Constant(3.0), SAMPLE.values).dense(), torch.full((2, 2), 6.0).double())


def test_a_parameter_that_is_a_power_is_part_of_the_shape(lowerings: list[int]) -> None:
    for alpha in (0.5, 0.7):
        plans(RationalQuadratic(1.0, alpha).program(SAMPLE), one_sample=False)
    assert len(lowerings) == 2
