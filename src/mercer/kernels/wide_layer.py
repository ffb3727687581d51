"""The kernel of one wide layer of random units."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels.activations import checked_activation, known
from mercer.kernels.base import Kernel
from mercer.kernels.directions import Variance
from mercer.kernels.networks import bounded_activation, layers
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(
    names={"wide_layer": {}},
    examples=[{}, {"activation": "erf", "w_var": 1.5, "b_var": 0.5}],
)
class WideLayer(Kernel):
    r"""The inner product of infinitely many random units,

    .. math:: k(x, z) = E\, \varphi(u)\, \varphi(v), \qquad E u v = w\, x \cdot z / d + b,

    for normal u, v: the limit of `RandomNetworkFeatures`. `NNGP` of depth one is b + w k. Activations are those of
    `NNGP`.

    References: Williams, *Computing with infinite networks*, 1997; Cho and Saul, *Kernel methods for deep learning*,
    2009.

    >>> WideLayer("sin", 1.0, 0.0)([[1.0]]).round(4)
    array([[0.4323]])
    """

    activation: Any = "relu"
    w_var: float = parameter(1.0, lower_open=False)
    b_var: float = parameter(1.0, lower_open=False)
    slope: float = parameter(0.01, lower=-1e6, tunable=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_activation(self.activation, "WideLayer")
        if isinstance(self.slope, Tensor):
            raise InputError("WideLayer: slope must be a number, not a tensor.")

    def of(self, pair: Pair) -> Any:
        inputs = Variance(self.w_var / pair.columns(), self.b_var)
        *_, (value, _) = layers(pair, known(self.activation, self.slope), inputs, 1.0, 0.0, 1)
        return value

    @property
    def properties(self) -> Properties:
        return Properties(stationary=False, bounded=bounded_activation(self.activation))
