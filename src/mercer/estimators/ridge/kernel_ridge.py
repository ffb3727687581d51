"""Kernel ridge and ridgeless regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.rules import Rules
from mercer.data.engines import using_engine
from mercer.data.given import (
    Alpha,
    Axes,
    Budget,
    Device,
    Landmarks,
    Numbers,
    Order,
    Path,
    Precision,
    Rows,
    Seed,
    Targets,
    Weights,
)
from mercer.data.rows import RowSource, is_dask
from mercer.estimators.common.available import available_if
from mercer.estimators.common.base import WithClient, all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.influence import Influence, most_influential
from mercer.estimators.common.parts import rows_to_sample, same_setting
from mercer.estimators.common.refits import checked_order
from mercer.estimators.common.samples import (
    check_features,
    checked_rows,
    checked_sample,
    features_to_draw,
    rows_to_calibrate,
    sampled,
    source_given,
)
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.common.spread import predicted_later, values_at
from mercer.estimators.dials import TOL
from mercer.estimators.ridge.alpha import planned, planned_first, planned_source
from mercer.estimators.ridge.few import solve_few, solve_source, with_more
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.flow import values_at as values_at_times
from mercer.estimators.ridge.flow import with_flow
from mercer.estimators.ridge.forecast import ridge_diagnostics, ridge_forecasters
from mercer.estimators.ridge.full import solve_full
from mercer.estimators.ridge.intervals import held_out, interval, with_left_out_predictions
from mercer.estimators.ridge.left_out import label_weights, with_left_out
from mercer.estimators.ridge.plan import continued
from mercer.estimators.ridge.plot import ridge_plot
from mercer.estimators.ridge.primal import dual_coefficients
from mercer.estimators.ridge.report import ridge_report
from mercer.estimators.ridge.settings import FIXED, RidgeSettings
from mercer.estimators.ridge.state import RIDGE
from mercer.files.persistence import register
from mercer.functions import RKHSFunction
from mercer.functions.sums import FeatureSum
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike
from mercer.solvers.registry import RIDGE_SOLVERS, SolverLike, merges
from mercer.theory import Forecaster, curve_of, samples_needed

FITTED = ("dual_coef_", "X_fit_", "coef_", "features_", "t_", "equivalent_alpha_", "stopping_time_")


@register
class KernelRidge(ScoreMixin, MultiOutputMixin, RegressorMixin, WithClient):
    r"""Least-squares regression in the RKHS of a kernel.

    Finds :math:`f = \sum_i c_i k(x_i, \cdot)` and the intercept b that minimise

    .. math:: \sum_i w_i (y_i - f(x_i) - b)^2 + \alpha \|f\|_k^2,
        \qquad (K + \alpha W^{-1}) c + b = y, \quad \sum_i c_i = 0,

    with ``fit_intercept=False`` :math:`(K + \alpha W^{-1}) c = y`; and at ``alpha=0`` the interpolant of smallest norm,
    also when K is singular.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name has `length_scale="auto"`. "auto" is the
        Laplace kernel; where it is tuned, the best of several kernels at rows that the tuning had not seen.
    alpha : float, array-like of shape (t,) or str
        Ridge: a number >= 0, one per target, or a word to choose it for each target: "loo" by leave-one-out,
        "gcv" by generalised cross-validation, both from one eigendecomposition of all rows. "auto" is "loo" up
        to 2,000 distinct rows; above, it is the alpha of 2,000 of them, drawn at random, and the solver is that
        of a number. Descents then have alpha = 0 and stop by rows held out; `partial_fit` looks at its first
        rows.
    alphas : array-like or None
        The path that these words search; by default 30 values relative to the largest eigenvalue.
    fit_intercept : bool
        Whether to add an intercept without penalty, so that y + 1000 is fitted as y is. False is the textbook's
        formula and the problem of scikit-learn's KernelRidge.
    tune : bool or str
        Fit the kernel's parameters too, by the gradient of the leave-one-out error: "scale" finds one factor
        for the length scales of a kernel, "ard" a length scale for each column. True takes the better of the
        two at rows that the tuning had not seen, the one with fewer numbers where they are alike, or none. At
        most 1,000 rows teach; then all are fitted, or added up on landmarks.
    solver : str or solver object
        "auto" decides by the size of the job and says why. A coefficient for every row: "cholesky", "eigh",
        "mixed_cholesky" (half of the memory, well-conditioned systems only), and without storing the Gram
        matrix "pcg" (conjugate gradients), "eigenpro" and "gd" (gradient methods with early stopping), "flow"
        (gradient flow in closed form, whose stopping time takes the place of alpha). On landmarks: "nystrom"
        (one pass over the rows) and "falkon" (iterations, for many landmarks). "random_features". "primal"
        works in the features of the kernel itself, where these are few (`Linear`, `Polynomial`, `FeatureMap`):
        the exact fit, by sums over the rows. Or a solver object of `mercer.solvers` with options of its own,
        such as ``PCG(rank=200, tol=1e-8)``.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    dtype : str or torch.dtype
        "float32" or "float64" of kernel values; systems are solved in float64. "auto" is float64, but float32
        for float32 data where a solver iterates with products ("pcg", "falkon", "eigenpro", "gd").
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the subsamples that medians and tuning use on large data, and of the solvers.
    tol : float
        Largest relative residual of an iterative solver.
    max_iter : int or None
        Its largest number of iterations, epochs for "eigenpro"; None for the solver's own.
    n_landmarks : int or None
        Of "nystrom" and "falkon"; by default 4 sqrt(n), between 500 and 4000.
    landmarks : str or array-like of shape (m, d)
        "uniform", "pivoted", "leverage", or an array of points; see `mercer.solvers.choose_landmarks`.
    n_features : int or None
        Of "random_features", 1000 by default.
    checkpoint : str, path or None
        Path of a file that keeps the state of a fit to a `RowSource`; the same fit goes on from there after
        whatever ended it, and removes the file when it is done.
    client : dask.distributed.Client, str or None
        A `dask.distributed.Client`, or the address of a Dask scheduler, whose workers read and work on the rows
        of a `RowSource`. A client stays open; with an address each call connects and disconnects. Rows of a
        Dask collection are worked on by the client that is active without being asked.
    verbose : bool
        Print the progress of tuning, of passes and of iterations.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter found.
    alpha_, lambda_ : float or array of shape (t,)
        The ridge, and the ridge of the averaged loss, alpha divided by the total weight.
    dual_coef_ : array of shape (n,) or (n, t)
        The coefficients c, of shape (n,) or (n, t); one for each landmark when there are landmarks.
    X_fit_ : array of shape (n, d), or list of objects
        The points of those coefficients: training rows or landmarks.
    coef_, features_ : array and feature map
        The coefficients and the map of features: instead of these for "random_features", beside them for
        "primal".
    function_, intercept_ : RKHSFunction and float or array of shape (t,)
        The fitted `RKHSFunction`, and what is added to it, one number for each target.
    solver_report_ : SolverReport
        How the system was solved.
    n_iter_ : int
        Iterations of the solver, 1 for a direct one.
    alpha_path_ : AlphaPath or None
        Errors along the path when alpha was chosen, else None.
    t_, equivalent_alpha_, stopping_time_ : float or array of shape (t,); float or array of shape (t,); StoppingTime
        For "flow" the time at which it stopped, one for each target, the ridge W / (2 t) that acts much like
        it, and how it was chosen (`mercer.solvers.StoppingTime`).
    tuning_ : Tuned or None
        The account of the tuning (`mercer.selection.Tuned`), else None.

    References
    ----------
    Saunders, Gammerman and Vovk, *Ridge Regression Learning Algorithm in Dual Variables*, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = KernelRidge("gaussian", alpha=1e-3).fit(X, np.sin(X).ravel())
    >>> print(round(model.score(X, np.sin(X).ravel()), 3))
    1.0
    """

    saved = RIDGE
    own_rules: ClassVar[Rules] = {"solver": solver_rule(RIDGE_SOLVERS)}
    kernel_: Kernel
    _fit: RidgeFit

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        alpha: Alpha = "auto",
        alphas: Numbers | None = None,
        fit_intercept: bool = True,
        tune: bool | str = False,
        solver: SolverLike = "auto",
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        tol: float = TOL,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Landmarks = "uniform",
        n_features: int | None = None,
        checkpoint: Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.tune = tune
        self.solver = solver
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.n_features = n_features
        self.checkpoint = checkpoint
        self.client = client
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None, order: Order = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,) or (n, t), or to a `RowSource` that has both.

        `order` tells how rows follow each other in time: one number, date or text for each. It changes no prediction,
        but `predict_interval` and `report` then go by forecasts of later rows from earlier ones. X, y and
        `sample_weight` may be Dask arrays or data frames; y may then name a column of X.
        """
        settings = RidgeSettings.of(self.get_params(deep=False))
        source = source_given(self, X, y, sample_weight, order)
        if source is not None:
            with using_engine(settings.client, source) as engine:
                some = sampled(source, rows_to_sample(settings, source), settings.seed, engine)
                plan, tuning = planned_source(settings, source, some)
                return self._keep(solve_source(plan, source, some, engine, tuning))
        sample = checked_sample(self, settings.kernel, X, y, sample_weight)
        ranks = checked_order(order, len(sample))
        plan, tuning = planned(settings, sample)
        solve = solve_full if plan.traits.sums_of == "rows" else solve_few
        return self._keep(replace(solve(plan, sample, tuning), order=ranks))

    @available_if(lambda self: merges(self.solver))
    @all_or_nothing
    def partial_fit(self, X: Rows, y: Targets, sample_weight: Weights = None) -> Self:
        """Add rows to a fit on landmarks or random features; the result is that of one fit to all rows so far.

        For ``solver="nystrom"`` and ``"random_features"``. The first call decides the kernel's length scales, alpha
        and the landmarks, unless they are given, from its own rows. With all given, the order of calls does not matter.
        """
        settings, begun = RidgeSettings.of(self.get_params(deep=False)), getattr(self, "_fit", None)
        if begun is not None:
            _check_continued(begun, settings)
        sample = checked_sample(self, settings.kernel, X, y, sample_weight, reset=begun is None)
        if isinstance(settings.alpha, str) and not settings.automatic:
            raise InputError(
                f'alpha={settings.alpha!r}: partial_fit needs a number, or "auto", which is chosen from the '
                "first rows. To choose from all rows, use fit."
            )
        plan = planned_first(settings, sample) if begun is None else continued(begun.plan, settings, sample)
        return self._keep(with_more(begun, plan, sample))

    def predict(self, X: Rows, t: Numbers | None = None) -> Any:
        """Predictions for the rows of X, or of a `RowSource`, of shape (m,) or (m, t), in the dtype of X.

        For a Dask array or data frame a Dask array, which is computed when it is asked for. With ``solver="flow"``, `t`
        asks for another time than the one at which the fit stopped, infinity among them; a list of times adds a first
        dimension to the shape.
        """
        check_is_fitted(self)
        if t is not None:
            return self._predict_at(X, t)
        fit = self._fit
        if is_dask(X):
            return predicted_later(self, X, np.empty((0,) if fit.seen.one_target else (0, fit.seen.n_targets)))
        if isinstance(X, RowSource):
            check_features(self, X)
            return values_at(fit, X, self.client, verbose=self.verbose).numpy()
        rows = checked_rows(self, self.kernel_, X)
        values = fit.values(rows)
        values = values.to(rows.values.dtype) if rows.is_tensor else values
        return restore(checked_values(values, "Predictions"), X)

    def _predict_at(self, X: Rows, t: Numbers) -> Any:
        fit = with_flow(self._fit)
        if is_dask(X) or isinstance(X, RowSource):
            raise InputError("predict(t=...) takes rows in memory: pass arrays.")
        rows, self._fit = checked_rows(self, self.kernel_, X), fit
        values = values_at_times(fit, rows, t)
        return restore(checked_values(values.to(rows.values.dtype) if rows.is_tensor else values, "Predictions"), X)

    def predict_interval(
        self, X: Rows, level: float = 0.9, method: str = "residuals", calibrate: tuple[Any, Any] | None = None
    ) -> tuple[Any, Any]:
        r"""The ends of intervals that hold the target of a new row with probability `level`, each (m,) or (m, t).

        With the errors :math:`e_i = y_i - f_{-i}(x_i)` of fits that have not seen the row, they are

        .. math:: f(x) \pm q, \qquad q = \text{the } \lceil (n + 1)\, p \rceil\text{-th smallest } |e_i|.

        Errors are those of leave-one-out; after ``tune=True`` of fits to other folds, tuned anew, since the kernel has
        seen every row; and where `fit` was given `order=`, of forecasts of later blocks of rows from all earlier ones,
        since a row between its neighbours says nothing of what comes after the last one.

        Parameters
        ----------
        X : array-like of shape (m, d), data frame, or list of objects
            Rows to predict.
        level : float
            The share of new rows inside; for rows like those of the training.
        method : str
            "residuals", or "jackknife+", which takes the spread of the functions fitted without a row into account and
            factorises the matrix again: quantiles of :math:`f_{-i}(x) \pm |e_i|`, inside for a share of at least
            :math:`2p - 1` whatever the data.
        calibrate : tuple or None
            Rows and targets that the model has not seen, (X, y), to take the errors from instead.

        References
        ----------
        Barber, Candes, Ramdas and Tibshirani, *Predictive inference with the jackknife+*, 2021.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 6, size=(1000, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=1000)
        >>> low, high = KernelRidge("gaussian", alpha="loo").fit(X[:400], y[:400]).predict_interval(X[400:])
        >>> print(round(float(((low <= y[400:]) & (y[400:] <= high)).mean()), 1))
        0.9
        """
        check_is_fitted(self)
        rows, fit = checked_rows(self, self.kernel_, X), self._fit
        if calibrate is not None:
            fit = replace(fit, left_out=held_out(fit, *rows_to_calibrate(self, self.kernel_, calibrate)))
        elif method == "residuals":
            fit = self._fit = with_left_out_predictions(fit)
        ends = interval(fit, rows, level, method)
        low, high = (end.to(rows.values.dtype) if rows.is_tensor else end for end in ends)
        return restore(checked_values(low, "Intervals"), X), restore(checked_values(high, "Intervals"), X)

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function without its intercept, an element of the RKHS."""
        check_is_fitted(self)
        function = self._fit.function
        if isinstance(function, FeatureSum):
            if self._fit.sample is None:
                raise AttributeError("The fit has coefficients of features, not of points; use predict().")
            return RKHSFunction(self.kernel_, Points(self._fit.sample.rows.values), self.dual_coef_)
        return RKHSFunction(self.kernel_, Points(function.centres.values), self.dual_coef_)

    @property
    def loo_predictions_(self) -> Any:
        """For each training row the prediction of the model fitted without it (without one unit of its weight)."""
        check_is_fitted(self)
        self._fit = with_left_out(self._fit)
        assert self._fit.loo is not None
        return self._fit.seen.given_back(checked_values(self._fit.loo, "Leave-one-out predictions"))

    def label_weights(self, X: Rows) -> Any:
        r"""The weights of the training labels in each prediction, of shape (m, n); (m, n, t) with one alpha per target.

        .. math:: f(x) = \sum_i w_i(x) y_i, \qquad w(x) = (K + \alpha W^{-1})^{-1} k(X, x).

        With an intercept they sum to one for each prediction.
        """
        check_is_fitted(self)
        self._fit.all_rows("label_weights")
        weights, solutions = label_weights(self._fit, checked_rows(self, self.kernel_, X))
        for solution in solutions:
            warn_if_not_converged("KernelRidge.label_weights", solution)
        return restore(weights, X)

    def influential(self, X: Rows, k: int = 10) -> Influence:
        """The `k` training rows behind each prediction: those with the largest label weights."""
        weights = np.asarray(self.label_weights(X))
        if weights.ndim == 3:
            raise InputError("influential needs one alpha for all targets; see label_weights for one alpha per target.")
        sample = self._fit.all_rows("influential")
        labels = sample.targets.numpy()
        return most_influential(weights, labels[:, 0] if sample.one_target else labels, k)

    def diagnostics(self) -> Any:
        """The effective regularisation, degrees of freedom and spectrum of the fit: a `Diagnostics` for each target.

        It takes an eigendecomposition of the Gram matrix.
        """
        check_is_fitted(self)
        found = ridge_diagnostics(self._fit)
        return found[0] if self._fit.seen.one_target else found

    def learning_curve(
        self,
        factors: Sequence[float] = (1, 2, 4, 8),
        level: float = 0.9,
        *,
        X: Rows | None = None,
        y: Targets | None = None,
        sample_weight: Weights = None,
    ) -> Any:
        """The error expected with more rows: a `LearningCurve` for each target, which says where not to rely on it.

        `factors` are how many times as many rows, `level` the share of intervals that hold the truth. Alpha is chosen
        anew for each number of rows, by leave-one-out. A fit on landmarks or random features does not keep its rows:
        give them again as X and y; the forecast is then by fits to parts of them alone. See
        `mercer.theory.learning_curve`.
        """
        found = [curve_of(made, factors, level) for made in self._forecasters(X, y, sample_weight)]
        return found[0] if self._fit.seen.one_target else found

    def samples_needed(
        self, target: float, *, X: Rows | None = None, y: Targets | None = None, sample_weight: Weights = None
    ) -> Any:
        """How many rows reach a root mean squared error of `target`: a `SamplesNeeded` for each target.

        X and y are those of `learning_curve`.
        """
        found = [samples_needed(made, target) for made in self._forecasters(X, y, sample_weight)]
        return found[0] if self._fit.seen.one_target else found

    def _forecasters(self, X: Rows | None, y: Targets | None, sample_weight: Weights) -> list[Forecaster]:
        check_is_fitted(self)
        rows = None if X is None else checked_sample(self, self.kernel_, X, y, sample_weight, reset=False)
        return ridge_forecasters(self._fit, rows)

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return ridge_report(self._fit, getattr(self, "n_features_in_", None))

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """Draw the function of one or two features, else predicted against actual values: leave-one-out, or at X, y."""
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise InputError("plot(X, y): give both, or neither for the training rows.")
        given = None if X is None else (X, y, self.predict(X))
        return ridge_plot(self._fit, given, features=features_to_draw(self), ax=ax)

    def _keep(self, fit: RidgeFit, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        seen, function = fit.seen, fit.function
        if warn:
            warn_if_not_converged("KernelRidge", fit.report)
        for name in FITTED:
            self.__dict__.pop(name, None)
        self._fit, self.kernel_, self.solver_report_ = fit, fit.plan.kernel, fit.report
        self.alpha_, self.alpha_path_, self.tuning_ = fit.given_alpha, fit.path, fit.tuning
        if fit.stop is not None:
            self.stopping_time_ = fit.stop
            t, alpha = fit.stop.t.cpu().numpy(), fit.stop.equivalent_alpha.cpu().numpy()
            self.t_: Any = float(t[0]) if seen.one_target else t
            self.equivalent_alpha_: Any = float(alpha[0]) if seen.one_target else alpha
        self.lambda_ = self.alpha_ / seen.total_weight
        self.n_iter_ = max(1, fit.report.iterations)
        coef = seen.given_back(function.coef)
        self.intercept_ = fit.given_intercept
        if isinstance(function, FeatureSum):
            self.features_, self.coef_ = function.features, coef
            if fit.sample is not None:
                self.dual_coef_ = seen.given_back(dual_coefficients(fit))
                self.X_fit_ = seen.rows_given_back(fit.sample.rows)
        else:
            self.dual_coef_, self.X_fit_ = coef, seen.rows_given_back(function.centres)
        return self


def _check_continued(begun: RidgeFit, settings: RidgeSettings) -> None:
    """Whether partial_fit can go on from a fit with these settings."""
    if begun.plan.solver != settings.solver:
        raise InputError(f"partial_fit cannot continue a fit by solver={begun.plan.solver!r}: start from a new model.")
    if begun.sums is None:
        raise InputError("Saved models do not store the sums that partial_fit needs: start from a new model.")
    before = begun.plan.settings
    changed = [name for name in FIXED if not same_setting(getattr(before, name), getattr(settings, name))]
    if changed:
        raise InputError(f"partial_fit cannot continue with another {' and '.join(changed)}: start from a new model.")
