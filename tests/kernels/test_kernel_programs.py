"""Formulas traced into straight-line programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, NotTraceable
from mercer.kernels import Callable, Constant, Gaussian, Kernel, Laplace, Linear, Matern, Precomputed, Spectrum, resolve
from mercer.testing import check_kernel, run_program
from mercer.testing.examples import FUNCTION_KERNELS, VECTOR_KERNELS
from mercer.testing.samples import sample_for

X = np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize("kernel", VECTOR_KERNELS + FUNCTION_KERNELS, ids=repr)
def test_every_kernel_of_rows_can_be_traced(kernel):
    rows = sample_for(kernel, 5, np.random.default_rng(0))
    assert resolve(kernel, rows).program(as_points(rows)).steps


def test_a_program_prints_as_code():
    assert str((2.0 * Gaussian()).program(as_points(X))).splitlines() == [
        "v0 = squared_distance",
        "v1 = constant(-0.5)",
        "v2 = mul(v0, v1)",
        "v3 = exp(v2)",
        "v4 = constant(2.0)",
        "v5 = mul(v3, v4)",
    ]
    assert str((Linear() ** 2).program(as_points(X))).splitlines() == ["v0 = inner", "v1 = pow(v0, 2.0)"]


def test_equal_parts_of_a_formula_are_computed_once():
    program = (Gaussian() + Gaussian() * Matern(2.5)).program(as_points(X))
    assert len(program.inputs) == 1
    assert [step.op for step in program.steps].count("exp") == 2
    assert len((Gaussian(1.0) + Gaussian(2.0)).program(as_points(X)).inputs) == 2


def test_the_last_step_is_the_value():
    for kernel in (Constant(3.0), Gaussian() * Constant(1.0), Linear()):
        points = as_points(X)
        np.testing.assert_allclose(run_program(kernel.program(points), points), kernel(X))


def test_formulas_that_magnify_errors_near_zero_mark_their_distance():
    def is_exact(kernel):
        return kernel.program(as_points(X)).exact == {0}

    assert is_exact(Laplace())
    assert is_exact(Matern(0.8))
    assert is_exact(Gaussian() + Laplace())
    assert not is_exact(Gaussian())
    assert not is_exact(Matern(2.5))


@pytest.mark.parametrize("kernel", [Callable(np.dot), Precomputed(), 1.0 + Callable(np.dot)], ids=repr)
def test_kernels_of_whole_samples_have_no_program(kernel):
    with pytest.raises(NotTraceable):
        kernel.program(as_points(X @ X.T))
    with pytest.raises(NotTraceable):
        Spectrum().program(as_points(["a"], objects=True))


def test_bad_parameters_are_errors_and_not_a_reason_to_fall_back():
    for kernel in (Gaussian((1.0, 2.0)), Gaussian("median")):
        with pytest.raises(InputError):
            kernel.program(as_points(X))


@dataclass(frozen=True, eq=False, repr=False)
class Arithmetic(Kernel):
    def of(self, pair):
        s = pair.squared_distance()
        return (1.0 - s / (s + 1.0)) / (2.0 + s - 1.0) - (-s) * 0.0 + 3.0 / (s + 3.0) - 0.0


def test_all_arithmetic_can_be_traced():
    check_kernel(Arithmetic())
    points = as_points(X)
    np.testing.assert_allclose(run_program(Arithmetic().program(points), points), Arithmetic()(X), rtol=1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class InTorch(Kernel):
    """A user's kernel written with torch instead of the functions that trace."""

    def of(self, pair):
        return torch.exp(-0.5 * pair.squared_distance())


@dataclass(frozen=True, eq=False, repr=False)
class WithMethods(Kernel):
    def of(self, pair):
        return (-0.5 * pair.squared_distance()).exp()


@dataclass(frozen=True, eq=False, repr=False)
class Branching(Kernel):
    def of(self, pair):
        s = pair.squared_distance()
        return torch.exp(-0.5 * s) if (s >= 0).all() else torch.exp(0.5 * s)


@pytest.mark.parametrize("cls", [InTorch, WithMethods, Branching])
def test_formulas_that_cannot_be_traced_say_so_and_still_evaluate(cls):
    check_kernel(cls())
    with pytest.raises(NotTraceable, match="its formula"):
        cls().program(as_points(X))
    np.testing.assert_allclose(cls()(X), Gaussian()(X))
