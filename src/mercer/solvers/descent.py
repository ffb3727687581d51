"""L-BFGS in coordinates in which the curvature is near the identity: near the minimum after few products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

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

    `values` are the features times coefficients, `gather` their transpose times slopes. It ends when a step gains less
    than the share `gain` of the objective, or after `most` steps; also gives back their number. `tell` hears of each
    step and the share that it gained.
    """
    reached = [math.inf]

    def look(intermediate_result: OptimizeResult) -> None:
        reached.append(float(intermediate_result.fun))
        if tell is not None and len(reached) > 2:
            tell(len(reached) - 1, (reached[-2] - reached[-1]) / max(abs(reached[-1]), torch.finfo(torch.float64).tiny))

    def value(z: np.ndarray) -> tuple[float, np.ndarray]:
        theta = scale.back(torch.from_numpy(z).to(start))
        losses, slope = objective.look(values(theta[:-1]) + theta[-1])
        down = gather(slope) + 2 * objective.alpha * theta[:-1]
        total = float(losses.sum()) + objective.alpha * float(theta[:-1].square().sum())
        return total, scale.half(torch.cat([down, slope.sum(0, keepdim=True)])).cpu().numpy()

    options = {"maxiter": most, "ftol": gain, "gtol": 0.0, "maxcor": 20}
    found = minimize(
        value, scale.forth(start).cpu().numpy(), jac=True, method="L-BFGS-B", options=options, callback=look
    )
    return scale.back(torch.from_numpy(found.x).to(start)), int(found.nit)
