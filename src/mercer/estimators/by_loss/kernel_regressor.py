"""Regression with kernels and any loss: robust, quantile and support vector regression."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.rules import Rules, one_of
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
from mercer.estimators.by_loss.base import LossEstimator
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.intervals import held_out, interval, with_left_out_predictions
from mercer.estimators.by_loss.plan import plan_loss
from mercer.estimators.by_loss.regressor_plot import regressor_plot
from mercer.estimators.by_loss.report import regressor_report
from mercer.estimators.by_loss.settings import UNITS, LossSettings
from mercer.estimators.by_loss.solving import solve_loss
from mercer.estimators.by_loss.squared import more_rows
from mercer.estimators.by_loss.state import REGRESSOR
from mercer.estimators.by_loss.streamed import fit_numbers
from mercer.estimators.by_loss.tuned import tuned
from mercer.estimators.common.available import Where
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.parameters import POSITIVE_RIDGE, loss_rule
from mercer.estimators.common.refits import checked_order
from mercer.estimators.common.refused import adds_rows
from mercer.estimators.common.samples import (
    check_features,
    checked_rows,
    checked_sample,
    features_to_draw,
    rows_to_calibrate,
    source_given,
)
from mercer.estimators.common.scores import ScoreMixin, on_host, quantile_score, with_targets
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.common.spread import predicted_later, values_at
from mercer.files.persistence import register
from mercer.kernels.names import KernelLike
from mercer.losses import Loss
from mercer.solvers.registry import LOSS_SOLVERS, SolverLike


@register
class KernelRegressor(ScoreMixin, RegressorMixin, LossEstimator):
    r"""Regression in the RKHS of a kernel with any loss: finds the f and the intercept b that minimise

    .. math:: \sum_i w_i\, l(y_i, f(x_i) + b) + \alpha \|f\|_k^2.

    Several quantiles are fitted one by one, and at every point their predictions are put into ascending order, so that
    they never cross; the report says at how many training rows they would have.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name has `length_scale="auto"`. "auto" is the
        Laplace kernel; where it is tuned, the best of several kernels at rows that the tuning had not seen.
    loss : str or Loss
        "squared" (`KernelRidge` is faster), "huber" (targets far away count less), "quantile",
        "epsilon_insensitive" (support vector regression), or a `mercer.losses.Loss`. A loss that is not convex
        is minimised to a local solution.
    alpha : float or str
        A number > 0; support vector regression has C = 1 / (2 alpha). "auto" chooses the value of least loss at
        rows left out: by leave-one-out with the mean curvature of the losses, which is exact for the squared
        loss, on at most 2,000 different rows; by five folds for losses with kinks. "loo" is approximate
        leave-one-out on all rows with the curvature of each, "gcv" generalised approximate cross-validation.
    quantiles : float or list of float
        Levels between 0 and 1 for the quantile loss: a number, or a list for one column of predictions each.
    epsilon : float
        Half of the width that the epsilon-insensitive loss forgives.
    delta : float
        Where the Huber loss turns from squared to straight.
    units : str
        "spread": `epsilon` and `delta` are multiples of the spread of y, a deviation that outliers hardly move.
        "raw": they are in the units of y, as in scikit-learn.
    fit_intercept : bool
        Whether to add an intercept without penalty, as scikit-learn's SVR does.
    tune : bool or str
        As in `KernelRidge`, by the leave-one-out error of least squares in place of the loss.
    solver : str or solver object
        How Newton systems are solved: "dense" stores the Gram matrix, "pcg" does not, "nystrom" has a coefficient
        for each landmark. "auto" decides by memory before it starts. Or a solver object of `mercer.solvers` with
        options of its own: `DenseNewton`, `PCGNewton` or `NystromNewton`, such as ``PCGNewton(rank=200)``.
    device, dtype, memory_budget, random_state, n_landmarks, landmarks, checkpoint, client, verbose : see `KernelRidge`
        As in `KernelRidge`. A checkpoint is written between passes over the rows.
    tol : float
        Largest relative distance of the objective from its least value.
    max_iter : int or None
        Largest number of Newton steps; None for the solver's own.

    Attributes
    ----------
    kernel_, alpha_, lambda_ : Kernel; float; float
        The kernel with every parameter found, the ridge, and the ridge divided by the weight.
    dual_coef_, intercept_ : array of shape (n,) or (n, t) and float or array of shape (t,)
        The coefficients, of shape (n,) or (n, quantiles), and what is added.
    X_fit_, function_ : array of shape (n, d), or list of objects and RKHSFunction
        The points of those coefficients, and the fitted `RKHSFunction` without intercept.
    losses_ : tuple of Loss
        The losses in the units of y: one, or one for each quantile.
    quantiles_ : tuple of float or None
        The levels, ascending, or None.
    n_crossings_ : int
        Training rows at which quantiles crossed before they were put in order.
    support_ : array of int
        For losses with kinks, the rows with a coefficient other than zero; not with solver="nystrom", whose
        coefficients belong to landmarks.
    objective_, alpha_path_, tuning_, solver_report_, n_iter_ : see `KernelRidge`
        As in `KernelClassifier`.

    References
    ----------
    Takeuchi, Le, Sears and Smola, *Nonparametric quantile estimation*, 2006; Chernozhukov, Fernández-Val and Galichon,
    *Quantile and probability curves without crossing*, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 3, size=(200, 1))
    >>> y = 1 + X[:, 0] * rng.uniform(size=200)
    >>> model = KernelRegressor("gaussian", loss="quantile", quantiles=[0.1, 0.5, 0.9], alpha=0.1).fit(X, y)
    >>> model.predict([[2.0]]).shape, round(float((y < model.predict(X)[:, 2]).mean()), 1)
    ((1, 3), 0.9)
    """

    saved = REGRESSOR
    own_rules: ClassVar[Rules] = {
        "alpha": POSITIVE_RIDGE,
        "loss": loss_rule("numbers"),
        "solver": solver_rule(LOSS_SOLVERS),
        "units": one_of(*UNITS),
    }
    quantiles_: tuple[float, ...] | None

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        loss: Loss | str = "squared",
        alpha: Alpha = "auto",
        quantiles: Numbers = 0.5,
        epsilon: float = 0.1,
        delta: float = 1.345,
        units: str = "spread",
        fit_intercept: bool = True,
        tune: bool | str = False,
        solver: SolverLike = "auto",
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Landmarks = "uniform",
        checkpoint: Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.alpha = alpha
        self.quantiles = quantiles
        self.epsilon = epsilon
        self.delta = delta
        self.units = units
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
        self.checkpoint = checkpoint
        self.client = client
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None, order: Order = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,), or to a `RowSource` with both.

        Dask collections and `order` are as in `KernelRidge.fit`. Rows that are read in parts are fitted on landmarks,
        in as many passes as the loss needs.
        """
        settings = LossSettings.of_regressor(self.get_params(deep=False))
        source = source_given(self, X, y, sample_weight, order)
        if source is not None:
            with using_engine(settings.client, source) as engine:
                return self._keep(fit_numbers(settings, source, engine))
        sample = checked_sample(self, settings.kernel, X, y, sample_weight)
        if sample.targets.shape[1] != 1:
            raise InputError(f"y has {sample.targets.shape[1]} columns; KernelRegressor has one target.")
        if not sample.one_target:
            words = "A column-vector y was passed when a 1d array was expected: use y.ravel()."
            warnings.warn(words, DataConversionWarning, stacklevel=3)
            sample = replace(sample, one_target=True)
        ranks = checked_order(order, len(sample))
        plan, tuning = tuned(plan_loss(settings, sample), sample)
        return self._keep(replace(solve_loss(plan, sample, tuning), order=ranks))

    @Where(adds_rows)
    @all_or_nothing
    def partial_fit(self, X: Rows, y: Targets, sample_weight: Weights = None) -> Self:
        """Add rows to a fit on landmarks with the squared loss; the result is that of one fit to all rows so far.

        The rows of the first call decide the length scales, alpha and the landmarks, unless they are given.
        """
        settings = LossSettings.of_regressor(self.get_params(deep=False))
        begun = getattr(self, "_fit", None)
        sample = checked_sample(self, settings.kernel, X, y, sample_weight, reset=begun is None)
        if sample.targets.shape[1] != 1:
            raise InputError(f"y has {sample.targets.shape[1]} columns; KernelRegressor has one target.")
        return self._keep(more_rows(begun, settings, replace(sample, one_target=True)))

    def predict(self, X: Rows) -> Any:
        """Predictions of shape (m,), or (m, quantiles) for a list of quantiles; X as in `KernelRidge.predict`."""
        check_is_fitted(self)
        fit = self._fit
        if is_dask(X):
            width = (len(fit.plan.losses),) if fit.plan.settings.in_columns else ()
            return predicted_later(self, X, np.empty((0, *width)))
        if isinstance(X, RowSource):
            check_features(self, X)
            return fit.predictions_of(values_at(fit, X, self.client, verbose=self.verbose)).numpy()
        rows = checked_rows(self, self.kernel_, X)
        values = fit.predictions(rows)
        values = values.to(rows.values.dtype) if rows.is_tensor else values
        return restore(checked_values(values, "Predictions"), X)

    def predict_interval(
        self, X: Rows, level: float = 0.9, calibrate: tuple[Any, Any] | None = None
    ) -> tuple[Any, Any]:
        r"""The ends of intervals that hold the target of a new row with probability `level`, (m,) each.

        With predictions :math:`f_{-i}` by fits that have not seen the row they are

        .. math:: q^l(x) - r,\; q^u(x) + r, \qquad
            r = \text{the } \lceil (n + 1)\, p \rceil\text{-th smallest }
            \max(q^l_{-i}(x_i) - y_i,\; y_i - q^u_{-i}(x_i)).

        For several quantiles the ends begin at those nearest to what `level` asks for, so that the width follows the
        data (conformalised quantile regression); else both begin at the prediction. Rows are left out by approximate
        leave-one-out or by folds; where `fit` was given `order=`, later blocks of rows are forecast from earlier ones.

        Parameters
        ----------
        X : array-like of shape (m, d), data frame, or list of objects
            Rows to predict.
        level : float
            The share of new rows inside; for rows like those of the training.
        calibrate : tuple or None
            Rows and targets that the model has not seen, (X, y), to take the errors from instead.

        References
        ----------
        Romano, Patterson and Candes, *Conformalized quantile regression*, 2019.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 3, size=(200, 1))
        >>> y = 1 + X[:, 0] * rng.uniform(size=200)
        >>> model = KernelRegressor("gaussian", loss="quantile", quantiles=[0.05, 0.95], alpha=0.1).fit(X, y)
        >>> low, high = model.predict_interval([[0.5], [2.5]])
        >>> bool(high[1] - low[1] > 2 * (high[0] - low[0]))
        True
        """
        check_is_fitted(self)
        rows, fit = checked_rows(self, self.kernel_, X), self._fit
        if calibrate is not None:
            fit = replace(fit, left_out=held_out(fit, *rows_to_calibrate(self, self.kernel_, calibrate)))
        else:
            fit = self._fit = with_left_out_predictions(fit)
        ends = interval(fit, rows, level)
        low, high = (end.to(rows.values.dtype) if rows.is_tensor else end for end in ends)
        return restore(checked_values(low, "Intervals"), X), restore(checked_values(high, "Intervals"), X)

    def score(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None) -> float:
        """R^2 of the predictions; for quantiles 1 minus the loss relative to that of the constant quantiles of y."""
        check_is_fitted(self)
        X, y, sample_weight = with_targets(X, y, sample_weight)
        if self.quantiles_ is None:
            return super().score(X, y, sample_weight)
        target = np.asarray(on_host(y), dtype=np.float64).reshape(-1)
        predicted = np.asarray(on_host(self.predict(X))).reshape(len(target), -1)
        given = np.ones(len(target)) if sample_weight is None else on_host(sample_weight)
        return quantile_score(self.quantiles_, target, predicted, np.asarray(given, dtype=np.float64))

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return regressor_report(self._fit, getattr(self, "n_features_in_", None))

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """Draw the functions of one feature, a map for two, else predicted against actual values."""
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise InputError("plot(X, y): give both, or neither for the training rows.")
        given = None if X is None else (X, y, self.predict(X))
        return regressor_plot(self._fit, given, features=features_to_draw(self), ax=ax)

    def _keep(self, fit: LossFit, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        if warn:
            warn_if_not_converged("KernelRegressor", fit.report)
        self._fit, self.quantiles_, self.n_crossings_ = fit, fit.plan.settings.quantiles, fit.crossings
        self.losses_ = fit.plan.losses
        for name, value in fit.attributes().items():
            setattr(self, name, value)
        return self
