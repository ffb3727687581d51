"""What forecasts of learning curves are made from: one row of each kind with its kernel matrix, or fits to parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.memory import require, resolve_budget
from mercer.data.sample import Sample
from mercer.estimators.common.refits import Refit, seen_from
from mercer.estimators.dials import MOST_SCORED
from mercer.operators.placement import Placement
from mercer.solvers.choose import memory_needed
from mercer.theory import Forecaster
from mercer.theory.forecaster import check_rows
from mercer.theory.power_law import laws_of
from mercer.theory.ridge_path import noise_of_mean


@dataclass(frozen=True, eq=False)
class Merged:
    """One row of each kind: kernel matrix, mean targets, summed weights or None, and the share of repetitions."""

    gram: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    duplicates: float

    @classmethod
    def of(cls, sample: Sample, gram: Callable[[Sample], Any], place: Placement, most: float = 1.0) -> Merged:
        """Merge equal rows of positive weight, up to a share of them: with `most` or more the rows stay as they are.

        `gram` gives the operator of a sample.
        """
        sample = sample.positive()[0]
        n, t = sample.targets.shape
        advice = "Fit and ask a random part of the rows, and forecast from there."
        budget = resolve_budget(place.memory_budget, place.device)
        require(memory_needed(n, "eigh", t), budget, f"the eigendecomposition of {n:,} rows", advice)
        kept, targets, weights = _merged(sample)
        share = 1 - len(kept) / n
        if share >= most:
            kept, targets, weights = torch.arange(n), *_numbers(sample)
        matrix = torch.as_tensor(gram(sample.take(kept)).dense())
        return cls(matrix.cpu().numpy(), targets, weights, share)


def _numbers(sample: Sample) -> tuple[np.ndarray, np.ndarray | None]:
    return sample.targets.cpu().numpy(), None if sample.weights is None else sample.weights.cpu().numpy()


def _merged(sample: Sample) -> tuple[Tensor, np.ndarray, np.ndarray | None]:
    """Places of one row of each kind, with the mean of its targets and the sum of its weights."""
    targets, weights = _numbers(sample)
    kinds = None if sample.square else sample.kinds
    if kinds is None or len(kinds) == len(sample):
        return torch.arange(len(sample)), targets, weights
    w = torch.ones(len(sample), dtype=torch.float64) if sample.weights is None else sample.weights.cpu()
    total = kinds.sums(w)
    means = kinds.sums(w[:, None] * sample.targets.cpu()) / total[:, None]
    return kinds.first, means.numpy(), total.numpy()


def by_parts(
    refit: Refit,
    sample: Sample,
    targets: Tensor,
    left_out: Tensor | None,
    alone: str,
    seed: int,
    *,
    together: bool = False,
) -> list[Forecaster]:
    """Forecasters from fits to parts of the rows, one for each target, or one for all `together`.

    `left_out` are predictions for each row by fits without it; None where they are not known.
    """
    Y, n = targets.cpu().numpy(), len(sample)
    weights = np.ones(n) if sample.weights is None else sample.weights.cpu().numpy()
    check_rows(n)

    def squares(values: Tensor, rows: Any) -> np.ndarray:
        off = (values.detach().cpu().numpy().reshape(-1, Y.shape[1]) - Y[rows]) ** 2
        return off.sum(1, keepdims=True) if together else off

    def scores(some: np.ndarray, rest: np.ndarray) -> list[float]:
        fitted, out = torch.from_numpy(some), torch.from_numpy(rest[:MOST_SCORED])
        values = refit(sample.take(fitted))(seen_from(sample, out, fitted))
        return np.average(squares(values, out), axis=0, weights=weights[out]).tolist()

    everywhere = None if left_out is None else squares(left_out, slice(None))
    count = 1 if together else Y.shape[1]
    now = [None] * count if everywhere is None else np.average(everywhere, axis=0, weights=weights).tolist()
    noises = [0.0] * count if everywhere is None else [noise_of_mean(column) for column in everywhere.T]
    laws = laws_of(scores, n, now, random_state=seed)
    return [
        Forecaster.of_law(law, n, noise or float(law.spreads[-1]), alone)
        for law, noise in zip(laws, noises, strict=True)
    ]
