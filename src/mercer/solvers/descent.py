"""L-BFGS in coordinates in which the curvature is near the identity: near the minimum after few products."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from mercer.solvers.dials import DESCENT_LOOKS, DESCENT_MEMORY, DESCENT_STEEP
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
        found = _along(look, z, value, step, promised, rounding)
        if found is None:
            break
        share, there, ahead = found
        bend = ahead - slope
        z, value, slope, steps = z + share * step, there, ahead, steps + 1
        product = share * float(step @ bend)
        if product > 0:
            pairs.append((share * step, bend, product))
        if tell is not None:
            tell(steps, promised / 2 / max(abs(value), torch.finfo(torch.float64).tiny))
    return scale.back(z), steps


def _along(
    look: Callable[[Tensor], tuple[float, Tensor]],
    z: Tensor,
    value: float,
    step: Tensor,
    promised: float,
    rounding: float,
) -> tuple[float, float, Tensor] | None:
    """The share of a step that gains and after which the slope along it is less steep, with what is there.

    Reference: Lewis and Overton, *Nonsmooth optimization via quasi-Newton methods*, 2013, section 3.

    >>> parabola = lambda z: (float((z - 60) ** 2), 2 * (z - 60))  # a step of one is far too short
    >>> _along(parabola, torch.zeros(1), 3600.0, torch.ones(1), 120.0, 0.0)[:2]
    (8.0, 2704.0)
    """
    low, high, share, found = 0.0, torch.inf, 1.0, None
    for _ in range(DESCENT_LOOKS):
        there, ahead = look(z + share * step)
        if not there <= value - 1e-4 * share * promised + rounding:
            high = share
        elif float(step @ ahead) < -DESCENT_STEEP * promised:
            low, found = share, (share, there, ahead)
        else:
            return share, there, ahead
        share = 2.0 * share if high == torch.inf else (low + high) / 2
    return found


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
