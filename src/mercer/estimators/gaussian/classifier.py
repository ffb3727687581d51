"""Gaussian process classification."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.renamed import renamed
from mercer.core.report import Report
from mercer.data.given import Axes, Budget, ByName, Device, Precision, Rows, Seed, Targets
from mercer.estimators.common.base import KernelEstimator, all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.labels import decoded, encoded
from mercer.estimators.common.refused import refuse_parts
from mercer.estimators.common.samples import checked_rows, checked_sample
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.gaussian.labels_fit import LabelsFit, fit_labels
from mercer.estimators.gaussian.labels_plan import plan_labels
from mercer.estimators.gaussian.labels_plot import labels_plot
from mercer.estimators.gaussian.labels_report import labels_report
from mercer.estimators.gaussian.labels_state import LABELS
from mercer.estimators.gaussian.settings import LearningSettings
from mercer.files.persistence import register
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import KernelLike
from mercer.processes import Maximum
from mercer.processes.laplace_posterior import LaplacePosterior


@register
@renamed(optimize="tune")
class GaussianProcessClassifier(ScoreMixin, ClassifierMixin, KernelEstimator):
    r"""Classification with a Gaussian process: probabilities with uncertainty away from the data.

    Two classes have one latent function with the prior :math:`f \sim GP(0, k)`, more have one each with the same k,

    .. math:: P(y = 1 \mid f) = \frac{1}{1 + e^{-f(x)}}, \qquad P(y = c \mid f) = \frac{e^{f_c(x)}}{\sum_b e^{f_b(x)}}.

    The posterior of f is taken as normal around its mode (Laplace's approximation), jointly for all classes, and
    probabilities are averages over it. `fit` maximises the approximate log marginal likelihood over the logs of all
    tunable parameters of the kernel, by L-BFGS with exact gradients.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name stands for a variance times the kernel with a length
        scale for each feature, with start values from the data. A `Kernel` is in the units of the data. Functions have
        mean zero: add a constant to the kernel where some classes are far more frequent.
    n_restarts : int
        Number of further, random starts; screened on 500 rows.
    priors : dict or None
        Log densities of parameters, by name or path, such as ``{"length_scale": LogNormal(1.0, 1.0)}``.
    bounds : dict or None
        Ranges by name or path, ``{"factor": (0.1, 100.0), "period": "fixed"}``, in the units of the data. By default a
        factor of 1,000 either way from the start, of 100,000 for factors of kernels; the variance of a kernel given by
        name is at most 100, odds of 20,000 to one.
    tune : bool or str
        Whether to learn hyperparameters; else those given are kept. "scale" lets the length scales of a kernel keep
        their ratios, "ard" gives it one for each column.
    standardize : bool
        Take start values in units of the deviations of X; else as if they were one already.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    dtype : str or torch.dtype
        "float32" or "float64" of kernel values; "auto" is float64.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of restarts and subsets.
    max_iter : int
        Largest number of L-BFGS iterations.
    verbose : bool
        Print the progress of learning.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    kernel_ : Kernel
        What was learned or given, in the units of the data.
    log_marginal_likelihood_ : float
        Of the training labels, by Laplace's approximation.
    optimum_ : Maximum or None
        The account of the learning, None where nothing was learned.
    n_iter_ : int
        Iterations of L-BFGS on all rows, at least 1.
    X_fit_ : array of shape (n, d), or list of objects
        The training rows.
    solver_report_ : SolverReport
        How the mode was found.

    Notes
    -----
    Dense matrices in float64: five of size n x n for two classes, about two for each of more. `predict` gives the
    class of largest averaged probability. Uncertainty of the kernel is not part of the probabilities. The mode is
    the function of `KernelClassifier` with ``loss="logistic"`` and ``alpha=0.5``.

    References
    ----------
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, sections 3.4, 3.5 and 5.5.1; Williams and
    Barber, *Bayesian classification with Gaussian processes*, 1998.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0]])
    >>> model = GaussianProcessClassifier(4.0 * Gaussian(1.5), tune=False).fit(X, list("aaabbb"))
    >>> model.predict([[-1.5], [2.5]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.0], [50.0]]).round(2)  # far from the data nothing is known
    array([[0.21, 0.79],
           [0.5 , 0.5 ]])
    """

    classes_: np.ndarray
    kernel_: Kernel
    log_marginal_likelihood_: float
    optimum_: Maximum | None
    saved = LABELS
    _fit: LabelsFit

    def __init__(
        self,
        kernel: KernelLike = "matern52",
        *,
        n_restarts: int = 2,
        priors: ByName = None,
        bounds: ByName = None,
        tune: bool | str = True,
        standardize: bool = True,
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        max_iter: int = 100,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_restarts = n_restarts
        self.priors = priors
        self.bounds = bounds
        self.tune = tune
        self.standardize = standardize
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.max_iter = max_iter
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Rows, y: Targets) -> Self:
        """Learn the hyperparameters from rows X (n, d) and labels y (n,), and condition on these."""
        refuse_parts(self, X)
        settings = LearningSettings.of(self.get_params(deep=False))
        classes, codes = encoded(y)
        sample = checked_sample(self, settings.bare_kernel, X, codes.astype(np.float64), None)
        plan = plan_labels(settings, sample, classes)
        return self._keep(fit_labels(plan, sample))

    def predict(self, X: Rows) -> Any:
        """The class of largest averaged probability for each row."""
        return decoded(self._probabilities(X).argmax(1), self.classes_, X)

    def predict_proba(self, X: Rows) -> Any:
        """Probabilities of shape (m, classes), averaged over the latent functions.

        Integrals over the normal posterior, exact for two classes; for more the mean over 2,048 fixed points, with an
        error of about 1e-3.
        """
        return _given_back(self._probabilities(X), X)

    def predict_log_proba(self, X: Rows) -> Any:
        """Logarithms of the probabilities, all finite."""
        p = self._probabilities(X)
        return _given_back(p.clamp(min=torch.finfo(p.dtype).tiny).log(), X)

    def latent_mean_and_variance(self, X: Rows) -> tuple[Any, Any]:
        """Mean and variance of the latent function at rows X, (m,) for two classes, else (m, classes)."""
        check_is_fitted(self)
        mean, covariance = self._fit.posterior.latent(checked_rows(self, self.kernel_, X))
        variance = covariance.diagonal(dim1=1, dim2=2)
        if len(self.classes_) == 2:
            mean, variance = mean[:, 0], variance[:, 0]
        return _given_back(mean, X), _given_back(variance, X)

    def log_marginal_likelihood(self, kernel: Kernel | None = None) -> float:
        """The approximate log marginal likelihood of the training labels, for another kernel where one is given."""
        check_is_fitted(self)
        if kernel is None:
            return self.log_marginal_likelihood_
        plan, data = self._fit.plan, self._fit.posterior.data
        other = as_kernel(kernel).bind(data.X.names)
        return LaplacePosterior.condition(other, data, len(plan.classes), plan.place)[1]

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return labels_report(self._fit)

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """The map of probabilities for two features; else how reliable they are at X, y, or which features matter."""
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise InputError("plot(X, y): give both, or neither for the training rows.")
        return labels_plot(self._fit, None if X is None else (X, y), self.predict_proba, ax=ax)

    def _probabilities(self, X: Rows) -> Tensor:
        check_is_fitted(self)
        return self._fit.posterior.probabilities(checked_rows(self, self.kernel_, X))

    def _keep(self, fit: LabelsFit, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        posterior, seen = fit.posterior, fit.seen
        if warn:
            warn_if_not_converged("GaussianProcessClassifier", posterior.report)
        self._fit, self.classes_, self.kernel_ = fit, fit.plan.classes, posterior.kernel
        self.solver_report_, self.optimum_ = posterior.report, fit.optimum
        self.log_marginal_likelihood_ = fit.likelihood
        self.n_iter_ = 1 if fit.optimum is None else max(1, len(fit.optimum.history))
        self.X_fit_ = seen.rows_given_back(posterior.data.to(seen.device).X)
        return self


def _given_back(values: Tensor, X: Rows) -> Any:
    """As the caller's kind of array, in the precision of X where that is a tensor."""
    values = values.to(X.dtype) if isinstance(X, Tensor) and X.is_floating_point() else values
    return restore(checked_values(values, "Predictions"), X)
