"""Scores of predictions on any device: scikit-learn's metrics read what numpy can read."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from torch import Tensor


class ScoreMixin:
    """`score` as scikit-learn has it, also for tensors on a GPU; comes before scikit-learn's mixins."""

    predict: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions at X, or for classes the share that is right."""
        metric = accuracy_score if is_classifier(self) else r2_score
        return float(metric(on_host(y), on_host(self.predict(X)), sample_weight=on_host(sample_weight)))


def on_host(values: Any) -> Any:
    """A tensor as a numpy array, anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
