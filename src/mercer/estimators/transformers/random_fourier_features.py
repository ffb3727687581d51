"""Random Fourier features as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mercer.core.errors import InputError
from mercer.core.rules import Rules, one_of
from mercer.core.seeding import as_seed
from mercer.data.given import Rows, Seed, Targets
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.samples import checked_inputs
from mercer.estimators.common.state import FOURIER, Saved, random_features
from mercer.estimators.transformers.base import FeatureTransformer
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import MAP, seen_of
from mercer.features.draws import check_draw, checked_size
from mercer.files.persistence import register
from mercer.functions.fourier import METHODS, FourierFeatures
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import KernelLike
from mercer.kernels.spectral import NoSpectralMeasureError

WORDS = {
    "pairs": "cosines and sines of random frequencies",
    "offset": "cosines of random frequencies with random offsets",
    "orthogonal": "cosines and sines of frequencies in orthogonal directions",
    "qmc": "cosines and sines of frequencies from a scrambled Sobol sequence",
}


@dataclass(frozen=True, eq=False)
class FourierSettings:
    """What a user asked for; see `RandomFourierFeatures`."""

    n_components: int
    kernel: Kernel
    seed: int
    method: str

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> FourierSettings:
        """The settings of an estimator's parameters."""
        p = parameters
        return cls(checked_size(p["n_components"]), as_kernel(p["kernel"]), as_seed(p["random_state"]), p["method"])


def fit_fourier(settings: FourierSettings, sample: Sample) -> MapFit[FourierFeatures]:
    """Draw random Fourier features of a kernel for rows like those of the sample."""
    kernel = resolved_kernel(settings.kernel, sample, settings.seed)
    check_draw(settings.n_components, sample.rows)
    try:
        features = FourierFeatures.draw(kernel, sample.rows, settings.n_components, settings.seed, settings.method)
    except NoSpectralMeasureError as error:
        raise InputError(f"{error.reason} Use NystromFeatures, which takes every kernel.") from None
    return MapFit(sample.seen, kernel, features, WORDS[settings.method])


def _restored(model: RandomFourierFeatures, found: Any) -> MapFit[FourierFeatures]:
    return MapFit(seen_of(found), found.kernel, random_features(found), found.note)


@register
class RandomFourierFeatures(FeatureTransformer):
    r"""Random cosines whose inner products are, in the mean, a shift-invariant kernel. For frequencies
    :math:`\omega_i` drawn from the Fourier transform of the kernel, as pairs or with offsets :math:`b_i`,

    .. math:: \varphi(x) = \sqrt{2/p}\,\bigl(\cos \omega_i \cdot x,\ \sin \omega_i \cdot x\bigr)_{i \le p/2}
              \quad\text{or}\quad \sqrt{2/p}\,\bigl(\cos(\omega_i \cdot x + b_i)\bigr)_{i \le p}, \qquad
              E\, \varphi(x) \cdot \varphi(z) = k(x, z),

    with an error of order :math:`1/\sqrt p`. Pairs have the smaller error where k(x, z) is large.

    Parameters
    ----------
    n_components : int
        The number p of features.
    kernel : Kernel, str or callable
        A shift-invariant `Kernel` or its name: Gaussian, Laplace, Matern, ..., their sums and products. A name has
        `length_scale="auto"`.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the draw; None is 0.
    method : str
        "pairs", "offset", "orthogonal" (pairs whose frequencies point in orthogonal directions, for kernels of the
        Euclidean distance) or "qmc" (pairs whose frequencies come from a scrambled Sobol sequence). All have the mean
        k(x, z); the last two come closer to it, "qmc" most for few columns.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter found.
    features_ : FourierFeatures
        The map from rows to features.

    References
    ----------
    Rahimi and Recht, *Random features for large-scale kernel machines*, 2007; Yu and others, *Orthogonal random
    features*, 2016; Avron and others, *Quasi-Monte Carlo feature maps for shift-invariant kernels*, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = RandomFourierFeatures(500, "gaussian").fit(X)
    >>> features.transform(X).shape
    (50, 500)
    >>> features.approximation_error(X).rms < 0.05
    True
    """

    title = "Random Fourier features"
    saved = Saved({**MAP, **FOURIER}, _restored)
    own_rules: ClassVar[Rules] = {"method": one_of(*METHODS)}

    def __init__(
        self,
        n_components: int = 100,
        kernel: KernelLike = "gaussian",
        random_state: Seed = None,
        *,
        method: str = "pairs",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.method = method

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Draw the features for rows like those of X; y is ignored."""
        settings = FourierSettings.of(self.get_params(deep=False))
        return self._keep(fit_fourier(settings, checked_inputs(self, settings.kernel, X)))
