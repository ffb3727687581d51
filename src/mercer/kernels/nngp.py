"""The covariance of a wide random network."""

from __future__ import annotations

from typing import Any

from mercer.kernels.networks import Network, bounded_activation
from mercer.kernels.pair import Pair
from mercer.kernels.registry import register


@register(
    names={"nngp": {}},
    examples=[
        {"depth": 3},
        {"depth": 2, "b_var": 0.0},
        {"depth": 2, "activation": "leaky_relu", "w_var": 1.5, "b_var": 0.2, "slope": 0.3},
        {"depth": 2, "activation": "erf"},
        {"depth": 2, "activation": "sin", "w_var": 1.0},
        {"depth": 1, "activation": "tanh", "w_var": 1.0},
    ],
)
class NNGP(Network):
    r"""The neural network Gaussian process kernel: the covariance of the outputs of an infinitely wide network with
    `depth` hidden layers and random weights,

    .. math:: S_0 = b + w\, x \cdot z / d, \qquad S_l = b + w\, E\, \varphi(u) \varphi(v), \quad
        (u, v) \sim N(0, S_{l-1}),

    with weights of variance w / width (`w_var`) and biases of variance b (`b_var`). `activation` is "relu",
    "leaky_relu" (with `slope` for negative numbers), "abs", "erf", "gelu" or "sin", in closed form; "tanh", "sigmoid",
    "silu", "softplus", "cos" or a smooth function of a tensor, by the first 32 terms of its Hermite series.

    Ridge regression with it is what training the last layer of such a network alone does.

    References: Neal, *Bayesian learning for neural networks*, 1996; Cho and Saul, *Kernel methods for deep learning*,
    2009; Lee et al., *Deep neural networks as Gaussian processes*, 2018.

    >>> NNGP(depth=1, w_var=2.0, b_var=0.0)([[1.0, 0.0], [0.0, 2.0]]).round(4)
    array([[1.    , 0.6366],
           [0.6366, 4.    ]])
    """

    def of(self, pair: Pair) -> Any:
        *_, (value, _) = self.layers(pair)
        return value

    def _bounded(self) -> bool | None:
        return bounded_activation(self.activation)
