"""Records that repeat others: taken for observations of their own, they look like proof that there is no noise."""

from __future__ import annotations

import torch

from mercer.core.arrays import Points
from mercer.processes.observations import Observations
from mercer.solvers.landmarks import row_keys

COINCIDENCE = 1e-3
"""Values that two rows share more often than this cannot tell a copy from another observation."""


def without_copies(data: Observations) -> Observations:
    """The rows that do not repeat an earlier one in X, Y and known noise; the data themselves where none does.

    With noise, two observations at one point are never equal: equal ones are one record that was entered twice, and the
    likelihood would explain many of them by less noise than there is. Where Y takes few values, equal rows may well be
    different observations, and all are kept.

    >>> X = Points(torch.tensor([[0.0], [1.0], [0.0], [0.0]]))
    >>> without_copies(Observations(X, torch.tensor([[0.31], [0.85], [0.31], [0.29]]))).Y.flatten()
    tensor([0.3100, 0.8500, 0.2900])
    """
    n = len(data)
    if data.square or n < 2:
        return data
    columns = [row_keys(data.X), row_keys(Points(data.Y))]
    if data.noise is not None:
        columns.append(row_keys(Points(data.noise.unsqueeze(1))))
    kinds, inverse = torch.stack(columns, dim=1).unique(dim=0, return_inverse=True)
    if len(kinds) in (1, n):
        return data
    counts = kinds[:, 1].unique(return_counts=True)[1].double()
    shared = float((counts * (counts - 1)).sum()) / max(1, len(kinds) * (len(kinds) - 1))
    if shared > COINCIDENCE:
        return data
    first = torch.full((len(kinds),), n).scatter_reduce_(0, inverse, torch.arange(n), "amin")
    return data.take(first.sort().values.to(data.Y.device))
