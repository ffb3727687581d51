"""Regression with kernels and any loss: robust, quantile and support vector regression."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.errors import InputError, InputTypeError
from mercer.core.report import Report
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.samples import checked_rows, checked_sample
from mercer.estimators.common.scores import ScoreMixin, on_host
from mercer.estimators.loss_model import LossModel
from mercer.estimators.loss_report import regressor_report
from mercer.estimators.loss_state import regressor_from_state, regressor_state
from mercer.estimators.regressor_plot import regressor_plot
from mercer.files.persistence import register
from mercer.kernels import as_kernel
from mercer.losses import Loss, PiecewiseLinear, Quantile, get_loss
from mercer.solvers.objective import Objective

LOSSES = ("squared", "huber", "quantile", "epsilon_insensitive")


@register
class KernelRegressor(ScoreMixin, RegressorMixin, LossModel):
    r"""Regression in the RKHS of a kernel with any loss: finds the f and, with ``fit_intercept``, the b that minimise

    .. math:: \sum_i w_i\, l(y_i, f(x_i) + b) + \alpha \|f\|_k^2.

    Several quantiles are fitted one by one, and at every point their predictions are put into ascending order, so that
    they never cross; the report says at how many training rows they would have.

    Parameters
    ----------
    kernel : a `Kernel`, its name, or a function of two points. A name has the median length scale.
    loss : "squared" (`KernelRidge` is faster), "huber" (targets far away count less), "quantile",
        "epsilon_insensitive" (support vector regression), or a `mercer.losses.Loss`. A loss that is not convex is
        minimised to a local solution.
    alpha : a number > 0; support vector regression has C = 1 / (2 alpha). "auto" chooses the value of least loss at
        rows left out: by approximate leave-one-out, which is exact for the squared loss, or by five folds for losses
        with kinks and for many rows.
    quantiles : levels between 0 and 1 for the quantile loss: a number, or a list for one column of predictions each.
    epsilon : half of the width that the epsilon-insensitive loss forgives, in units of y.
    delta : where the Huber loss turns from squared to straight, in units of y.
    fit_intercept : whether to add an intercept without penalty; True is the problem of scikit-learn's SVR.
    solver : where Newton's method takes its systems from: "dense" stores the Gram matrix, "pcg" does not, "nystrom" has
        a coefficient for each landmark. "auto" decides by memory before it starts.
    device, dtype, memory_budget, random_state, n_landmarks, landmarks, verbose : as in `KernelRidge`.
    tol : largest relative distance of the objective from its least value.
    max_iter : largest number of Newton steps; None for the solver's own.

    Attributes
    ----------
    kernel_, alpha_, lambda_ : the kernel with every parameter found, the ridge, and the ridge divided by the weight.
    dual_coef_, intercept_ : the coefficients, of shape (n,) or (n, quantiles), and what is added.
    X_fit_, function_ : the points of those coefficients, and the fitted `RKHSFunction` without intercept.
    quantiles_ : the levels, ascending, or None.
    n_crossings_ : training rows at which quantiles crossed before they were put in order.
    support_ : for losses with kinks, the rows with a coefficient other than zero; not with solver="nystrom", whose
        coefficients belong to landmarks.
    objective_, alpha_path_, solver_report_, n_iter_ : as in `KernelClassifier`.

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

    def __init__(
        self,
        kernel: Any = "laplace",
        *,
        loss: Any = "squared",
        alpha: Any = 1.0,
        quantiles: Any = 0.5,
        epsilon: float = 0.1,
        delta: float = 1.345,
        fit_intercept: bool = False,
        solver: str = "auto",
        device: Any = "auto",
        dtype: Any = "auto",
        memory_budget: Any = None,
        random_state: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Any = "uniform",
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.alpha = alpha
        self.quantiles = quantiles
        self.epsilon = epsilon
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,)."""
        kernel = as_kernel(self.kernel)
        losses = self._losses()
        whole = checked_sample(self, kernel, X, y, sample_weight)
        if whole.targets.shape[1] != 1:
            raise InputError(f"y has {whole.targets.shape[1]} columns; KernelRegressor has one target.")
        if not whole.one_target:
            words = "A column-vector y was passed when a 1d array was expected: use y.ravel()."
            warnings.warn(words, DataConversionWarning, stacklevel=3)
            whole = replace(whole, one_target=True)
        kinked = isinstance(losses[0], PiecewiseLinear)
        scale = float(whole.targets.std(correction=0)) if kinked else 1.0
        _, minima, _ = self._fit(kernel, whole, self._objectives, scale=scale if scale > 0 else 1.0)
        self.quantiles_ = self._checked_quantiles()
        fitted = torch.cat([found.fitted for found in minima], dim=1)
        self.n_crossings_ = int((fitted.diff(dim=1) < -1e-9 * max(1.0, scale)).any(1).sum())
        self._keep_support()
        return self

    def predict(self, X: Any) -> Any:
        """Predictions of shape (m,), or (m, quantiles) for a list of quantiles."""
        check_is_fitted(self)
        rows = checked_rows(self, self.kernel_, X)
        values = self._sorted(rows)
        values = values.to(rows.values.dtype) if rows.is_tensor else values
        return restore(checked_values(values, "Predictions"), X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; for quantiles 1 minus the loss relative to that of the constant quantiles of y."""
        if self.quantiles_ is None:
            return super().score(X, y, sample_weight)
        target = np.asarray(on_host(y), dtype=np.float64).reshape(-1, 1)
        predicted = np.asarray(on_host(self.predict(X))).reshape(len(target), -1)
        given = np.ones(len(target)) if sample_weight is None else on_host(sample_weight)
        weights = np.asarray(given, dtype=np.float64)
        levels = np.asarray(self.quantiles_)

        def loss(values: np.ndarray) -> float:
            below = target - values
            return float((weights @ np.where(below > 0, levels * below, (levels - 1) * below)).sum())

        order = target[:, 0].argsort()
        reached = weights[order].cumsum()
        constant = target[order[np.searchsorted(reached, levels * reached[-1])], 0]
        return 1.0 - loss(predicted) / max(loss(np.tile(constant, (len(target), 1))), 1e-300)

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return regressor_report(self)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Draw the functions for one feature, else predicted against actual values."""
        check_is_fitted(self)
        return regressor_plot(self, X, y, ax)

    def _losses(self) -> list[Loss]:
        """One loss for each column of predictions."""
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            known = ", ".join(map(repr, LOSSES))
            raise InputError(f"loss={self.loss!r}: choose one of {known}, or give a mercer.losses.Loss.")
        levels = self._checked_quantiles()
        if levels is not None:
            return [Quantile(level) for level in levels]
        parameters = {"huber": {"delta": self.delta}, "epsilon_insensitive": {"epsilon": self.epsilon}}
        return [get_loss(self.loss, **(parameters.get(self.loss, {}) if isinstance(self.loss, str) else {}))]

    def _checked_quantiles(self) -> tuple[float, ...] | None:
        if self.loss != "quantile":
            return None
        try:
            levels = np.atleast_1d(np.asarray(self.quantiles, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"quantiles={self.quantiles!r}: give numbers between 0 and 1.") from error
        if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
            raise InputError(f"quantiles={self.quantiles!r}: give numbers between 0 and 1.")
        if (np.diff(levels) <= 0).any():
            raise InputError(f"quantiles={self.quantiles!r}: give them in ascending order, each once.")
        return tuple(levels.tolist())

    def _objectives(self, data: Sample, alpha: float) -> list[Objective]:
        device = self._device()
        weights = None if data.weights is None else data.weights.to(device)
        targets = data.targets.to(device)
        return [Objective(loss, targets, alpha, weights, self.fit_intercept) for loss in self._losses()]

    def _keep_support(self) -> None:
        self._kinked = isinstance(self._losses()[0], PiecewiseLinear)

    def _sorted(self, rows: Points) -> Tensor:
        values = self._columns(rows)
        if self.quantiles_ is not None and np.ndim(self.quantiles):
            return values.sort(dim=1).values
        return values[:, 0]

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return regressor_state(self)

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        return regressor_from_state(cls, meta, arrays)
