"""Gradients of sum(W * (K V)) by products with derivative programs: no kernel of their own is needed.

The derivative of a kernel by one of its inputs is again a program, so that a gradient in the points is a product with
the points as right-hand sides, one in V a transposed product, and one in a constant a plain product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.derivatives import derivatives
from mercer.formula.simplify import is_zero, reduced, times_sign
from mercer.formula.symbols import Program, Statistic
from mercer.kernels.inner import Coordinate
from mercer.kernels.pair import as_scale, row_values, vectors
from mercer.operators.backends.fused.gram import FusedGram
from mercer.operators.backends.fused.probe import warped


@dataclass
class Gradient:
    """Derivatives of sum(W * (K V)).

    `x`, `z` and `V` have the shapes of the data; for one sample paired with itself the derivative by it is x + z.
    `length_scales` has an entry for each input of the program that has a length scale, `numbers` one for each constant
    and each real power, by index of the step.
    """

    x: Tensor
    z: Tensor
    V: Tensor
    length_scales: dict[int, Tensor] = field(default_factory=dict)
    numbers: dict[int, Tensor] = field(default_factory=dict)


def gradient(program: Program, x: Points, z: Points, V: Tensor, W: Tensor, *, same: bool = False) -> Gradient:
    """All derivatives of sum(W * (K(x, z) V)); sums over points are finished in float64."""
    return _Gradients(program, x, z, V, W, same).all()


class _Gradients:
    def __init__(self, program: Program, x: Points, z: Points, V: Tensor, W: Tensor, same: bool) -> None:
        self.program, self.x, self.z, self.same = program, x, z, same
        self.V, self.W = (t.reshape(len(t), -1).double() for t in (V, W))
        value = FusedGram(program, x, z, same=same)
        self.out = Gradient(_zeros(x), _zeros(z), value.T.product(W))

    def all(self) -> Gradient:
        for index, slope in derivatives(self.program).items():
            step = self.program.steps[index]
            if step.op != "input":
                self.out.numbers[index] = (self.W * self.gram(slope).product(self.V.float())).sum()
            elif not is_zero(reduced(slope)):
                self.by_input(int(step.value or 0), slope)
        return self.out

    def gram(self, program: Program) -> FusedGram:
        return FusedGram(program, self.x, self.z, same=self.same)

    def by_input(self, i: int, slope: Program) -> None:
        statistic = self.program.inputs[i]
        match statistic.kind:
            case "left":
                values = (self.W * self.gram(slope).product(self.V.float())).sum(1)
                self.out.x += _pulled_back(statistic, self.x, values)
            case "right":
                values = (self.V * self.gram(slope).T.product(self.W.float())).sum(1)
                self.out.z += _pulled_back(statistic, self.z, values)
            case "inner":
                a, b = self.features(statistic)
                gram = self.gram(slope)
                self.out.x += _pulled_back(statistic, self.x, _weighted(gram.product, b, self.V, self.W))
                self.out.z += _pulled_back(statistic, self.z, _weighted(gram.T.product, a, self.W, self.V))
            case "squared_distance":
                self.by_distance(i, statistic, *self.squared_distance(statistic, slope))
            case "squared_sum":
                gx, gz = self.squared_distance(statistic, slope)
                self.out.x += _pulled_back(statistic, self.x, gx)
                self.out.z -= _pulled_back(statistic, self.z, gz)
            case "l1_distance":
                self.by_distance(i, statistic, *self.l1_distance(statistic, slope))

    def by_distance(self, i: int, statistic: Statistic, gx: Tensor, gz: Tensor) -> None:
        """Both distances are homogeneous in x - z, so their derivatives by the points give that by the length scale."""
        a, b = self.features(statistic)
        scale = as_scale(statistic.length_scale, b[:1])
        centre = b.mean(0)
        by_column = ((a - centre) * gx).sum(0) + ((b - centre) * gz).sum(0)
        self.out.length_scales[i] = -(by_column.sum() if isinstance(scale, float) else by_column) / scale
        self.out.x += _pulled_back(statistic, self.x, gx)
        self.out.z += _pulled_back(statistic, self.z, gz)

    def squared_distance(self, statistic: Statistic, slope: Program) -> tuple[Tensor, Tensor]:
        """2 sum_j D_ij (x_i - z_j) / l^2 as products with the columns (z, 1), and the same for z."""
        a, b = self.features(statistic)
        weight = 2.0 / torch.as_tensor(as_scale(statistic.length_scale, b[:1]), device=b.device) ** 2
        gram, centre = self.gram(slope), b.mean(0)
        a, b = a - centre, b - centre
        left = _weighted(gram.product, _with_one(b), self.V, self.W)
        right = _weighted(gram.T.product, _with_one(a), self.W, self.V)
        return weight * (a * left[:, -1:] - left[:, :-1]), weight * (b * right[:, -1:] - right[:, :-1])

    def l1_distance(self, statistic: Statistic, slope: Program) -> tuple[Tensor, Tensor]:
        """sum_j D_ij sign(x_i - z_j) / l, a product for each feature."""
        a, b = self.features(statistic)
        scale = as_scale(statistic.length_scale, b[:1])
        gx, gz = torch.zeros_like(a), torch.zeros_like(b)
        for c in range(a.shape[1]):
            ends = (Statistic(side, statistic.warps, function=Coordinate(c)) for side in ("left", "right"))
            gram = self.gram(times_sign(slope, *ends))
            gx[:, c] = (self.W * gram.product(self.V.float())).sum(1)
            gz[:, c] = -(self.V * gram.T.product(self.W.float())).sum(1)
        return gx / scale, gz / scale

    def features(self, statistic: Statistic) -> tuple[Tensor, Tensor]:
        a, b = (vectors(warped(statistic, points)).detach().double() for points in (self.x, self.z))
        return a, -b if statistic.kind == "squared_sum" else b


def _zeros(points: Points) -> Tensor:
    return torch.zeros_like(vectors(points), dtype=torch.float64)


def _with_one(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_ones(len(rows), 1)], 1)


def _weighted(product: Callable[[Tensor], Tensor], columns: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    """sum_t outer_t * product(inner_t * columns): the Gram matrix weighted by outer inner^T, times the columns."""
    right = (inner.unsqueeze(2) * columns.unsqueeze(1)).flatten(1)
    products: Tensor = product(right.float()).double().unflatten(1, (inner.shape[1], columns.shape[1]))
    return (outer.unsqueeze(2) * products).sum(1)


def _pulled_back(statistic: Statistic, points: Points, slope: Tensor) -> Tensor:
    """The derivative by the rows themselves, through the warps and the function of the statistic."""
    if not statistic.warps and statistic.function is None:
        return slope
    with torch.enable_grad():
        rows = vectors(points).detach().double().requires_grad_()
        there = warped(statistic, Points(rows, points.names))
        value = vectors(there) if statistic.function is None else row_values(statistic.function, there)
        (back,) = torch.autograd.grad(value, rows, slope.to(value))
    return back
