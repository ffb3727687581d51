"""The prior covariance of data as a function of hyperparameters."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.pair import DensePair
from mercer.operators.dials import TILE_NUMBERS
from mercer.operators.placement import Placement
from mercer.operators.pull_back import Weight, pull_back
from mercer.processes.hyperparameters import Hyperparameters


class PriorMatrix:
    """K at theta, and the chain rule through it: made once for a sample, then moved from theta to theta.

    A matrix no larger than a tile of `pull_back` is evaluated once, and autograd remembers how. A larger one is
    evaluated again for its derivative, tile by tile, so that nothing else of its size is stored.

    >>> from mercer.kernels import Gaussian
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> hyper = Hyperparameters.of(Gaussian(), noise=0.0, learn_noise=False)
    >>> K = PriorMatrix(hyper, Points(torch.tensor([[0.0], [1.0]]).double()), place).at(hyper.start)
    >>> K.values()
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]], dtype=torch.float64)
    >>> W = torch.ones(2, 2).double()
    >>> K.gradient(lambda i, j: W[i, j], 0.0).round(4)  # of the sum of K, 2 + 2 exp(-1 / (2 l^2)), in log l
    array([1.2131])
    """

    def __init__(self, hyperparameters: Hyperparameters, X: Points, place: Placement) -> None:
        self.hyperparameters, self.X, self.place = hyperparameters, X, place
        self.theta = hyperparameters.start
        self._points = Points(X.values.to(place.dtype), X.names) if X.is_tensor else X
        self._leaves = hyperparameters.leaves_at(self.theta, place.device)
        self._kernel = hyperparameters.kernel.replace(**self._leaves)
        self._small = len(X) ** 2 <= TILE_NUMBERS["cpu"]
        self._tile: Tensor | None = None

    def at(self, theta: np.ndarray) -> PriorMatrix:
        """The same matrix at other parameters."""
        self.theta = theta
        self.hyperparameters.move(self._leaves, theta)
        if self._small:
            with torch.enable_grad():
                self._tile = self._kernel.on(DensePair(self._points))
        return self

    def values(self) -> Tensor:
        """K, a new float64 matrix."""
        if self._tile is not None:
            return self._tile.detach().to(torch.float64, copy=True)
        kernel = self.hyperparameters.kernel_at(self.theta)
        return self.place.matrix(kernel, self.X)

    def gradient(self, slope: Weight, noise_slope: float) -> np.ndarray:
        """The derivative in theta of what has these derivatives in K, tiles of a symmetric matrix, and in the noise."""
        if self._leaves and self._tile is not None:
            self._tile.backward(slope(slice(None), slice(None)).to(self._tile))
        elif self._leaves:
            pull_back(self._kernel, self._points, self._points, slope, self.place.device)
        return self.hyperparameters.gradient(self._leaves, noise_slope, self.theta)
