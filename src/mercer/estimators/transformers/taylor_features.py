"""Taylor features of the Gaussian kernel as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch

from mercer.core.errors import InputError, ModelFileError
from mercer.core.rules import Reader, Rules, is_number
from mercer.data.given import Rows, Targets
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.samples import checked_inputs
from mercer.estimators.common.state import Saved
from mercer.estimators.dials import MOST_FEATURES
from mercer.estimators.transformers.base import FeatureTransformer
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import MAP, seen_of
from mercer.features import TaylorMap
from mercer.files.fields import Array, Field
from mercer.files.kinds import whole
from mercer.files.persistence import register
from mercer.kernels import Gaussian, as_kernel
from mercer.kernels.names import KernelLike


@dataclass(frozen=True, eq=False)
class TaylorSettings:
    """What a user asked for; see `TaylorFeatures`."""

    degree: int
    kernel: Gaussian
    center: bool

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> TaylorSettings:
        """The settings of an estimator's parameters; a number is the length scale of the kernel."""
        return cls(int(parameters["degree"]), as_gaussian(parameters["kernel"]), bool(parameters["center"]))


def as_gaussian(kernel: KernelLike) -> Gaussian:
    """A Gaussian kernel, its name, or a number that is its length scale."""
    found = Gaussian(kernel) if is_number(kernel) else as_kernel(kernel)
    if not isinstance(found, Gaussian):
        raise InputError(f"kernel={kernel!r}: Taylor features are those of a Gaussian kernel or a length scale.")
    return found


def fit_taylor(settings: TaylorSettings, sample: Sample) -> MapFit[TaylorMap]:
    """The Taylor series of a kernel about the mean of the rows of the sample."""
    kernel, degree = resolved_kernel(settings.kernel, sample, 0), settings.degree
    assert isinstance(kernel, Gaussian)
    x = sample.rows.values.detach().to("cpu", torch.float64)
    scale = torch.as_tensor(kernel.length_scale, dtype=torch.float64).expand(x.shape[1]).clone()
    if degree > MOST_FEATURES:
        raise InputError(f"degree={degree}: must be at most {MOST_FEATURES:,}.")
    features = TaylorMap.of(scale, degree, x.mean(0) if settings.center else None)
    if features.n_features > MOST_FEATURES:
        raise InputError(
            f"degree={degree} with {x.shape[1]} columns makes {features.n_features:,} Taylor features; use a lower "
            "degree, or RandomFourierFeatures or NystromFeatures."
        )
    return MapFit(sample.seen, kernel, features, f"monomials up to degree {degree}")


def _restored(model: TaylorFeatures, found: Any) -> MapFit[TaylorMap]:
    features = TaylorMap(found.scale, found.centre, found.degree)
    if features.n_features > MOST_FEATURES or not bool((features.scale > 0).all()):
        raise ModelFileError(f"degree={found.degree} and the length scales make no Taylor features.")
    return MapFit(seen_of(found), found.kernel, features, found.note)


FIELDS = {
    **MAP,
    "degree": Field(whole(), at="features.degree"),
    "scale": Array("d", at="features.scale"),
    "centre": Array("d", at="features.centre"),
}


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
    degree : int
        The largest degree D of a monomial.
    kernel : Kernel, str or callable
        A `Gaussian` kernel, "gaussian" for `length_scale="auto"`, or a length scale.
    center : bool
        Expand about the mean of the rows; else about zero.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its length scale found.
    features_ : TaylorMap
        The map from rows to features; `features_.exponents` are the multi-indices.

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
    saved = Saved(FIELDS, _restored)
    own_rules: ClassVar[Rules] = {"kernel": Reader(as_gaussian)}
    leading = ("degree", "kernel")

    def __init__(self, degree: int = 4, kernel: KernelLike = "gaussian", *, center: bool = True) -> None:
        self.degree = degree
        self.kernel = kernel
        self.center = center

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Expand the kernel about the mean of the rows of X; y is ignored."""
        settings = TaylorSettings.of(self.get_params(deep=False))
        return self._keep(fit_taylor(settings, checked_inputs(self, settings.kernel, X)))
