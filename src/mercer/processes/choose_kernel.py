"""One of several kernels, by what the likelihood says about some rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mercer.operators.placement import Placement
from mercer.processes.dials import FEW_ROWS, MARGIN, MEAN_NEARBY
from mercer.processes.evidence import ExactEvidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.maximise import Ascent
from mercer.processes.means import Mean
from mercer.processes.observations import Observations


def choose_kernel(
    data: Observations,
    starts: Sequence[Hyperparameters],
    mean: Mean,
    place: Placement,
    *,
    max_iter: int = 100,
    seed: int = 0,
) -> int:
    """The place of the kernel of greatest evidence on at most 500 random rows, its hyperparameters learned there.

    All have as many hyperparameters, so that their evidences can be compared. The first is kept unless another one is
    ahead by three nats.

    References: MacKay, *Bayesian interpolation*, 1992.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian, Laplace
    >>> from mercer.processes.means import ConstantMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> starts = [Hyperparameters.of(1.0 * k(0.5), noise=0.1, learn_noise=True) for k in (Laplace, Gaussian)]
    >>> x = torch.linspace(0, 6, 30).double().unsqueeze(1)
    >>> choose_kernel(Observations(Points(x), torch.sin(x)), starts, ConstantMean(), place)
    1
    """
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:FEW_ROWS]
    some = data.take(order.to(data.Y.device))
    ascents = [Ascent(ExactEvidence(some, hyper, mean, place)) for hyper in starts]
    found = [ascent.run(ascent.theta, max_iter, MEAN_NEARBY).total for ascent in ascents]
    best = max(range(len(found)), key=found.__getitem__)
    return best if found[best] > found[0] + MARGIN else 0
