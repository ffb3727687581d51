"""Random network features as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mercer.core.seeding import as_seed
from mercer.data.given import Rows, Seed, Targets
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.samples import checked_inputs
from mercer.estimators.common.state import Saved
from mercer.estimators.transformers.base import FeatureTransformer
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import MAP, seen_of
from mercer.features import NetworkMap
from mercer.features.draws import check_draw, checked_size
from mercer.features.network import activation_function
from mercer.files.fields import Array, Field
from mercer.files.kinds import one_of
from mercer.files.persistence import register
from mercer.kernels import FeatureMap, Gaussian, WideLayer

ANY_KERNEL = Gaussian()
"""Stands for any kernel of rows: the features need none."""


@dataclass(frozen=True, eq=False)
class NetworkSettings:
    """What a user asked for; see `RandomNetworkFeatures`."""

    n_components: int
    activation: Any
    seed: int
    weight_scale: float
    bias_scale: float

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> NetworkSettings:
        """The settings of an estimator's parameters."""
        p = parameters
        scales = float(p["weight_scale"]), float(p["bias_scale"])
        return cls(checked_size(p["n_components"]), p["activation"], as_seed(p["random_state"]), *scales)


def fit_network(settings: NetworkSettings, sample: Sample) -> MapFit[NetworkMap]:
    """Draw the units of a network for rows like those of the sample."""
    check_draw(settings.n_components, sample.rows)
    activation_function(settings.activation)
    scales = {"weight_scale": settings.weight_scale, "bias_scale": settings.bias_scale}
    d, size = sample.rows.values.shape[1], settings.n_components
    features = NetworkMap.draw(d, size, settings.activation, **scales, seed=settings.seed)
    return _fit_of(settings, sample.seen, features, f"hidden units with activation {_name(settings.activation)}")


def _fit_of(settings: NetworkSettings, seen: Seen, features: NetworkMap, note: str) -> MapFit[NetworkMap]:
    limit = WideLayer(
        settings.activation, settings.weight_scale * settings.weight_scale, settings.bias_scale * settings.bias_scale
    )
    return MapFit(seen, FeatureMap(features.of_rows), features, note, limit)


def _name(activation: Any) -> str:
    return activation if isinstance(activation, str) else getattr(activation, "__name__", repr(activation))


def _restored(model: RandomNetworkFeatures, found: Any) -> MapFit[NetworkMap]:
    settings = NetworkSettings.of(model.get_params(deep=False))
    return _fit_of(settings, seen_of(found), NetworkMap(found.weights, found.biases, settings.activation), found.note)


FIELDS = {
    **MAP,
    "kernel": Field(one_of(None), at=lambda fit: None),  # it is made of the features
    "weights": Array("p d", at="features.weights"),
    "biases": Array("p", at="features.biases"),
}


@register
class RandomNetworkFeatures(FeatureTransformer):
    r"""The hidden layer of a network with k random units,

    .. math:: \varphi(x) = \sigma(W x + b) / \sqrt{k}, \qquad W_{ij} \sim N(0, s_w^2/d), \quad b_i \sim N(0, s_b^2).

    Training the last layer by ridge regression is kernel ridge regression with the kernel `kernel_`,
    :math:`\varphi(x) \cdot \varphi(z)`. As k grows it tends to
    :math:`E\, \sigma(w \cdot x + b)\, \sigma(w \cdot z + b)`, with which `approximation_error` compares.

    Parameters
    ----------
    n_components : int
        The number k of units.
    activation : str or callable
        A name as in `NNGP`, such as "relu", "erf" or "tanh", or a function of a tensor.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the draw; None is 0.
    weight_scale, bias_scale : float
        s_w and s_b. Rows are taken as they are: put a `StandardScaler` before.

    Attributes
    ----------
    features_ : NetworkMap
        The map from rows to features.
    kernel_ : Kernel
        The kernel of the features.

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
    saved = Saved(FIELDS, _restored)
    leading = ("n_components", "activation")

    def __init__(
        self,
        n_components: int = 100,
        activation: Any = "relu",
        random_state: Seed = None,
        *,
        weight_scale: float = 1.0,
        bias_scale: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.random_state = random_state
        self.weight_scale = weight_scale
        self.bias_scale = bias_scale

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Draw the weights for rows like those of X; y is ignored."""
        settings = NetworkSettings.of(self.get_params(deep=False))
        return self._keep(fit_network(settings, checked_inputs(self, ANY_KERNEL, X)))

    def _domain(self) -> str:
        return ANY_KERNEL.domain
