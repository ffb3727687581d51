"""Random Fourier features as a transformer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.common.state import read_kernel
from mercer.estimators.transformer import FeatureTransformer, checked_draw
from mercer.files.persistence import register
from mercer.kernels import Kernel
from mercer.kernels.spectral import NoSpectralMeasureError
from mercer.solvers import FourierFeatures

WORDS = {
    "pairs": "cosines and sines of random frequencies",
    "offset": "cosines of random frequencies with random offsets",
    "orthogonal": "cosines and sines of frequencies in orthogonal directions",
    "qmc": "cosines and sines of frequencies from a scrambled Sobol sequence",
}


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
    n_components : the number p of features.
    kernel : a shift-invariant `Kernel` or its name: Gaussian, Laplace, Matern, ..., their sums and products. A name has
        the median length scale.
    random_state : seed of the draw; None is 0.
    method : "pairs", "offset", "orthogonal" (pairs whose frequencies point in orthogonal directions, for kernels of the
        Euclidean distance) or "qmc" (pairs whose frequencies come from a scrambled Sobol sequence). All have the mean
        k(x, z); the last two come closer to it, "qmc" most for few columns.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    features_ : the map, a `FourierFeatures`.

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

    def __init__(
        self, n_components: int = 100, kernel: Any = "gaussian", random_state: Any = None, *, method: str = "pairs"
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.method = method

    def _made(self, kernel: Kernel, rows: Points) -> FourierFeatures:
        count = checked_draw(self.n_components, rows)
        try:
            made = FourierFeatures.draw(kernel, rows, count, self._seed, self.method)
        except NoSpectralMeasureError as error:
            raise InputError(f"{error.reason} Use NystromFeatures, which takes every kernel.") from None
        self._note = WORDS[self.method]
        return made

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {}, self.features_.to_arrays()

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> FourierFeatures:
        made = FourierFeatures.from_arrays(arrays)
        if made.frequencies.shape[1] != self.n_features_in_:
            raise InputError(f"frequencies have {made.frequencies.shape[1]} columns, expected {self.n_features_in_}")
        self.kernel_ = read_kernel(self, meta)
        return made
