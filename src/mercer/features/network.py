"""Random network features: the last hidden layer of a network with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, check_finite
from mercer.core.blocks import new_matrix
from mercer.core.errors import InputError
from mercer.features.dials import NETWORK_CACHE_NUMBERS
from mercer.kernels.activations import FUNCTIONS, checked_activation
from mercer.kernels.pair import vectors


@dataclass(frozen=True, eq=False)
class NetworkMap:
    r"""One hidden layer of k units with random weights and biases,

    .. math:: \varphi(x) = \sigma(W x + b) / \sqrt{k}, \qquad W_{ij} \sim N(0, s_w^2/d), \quad b_i \sim N(0, s_b^2).

    Training the last layer by ridge regression is kernel ridge regression with :math:`\varphi(x) \cdot \varphi(z)`,
    which for many units tends to the kernel :math:`E\, \sigma(w \cdot x + b)\, \sigma(w \cdot z + b)`.

    References: Neal, *Bayesian learning for neural networks*, 1996; Rahimi and Recht, *Weighted sums of random kitchen
    sinks*, 2008.

    >>> phi = NetworkMap.draw(2, 5, "relu", seed=0)
    >>> phi(Points(torch.ones(3, 2))).shape
    torch.Size([3, 5])
    """

    weights: Tensor
    biases: Tensor
    activation: str | Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.biases.shape != (len(self.weights),) or 0 in self.weights.shape:
            shapes = f"{tuple(self.weights.shape)} and {tuple(self.biases.shape)}"
            raise InputError(f"Weights and biases of shapes {shapes} were given; expected (k, d) and (k,).")
        check_finite(self.weights, "weights")
        check_finite(self.biases, "biases")
        activation_function(self.activation)

    @classmethod
    def draw(
        cls,
        n_columns: int,
        n_units: int,
        activation: Any = "relu",
        *,
        weight_scale: float = 1.0,
        bias_scale: float = 1.0,
        seed: int = 0,
    ) -> NetworkMap:
        """A random network for rows of `n_columns`."""
        generator = torch.Generator().manual_seed(seed)
        W = torch.randn(n_units, n_columns, dtype=torch.float64, generator=generator)
        b = torch.randn(n_units, dtype=torch.float64, generator=generator)
        return cls(W * (weight_scale / n_columns**0.5), b * bias_scale, activation)

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def of_rows(self, rows: Tensor) -> Tensor:
        """The features of a tensor of rows."""
        return self(Points(rows))

    def __call__(self, points: Points) -> Tensor:
        """The features (n, k) of some rows, in the dtype and on the device of the rows."""
        x = vectors(points).detach()
        if x.shape[1] != self.weights.shape[1]:
            raise InputError(f"X has {x.shape[1]} columns, but the feature map expects {self.weights.shape[1]}.")
        sigma, W, b = activation_function(self.activation), self.weights.to(x), self.biases.to(x)
        out = new_matrix(len(x), len(W), x.dtype, x.device)
        step = max(1, NETWORK_CACHE_NUMBERS // len(W))
        for start in range(0, len(x), step):
            inner = torch.addmm(b, x[start : start + step], W.T)
            values = torch.as_tensor(sigma(inner))
            if values.shape != inner.shape:
                raise InputError(f"activation must keep the shape of its input; it made {tuple(values.shape)}.")
            torch.mul(values, len(W) ** -0.5, out=out[start : start + step])
        check_finite(out, "The features of the random network")
        return out


def activation_function(activation: Any) -> Callable[[Tensor], Tensor]:
    """The function of a name, or the function given."""
    checked = checked_activation(activation, "RandomNetworkFeatures")
    function: Callable[[Tensor], Tensor] = FUNCTIONS[checked] if isinstance(checked, str) else checked
    return function
