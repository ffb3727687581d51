"""`MeanEmbedding`: a distribution as a function in the RKHS of a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor

from mercer.core.arrays import restore
from mercer.core.errors import InputError, InputTypeError
from mercer.core.rules import Rule, is_number
from mercer.functions import RKHSFunction
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.stats.characteristic import characteristic_function
from mercer.stats.gaussian_measures import GaussianMeasure
from mercer.stats.pair_sums import pair_sums
from mercer.stats.samples import sample_points, sample_weights

SHRINKAGE = Rule(
    lambda value: isinstance(value, str) or is_number(value),
    lambda value: value == "auto" if isinstance(value, str) else 0 <= value <= 1,
    '"auto" or a number between 0 and 1',
)


class MeanEmbedding:
    r"""The mean embedding of a distribution, estimated from a sample or known in closed form,

    .. math:: \mu_P = \mathbb E\, k(X, \cdot) \approx \sum_i w_i k(x_i, \cdot), \qquad
        \mathbb E f(X) = \langle f, \mu_P \rangle, \qquad \mathrm{MMD}(P, Q) = \|\mu_P - \mu_Q\|.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel, or the name of one, whose width is the median distance.
    shrinkage : float or str or None
        "auto" moves the estimate toward zero by the share of its squared norm that is estimated to be noise; a number
        in [0, 1] is that share; None leaves it.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its width found.
    function_ : RKHSFunction or None
        The embedding; None for a distribution in closed form.
    weights_ : array
        Of the rows, with the sum one; they may be negative.
    shrinkage_ : float
        The share that was taken off.

    References
    ----------
    Muandet et al., *Kernel mean embedding of distributions*, 2017; *Kernel mean shrinkage estimators*, 2016.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> kernel = Gaussian(1.0)
    >>> sample = np.random.default_rng(0).normal(size=(2000, 1))
    >>> estimate, truth = MeanEmbedding(kernel).fit(sample), MeanEmbedding.of((0.0, 1.0), kernel)
    >>> estimate([[0.0]]).round(1), truth([[0.0]]).round(1), estimate.distance(truth) < 0.03
    (array([0.7]), array([0.7]), True)
    """

    def __init__(self, kernel: Any = "gaussian", *, shrinkage: float | str | None = None) -> None:
        self.kernel = kernel
        self.shrinkage = shrinkage

    def fit(self, X: Any, sample_weight: Any = None) -> Self:
        """Embed a sample; weights may be negative, and are divided by their sum."""
        kernel = as_kernel(self.kernel)
        points = sample_points(X, "X", kernel.domain)
        if kernel.domain == "vectors":
            kernel = resolve(kernel.bind(points.names), points)
        weights = sample_weights(sample_weight, len(points), "sample_weight")
        self.weights_ = weights.numpy()
        self.shrinkage_ = self._share(kernel, points, weights)
        self.kernel_: Kernel = kernel
        self.measure_: GaussianMeasure | None = None
        self._points = points
        self.function_: RKHSFunction | None = RKHSFunction(kernel, points, (1.0 - self.shrinkage_) * self.weights_)
        return self

    @classmethod
    def of(cls, distribution: Any, kernel: Any = "gaussian") -> MeanEmbedding:
        """The embedding of a normal distribution with a Gaussian kernel of a known width, in closed form.

        The distribution is a pair (mean, covariance), or a normal one of `torch.distributions` or `scipy.stats`.
        """
        model = cls(kernel)
        model.kernel_, model.measure_ = as_kernel(kernel), GaussianMeasure.of(distribution)
        if isinstance(getattr(model.kernel_, "length_scale", None), str):
            raise InputError("A distribution has no rows to find a width from; give a kernel such as Gaussian(1.0).")
        model.measure_.inner(model.kernel_, model.measure_)  # a kernel that does not fit is refused here
        model.function_, model.shrinkage_ = None, 0.0
        return model

    def __call__(self, X: Any) -> Any:
        """The values of the embedding at the rows of X."""
        self._check_fitted()
        if self.function_ is not None:
            return self.function_(X)
        assert self.measure_ is not None
        return restore(self.measure_.values(self.kernel_, self.kernel_.points(X).values), X)

    def inner(self, other: MeanEmbedding) -> float:
        """The inner product of two embeddings with the same kernel."""
        self._check_alike(other)
        if self.measure_ is not None and other.measure_ is not None:
            return self.measure_.inner(self.kernel_, other.measure_)
        if self.measure_ is not None:
            return other.inner(self)
        assert self.function_ is not None
        if other.function_ is not None:
            return float(self.function_.inner(other.function_))
        values = np.asarray(other(self._points.values))
        return float((1.0 - self.shrinkage_) * self.weights_ @ values)

    def norm(self) -> float:
        """The norm of the embedding."""
        return float(max(self.inner(self), 0.0) ** 0.5)

    def distance(self, other: MeanEmbedding) -> float:
        """The maximum mean discrepancy, the distance of two embeddings."""
        self._check_alike(other)
        if self.function_ is not None and other.function_ is not None:
            return float(self.function_.distance(other.function_))
        squared = self.inner(self) + other.inner(other) - 2.0 * self.inner(other)
        return float(max(squared, 0.0) ** 0.5)

    def expectation(self, function: RKHSFunction) -> Any:
        """The mean of a function of the RKHS under the distribution, <f, mu>."""
        self._check_fitted()
        if not isinstance(function, RKHSFunction):
            raise InputTypeError(f"Expected an RKHSFunction, got {type(function).__name__}.")
        if function.kernel != self.kernel_:
            raise InputError(
                f"The function belongs to the space of {function.kernel!r}, the embedding to that of {self.kernel_!r}."
            )
        if self.function_ is not None:
            return self.function_.inner(function)
        return float(np.asarray(function.coef) @ np.asarray(self(function.X)))

    def characteristic_function(self, frequencies: Any) -> np.ndarray:
        """The characteristic function of the weighted sample at some frequencies: see `characteristic_function`."""
        self._check_fitted()
        if self.function_ is None:
            raise InputError("The characteristic function is estimated from a sample; use fit(X).")
        return characteristic_function(self._points, frequencies, self.weights_)

    def _share(self, kernel: Kernel, points: Any, weights: Tensor) -> float:
        """How much of the estimate's squared norm is noise: the variance of the mean beside its squared norm."""
        if self.shrinkage is None:
            return 0.0
        SHRINKAGE.check("shrinkage", self.shrinkage, True)
        if not isinstance(self.shrinkage, str):
            return float(self.shrinkage)
        sums = pair_sums([kernel], points, weights.unsqueeze(1), dtype=torch.float64)
        squares = float(weights.square().sum())
        if squares >= 1.0:
            return 0.0
        signal = float(sums.forms[0, 0]) / (1.0 - squares)
        spread = float(weights.square() @ sums.diagonal[0]) - squares * signal
        return spread / (spread + max(signal, 0.0)) if spread > 0 else 0.0

    def _check_fitted(self) -> None:
        if not hasattr(self, "kernel_"):
            raise NotFittedError("This MeanEmbedding is not fitted yet: call fit(X) first.")

    def _check_alike(self, other: Any) -> None:
        if not isinstance(other, MeanEmbedding):
            raise InputTypeError(f"Expected a MeanEmbedding, got {type(other).__name__}.")
        self._check_fitted()
        other._check_fitted()
        if self.kernel_ != other.kernel_:
            raise InputError(
                f"The embeddings have different kernels, {self.kernel_!r} and {other.kernel_!r}; give both one with "
                "the same width."
            )

    def __repr__(self) -> str:
        return f"MeanEmbedding({getattr(self, 'kernel_', self.kernel)!r})"
