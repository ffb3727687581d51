"""Learning from few rows to all: most of the way is cheap."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mercer.operators.placement import Placement
from mercer.processes.dials import (
    FEW_ROWS,
    FIRST_STEP,
    LEAST_NOISE,
    LONGEST,
    NEIGHBOURS,
    SEEN_NUMBERS,
    STAGES,
    STAGES_NEARBY,
    WORTHWHILE,
)
from mercer.processes.evidence import ExactEvidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.maximise import Maximum, Progress, maximise
from mercer.processes.means import Mean
from mercer.processes.methods import Method
from mercer.processes.observations import Observations


def learn(
    method: Method,
    data: Observations,
    hyperparameters: Hyperparameters,
    mean: Mean,
    place: Placement,
    *,
    n_restarts: int = 0,
    max_iter: int = 100,
    seed: int = 0,
    n_learn: int | None = None,
    progress: Progress | None = None,
) -> Maximum:
    """The hyperparameters of greatest evidence, as the method computes it.

    Starts are screened by ascents on 500 random rows. The best of their ends is improved on some thousand rows where
    there are many more, and last on all, or on `n_learn` of them. `place` is where the exact evidence of some rows is
    computed.
    """
    hyper, last = hyperparameters, min(len(data), n_learn or len(data))
    first_step: float | None = None
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed)).to(data.Y.device)
    few = ExactEvidence(data.take(order[:FEW_ROWS]), hyper, mean, place) if last > FEW_ROWS else None
    for count in (count for count in STAGES[place.device.type] if last > WORTHWHILE * count):
        some = data.take(with_neighbours(order, count, hyper, data, place))
        nearby = maximise(
            ExactEvidence(some, hyper, mean, place),
            few,
            n_restarts=n_restarts,
            max_iter=max_iter,
            tol=STAGES_NEARBY,
            seed=seed,
            first_step=first_step,
        )
        hyper, few, n_restarts = next_start(hyperparameters, nearby.theta), None, 0
        first_step = FIRST_STEP
    rest = data if last == len(data) else data.take(with_neighbours(order, last, hyper, data, place))
    return maximise(
        method.evidence(rest, hyper, mean),
        few,
        n_restarts=n_restarts,
        max_iter=max_iter,
        tol=method.gain,
        seed=seed,
        progress=progress,
        first_step=first_step,
    )


def with_neighbours(order: Tensor, count: int, hyper: Hyperparameters, data: Observations, place: Placement) -> Tensor:
    """So many rows: the first of the order, those nearest to them as the kernel sees it, and then further ones."""
    if data.square:
        return order[:count]
    seeds = order[: count // (1 + NEIGHBOURS)]
    near = []
    for part in seeds.split(max(1, SEEN_NUMBERS // len(data))):
        similar = torch.as_tensor(place.gram(hyper.kernel_at(hyper.start), data.X.take(part), data.X).dense())
        similar[torch.arange(len(part), device=similar.device), part] = torch.inf
        near.append(similar.topk(min(1 + NEIGHBOURS, len(data)), dim=1).indices.to(order.device))
    first = torch.ones(len(order), dtype=torch.bool, device=order.device)
    chosen = torch.cat(near).flatten().unique()
    first[chosen] = False
    return torch.cat([chosen, order[first[order]]])[:count]


def next_start(hyper: Hyperparameters, theta: np.ndarray) -> Hyperparameters:
    """Where more rows start from, given what fewer led to: with some noise, and with no feature out of sight."""
    reach = theta - hyper.start
    paths = np.array([label.split("[")[0] for label in hyper.labels])
    for path in np.unique(paths[hyper.mask("length_scale")]):
        here = paths == path
        reach[here] = np.minimum(reach[here], np.median(reach[here]) + np.log(LONGEST))
    theta = hyper.start + reach
    if hyper.learn_noise:
        theta[-1] = max(theta[-1], hyper.start[-1] + np.log(LEAST_NOISE))
    return hyper.starting_at(theta)
