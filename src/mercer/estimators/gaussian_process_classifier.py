"""Gaussian process classification."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.seeding import as_seed
from mercer.data.sample import Seen
from mercer.estimators.common.base import KernelEstimator, all_or_nothing
from mercer.estimators.common.labels import decoded, encoded
from mercer.estimators.common.samples import checked_rows, checked_sample
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.gaussian_process_classifier_plot import probabilities_plot
from mercer.estimators.gaussian_process_classifier_report import labels_report
from mercer.estimators.gaussian_process_classifier_state import labels_from_state, labels_state
from mercer.files.persistence import register
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.overflow import check_kernel_values
from mercer.operators.placement import Placement
from mercer.processes import Hyperparameters, Maximum, Observations, maximise
from mercer.processes.hyperparameters import FACTOR_REACH
from mercer.processes.laplace import LaplaceEvidence
from mercer.processes.laplace_posterior import LaplacePosterior, check_memory
from mercer.processes.maximise import FEW_ROWS
from mercer.processes.start import Scales, start_kernel

LARGEST_VARIANCE = 100.0
"""Of a latent function while it is learned: a deviation of ten is odds of 20,000 to one. Laplace's evidence can grow
without end where classes are separable, and averages over such functions know nothing."""


@register
class GaussianProcessClassifier(ScoreMixin, ClassifierMixin, KernelEstimator):
    r"""Classification with a Gaussian process: probabilities that know where there are no data.

    Two classes have one latent function with the prior :math:`f \sim GP(0, k)`, more have one each with the same k,

    .. math:: P(y = 1 \mid f) = \frac{1}{1 + e^{-f(x)}}, \qquad P(y = c \mid f) = \frac{e^{f_c(x)}}{\sum_b e^{f_b(x)}}.

    The posterior of f is taken as normal around its mode (Laplace's approximation), jointly for all classes, and
    probabilities are averages over it. `fit` maximises the approximate log marginal likelihood over the logs of all
    tunable parameters of the kernel, by L-BFGS with exact gradients.

    Parameters
    ----------
    kernel : a `Kernel`, its name, or a function of two points. A name stands for a variance times the kernel with a
        length scale for each feature, with start values from the data. A `Kernel` is in the units of the data.
        Functions have mean zero: add a constant to the kernel where some classes are far more frequent.
    n_restarts : number of further, random starts; screened on 500 rows.
    priors : log densities of parameters, by name or path, such as ``{"length_scale": LogNormal(1.0, 1.0)}``.
    bounds : ranges by name or path, ``{"factor": (0.1, 100.0), "period": "fixed"}``, in the units of the data. By
        default a factor of 1,000 either way from the start, of 100,000 for factors of kernels; the variance of a kernel
        given by name is at most 100, odds of 20,000 to one.
    optimize : learn hyperparameters, or keep those given.
    standardize : take start values in units of the deviations of X; else as if they were one already.
    device : "auto", "cpu", "cuda" or a torch device.
    dtype : "float32" or "float64" of kernel values; "auto" is float64.
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free.
    random_state : seed of restarts and subsets.
    max_iter : largest number of L-BFGS iterations.
    verbose : print the progress of learning.

    Attributes
    ----------
    classes_ : the labels, sorted.
    kernel_ : what was learned or given, in the units of the data.
    log_marginal_likelihood_ : of the training labels, by Laplace's approximation.
    optimum_ : the account of the learning, None where nothing was learned.
    n_iter_ : iterations of L-BFGS on all rows, at least 1.
    X_fit_ : the training rows.
    solver_report_ : how the mode was found.
    report_ : what was done and what to worry about.

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
    >>> model = GaussianProcessClassifier(4.0 * Gaussian(1.5), optimize=False).fit(X, list("aaabbb"))
    >>> model.predict([[-1.5], [2.5]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.0], [50.0]]).round(2)  # far from the data nothing is known
    array([[0.21, 0.79],
           [0.5 , 0.5 ]])
    """

    kernel_: Kernel
    log_marginal_likelihood_: float
    optimum_: Maximum | None

    _seen: Seen
    _posterior: LaplacePosterior
    _hyperparameters: Hyperparameters
    _scales: Scales
    _seed: int

    def __init__(
        self,
        kernel: Any = "matern52",
        *,
        n_restarts: int = 2,
        priors: Any = None,
        bounds: Any = None,
        optimize: bool = True,
        standardize: bool = True,
        device: Any = "auto",
        dtype: Any = "auto",
        memory_budget: Any = None,
        random_state: Any = None,
        max_iter: int = 100,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_restarts = n_restarts
        self.priors = priors
        self.bounds = bounds
        self.optimize = optimize
        self.standardize = standardize
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.max_iter = max_iter
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyperparameters from rows X (n, d) and labels y (n,), and condition on these."""
        classes, codes = encoded(y)
        data = checked_sample(self, as_kernel(self.kernel), X, codes.astype(np.float64), None)
        if len(classes) < 2:
            raise InputError(f"y has one class, {classes.tolist()[0]!r}: a classifier needs at least two classes.")
        data = replace(data, rows=self._own(data.rows))
        self.classes_, self._seen, self._seed = classes, data.seen, as_seed(self.random_state)
        pairwise = as_kernel(self.kernel).domain == "matrix"
        observations = Observations(data.rows, data.targets, square=pairwise).to(self._place().device)
        hyper = self._hyperparameters = self._start(data.rows, pairwise)
        learn = self.optimize and hyper.open
        check_memory(len(data.rows), len(classes), learn, self._place())
        self.optimum_ = self._learn(observations) if learn else None
        theta = hyper.start if self.optimum_ is None else self.optimum_.theta
        posterior, likelihood = LaplacePosterior.condition(
            hyper.kernel_at(theta), observations, len(classes), self._place()
        )
        self._restore(posterior, likelihood)
        if not posterior.report.converged:
            warnings.warn(f"GaussianProcessClassifier: {posterior.report}", ConvergenceWarning, stacklevel=3)
        return self

    def predict(self, X: Any) -> Any:
        """The class of largest averaged probability for each row."""
        return decoded(self._probabilities(X).argmax(1), self.classes_, X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of shape (m, classes), averaged over the latent functions.

        Integrals over the normal posterior, exact for two classes; for more the mean over 2,048 fixed points, with an
        error of about 1e-3.
        """
        return self._floating(self._probabilities(X), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, all finite."""
        p = self._probabilities(X)
        return self._floating(p.clamp(min=torch.finfo(p.dtype).tiny).log(), X)

    def latent_mean_and_variance(self, X: Any) -> tuple[Any, Any]:
        """Mean and variance of the latent function at rows X, (m,) for two classes, else (m, classes)."""
        check_is_fitted(self)
        mean, covariance = self._posterior.latent(checked_rows(self, self.kernel_, X))
        variance = covariance.diagonal(dim1=1, dim2=2)
        if len(self.classes_) == 2:
            mean, variance = mean[:, 0], variance[:, 0]
        return self._floating(mean, X), self._floating(variance, X)

    def log_marginal_likelihood(self, kernel: Kernel | None = None) -> float:
        """The approximate log marginal likelihood of the training labels, for another kernel where one is given."""
        check_is_fitted(self)
        if kernel is None:
            return self.log_marginal_likelihood_
        data = self._posterior.data
        other = as_kernel(kernel).bind(data.X.names)
        return LaplacePosterior.condition(other, data, len(self.classes_), self._place())[1]

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return labels_report(self)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """The map of probabilities for two features; else how reliable they are at X, y, or which features matter."""
        check_is_fitted(self)
        return probabilities_plot(self, X, y, ax)

    # Private

    def _start(self, rows: Points, pairwise: bool) -> Hyperparameters:
        """The kernel at its start, in the units of the data, and the box it may move in."""
        spread = Scales.of(rows, torch.ones(1, 1), pairwise).X
        self._scales = Scales(spread, 1.0)
        start = self._scales if self.standardize else Scales.unit(None if spread is None else len(spread))
        kernel, tied = start_kernel(self.kernel, rows, start, self._seed)
        check_kernel_values(kernel, rows)
        bounds = dict(self.bounds or {})
        if isinstance(self.kernel, str):
            factor = kernel.tunable()["factor"]
            bounds.setdefault("factor", (factor / FACTOR_REACH, factor * LARGEST_VARIANCE))
        return Hyperparameters.of(kernel, 0.0, False, bounds=bounds, priors=self.priors, tied=tied)

    def _learn(self, data: Observations) -> Maximum:
        n, classes = len(data), len(self.classes_)
        few = None
        if n > FEW_ROWS:
            order = torch.randperm(n, generator=torch.Generator().manual_seed(self._seed)).to(data.Y.device)
            few = LaplaceEvidence(data.take(order[:FEW_ROWS]), classes, self._hyperparameters, self._place())
        return maximise(
            LaplaceEvidence(data, classes, self._hyperparameters, self._place()),
            few,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            seed=self._seed,
            progress=_print_progress if self.verbose else None,
        )

    def _restore(self, posterior: LaplacePosterior, likelihood: float) -> None:
        """The fitted attributes that a model file holds too."""
        self._posterior, self.kernel_, self.solver_report_ = posterior, posterior.kernel, posterior.report
        self.log_marginal_likelihood_ = likelihood
        self.n_iter_ = 1 if self.optimum_ is None else max(1, len(self.optimum_.history))
        X = posterior.data.X
        if not X.is_tensor:
            self.X_fit_ = X.values
        else:
            self.X_fit_ = X.values.to(self._seen.device) if self._seen.torch_in else X.values.cpu().numpy()

    def _probabilities(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._posterior.probabilities(checked_rows(self, self.kernel_, X))

    def _floating(self, values: Tensor, X: Any) -> Any:
        """As the caller's kind of array, in the precision of X where that is a tensor."""
        values = values.to(X.dtype) if isinstance(X, Tensor) and X.is_floating_point() else values
        return restore(checked_values(values, "Predictions"), X)

    def _place(self) -> Placement:
        seen = self._seen
        device = choose_device(self.device, torch.empty(0, device=seen.device) if seen.torch_in else None)
        dtype = torch.float64 if self.dtype == "auto" else choose_dtype(self.dtype)
        return Placement(device, dtype, self._budget())

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return labels_state(self)

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        return labels_from_state(cls, meta, arrays)


def _print_progress(iteration: int, value: float) -> None:
    print(f"step {iteration}: log marginal likelihood {value:.6g}", flush=True)
