"""A constant or a line as the mean function, by what the likelihood says about some rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from mercer.operators.placement import Placement
from mercer.processes.dials import MEAN_NEARBY, ROWS
from mercer.processes.evidence import ExactEvidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.maximise import Ascent
from mercer.processes.means import ConstantMean, LinearMean, Mean
from mercer.processes.observations import Observations


@dataclass(frozen=True, eq=False)
class MeanChoice:
    """A mean function and the reason for it.

    Attributes
    ----------
    mean : Mean
        The constant or the linear one.
    reason : str
        What was compared, in words.
    """

    mean: Mean
    reason: str


def choose_mean(
    data: Observations,
    hyperparameters: Hyperparameters,
    place: Placement,
    *,
    learn: bool = True,
    max_iter: int = 100,
    seed: int = 0,
) -> MeanChoice:
    r"""The linear mean where the data ask for it, else the constant.

    Both are given the hyperparameters of greatest evidence on at most 1,000 random rows; those of the start
    unless `learn`. The line has a coefficient more for each feature and target, which has to pay for itself
    (Schwarz's criterion): with m rows, d features and t targets it is taken if

    .. math:: \log p_\text{linear}(y) - \log p_\text{constant}(y) > \tfrac12 d\, t \log m.

    References: Schwarz, *Estimating the dimension of a model*, 1978.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> hyper = Hyperparameters.of(1.0 * Gaussian(0.3), noise=0.1, learn_noise=True)
    >>> x = torch.linspace(0, 9, 40).double().unsqueeze(1)
    >>> choose_mean(Observations(Points(x), 5 * x + torch.sin(9 * x)), hyper, place).mean.__class__.__name__
    'LinearMean'
    >>> choose_mean(Observations(Points(x), torch.sin(9 * x)), hyper, place)  # doctest: +ELLIPSIS
    MeanChoice(mean=ConstantMean(value=None), reason='a line adds ... and has to add 1.844')
    """
    d = data.X.values.shape[1] if data.X.is_tensor and not data.square else 0
    n = min(len(data), ROWS)
    if n < d + 2 or d == 0:
        return MeanChoice(ConstantMean(), "there are too few rows for a line" if d else "there are no features")
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:n]
    some, line = data.take(order.to(data.Y.device)), LinearMean.of(data.X)
    flat = Ascent(ExactEvidence(some, hyperparameters, ConstantMean(), place))
    sloped = Ascent(ExactEvidence(some, hyperparameters, line, place))
    flat(hyperparameters.start)
    if learn:
        flat.run(hyperparameters.start, max_iter, MEAN_NEARBY)
    sloped(flat.theta)
    if learn:
        sloped.run(flat.theta, max_iter, MEAN_NEARBY)
    gain, needed = sloped.total - flat.total, 0.5 * d * data.n_targets * math.log(n)
    reason = f"a line adds {gain:.4g} to the log likelihood of {n:,} rows and has to add {needed:.4g}"
    return MeanChoice(line if gain > needed else ConstantMean(), reason)
