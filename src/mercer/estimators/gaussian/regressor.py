"""Gaussian process regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, as_points, checked_values, restore
from mercer.core.errors import InputError
from mercer.core.renamed import renamed
from mercer.core.report import Report
from mercer.core.rules import FLAG, Rules, one_of
from mercer.core.seeding import as_seed
from mercer.data.engines import using_engine
from mercer.data.given import Axes, Budget, ByName, Device, Mean, Noise, Order, Precision, Rows, Seed, Targets
from mercer.data.rows import RowSource, is_dask
from mercer.estimators.common.base import KernelEstimator, all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.influence import Influence, most_influential
from mercer.estimators.common.refits import checked_order
from mercer.estimators.common.samples import check_features, checked_rows, checked_sample, source_given
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.common.spread import predicted_later, values_at
from mercer.estimators.gaussian.fit import ProcessFit, fit_process, likelihood_of, with_more
from mercer.estimators.gaussian.intervals import interval_width, with_forecasts
from mercer.estimators.gaussian.noise import one_variance
from mercer.estimators.gaussian.plan import plan_process
from mercer.estimators.gaussian.plot import components_plot, process_plot
from mercer.estimators.gaussian.prior import prior_for_samples, prior_functions
from mercer.estimators.gaussian.report import process_report
from mercer.estimators.gaussian.settings import ProcessSettings
from mercer.estimators.gaussian.state import PROCESS
from mercer.estimators.gaussian.streamed import fit_source, mean_and_std_of
from mercer.files.persistence import register
from mercer.functions import RKHSFunction
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import KernelLike
from mercer.processes import LeaveOneOut, Maximum
from mercer.processes.calibration import IntervalCalibration
from mercer.processes.components import terms_of
from mercer.processes.dials import LEVELS
from mercer.processes.joint import joint_samples
from mercer.processes.label_weights import label_weights
from mercer.processes.methods import METHODS
from mercer.processes.pathwise import Functions, PosteriorFunctions
from mercer.processes.posterior_kernel import PosteriorKernel, WhitenedCross
from mercer.processes.prior_functions import PriorFunctions


@register
@renamed(optimize="tune", n_inducing="n_landmarks")
class GaussianProcessRegressor(ScoreMixin, MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Regression with a Gaussian process: predictions with their uncertainty, hyperparameters from the data.

    The function has the prior :math:`f \sim GP(m, k)` and is seen with noise, :math:`y = f(x) + \varepsilon`. With
    :math:`A = K + \Sigma` the posterior is the process with mean and covariance

    .. math:: \mu(x) = m(x) + k(x, D) A^{-1} (y - m_D), \qquad
        c(x, x') = k(x, x') - k(x, D) A^{-1} k(D, x').

    `fit` maximises the log marginal likelihood over the logs of all tunable parameters of the kernel and of the noise,
    by L-BFGS with exact gradients. The mean equals `KernelRidge` with ``alpha=noise``.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name stands for a signal variance times the kernel with a
        length scale for each feature, with start values from the data. A `Kernel` is in the units of the data. "auto"
        takes that of "matern52", "matern32" and "laplace_l1" of which the data have the greatest evidence.
    mean : str, float or callable
        "zero", "constant", "linear", a number or a function of rows. Coefficients of "constant" and "linear" are those
        of greatest likelihood, found in closed form (generalised least squares) with every fit. "auto" takes the linear
        mean if on some rows the likelihood pays for its coefficients, else the constant; the report says why.
    noise : float, array-like of shape (n,), or str
        Variance of the noise: "learn", a number, or one for each row. Zero interpolates.
    method : str
        "exact" (Cholesky), "iterative" (conjugate gradients), "sgpr" (inducing points, an approximation), or "auto":
        exact where its matrices fit the memory budget, else iterative; the report says which.
    n_restarts : int
        Number of further, random starts; screened on 500 rows.
    priors : dict or None
        Log densities of parameters, by name or path, such as ``{"length_scale": LogNormal(1.0, 1.0)}``; they are added
        to the log likelihood. See `mercer.processes`.
    bounds : dict or None
        Ranges by name or path, ``{"noise": (1e-4, 1.0), "period": "fixed"}``, in the units of the data. By default a
        factor of 1,000 either way from the start, of 100,000 for the signal and upwards for length scales; the noise is
        between 1e-6 and 10 times the variance of y.
    tune : bool or str
        Whether to learn hyperparameters; else those given are kept. "scale" lets the length scales of a kernel keep
        their ratios, "ard" gives it one for each column.
    standardize : bool
        Take start values in units of the deviations of X and y; else as if both had deviation one already. Several
        targets are in addition brought to one size. Everything is reported in the units of the data.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    dtype : str or torch.dtype
        "float32" or "float64" of kernel values; "auto" is float64 for the exact method.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of restarts, subsets and samples.
    n_landmarks : int or None
        Number of landmarks (inducing points) of "sgpr"; None for 500.
    n_learn : int or None
        Rows whose likelihood the hyperparameters maximise, random ones and their nearest neighbours; None for all but
        those that repeat others in X and y, which would make the noise look small (a number of at least n learns from
        these too). The process is conditioned on all rows in any case. Of very many rows some thousands tell nearly as
        much.
    max_iter : int
        Largest number of L-BFGS iterations.
    verbose : bool
        Print the progress of learning.

    Attributes
    ----------
    kernel_, noise_ : Kernel, float
        What was learned or given, in the units of the data. A `GaussianProcessRegressor` with these, ``tune=False`` and
        the same mean predicts the same. With several targets, they are those of each target divided by its
        `target_scale_`.
    target_scale_ : array
        What each target is divided by so that one kernel serves all, of mean square one; 1 for one target.
    log_marginal_likelihood_ : float
        Of the training data.
    optimum_ : Maximum or None
        The account of the learning, None where nothing was learned.
    solver_report_ : SolverReport
        How the weights of the posterior were found.
    n_iter_ : int
        Iterations of L-BFGS on all rows that are learned from, at least 1.
    X_fit_ : array of shape (n, d), or list of objects
        The training rows.
    posterior_kernel_ : Kernel
        The covariance of the posterior, a `Kernel`.

    Notes
    -----
    ``latent=False``, the default everywhere, is about new observations y, noise included; ``latent=True`` about the
    function f itself. Where the noise was given for each row, a new observation has the mean of these. Several targets
    are independent processes that share kernel and noise. Uncertainty of kernel, noise and mean is not part of the
    predictions.

    References
    ----------
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, chapters 2 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
    >>> model = GaussianProcessRegressor().fit(X, np.sin(X).ravel())
    >>> mean, std = model.predict([[1.5], [60.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.01), bool(std[0] < 0.05 < std[1])
    (True, True)
    """

    saved = PROCESS
    own_rules: ClassVar[Rules] = {"method": one_of("auto", *METHODS)}
    kernel_: Kernel
    noise_: Any
    log_marginal_likelihood_: float
    optimum_: Maximum | None
    target_scale_: np.ndarray
    _fit: ProcessFit

    def __init__(
        self,
        kernel: KernelLike = "matern52",
        *,
        mean: Mean = "constant",
        noise: Noise = "learn",
        method: str = "auto",
        n_restarts: int = 2,
        priors: ByName = None,
        bounds: ByName = None,
        tune: bool | str = True,
        standardize: bool = True,
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        n_landmarks: int | None = None,
        n_learn: int | None = None,
        max_iter: int = 100,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.noise = noise
        self.method = method
        self.n_restarts = n_restarts
        self.priors = priors
        self.bounds = bounds
        self.tune = tune
        self.standardize = standardize
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_landmarks = n_landmarks
        self.n_learn = n_learn
        self.max_iter = max_iter
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, order: Order = None) -> Self:
        """Learn the hyperparameters from rows X (n, d) and targets y, (n,) or (n, t), and condition on these.

        A `RowSource`, which has both, or Dask collections are read in parts: hyperparameters and inducing points come
        from 20,000 rows, drawn at random, and the process is conditioned on all rows in one pass, by "sgpr".

        `order` tells how rows follow each other in time: one number, date or text for each. It changes no prediction,
        but `predict_interval` then takes its width from forecasts of later rows from earlier ones.
        """
        settings = ProcessSettings.of(self.get_params(deep=False))
        source = source_given(self, X, y, order=order)
        if source is not None:
            with using_engine(None, source) as engine:
                return self._keep(fit_source(settings, source, engine))
        sample = checked_sample(self, settings.bare_kernel, X, y, None)
        ranks = checked_order(order, len(sample))
        plan = plan_process(settings, sample)
        return self._keep(replace(fit_process(plan, sample), order=ranks))

    @all_or_nothing
    def partial_fit(self, X: Rows, y: Targets, noise: Noise | None = None) -> Self:
        """Add rows with kernel and noise fixed; same result as refitting on all rows.

        `noise` gives the variances of the new rows where `fit` was given one for each. The first call is a `fit`.
        """
        if not hasattr(self, "kernel_"):
            if noise is not None:
                raise InputError(
                    "The first call of partial_fit fits the model: pass noise= to the constructor instead."
                )
            return self.fit(X, y)
        sample = checked_sample(self, self.kernel_, X, y, None, reset=False)
        return self._keep(with_more(self._fit, sample, noise))

    def predict(
        self,
        X: Rows,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
        noise: Noise | None = None,
    ) -> Any:
        """The mean at rows X, of shape (m,) or (m, t), with standard deviations or covariances where asked for.

        Deviations have the shape of the mean; covariances are (m, m), or (m, m, t). They are those of observations y,
        or with ``latent=True`` of the function, which has no noise. `noise` gives the variance of each new observation;
        by default they have the noise of the model.
        """
        check_is_fitted(self)
        _check_flags(return_std=return_std, return_cov=return_cov, latent=latent)
        if return_std and return_cov:
            raise InputError("predict(return_std=True, return_cov=True): ask for one of the two.")
        if isinstance(X, RowSource):
            check_features(self, X)
            if return_cov or noise is not None:
                raise InputError("return_cov= and noise= are for rows in memory: pass arrays.")
            if return_std:
                return tuple(values.numpy() for values in mean_and_std_of(self._fit, X, latent=latent))
            return values_at(self._fit, X, None, verbose=self.verbose).numpy()
        if is_dask(X) and not (return_std or return_cov):
            seen = self._fit.seen
            return predicted_later(self, X, np.empty((0,) if seen.one_target else (0, seen.n_targets)))
        rows = checked_rows(self, self.kernel_, X)
        if return_std:
            mean, std = self._fit.mean_and_std(rows, latent=latent, noise=noise)
            return _given_back(mean, rows, X), _given_back(std, rows, X)
        mean = _given_back(self._fit.mean(rows), rows, X)
        if return_cov:
            return mean, _given_back(self._fit.covariance(rows, latent=latent, noise=noise), rows, X)
        return mean

    def predict_component(self, X: Rows, component: int, return_std: bool = False) -> Any:
        r"""The mean of one part of the function at rows X where the kernel is a sum, with its deviations if asked for.

        With :math:`k = \sum_j k_j` the function is a sum of independent parts, and given the data

        .. math:: \mu_j(x) = k_j(x, D) A^{-1} (y - m_D), \qquad
            \sigma_j^2(x) = k_j(x, x) - k_j(x, D) A^{-1} k_j(D, x).

        The means of all parts and the mean function add up to `predict`. `components_` lists the kernels of the parts.

        References: Duvenaud, *Automatic model construction with Gaussian processes*, 2014, section 2.4.5.

        >>> from mercer.kernels import Gaussian, Periodic
        >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
        >>> model = GaussianProcessRegressor(1.0 * Gaussian(3.0) + 1.0 * Periodic(period=1.0), mean="zero")
        >>> model = model.fit(X, 0.1 * X[:, 0] ** 2 + np.sin(2 * np.pi * X[:, 0]))
        >>> parts = [model.predict_component(X, j) for j in range(len(model.components_))]
        >>> bool(np.allclose(sum(parts), model.predict(X)))
        True
        """
        check_is_fitted(self)
        rows = checked_rows(self, self.kernel_, X)
        mean, std = (_given_back(values, rows, X) for values in self._fit.component(rows, component))
        return (mean, std) if return_std else mean

    @property
    def components_(self) -> tuple[Kernel, ...]:
        """The kernels that `kernel_` is a sum of."""
        check_is_fitted(self)
        return terms_of(self.kernel_)

    def predict_interval(
        self,
        X: Rows,
        level: float = 0.95,
        latent: bool = False,
        calibrated: bool | str = "auto",
        noise: Noise | None = None,
    ) -> tuple[Any, Any]:
        """The ends of the central interval that holds an observation (the function for `latent`) with that probability.

        Default: mean +- z std. If leave-one-out coverage is clearly off, z is replaced by an empirical quantile.
        ``calibrated=False`` always takes z, the normal quantile. ``calibrated=True`` always takes the empirical
        quantile: the number of deviations within which the share `level` of the training observations lie, each
        predicted from all others. For rows like those of the training data such intervals have the right coverage on
        average, though wide ones may make up for narrow ones elsewhere. "auto" keeps z unless clearly fewer or more of
        these observations than promised are inside intervals of 50, 80, 90, 95 or 99% (less than 93% or more than 97%
        for level 0.95), and always for `latent`, fewer than 20 rows, and methods without an exact factor; after a call,
        `report()` says what was found. Rows that have copies do not count as left out. The first calibrated call of a
        model costs about as much as one evaluation of its likelihood. Where `fit` was given `order=`, the number of
        deviations is that which holds later blocks of rows forecast from all earlier ones. `noise` gives the
        variance of each new observation, as in `predict`.

        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.0, 1.0]
        >>> low, high = GaussianProcessRegressor().fit(X, y).predict_interval([[1.5]], level=0.9)
        >>> bool(low[0] < 0.5 < high[0])
        True
        """
        check_is_fitted(self)
        if calibrated and not latent:
            self._fit = with_forecasts(self._fit)
        reach = interval_width(self._fit, level, latent, calibrated)
        mean, std = self.predict(X, return_std=True, latent=latent, noise=noise)
        reach = torch.as_tensor(reach).to(mean) if isinstance(mean, Tensor) else np.asarray(reach, dtype=mean.dtype)
        return mean - reach * std, mean + reach * std

    def sample_y(self, X: Rows, n_samples: int = 1, random_state: Seed = None, latent: bool = False) -> Any:
        """Joint samples at rows X, of shape (m, n_samples), or (m, t, n_samples): of the prior before `fit`.

        Of observations y, or with ``latent=True`` of the function. Costs m^3 steps; for many points use
        `sample_functions`.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise InputError(f"sample_y(n_samples={n_samples!r}): must be an integer >= 1.")
        seed = as_seed(self.random_state if random_state is None else random_state)
        if hasattr(self, "kernel_"):
            rows, one_target = checked_rows(self, self.kernel_, X), self._fit.seen.one_target
            mean, covariance, prior, scale = self._fit.for_samples(rows, latent=latent)
        else:
            settings = ProcessSettings.of(self.get_params(deep=False))
            rows, one_target = settings.bare_kernel.points(X), True
            mean, covariance, prior, scale = prior_for_samples(settings, rows, latent=latent)
        values = joint_samples(mean, covariance, int(n_samples), seed, prior) * scale.to(mean).unsqueeze(-1)
        return _given_back(values.squeeze(1) if one_target else values, rows, X)

    def sample_functions(self, n: int = 1, random_state: Seed = None) -> Functions:
        """Functions drawn from the posterior, from the prior before `fit`: one callable that gives (n, m) values.

        They are functions f without noise, known everywhere: the same ones at each call, differentiable for torch
        input, at a cost linear in the number of points (Matheron's rule). For several targets (n, m, t).

        >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
        >>> functions = GaussianProcessRegressor().fit(X, np.sin(X).ravel()).sample_functions(3)
        >>> functions([[0.5], [1.0]]).shape
        (3, 2)
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InputError(f"sample_functions(n={n!r}): must be an integer >= 1.")
        seed = as_seed(self.random_state if random_state is None else random_state)
        if not hasattr(self, "kernel_"):
            settings = ProcessSettings.of(self.get_params(deep=False))
            return Functions(int(n), as_points, prior_functions(settings, int(n), seed))
        fit = self._fit
        prior = PriorFunctions.draw(self.kernel_, fit.posterior.data.X, int(n) * fit.seen.n_targets, seed)
        functions = PosteriorFunctions(fit.posterior, prior, seed + 1)

        def as_rows(X: Rows) -> Points:
            return checked_rows(self, self.kernel_, X)

        return Functions(int(n), as_rows, lambda rows: fit.scaled(functions(rows)))

    @property
    def posterior_kernel_(self) -> Kernel:
        """The covariance of the posterior (of the function, without noise) as an ordinary kernel.

        With several targets it is that of each divided by its `target_scale_`.
        """
        check_is_fitted(self)
        posterior = self._fit.exact("posterior_kernel_")
        return PosteriorKernel(self.kernel_, WhitenedCross(self.kernel_, posterior.data.X, posterior.factor.L))

    def log_marginal_likelihood(self, kernel: Kernel | None = None, noise: Noise | None = None) -> float:
        """The log marginal likelihood of the training data, for another kernel or another variance of the noise.

        That is the variance all rows share; where each row was given its own, it is added to these.
        """
        check_is_fitted(self)
        if kernel is None and noise is None:
            return self.log_marginal_likelihood_
        plan, posterior = self._fit.plan, self._fit.posterior
        shared = posterior.noise if noise is None else one_variance(noise)
        k = self.kernel_ if kernel is None else as_kernel(kernel).bind(posterior.data.X.names)
        return likelihood_of(plan, plan.method.posterior(k, shared, posterior.data, posterior.mean_function.mean))

    @property
    def function_(self) -> RKHSFunction:
        """The posterior mean less the mean function, an element of the RKHS of `kernel_`."""
        check_is_fitted(self)
        posterior = self._fit.posterior
        return RKHSFunction(self.kernel_, posterior.centres, self._fit.scaled(posterior.weights).detach().cpu().numpy())

    def influential(self, X: Rows, k: int = 10) -> Influence:
        """The `k` training rows behind each prediction: those whose observations count most in the mean.

        >>> from mercer.kernels import Gaussian
        >>> model = GaussianProcessRegressor(Gaussian(0.5), noise=0.01, tune=False)
        >>> int(model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).influential([[0.9]], k=1).rows[0, 0])
        1
        """
        check_is_fitted(self)
        posterior, rows = self._fit.exact("influential"), checked_rows(self, self.kernel_, X)
        observed = self._fit.scaled(posterior.data.Y).cpu().numpy()
        return most_influential(label_weights(posterior, rows).detach().cpu().numpy(), observed, k)

    def loo(self) -> LeaveOneOut:
        """Mean, deviation and log density of each training observation given all others, in closed form."""
        check_is_fitted(self)
        return self._fit.leave_one_out()

    def calibration(self, X: Rows, y: Targets, levels: Sequence[float] = LEVELS) -> IntervalCalibration:
        """Check the coverage of intervals at rows X with observations y; `plot` shows it."""
        mean, std = self.predict(X, return_std=True)
        y, mean, std = (v.detach().cpu().numpy() if isinstance(v, Tensor) else np.asarray(v) for v in (y, mean, std))
        return IntervalCalibration.of(y, mean, std, levels)

    def gradient(self, X: Rows, of: str = "mean") -> Any:
        """The derivative of the posterior mean in x, of shape (m, d), or (m, t, d); ``of="std"`` that of the deviation.

        The deviation is that of the function; its derivative does not exist where it is zero.
        """
        check_is_fitted(self)
        one_of("mean", "std").check("of", of, False)
        rows = checked_rows(self, self.kernel_, X)
        return _given_back(self._fit.slope(rows, of), rows, X)

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return process_report(self._fit)

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None, n_samples: int = 3) -> Any:
        """Data, mean, band and samples for one feature, maps of mean and deviation for two.

        For more features the relevance of each, or predicted against actual values at X, y.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise InputError("plot(X, y): give both, or neither for the training rows.")
        given = None if X is None else (X, y)
        return process_plot(self._fit, given, self.predict, n_samples=n_samples, ax=ax)

    def plot_components(self, axes: Sequence[Axes] | None = None) -> Any:
        """The parts of a function of one feature whose kernel is a sum, each with a band of two deviations.

        `axes` are one for each part, those of a new figure when None; returns these.
        """
        check_is_fitted(self)
        return components_plot(self._fit, axes)

    def _keep(self, fit: ProcessFit, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        posterior, seen = fit.posterior, fit.seen
        if warn:
            warn_if_not_converged("GaussianProcessRegressor", posterior.report)
        self._fit, self.kernel_, self.noise_ = fit, posterior.kernel, fit.noise
        self.log_marginal_likelihood_, self.optimum_ = fit.likelihood, fit.optimum
        self.solver_report_ = posterior.report
        self.n_iter_ = 1 if fit.optimum is None else max(1, len(fit.optimum.history))
        self.target_scale_ = fit.plan.target_scale.cpu().numpy()
        self.X_fit_ = seen.rows_given_back(posterior.data.to(seen.device).X)
        return self


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        FLAG.check(name, value, False)


def _given_back(values: Tensor, rows: Points, X: Rows) -> Any:
    """Values as the caller's kind of array, in the precision of the rows."""
    values = values.to(rows.values) if rows.is_tensor else values
    return restore(checked_values(values, "Predictions"), X)
