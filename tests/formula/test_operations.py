"""Laws of the one table of operations: numbers, tensors, buffers and slopes say the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mercer.core.arrays import as_points
from mercer.core.errors import NotTraceable
from mercer.formula.derivatives import by_input, derivatives
from mercer.formula.evaluate import evaluate
from mercer.formula.operations import OPERATIONS
from mercer.formula.symbols import Program, Statistic, Step
from mercer.kernels import (
    ExponentialPower,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)

LITERALS = {
    "pow": (2.0, 3.0, 0.7, -1.5),
    "safe_pow": (0.7, -1.5),
    "matern": (0.5, 0.8, 1.5, 2.2),
    "matern_slope": (0.8,),
}
CASES = [(op, literal) for op in OPERATIONS for literal in LITERALS.get(op, (None,))]
VALUES = torch.tensor([0.3, 0.9, 1.7, 4.0], dtype=torch.float64)
OTHERS = torch.tensor([0.5, 1.0, 0.2, 5.0], dtype=torch.float64)


def arguments(op: str) -> tuple[Tensor, ...]:
    if op in ("angle", "versine_sine", "asin"):
        return (VALUES / 4.5,)  # inside of their intervals
    if op == "where":
        return (torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64), VALUES, OTHERS)
    return (VALUES, OTHERS) if op in ("add", "mul", "minimum", "less") else (VALUES,)


def program_of(op: str, literal: float | None, n_args: int) -> Program:
    statistics = tuple(Statistic("squared_distance", length_scale=float(i + 1)) for i in range(n_args))
    inputs = tuple(Step("input", value=i) for i in range(n_args))
    return Program(statistics, (*inputs, Step(op, tuple(range(n_args)), literal)), frozenset())


@pytest.mark.parametrize(("op", "literal"), CASES)
def test_numbers_tensors_and_buffers_agree(op: str, literal: float | None) -> None:
    args, carried = arguments(op), () if literal is None else (literal,)
    expected = torch.tensor(
        [OPERATIONS[op].number(*values, *carried) for values in zip(*map(Tensor.tolist, args), strict=True)],
        dtype=torch.float64,
    )
    torch.testing.assert_close(OPERATIONS[op].tensor(*args, *carried), expected, rtol=1e-12, atol=0.0)
    out = torch.empty_like(VALUES)
    assert OPERATIONS[op].into(*args, *carried, out=out) is out
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("op", "literal"), [case for case in CASES if case[0] not in ("less", "matern_slope")])
def test_slopes_are_those_of_autograd(op: str, literal: float | None) -> None:
    args = [values.clone().requires_grad_() for values in arguments(op)]
    program = program_of(op, literal, len(args))
    carried = () if literal is None else (literal,)
    value = OPERATIONS[op].tensor(*args, *carried).sum()
    expected = torch.autograd.grad(value, args, allow_unused=True)
    found = derivatives(program)
    for i, slope in enumerate(expected):
        if slope is None:  # of a choice
            assert i not in found
            continue
        there = [arguments(op)[program.inputs.index(statistic)] for statistic in found[i].inputs]
        torch.testing.assert_close(evaluate(found[i], there).expand_as(slope), slope, rtol=1e-10, atol=1e-14)


SMOOTH = [
    Gaussian(0.7),
    2.0 * RationalQuadratic(1.3, alpha=0.6) + 0.5,
    InverseMultiquadric(0.8, power=0.5),
    Matern(2.5, 0.9),
    Matern(3.5, 0.9) * Gaussian(2.0),
    Laplace(0.8),
    ExponentialPower(0.8, power=1.4),
    Polynomial(3),
    (Linear(bias=0.5) + 1.0) ** 2,
]


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_first_and_second_derivatives_in_the_statistic_are_those_of_autograd(kernel: Kernel) -> None:
    program = kernel.program(as_points([[0.0, 0.0]]))
    points = [(VALUES / (i + 1)).requires_grad_() for i in range(len(program.inputs))]
    value = evaluate(program, points)
    firsts = torch.autograd.grad(value.sum(), points, create_graph=True)
    slopes = derivatives(program)
    for i, step in enumerate(program.steps):
        if step.op != "input":
            continue
        slope, place = slopes[i], int(step.value or 0)
        torch.testing.assert_close(at(slope, program, points), firsts[place], rtol=1e-10, atol=1e-13)
        (second,) = torch.autograd.grad(firsts[place].sum(), points[place], retain_graph=True)
        curvature = next(
            (
                d
                for j, d in derivatives(slope).items()
                if slope.steps[j].op == "input"
                and slope.inputs[int(slope.steps[j].value or 0)] == program.inputs[place]
            ),
            None,
        )
        found = torch.zeros_like(VALUES) if curvature is None else at(curvature, program, points)
        torch.testing.assert_close(found, second, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("nu", [1.5, 2.5, 3.5, 4.2])
def test_slopes_of_matern_kernels_are_known_where_points_coincide(nu: float) -> None:
    program = Matern(nu).program(as_points([[0.0, 0.0]]))
    slope = by_input(program, 0)
    assert slope is not None
    zero = torch.zeros(1, dtype=torch.float64)
    torch.testing.assert_close(evaluate(slope, [zero]), zero - nu / (2 * (nu - 1)), rtol=1e-12, atol=0.0)
    curvature = by_input(slope, 0)
    if nu > 2:
        assert curvature is not None
        expected = zero + nu**2 / (4 * (nu - 1) * (nu - 2))
        torch.testing.assert_close(evaluate(curvature, [zero]), expected, rtol=1e-12, atol=0.0)


def test_a_slope_by_the_constant_beside_a_root_is_that_of_differences() -> None:
    program = Matern(2.5, 0.9).program(as_points([[0.0, 0.0]]))
    place = next(i for i, step in enumerate(program.steps) if step.op == "constant")
    c, h = float(program.steps[place].value or 0.0), 1e-5

    def value(constant: float) -> Tensor:
        steps = list(program.steps)
        steps[place] = Step("constant", (), constant)
        return evaluate(Program(program.inputs, tuple(steps), program.exact), [VALUES])

    found = evaluate(derivatives(program)[place], [VALUES])
    torch.testing.assert_close(found, (value(c + h) - value(c - h)) / (2 * h), rtol=1e-6, atol=1e-8)


def at(derived: Program, program: Program, points: list[Tensor]) -> Tensor:
    inputs = [points[program.inputs.index(statistic)] for statistic in derived.inputs]
    return evaluate(derived, inputs).expand(VALUES.shape)


def test_a_derivative_by_a_constant_is_that_of_the_parameter() -> None:
    program = (3.0 * Gaussian(1.0)).program(as_points([[0.0]]))
    by_factor = next(d for i, d in derivatives(program).items() if program.steps[i].value == 3.0)
    torch.testing.assert_close(evaluate(by_factor, [VALUES]), torch.exp(-0.5 * VALUES))


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(NotTraceable, match="'sinh'"):
        evaluate(program_of("sinh", None, 1), [VALUES])


@pytest.mark.parametrize(("op", "ends"), [("angle", (0.0, 2.0)), ("versine_sine", (0.0, 2.0)), ("asin", (-1.0, 1.0))])
@pytest.mark.parametrize("beyond", [0.0, 1e-9])
def test_angles_are_held_at_the_ends_of_their_interval_with_derivative_zero(
    op: str, ends: tuple[float, float], beyond: float
) -> None:
    x = torch.tensor([ends[0] - beyond, ends[1] + beyond], dtype=torch.float64, requires_grad=True)
    value = OPERATIONS[op].tensor(x)
    torch.testing.assert_close(value, OPERATIONS[op].tensor(torch.tensor(ends, dtype=torch.float64)))
    torch.testing.assert_close(OPERATIONS[op].into(x.detach(), out=torch.empty(2).double()), value.detach())
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert slope.tolist() == [0.0, 0.0]
    found = derivatives(program_of(op, None, 1))[0]
    if beyond == 0.0:
        assert evaluate(found, [x.detach()]).tolist() == [0.0, 0.0]
