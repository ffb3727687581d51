"""The rows that alpha="auto" looks at: all where there are few, else a sample."""

from __future__ import annotations

from dataclasses import replace

import torch

from mercer.data.sample import Sample
from mercer.estimators.dials import ALPHA_ROWS
from mercer.selection.rows import merged_rows


def distinct(sample: Sample) -> Sample:
    """The rows of positive weight, equal ones merged and their weights added; those of a ready matrix as they are."""
    data = sample.positive()[0]
    if data.square:
        return data
    rows = merged_rows(data.rows, data.targets, data.weights)
    equal = bool((rows.weights == 1.0).all())
    return replace(data, rows=rows.X, targets=rows.Y, weights=None if equal else rows.weights)


def few_rows(sample: Sample, *, merge: bool = True) -> bool:
    """Whether a path of alphas can be found on all rows, with `merge` on all distinct ones."""
    return sample.n_positive <= ALPHA_ROWS or (merge and not sample.square and len(distinct(sample)) <= ALPHA_ROWS)


def alpha_sample(sample: Sample, most: int, seed: int) -> tuple[Sample, int]:
    """At most so many distinct rows, drawn at random, and how many there are: of more than fit, at most one half."""
    rows = distinct(sample)
    size = min(ALPHA_ROWS, max(2, most))
    if len(rows) <= size:
        return rows, len(rows)
    size = max(2, min(size, len(rows) // 2))
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:size]
    return rows.take(drawn), len(rows)
