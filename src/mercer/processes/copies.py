"""Records that repeat others: taken for observations of their own, they look like proof that there is no noise."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.data.equal import Kinds
from mercer.processes.dials import SELDOM
from mercer.processes.observations import Observations


def rows_but_copies(data: Observations) -> Tensor | None:
    """The places of one of all rows that agree in X, Y and known noise, if rows with equal X nearly always agree.

    Then they are one record that was entered several times, and the likelihood would explain them by less noise than
    there is. Where rows with equal X often differ in Y, they are observations of their own, and equal ones among them
    coincidences: all are kept, and so are the rows of any point with different values. None where there are no copies.

    >>> from mercer.core.arrays import Points
    >>> X = Points(torch.tensor([[0.0], [1.0], [2.0], [0.0]]))
    >>> rows_but_copies(Observations(X, torch.tensor([[0.31], [0.85], [0.4], [0.31]])))
    tensor([0, 1, 2])
    """
    found = _records(data)
    if found is None:
        return None
    point, first, differs = found
    kept = differs[point] | (first[point] == torch.arange(len(data)))
    return kept.nonzero()[:, 0].to(data.Y.device)


def copied(data: Observations) -> Tensor:
    """Which rows (n,) have a copy among the others.

    >>> from mercer.core.arrays import Points
    >>> X = Points(torch.tensor([[0.0], [1.0], [2.0], [0.0]]))
    >>> copied(Observations(X, torch.tensor([[0.31], [0.85], [0.4], [0.31]])))
    tensor([ True, False, False,  True])
    """
    found = _records(data)
    if found is None:
        return torch.zeros(len(data), dtype=torch.bool)
    point, first, differs = found
    return ~differs[point] & (point.bincount(minlength=len(first))[point] > 1)


def _records(data: Observations) -> tuple[Tensor, Tensor, Tensor] | None:
    """The point of each row, the first row of each point and whether its rows differ; None where none are copies."""
    n = len(data)
    if data.square or n < 2:
        return None
    X = (data.X,) if data.noise is None else (data.X, data.noise)
    points = Kinds.of(*X)
    point, first = points.group, points.first
    if len(first) == n:
        return None
    values = Kinds.of(data.Y).group
    agreeing, repeated = _equal_pairs(Kinds.of(*X, data.Y).group), _equal_pairs(point)
    here = 1 - agreeing / repeated
    elsewhere = 1 - _equal_pairs(values[first]) / max(1, len(first) * (len(first) - 1))
    if not here < SELDOM * elsewhere:
        return None
    differs = torch.zeros(len(first), dtype=torch.bool)
    differs[point[values != values[first][point]]] = True
    return point, first, differs


def _equal_pairs(groups: Tensor) -> float:
    """Ordered pairs of different places in the same group."""
    counts = groups.unique(return_counts=True)[1].double()
    return float((counts * (counts - 1)).sum())
