"""Random network features as a transformer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.core.arrays import Points
from mercer.estimators.common.state import float_array
from mercer.estimators.transformer import FeatureTransformer, checked_draw
from mercer.features import NetworkMap
from mercer.features.network import WideNetworkKernel, checked_activation
from mercer.files.persistence import register
from mercer.kernels import FeatureMap, Gaussian, Kernel


@register
class RandomNetworkFeatures(FeatureTransformer):
    r"""The hidden layer of a network with k random units,

    .. math:: \varphi(x) = \sigma(W x + b) / \sqrt{k}, \qquad W_{ij} \sim N(0, s_w^2/d), \quad b_i \sim N(0, s_b^2).

    Training the last layer by ridge regression is kernel ridge regression with the kernel `kernel_`,
    :math:`\varphi(x) \cdot \varphi(z)`. As k grows it tends to
    :math:`E\, \sigma(w \cdot x + b)\, \sigma(w \cdot z + b)`, with which `approximation_error` compares.

    Parameters
    ----------
    n_components : the number k of units.
    activation : "relu", "erf", "tanh", "sin", or a function of a tensor.
    random_state : seed of the draw; None is 0.
    weight_scale, bias_scale : s_w and s_b. Rows are taken as they are: put a `StandardScaler` before.

    Attributes
    ----------
    features_ : the map, a `NetworkMap`.
    kernel_ : the kernel of the features.

    References
    ----------
    Cho and Saul, *Kernel methods for deep learning*, 2009; Rahimi and Recht, *Weighted sums of random kitchen sinks*,
    2008; Williams, *Computing with infinite networks*, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = RandomNetworkFeatures(n_components=1000, activation="erf").fit(X)
    >>> features.transform(X).shape
    (50, 1000)
    >>> features.approximation_error(X).rms < 0.05
    True
    """

    title = "Random network features"
    leading = ("n_components", "activation")

    def __init__(
        self,
        n_components: int = 100,
        activation: Any = "relu",
        random_state: Any = None,
        *,
        weight_scale: float = 1.0,
        bias_scale: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.random_state = random_state
        self.weight_scale = weight_scale
        self.bias_scale = bias_scale

    @property
    def kernel_(self) -> Kernel:  # type: ignore[override]
        """The kernel phi(x).phi(z) of the features."""
        features = self.features_
        return FeatureMap(lambda rows: features(Points(rows)))

    def _made(self, kernel: Kernel, rows: Points) -> NetworkMap:
        count = checked_draw(self.n_components, rows)
        checked_activation(self.activation)
        scales = {name: float(getattr(self, name)) for name in ("weight_scale", "bias_scale")}
        self._note = f"hidden units with activation {self._activation_name()}"
        return NetworkMap.draw(rows.values.shape[1], count, self.activation, **scales, seed=self._seed)

    def _activation_name(self) -> str:
        given = self.activation
        return given if isinstance(given, str) else getattr(given, "__name__", repr(given))

    def _exact(self, X: Any, Z: Any) -> Tensor:
        return WideNetworkKernel(self.activation, float(self.weight_scale), float(self.bias_scale))(X, Z)

    def _given_kernel(self) -> Kernel:
        return Gaussian(1.0)  # stands for any kernel of vectors: the features need none

    _fitted_kernel = _given_kernel

    def _keep_kernel(self, kernel: Kernel) -> None:
        pass

    def _kernel_lines(self) -> list[tuple[str, object]]:
        return []

    def _domain(self) -> str:
        return "vectors"

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {}, {"weights": self.features_.weights, "biases": self.features_.biases}

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> NetworkMap:
        W = float_array(arrays, "weights", (None, self.n_features_in_))
        return NetworkMap(W, float_array(arrays, "biases", (len(W),)), self.activation)
