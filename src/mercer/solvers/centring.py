"""Weighted means, and what is left without them: the same for targets as for features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""Differences to the mean below this share of the largest target are rounding."""


def centred(Y: Tensor, weights: Tensor | None = None, *, wanted: bool = True) -> tuple[Tensor, Tensor]:
    """The weighted mean of each target, (t,), and the targets (n, t) less it; not `wanted`, zeros and the targets.

    What is left of a constant target is exactly zero.

    >>> centred(torch.tensor([[1.0], [4.0]]).double(), torch.tensor([2.0, 1.0]))
    (tensor([2.], dtype=torch.float64), tensor([[-1.],
            [ 2.]], dtype=torch.float64))
    """
    if not wanted:
        return Y.new_zeros(Y.shape[1]), Y
    w = torch.ones(len(Y)).to(Y) if weights is None else weights.to(Y)
    share = (w / w.sum()).unsqueeze(1)
    first = (share * Y).sum(0)
    mean = first + (share * (Y - first)).sum(0)
    rest = Y - mean
    constant = rest.abs().amax(0) <= ROUNDING * Y.abs().amax(0)
    return mean, torch.where(constant, 0.0, rest)


@dataclass(frozen=True, eq=False)
class Means:
    r"""The weighted means of features (m,) and of targets (t,) over rows of so much `weight`.

    With an intercept, :math:`\min_{c, b} \sum_i w_i (y_i - k_i^T c - b)^2` is
    :math:`\min_c \sum_i w_i (y_i - \bar y - (k_i - \bar k)^T c)^2` with :math:`b = \bar y - \bar k^T c`.
    """

    features: Tensor
    targets: Tensor
    weight: float

    def constant(self, c: Tensor) -> Tensor:
        """The intercept of coefficients c (m, t)."""
        return self.targets - self.features @ c

    def cross(self, cross: Tensor) -> Tensor:
        """The sum of w (k - mean)(y - mean)^T from that of w k y^T."""
        return cross - self.weight * torch.outer(self.features, self.targets)

    def image(self, image: Tensor, c: Tensor) -> Tensor:
        """The product of the sum of w (k - mean)(k - mean)^T with c from that of w k k^T."""
        return image - self.weight * torch.outer(self.features, self.features @ c)

    def missed(self, missed: Tensor, c: Tensor, columns: Tensor) -> Tensor:
        """The sum of w (k - mean)(y - k^T c - b)^T from that of w k (y - k^T c)^T."""
        return missed - self.weight * torch.outer(self.features, self.targets[columns] - self.features @ c)
