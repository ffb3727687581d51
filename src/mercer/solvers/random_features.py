"""Rows with their random features, as a block that the sums of a Nyström fit read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.functions.fourier import FeatureRows, FourierFeatures
from mercer.kernels.explicit import ExplicitFeatures
from mercer.solvers.registry import register
from mercer.solvers.row_blocks import Block
from mercer.solvers.traits import Traits


def feature_block(
    features: FourierFeatures | ExplicitFeatures,
    X: Points,
    targets: Tensor,
    weights: Tensor | None = None,
    device: Any = None,
) -> Block:
    r"""Rows with their features, for `NystromSums.of`, which reads some at a time; `solve(None, alpha)` then minimises

    .. math:: \sum_i w_i (\varphi(x_i) \cdot c - y_i)^2 + \alpha |c|^2.

    >>> import torch
    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers import NystromSums
    >>> X = Points(torch.linspace(0, 3, 50).unsqueeze(1).double())
    >>> features = FourierFeatures.draw(Gaussian(), X, n_features=20)
    >>> sums = NystromSums.of([feature_block(features, X, X.values.sin())])
    >>> c = sums.solve(None, alpha=1e-6).value
    >>> bool((FeatureRows(features, X).matmul(c) - X.values.sin()).abs().max() < 1e-3)
    True
    """
    if targets.ndim != 2 or len(targets) != len(X):
        raise InputError(f"targets have shape {tuple(targets.shape)}; expected ({len(X)}, t).")
    if weights is not None and weights.shape != (len(X),):
        raise InputError(f"weights have shape {tuple(weights.shape)}; expected ({len(X)},).")
    return Block(FeatureRows(features, X, device), targets, weights)


@register("random_features")
@dataclass(frozen=True)
class RandomFeatures:
    """A fit on random features by `NystromSums` of these, with the sum of squares as penalty."""

    traits: ClassVar[Traits] = Traits("features", matrices=7, merges=True)
