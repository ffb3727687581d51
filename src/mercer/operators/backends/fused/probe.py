"""A look at some rows before a product: whether sums that tensor cores truncate would be seen in it."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.evaluate import evaluate
from mercer.formula.symbols import Program, Statistic
from mercer.kernels.distances import l1_distances
from mercer.kernels.pair import as_scale, row_values, vectors
from mercer.operators.backends.fused.dials import FEW_PRODUCTS, LARGEST_LOSS, PROBED_ROWS, STEADY_TRUNCATION
from mercer.operators.backends.fused.layout import layout


def truncation_harms(program: Program, i: int, x: Points, z: Points) -> bool:
    """Whether truncated sums of a squared distance, input i of the program, would move products by more than allowed.

    The sum of its products is twice the inner product of centred rows; a relative loss of it moves the kernel by its
    slope in the squared distance.
    """
    statistic = program.inputs[i]
    sign = _sign_of_right(statistic)
    rows = vectors(warped(statistic, z)) * sign
    fast = layout(rows.shape[1], "fast")
    if fast.products <= FEW_PRODUCTS:
        return False
    mean = rows.mean(0, dtype=torch.float64)
    same = x is z
    x, z = (points.take(slice(None, None, max(1, len(points) // PROBED_ROWS))) for points in (x, z))
    with torch.enable_grad():
        inputs = [_values(s, x, z) for s in program.inputs]
        distance = inputs[i].clamp(min=1e-12).requires_grad_()
        inputs[i] = distance
        kernel = evaluate(program, inputs).expand(distance.shape)
        (slope,) = torch.autograd.grad(kernel.sum(), distance, allow_unused=True)
    if slope is None:
        return False
    kernel = kernel.detach()
    if same:  # the diagonal is exact
        slope.fill_diagonal_(0.0)
        kernel = kernel.clone().fill_diagonal_(0.0)
    a, b = ((vectors(warped(statistic, rows)).double() * s - mean) for rows, s in ((x, 1.0), (z, sign)))
    a, b = (rows / as_scale(statistic.length_scale, rows) for rows in (a, b))
    loss = STEADY_TRUNCATION * fast.products / 16
    missed = (slope * (2.0 * loss) * (a @ b.T)).nan_to_num(0.0, 0.0, 0.0)
    return float(missed.norm()) > LARGEST_LOSS * float(kernel.norm())


def warped(statistic: Statistic, points: Points) -> Points:
    """The points that a statistic sees."""
    for warp in statistic.warps:
        points = warp(points)
    return points


def _sign_of_right(statistic: Statistic) -> float:
    """Sums are distances of x and -z."""
    return -1.0 if statistic.kind == "squared_sum" else 1.0


def _values(statistic: Statistic, x: Points, z: Points) -> Tensor:
    """A statistic of all pairs in float64, or a column or row of end values."""
    x, z = warped(statistic, x), warped(statistic, z)
    if statistic.kind in ("left", "right"):
        assert statistic.function is not None
        values = row_values(statistic.function, x if statistic.kind == "left" else z).double()
        return values.unsqueeze(1) if statistic.kind == "left" else values.unsqueeze(0)
    a, b = vectors(x).double(), vectors(z).double() * _sign_of_right(statistic)
    if statistic.kind == "inner":
        return a @ b.T
    a, b = (rows / as_scale(statistic.length_scale, rows) for rows in (a, b))
    if statistic.kind == "l1_distance":
        return l1_distances(a, b)
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
