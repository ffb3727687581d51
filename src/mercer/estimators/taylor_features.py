"""Taylor features of the Gaussian kernel as a transformer."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.common.state import float_array, read_kernel
from mercer.estimators.transformer import FeatureTransformer
from mercer.features import TaylorMap
from mercer.files.kinds import whole
from mercer.files.persistence import register
from mercer.kernels import Gaussian, Kernel

MOST_FEATURES = 10**6


@register
class TaylorFeatures(FeatureTransformer):
    r"""The Taylor series of the Gaussian kernel: monomials times a bell curve. With u = (x - centre) / length_scale,

    .. math:: \varphi_\alpha(x) = e^{-|u|^2/2} \prod_j \frac{u_j^{\alpha_j}}{\sqrt{\alpha_j!}}, \qquad
              \alpha_1 + \dots + \alpha_d \le D, \qquad
              |\varphi(x) \cdot \varphi(z) - k(x, z)| \le \frac{(|u||v|)^{D+1}}{(D+1)!}.

    Nothing is random. There are :math:`\binom{d + D}{D}` features: for few columns, and rows within a few length scales
    of the centre, which is the mean of the rows in `fit`.

    Parameters
    ----------
    degree : the largest degree D of a monomial.
    kernel : a `Gaussian` kernel, "gaussian" for the median length scale, or a length scale.
    center : expand about the mean of the rows; else about zero.

    Attributes
    ----------
    kernel_ : the kernel with its length scale found.
    features_ : the map, a `TaylorMap`; `features_.exponents` are the multi-indices.

    References
    ----------
    Cotter, Keshet and Srebro, *Explicit approximations of the Gaussian kernel*, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-2, 2, 30).reshape(-1, 1)
    >>> features = TaylorFeatures(12, kernel=1.0).fit(X)
    >>> features.transform(X).shape
    (30, 13)
    >>> features.approximation_error(X).max < 0.01
    True
    """

    title = "Taylor features"
    saved: ClassVar = {"degree": whole()}
    leading = ("degree", "kernel")

    def __init__(self, degree: int = 4, kernel: Any = "gaussian", *, center: bool = True) -> None:
        self.degree = degree
        self.kernel = kernel
        self.center = center

    def _given_kernel(self) -> Kernel:
        given = self.kernel
        if isinstance(given, numbers.Real) and not isinstance(given, bool):
            return Gaussian(given)
        kernel = super()._given_kernel()
        if not isinstance(kernel, Gaussian):
            raise InputError(f"kernel={given!r}: Taylor features are those of a Gaussian kernel or a length scale.")
        return kernel

    def _made(self, kernel: Kernel, rows: Points) -> TaylorMap:
        degree = self.degree
        x = rows.values.detach().to("cpu", torch.float64)
        scale = torch.as_tensor(kernel.length_scale, dtype=torch.float64).expand(x.shape[1]).clone()
        made = TaylorMap.of(scale, int(degree), x.mean(0) if self.center else None)
        if made.n_features > MOST_FEATURES:
            raise InputError(
                f"degree={degree} with {x.shape[1]} columns makes {made.n_features:,} Taylor features; use a lower "
                "degree, or RandomFourierFeatures or NystromFeatures."
            )
        self._note = f"monomials up to degree {degree}"
        return made

    def _domain(self) -> str:
        return "vectors"

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        made = self.features_
        return {"degree": made.degree}, {"scale": made.scale, "centre": made.centre}

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> TaylorMap:
        shape, degree = (self.n_features_in_,), meta["degree"]
        made = TaylorMap(float_array(arrays, "scale", shape), float_array(arrays, "centre", shape), degree)
        if made.n_features > MOST_FEATURES or not bool((made.scale > 0).all()):
            raise InputError(f"degree={degree} and the length scales make no Taylor features.")
        self.kernel_ = read_kernel(self, meta)
        return made
