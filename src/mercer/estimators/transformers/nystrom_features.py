"""Nyström features as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import Points
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError, ModelFileError
from mercer.core.seeding import as_seed
from mercer.data.given import Budget, Device, Landmarks, Precision, Rows, Seed, Targets
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.samples import checked_inputs
from mercer.estimators.common.state import Saved
from mercer.estimators.transformers.base import FeatureTransformer
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import MAP, rows, seen_of
from mercer.features import NystromMap
from mercer.features.draws import checked_size
from mercer.files.fields import Array
from mercer.files.persistence import register
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import KernelLike
from mercer.solvers.landmarks import choose_landmarks


@dataclass(frozen=True, eq=False)
class NystromSettings:
    """What a user asked for; see `NystromFeatures`."""

    n_components: int
    kernel: Kernel
    landmarks: Any
    device: Any
    dtype: Any
    memory_budget: Any
    seed: int

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> NystromSettings:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        p["n_components"], p["kernel"] = checked_size(p["n_components"]), as_kernel(p["kernel"])
        return cls(seed=as_seed(p.pop("random_state")), **p)

    def place(self, points: Points, torch_in: bool) -> dict[str, Any]:
        """Where and in which precision kernel values at landmarks are found."""
        dtype = choose_dtype(self.dtype, points.values if points.is_tensor else None)
        device = choose_device(self.device, points.values if torch_in else None)
        return {"dtype": dtype, "device": device, "memory_budget": self.memory_budget}


def fit_nystrom(settings: NystromSettings, sample: Sample) -> MapFit[NystromMap]:
    """Nyström features on landmarks among the rows of the sample."""
    kernel = resolved_kernel(settings.kernel, sample, settings.seed)
    if sample.square:
        raise InputError("Landmarks need feature rows; kernel='precomputed' has none.")
    count, how, budget = settings.n_components, settings.landmarks, settings.memory_budget
    chosen = choose_landmarks(kernel, sample.rows, count, how, settings.seed, memory_budget=budget)
    features = NystromMap.of(kernel, chosen.points, **settings.place(chosen.points, sample.torch_in))
    fewer = features.n_features < len(chosen)
    note = chosen.note + (f", {features.n_features} of them independent to rounding" if fewer else "")
    return MapFit(sample.seen, kernel, features, note)


def _restored(model: NystromFeatures, found: Any) -> MapFit[NystromMap]:
    if not found.basis.shape[1]:
        raise ModelFileError("array 'basis' has no columns")
    seen, settings = seen_of(found), NystromSettings.of(model.get_params(deep=False))
    place = settings.place(found.rows, seen.torch_in)
    return MapFit(seen, found.kernel, NystromMap(found.kernel, found.rows, found.basis, **place), found.note)


@register
class NystromFeatures(FeatureTransformer):
    r"""Features from a few landmarks Z, for every kernel,

    .. math:: \varphi(x) = K_{ZZ}^{-1/2}\, k(Z, x), \qquad
              \varphi(x) \cdot \varphi(z) = k(x, Z)\, K_{ZZ}^{-1}\, k(Z, z).

    Exact at the landmarks, never larger than the kernel on the diagonal, and usually closer to the kernel than as many
    random Fourier features, because they follow the data. The root is a triangular one, so that feature j needs the
    landmarks from j on. Directions that are rounding error are left out: there may be fewer features than landmarks.

    Parameters
    ----------
    n_components : int
        The number of landmarks; not used where `landmarks` are given.
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name has `length_scale="auto"`.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the draw; None is 0.
    landmarks : str or array-like of shape (m, d)
        "uniform" draws rows of X, "pivoted" takes the pivots of a randomly pivoted Cholesky factor, "leverage" draws by
        ridge leverage scores; or an array of points. See `mercer.solvers.choose_landmarks`.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    dtype : str or torch.dtype
        "float64" or "float32" of the computation; "auto" is that of X in `fit`. The root magnifies rounding errors, so
        that in float32 more directions count as rounding. Features have the dtype of X.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter found.
    landmarks_ : array of shape (m, d)
        The landmarks.
    features_ : NystromMap
        The map from rows to features.

    References
    ----------
    Williams and Seeger, *Using the Nyström method to speed up kernel machines*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> features = NystromFeatures(20, "gaussian", landmarks="pivoted").fit(X)
    >>> features.approximation_error(X).rms < 0.01
    True
    """

    title = "Nyström features"
    saved = Saved({**MAP, **rows("features.landmarks"), "basis": Array("m q", at="features.basis")}, _restored)

    def __init__(
        self,
        n_components: int = 100,
        kernel: KernelLike = "gaussian",
        random_state: Seed = None,
        *,
        landmarks: Landmarks = "uniform",
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.landmarks = landmarks
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Choose the landmarks among the rows of X; y is ignored."""
        settings = NystromSettings.of(self.get_params(deep=False))
        return self._keep(fit_nystrom(settings, checked_inputs(self, settings.kernel, X)))

    @property
    def landmarks_(self) -> Any:
        """The landmarks, as an array or a list of objects."""
        check_is_fitted(self)
        return self._fit.seen.rows_given_back(self._fit.features.landmarks)
