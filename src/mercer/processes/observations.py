"""What a Gaussian process is conditioned on: values at points, each with its own noise where that is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Points


@dataclass(frozen=True, eq=False)
class Observations:
    """Values Y of t independent processes at n points, with the known part of the noise.

    Attributes
    ----------
    X : Points
        The points.
    Y : Tensor
        Values (n, t), float64.
    noise : Tensor or None
        Variances (n,) known for each row, added to the noise that all rows share; None for none.
    square : bool
        Whether the points are rows of a ready Gram matrix, whose columns are the same points.
    """

    X: Points
    Y: Tensor
    noise: Tensor | None = None
    square: bool = False

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def n_targets(self) -> int:
        return self.Y.shape[1]

    @property
    def n_features(self) -> int | None:
        """The number of columns; None for objects and for rows of a Gram matrix."""
        return None if self.square or not self.X.is_tensor else int(self.X.values.shape[1])

    def take(self, index: Tensor | slice) -> Observations:
        """Those at `index`."""
        X = self.X.take(index)
        if self.square:
            X = Points(X.values[:, index], X.names)
        return Observations(X, self.Y[index], None if self.noise is None else self.noise[index], self.square)

    def to(self, device: torch.device) -> Observations:
        """The same on a device; objects stay where they are."""
        X = Points(self.X.values.to(device), self.X.names) if self.X.is_tensor else self.X
        return Observations(X, self.Y.to(device), None if self.noise is None else self.noise.to(device), self.square)

    def followed_by(self, more: Observations) -> Observations:
        """These and then `more`."""
        if self.X.is_tensor:
            X = Points(torch.cat([self.X.values, more.X.values.to(self.X.values)]), self.X.names)
        else:
            X = Points([*self.X.values, *more.X.values])
        noise = None
        if self.noise is not None or more.noise is not None:
            noise = torch.cat([part.row_noise(0.0) for part in (self, more)])
        return Observations(X, torch.cat([self.Y, more.Y.to(self.Y)]), noise)

    def row_noise(self, shared: float) -> Tensor:
        """The variance of the noise of each row, with that which all share."""
        noise = torch.full((len(self),), float(shared), dtype=torch.float64, device=self.Y.device)
        return noise if self.noise is None else noise + self.noise.to(noise)
