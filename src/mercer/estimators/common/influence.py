"""The training rows behind a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError


@dataclass(frozen=True, eq=False)
class Influence:
    """For each of m predictions the k training rows with the largest label weights, largest first.

    Attributes
    ----------
    rows : array of shape (m, k)
        Places of the training rows.
    weights : array of shape (m, k)
        Label weights: how much the prediction moves when the label of that row moves by one.
    labels : array of shape (m, k) or (m, k, t)
        Labels of those rows; weight times label is the row's share of the prediction.
    """

    rows: Any
    weights: Any
    labels: Any

    def __repr__(self) -> str:
        shown = min(len(self.rows), 3)
        lines = [f"Influence of {self.rows.shape[1]} training rows on each of {len(self.rows)} predictions"]
        for i in range(shown):
            pairs = zip(self.rows[i][:5], self.weights[i][:5], strict=True)
            lines.append(f"  prediction {i}: " + ", ".join(f"row {r} ({w:+.3f})" for r, w in pairs))
        return "\n".join(lines + (["  ..."] if len(self.rows) > shown else []))


def most_influential(label_weights: np.ndarray, labels: np.ndarray, k: int) -> Influence:
    """The `k` rows of largest absolute weight for each prediction; `label_weights` is (m, n)."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"influential(k={k!r}): k must be an integer >= 1.")
    k = min(int(k), label_weights.shape[1])
    order = np.argsort(-np.abs(label_weights), axis=1, kind="stable")[:, :k]
    return Influence(order, np.take_along_axis(label_weights, order, axis=1), labels[order])
