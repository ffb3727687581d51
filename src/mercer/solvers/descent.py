"""L-BFGS in coordinates in which the curvature is near the identity: near the minimum after few products."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from mercer.solvers.dials import DESCENT_HALVINGS, DESCENT_MEMORY
from mercer.solvers.objective import Objective
from mercer.solvers.scales import Scale

Product = Callable[[Tensor], Tensor]
Tell = Callable[[int, float], None]


def descended(
    objective: Objective,
    scale: Scale,
    values: Product,
    gather: Product,
    start: Tensor,
    *,
    gain: float,
    most: int,
    tell: Tell | None = None,
) -> tuple[Tensor, int]:
    """Theta (r + 1, t), coefficients and in the last row intercepts, where the objective is nearly least.

    `values` are the features times coefficients, `gather` their transpose times slopes. It ends when a step promises no
    more than the share `gain` of the objective, which rounding of a sum hides less than what a step gains, or after
    `most` steps; also gives back their number. `tell` hears of each step and the share that it promised.

    Reference: Nocedal and Wright, *Numerical Optimization*, 2006, section 7.2.
    """

    def look(z: Tensor) -> tuple[float, Tensor]:
        theta = scale.back(z)
        losses, slope = objective.look(values(theta[:-1]) + theta[-1])
        down = gather(slope) + 2 * objective.alpha * theta[:-1]
        total = float(losses.sum()) + objective.alpha * float(theta[:-1].square().sum())
        return total, scale.half(torch.cat([down, slope.sum(0, keepdim=True)]))

    z, steps = scale.forth(start), 0
    (value, slope), pairs = look(z), deque[tuple[Tensor, Tensor, float]](maxlen=DESCENT_MEMORY)
    while steps < most:
        step = _newton_like(slope, pairs)
        promised, rounding = -float(slope @ step), gain * abs(value)
        if not promised > 2 * rounding:
            break
        for half in range(DESCENT_HALVINGS):
            share = 0.5**half
            there, ahead = look(z + share * step)
            if there <= value - 1e-4 * share * promised + rounding:
                break
        else:
            break
        bend = ahead - slope
        z, value, slope, steps = z + share * step, there, ahead, steps + 1
        product = share * float(step @ bend)
        if product > 0:
            pairs.append((share * step, bend, product))
        if tell is not None:
            tell(steps, promised / 2 / max(abs(value), torch.finfo(torch.float64).tiny))
    return scale.back(z), steps


def _newton_like(slope: Tensor, pairs: Iterable[tuple[Tensor, Tensor, float]]) -> Tensor:
    """The step to the least of a parabola with this slope, of which steps and the bends of slopes along them are known.

    >>> one = torch.tensor([1.0, 0.0])
    >>> _newton_like(torch.tensor([4.0, 4.0]), [(one, 2 * one, 2.0)])
    tensor([-2., -2.])
    """
    known = list(pairs)
    q, shares = -slope, []
    for step, bend, product in reversed(known):
        shares.append(float(step @ q) / product)
        q = q - shares[-1] * bend
    if known:
        _, bend, product = known[-1]
        q = q * (product / float(bend @ bend))
    for (step, bend, product), share in zip(known, reversed(shares), strict=True):
        q = q + (share - float(bend @ q) / product) * step
    return q
