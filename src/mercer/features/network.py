"""Random network features: the last hidden layer of a network with random weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, check_finite
from mercer.core.blocks import new_matrix
from mercer.core.errors import InputError
from mercer.kernels.pair import vectors

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "erf": torch.erf,
    "tanh": torch.tanh,
    "sin": torch.sin,
}
CACHE_NUMBERS = 2**17
NODES = 48
QUADRATURE_NUMBERS = 2**22


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
            raise InputError(f"Weights and biases of shapes {shapes} make no network; expected (k, d) and (k,).")
        check_finite(self.weights, "weights")
        check_finite(self.biases, "biases")
        checked_activation(self.activation)

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
            raise InputError(f"X has {x.shape[1]} columns but the features are of {self.weights.shape[1]}.")
        sigma, W, b = checked_activation(self.activation), self.weights.to(x), self.biases.to(x)
        out = new_matrix(len(x), len(W), x.dtype, x.device)
        step = max(1, CACHE_NUMBERS // len(W))
        for start in range(0, len(x), step):
            inner = torch.addmm(b, x[start : start + step], W.T)
            values = torch.as_tensor(sigma(inner))
            if values.shape != inner.shape:
                raise InputError(f"activation must keep the shape of its input; it made {tuple(values.shape)}.")
            torch.mul(values, len(W) ** -0.5, out=out[start : start + step])
        check_finite(out, "The features of the random network")
        return out


def checked_activation(activation: Any) -> Callable[[Tensor], Tensor]:
    """The function of a name, or the function given."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    if not isinstance(activation, str) and callable(activation):
        return activation
    raise InputError(f"activation={activation!r}: give {', '.join(map(repr, ACTIVATIONS))} or a function of a tensor.")


@dataclass(frozen=True, eq=False)
class WideNetworkKernel:
    r"""The kernel of infinitely many random units, :math:`k(x, z) = E\, \sigma(u) \sigma(v)` for normal u, v with

    .. math:: E u v = s_w^2\, x \cdot z / d + s_b^2.

    In closed form for "relu" (Cho and Saul, 2009), "erf" (Williams, 1997) and "sin", else by Gauss-Hermite quadrature.

    >>> WideNetworkKernel("sin", 1.0, 0.0)(torch.ones(1, 1).double(), torch.ones(1, 1).double()).round(decimals=4)
    tensor([[0.4323]], dtype=torch.float64)
    """

    activation: Any
    weight_scale: float
    bias_scale: float

    def __call__(self, X: Tensor, Z: Tensor) -> Tensor:
        x, z = X.to(torch.float64), Z.to(torch.float64)
        weight, bias = self.weight_scale**2 / x.shape[1], self.bias_scale**2
        uv = weight * (x @ z.T) + bias
        uu = (weight * x.square().sum(1) + bias).unsqueeze(1)
        vv = (weight * z.square().sum(1) + bias).unsqueeze(0)
        if self.activation == "relu":
            size = (uu * vv).sqrt()
            cosine = torch.where(size > 0, uv / size, 0.0).clamp(-1.0, 1.0)
            angle = cosine.acos()
            return size * (angle.sin() + (math.pi - angle) * cosine) / (2.0 * math.pi)
        if self.activation == "erf":
            return (2.0 * uv / ((1.0 + 2.0 * uu) * (1.0 + 2.0 * vv)).sqrt()).asin() * (2.0 / math.pi)
        if self.activation == "sin":
            return 0.5 * ((uv - 0.5 * (uu + vv)).exp() - (-uv - 0.5 * (uu + vv)).exp())
        return self._quadrature(uu, uv, vv)

    def _quadrature(self, uu: Tensor, uv: Tensor, vv: Tensor) -> Tensor:
        sigma = checked_activation(self.activation)
        nodes, weights = (torch.from_numpy(part).to(uv) for part in np.polynomial.hermite_e.hermegauss(NODES))
        weights = weights / weights.sum()
        root = uu.sqrt()
        slope = torch.where(root > 0, uv / root, 0.0)
        rest = (vv - slope.square()).clamp(min=0.0).sqrt()
        first = torch.as_tensor(sigma(root * nodes)) * weights
        step = max(1, QUADRATURE_NUMBERS // (uv.shape[1] * NODES * NODES))
        rows = []
        for a, b, c in zip(first.split(step), slope.split(step), rest.split(step), strict=True):
            v = b[:, :, None, None] * nodes[:, None] + c[:, :, None, None] * nodes
            rows.append(torch.einsum("nk,nmk->nm", a, torch.as_tensor(sigma(v)) @ weights))
        return torch.cat(rows)
