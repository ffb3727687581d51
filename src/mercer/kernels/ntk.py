"""The neural tangent kernel of a wide network."""

from __future__ import annotations

from typing import Any

from mercer.core.errors import InputError
from mercer.kernels.networks import Network
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.registry import register


@register(
    names={"ntk": {}},
    examples=[
        {"depth": 2},
        {"depth": 3, "n_fixed": 1, "b_var": 0.0},
        {"depth": 2, "activation": "abs", "w_var": 1.0},
        {"depth": 2, "activation": "gelu", "w_var": 1.5},
    ],
)
class NTK(Network):
    r"""The neural tangent kernel: the inner product of the gradients, by all weights and biases, of the output of an
    infinitely wide network at x and at z,

    .. math:: T_0 = S_0, \qquad T_l = S_l + w\, E\, \varphi'(u) \varphi'(v)\, T_{l-1},

    with S as in `NNGP`. Gradient descent on such a network is kernel regression with it. The first `n_fixed` layers
    are not trained; with all `depth` hidden ones fixed it is the NNGP. Parameters are those of `NNGP`.

    References: Jacot, Gabriel and Hongler, *Neural tangent kernel*, 2018; Arora et al., *Harnessing the power of
    infinitely wide deep nets on small-data tasks*, 2020.

    >>> NTK(depth=1, w_var=2.0, b_var=0.0)([[1.0, 0.0], [0.0, 2.0]]).round(4)
    array([[2.    , 0.6366],
           [0.6366, 8.    ]])
    """

    n_fixed: int = parameter(0, lower_open=False, integer=True, tunable=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_fixed > self.depth:
            raise InputError(f"NTK(n_fixed={self.n_fixed}): at most all {self.depth} hidden layers can be fixed.")

    def of(self, pair: Pair) -> Any:
        tangent: Any = None
        for layer, (covariance, slope) in enumerate(self.layers(pair)):
            before = None if tangent is None else self.w_var * slope * tangent
            trained = covariance if layer >= self.n_fixed else None
            tangent = trained if before is None else before if trained is None else trained + before
        return tangent
