"""Nyström features as a transformer."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.state import POINTS, float_array, plain_objects, read_kernel, read_points
from mercer.estimators.transformer import FeatureTransformer, checked_count
from mercer.features import NystromMap
from mercer.files.kinds import FLAG
from mercer.files.persistence import register
from mercer.kernels import Kernel
from mercer.solvers import choose_landmarks


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
    n_components : the number of landmarks; not used where `landmarks` are given.
    kernel : a `Kernel`, its name, or a function of two points. A name has the median length scale.
    random_state : seed of the draw; None is 0.
    landmarks : "uniform" draws rows of X, "pivoted" takes the pivots of a randomly pivoted Cholesky factor, "leverage"
        draws by ridge leverage scores; or an array of points. See `mercer.solvers.choose_landmarks`.
    device : "auto", "cpu", "cuda" or a torch device.
    dtype : "float64" or "float32" of the computation; "auto" is that of X in `fit`. The root magnifies rounding errors,
        so that in float32 more directions count as rounding. Features have the dtype of X.
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    landmarks_ : the landmarks.
    features_ : the map, a `NystromMap`.

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
    saved: ClassVar = {"objects": POINTS["objects"], "torch_in": FLAG}

    def __init__(
        self,
        n_components: int = 100,
        kernel: Any = "gaussian",
        random_state: Any = None,
        *,
        landmarks: Any = "uniform",
        device: Any = "auto",
        dtype: Any = "auto",
        memory_budget: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.landmarks = landmarks
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget

    @property
    def landmarks_(self) -> Any:
        """The landmarks, as an array or a list of objects."""
        values = self.features_.landmarks.values
        return values if self._torch_in or not isinstance(values, Tensor) else values.cpu().numpy()

    def _made(self, kernel: Kernel, rows: Points) -> NystromMap:
        if kernel.domain == "matrix":
            raise InputError("NystromFeatures chooses landmarks among rows, which a precomputed kernel does not have.")
        count = checked_count(self.n_components, "n_components")
        chosen = choose_landmarks(kernel, rows, count, self.landmarks, self._seed, memory_budget=self.memory_budget)
        made = NystromMap.of(kernel, chosen.points, **self._place(chosen.points))
        self._note = chosen.note
        if made.n_features < len(chosen):
            self._note += f", {made.n_features} of them independent to rounding"
        return made

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Any:
        """Choose the landmarks among the rows of X; y is ignored."""
        self._torch_in = isinstance(X, Tensor)
        return super().fit(X, y)

    def _place(self, points: Points) -> dict[str, Any]:
        dtype = choose_dtype(self.dtype, points.values if points.is_tensor else None)
        like = points.values if self._torch_in else None
        return {"dtype": dtype, "device": choose_device(self.device, like), "memory_budget": self.memory_budget}

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        points = self.features_.landmarks
        arrays = {"basis": self.features_.basis}
        if points.is_tensor:
            arrays["X"] = points.values
        return {"objects": plain_objects(points), "torch_in": self._torch_in}, arrays

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> NystromMap:
        self._torch_in = meta["torch_in"]
        points = read_points(meta, arrays)
        self.kernel_ = read_kernel(self, meta, points)
        basis = float_array(arrays, "basis", (len(points), None))
        if not basis.shape[1]:
            raise InputError("array 'basis' has no columns")
        return NystromMap(self.kernel_, points, basis, **self._place(points))
