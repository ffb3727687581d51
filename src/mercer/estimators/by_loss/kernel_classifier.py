"""Classification with kernels: logistic regression, support vector machines and least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.rules import Rules
from mercer.data.engines import using_engine
from mercer.data.given import (
    Alpha,
    Axes,
    Budget,
    ClassWeight,
    Device,
    Landmarks,
    Path,
    Precision,
    Rows,
    Seed,
    Targets,
    Weights,
)
from mercer.data.rows import RowSource, is_dask
from mercer.estimators.by_loss.base import LossEstimator
from mercer.estimators.by_loss.classifier_plot import regions_plot, reliability_plot
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.forecast import BRIER, classifier_forecaster
from mercer.estimators.by_loss.plan import plan_loss
from mercer.estimators.by_loss.probabilities import probabilities
from mercer.estimators.by_loss.report import classifier_report
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.by_loss.solving import solve_loss
from mercer.estimators.by_loss.squared import more_rows
from mercer.estimators.by_loss.state import CLASSIFIER
from mercer.estimators.by_loss.streamed import fit_labels
from mercer.estimators.by_loss.tuned import tuned
from mercer.estimators.common.available import Where
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.labels import (
    codes_among,
    decoded,
    encoded,
    fixed_class_weights,
    known_classes,
    with_class_weights,
)
from mercer.estimators.common.parameters import POSITIVE_RIDGE, loss_rule
from mercer.estimators.common.refused import adds_rows
from mercer.estimators.common.samples import check_features, checked_rows, checked_sample, source_given
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.common.spread import predicted_later, values_at
from mercer.files.persistence import register
from mercer.kernels.names import KernelLike
from mercer.losses import Loss
from mercer.solvers.registry import LOSS_SOLVERS, SolverLike
from mercer.theory import Forecaster, LearningCurve, SamplesNeeded, curve_of, samples_needed


@register
class KernelClassifier(ScoreMixin, ClassifierMixin, LossEstimator):
    r"""Classification in the RKHS of a kernel: finds the f and the intercept b that minimise

    .. math:: \sum_i w_i\, l(y_i, f(x_i) + b) + \alpha \|f\|_k^2.

    Two classes have labels y = -1 and 1 and one function f. With ``loss="logistic"`` more classes have one function
    each and the multinomial loss; with the other losses each class is told from the rest by a problem of its own, and
    the largest decision wins.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name has `length_scale="auto"`. "auto" is the
        Laplace kernel; where it is tuned, the best of several kernels at rows that the tuning had not seen.
    loss : str or Loss
        "logistic", "hinge" (the support vector machine), "squared_hinge", "squared", or a `mercer.losses.Loss`
        of labels -1 and 1.
    alpha : float or str
        A number > 0; a support vector machine has C = 1 / (2 alpha). "auto" chooses the value of least loss at
        rows left out, with smoothed labels for the logistic loss: by leave-one-out with the mean curvature of
        the losses, which is exact for the squared loss, on at most 2,000 different rows; by five folds for the
        hinge. "loo" is approximate leave-one-out on all rows with the curvature of each (for the hinge the span
        rule), "gcv" generalised approximate cross-validation.
    fit_intercept : bool
        Whether to add an intercept without penalty, as scikit-learn's SVC does.
    class_weight : dict, str or None
        None, a dictionary of weights by class, or "balanced".
    tune : bool or str
        As in `KernelRidge`, by the leave-one-out error of least squares to labels -1 and 1 in place of the
        loss.
    solver : str or solver object
        How Newton systems are solved: "dense" stores the Gram matrix, "pcg" does not, "nystrom" has a coefficient
        for each landmark. "auto" decides by memory before it starts. Or a solver object of `mercer.solvers` with
        options of its own: `DenseNewton`, `PCGNewton` or `NystromNewton`, such as ``PCGNewton(rank=200)``.
    device, dtype, memory_budget, random_state, n_landmarks, landmarks, checkpoint, client, verbose : see `KernelRidge`
        As in `KernelRidge`. A checkpoint is written between passes over the rows.
    tol : float
        Largest relative distance of the objective from its least value: the duality gap for the hinge, and for
        smooth losses the decrease that the last Newton step promised.
    max_iter : int or None
        Largest number of Newton steps; None for the solver's own.

    Attributes
    ----------
    classes_ : array of shape (c,)
        The labels, sorted.
    kernel_, alpha_, lambda_ : Kernel; float; float
        The kernel with every parameter found, the ridge, and the ridge divided by the weight.
    dual_coef_, intercept_ : array of shape (n,) or (n, t) and float or array of shape (t,)
        Coefficients of shape (n,) for two classes, else (n, classes), and what is added.
    X_fit_, function_ : array of shape (n, d), or list of objects and RKHSFunction
        The points of those coefficients, and the fitted `RKHSFunction` without intercept.
    support_ : array of int
        For the hinge, the rows with a coefficient other than zero; not with solver="nystrom", whose
        coefficients belong to landmarks.
    objective_ : float
        The least value found, summed over the problems of one class against the rest.
    alpha_path_ : AlphaPath or None
        Losses along the path when alpha was chosen, else None.
    tuning_ : Tuned or None
        The account of the tuning (`mercer.selection.Tuned`), else None.
    solver_report_, n_iter_ : SolverReport and int
        How the minimum was found.

    References
    ----------
    Cortes and Vapnik, *Support-vector networks*, 1995; Zhu and Hastie, *Kernel logistic regression and the import
    vector machine*, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier("gaussian", alpha=0.1).fit(X, y)
    >>> print(round(model.score(X, y), 2), model.predict_proba(X[:1]).round(2))
    0.97 [[0.98 0.01 0.  ]]
    """

    saved = CLASSIFIER
    own_rules: ClassVar[Rules] = {
        "alpha": POSITIVE_RIDGE,
        "loss": loss_rule("classes"),
        "solver": solver_rule(LOSS_SOLVERS),
    }
    classes_: np.ndarray

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        loss: Loss | str = "logistic",
        alpha: Alpha = "auto",
        fit_intercept: bool = True,
        tune: bool | str = False,
        class_weight: ClassWeight = None,
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
        self.fit_intercept = fit_intercept
        self.tune = tune
        self.class_weight = class_weight
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
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Fit to rows X of shape (n, d) and labels y of shape (n,), or to a `RowSource` that has both.

        X, y and `sample_weight` may be Dask arrays or data frames; y may then name a column of X. Rows that are read in
        parts are fitted on landmarks, in as many passes as the loss needs.
        """
        settings = LossSettings.of_classifier(self.get_params(deep=False))
        source = source_given(self, X, y, sample_weight, labels=True)
        if source is not None:
            with using_engine(settings.client, source) as engine:
                return self._keep(fit_labels(settings, source, engine))
        classes, codes = encoded(y)
        sample = checked_sample(self, settings.kernel, X, codes.astype(np.float64), sample_weight)
        sample = with_class_weights(sample, settings.class_weight, classes, codes)
        plan, tuning = tuned(plan_loss(settings, sample, classes), sample)
        return self._keep(solve_loss(plan, sample, tuning))

    @Where(adds_rows)
    @all_or_nothing
    def partial_fit(self, X: Rows, y: Targets, classes: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Add rows to a fit on landmarks with the squared loss; the result is that of one fit to all rows so far.

        The first call needs `classes`, all labels there will be, and its rows decide the length scales, alpha and the
        landmarks, unless they are given. Losses other than the squared one have no sums that further rows could join.
        """
        settings = LossSettings.of_classifier(self.get_params(deep=False))
        begun = getattr(self, "_fit", None)
        known = known_classes(None if begun is None else self.classes_, classes, y)
        codes = codes_among(known, y)
        sample = checked_sample(self, settings.kernel, X, codes.astype(np.float64), sample_weight, reset=begun is None)
        by_class = fixed_class_weights(settings.class_weight, known)
        if by_class is not None:
            own = np.ones(len(codes)) if sample.weights is None else sample.weights.numpy()
            sample = replace(sample, weights=torch.from_numpy(own * by_class[codes]))
        return self._keep(more_rows(begun, settings, sample, known))

    def decision_function(self, X: Rows) -> Any:
        """Decisions of shape (m,) for two classes, positive for the second, else (m, classes).

        Here and below, X may be a `RowSource`, or a Dask array or data frame, which gives a Dask array that is computed
        when it is asked for.
        """
        if is_dask(X):
            check_is_fitted(self)
            width = len(self.classes_)
            return predicted_later(self, X, np.empty((0,) if width == 2 else (0, width)), "decision_function")
        values = self._decisions(X)
        return _given_back(values[:, 0] if values.shape[1] == 1 else values, X)

    def predict(self, X: Rows) -> Any:
        """The most likely class of each row."""
        if is_dask(X):
            check_is_fitted(self)
            return predicted_later(self, X, self.classes_[:0])
        values = self._decisions(X)
        codes = (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(1)
        return decoded(codes, self.classes_, X)

    def predict_proba(self, X: Rows) -> Any:
        """Probabilities of shape (m, classes).

        Those of the model itself for the logistic loss. For the others, a sigmoid of the decision, or for more than two
        classes the softmax of decisions times a number, fitted to decisions for rows left out when this is first
        called. The most likely class is always that of `predict`: of two classes, near the boundary where the sigmoid
        would say otherwise, both have probability one half.
        """
        if is_dask(X):
            check_is_fitted(self)
            return predicted_later(self, X, np.empty((0, len(self.classes_))), "predict_proba")
        decisions = self._decisions(X)
        return _given_back(probabilities(self._fit, decisions), X)

    def predict_log_proba(self, X: Rows) -> Any:
        """Logarithms of the probabilities."""
        p = self.predict_proba(X)
        return p.log() if isinstance(p, Tensor) else np.log(p)

    @property
    def margin_(self) -> Any:
        r"""The distance :math:`1 / \|f\|` of the hinge's margins from the boundary, in the RKHS; one for each class.

        >>> from mercer.kernels import Linear
        >>> model = KernelClassifier(Linear(), loss="hinge", alpha=1e-4).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
        >>> round(model.margin_, 3)
        1.0
        """
        check_is_fitted(self)
        loss = self._fit.plan.settings.losses[0].name
        if loss != "hinge":
            raise AttributeError(f'margin_ needs loss="hinge", but the fit used {loss!r}.')
        norms = self.function_.norm()
        with np.errstate(divide="ignore"):
            return 1.0 / np.asarray(norms) if np.ndim(norms) else float(np.divide(1.0, norms))

    def learning_curve(
        self,
        factors: Sequence[float] = (1, 2, 4, 8),
        level: float = 0.9,
        *,
        X: Rows | None = None,
        y: Targets | None = None,
        sample_weight: Weights = None,
    ) -> LearningCurve:
        """The Brier score expected with more rows, and where not to rely on it.

        It starts at the score of the classifier at rows left out, and changes like that of least squares on indicators
        of the classes with the same kernel and the best alpha. For two classes the score is the mean of
        :math:`(p - y)^2` for the second class, for more the sum over classes. A fit on landmarks needs its rows again,
        X and y, and is refitted to parts of them. `factors` are how many times as many rows, `level` the share of
        intervals that hold the truth. See `mercer.theory.learning_curve`.
        """
        return curve_of(self._forecaster(X, y, sample_weight), factors, level, measure=BRIER)

    def samples_needed(
        self, target: float, *, X: Rows | None = None, y: Targets | None = None, sample_weight: Weights = None
    ) -> SamplesNeeded:
        """How many rows reach a Brier score of `target`, or why that is not known; X and y as in `learning_curve`."""
        return samples_needed(self._forecaster(X, y, sample_weight), target, measure=BRIER)

    def _forecaster(self, X: Rows | None, y: Targets | None, sample_weight: Weights) -> Forecaster:
        check_is_fitted(self)
        if X is None:
            return classifier_forecaster(self._fit)
        classes, codes = encoded(y)
        if not np.array_equal(classes, self.classes_):
            raise InputError(f"y has the classes {classes.tolist()}; the model was fitted to {self.classes_.tolist()}.")
        sample = checked_sample(self, self.kernel_, X, codes.astype(np.float64), sample_weight, reset=False)
        return classifier_forecaster(self._fit, with_class_weights(sample, self.class_weight, self.classes_, codes))

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return classifier_report(self._fit, getattr(self, "n_features_in_", None))

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """Draw the regions of the classes for two features, else how reliable the probabilities are at X, y."""
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise InputError("plot(X, y): give both, or neither for the training rows.")
        if getattr(self, "n_features_in_", None) != 2:
            given = None if X is None else (y, self.predict_proba(X))
            return reliability_plot(self._fit, given, ax=ax)
        names = getattr(self, "feature_names_in_", ("first feature", "second feature"))
        return regions_plot(self._fit, None if X is None else (X, y), names=names, ax=ax)

    def _decisions(self, X: Rows) -> Tensor:
        check_is_fitted(self)
        if isinstance(X, RowSource):
            check_features(self, X)
            return values_at(self._fit, X, self.client, verbose=self.verbose)
        return self._fit.values(checked_rows(self, self.kernel_, X))

    def _keep(self, fit: LossFit, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        if warn:
            warn_if_not_converged("KernelClassifier", fit.report)
        assert fit.plan.classes is not None
        self._fit, self.classes_ = fit, fit.plan.classes
        for name, value in fit.attributes().items():
            setattr(self, name, value)
        return self


def _given_back(values: Tensor, X: Rows) -> Any:
    """As the caller's kind of array, in the precision of a tensor."""
    values = values.to(X.dtype) if isinstance(X, Tensor) and X.is_floating_point() else values
    return restore(checked_values(values, "Predictions"), X)
