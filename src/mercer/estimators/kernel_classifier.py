"""Classification with kernels: logistic regression, support vector machines and least squares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.data.sample import Sample
from mercer.estimators.classifier_plot import classifier_plot
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.calibration import Calibration, calibrate
from mercer.estimators.common.labels import class_weights, decoded, encoded
from mercer.estimators.common.samples import checked_rows, checked_sample
from mercer.estimators.common.scores import ScoreMixin
from mercer.estimators.loss_model import LossModel
from mercer.estimators.loss_report import classifier_report
from mercer.estimators.loss_state import classifier_from_state, classifier_state
from mercer.files.persistence import register
from mercer.kernels import as_kernel
from mercer.losses import Loss, Multinomial, PiecewiseLinear, Squared, get_loss
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Objective

LOSSES = ("logistic", "hinge", "squared_hinge", "squared")


@dataclass(eq=False)
class Later:
    """Something that is found when it is first asked for."""

    value: Calibration | None = None


@register
class KernelClassifier(ScoreMixin, ClassifierMixin, LossModel):
    r"""Classification in the RKHS of a kernel: finds the f and, with ``fit_intercept``, the b that minimise

    .. math:: \sum_i w_i\, l(y_i, f(x_i) + b) + \alpha \|f\|_k^2.

    Two classes have labels y = -1 and 1 and one function f. With ``loss="logistic"`` more classes have one function
    each and the multinomial loss; with the other losses each class is told from the rest by a problem of its own, and
    the largest decision wins.

    Parameters
    ----------
    kernel : a `Kernel`, its name, or a function of two points. A name has the median length scale.
    loss : "logistic", "hinge" (the support vector machine), "squared_hinge", "squared", or a `mercer.losses.Loss`
        of labels -1 and 1.
    alpha : a number > 0; a support vector machine has C = 1 / (2 alpha). "auto" chooses the value of least loss at rows
        left out, with smoothed labels for the logistic loss: by approximate leave-one-out, which is exact for the
        squared loss, or by five folds for the hinge and for many rows.
    fit_intercept : whether to add an intercept without penalty; True is the problem of scikit-learn's SVC.
    class_weight : None, a dictionary of weights by class, or "balanced".
    solver : where Newton's method takes its systems from: "dense" stores the Gram matrix, "pcg" does not, "nystrom" has
        a coefficient for each landmark. "auto" decides by memory before it starts.
    device, dtype, memory_budget, random_state, n_landmarks, landmarks, verbose : as in `KernelRidge`.
    tol : largest relative distance of the objective from its least value: the duality gap for the hinge, and for smooth
        losses the decrease that the last Newton step promised.
    max_iter : largest number of Newton steps; None for the solver's own.

    Attributes
    ----------
    classes_ : the labels, sorted.
    kernel_, alpha_, lambda_ : the kernel with every parameter found, the ridge, and the ridge divided by the weight.
    dual_coef_, intercept_ : coefficients of shape (n,) for two classes, else (n, classes), and what is added.
    X_fit_, function_ : the points of those coefficients, and the fitted `RKHSFunction` without intercept.
    support_ : for the hinge, the rows with a coefficient other than zero; not with solver="nystrom", whose coefficients
        belong to landmarks.
    objective_ : the least value found, summed over the problems of one class against the rest.
    alpha_path_ : losses along the path when alpha was chosen, else None.
    solver_report_, n_iter_ : how the minimum was found.

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

    def __init__(
        self,
        kernel: Any = "laplace",
        *,
        loss: Any = "logistic",
        alpha: Any = 1.0,
        fit_intercept: bool = False,
        class_weight: Any = None,
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
        self.fit_intercept = fit_intercept
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
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X of shape (n, d) and labels y of shape (n,)."""
        kernel = as_kernel(self.kernel)
        loss = self._checked_loss()
        classes, codes = encoded(y)
        whole = checked_sample(self, kernel, X, codes.astype(np.float64), sample_weight)
        whole = self._weighted(whole, classes, codes)
        self.classes_ = classes
        self._calibration = Later()
        calibrated = loss.name != "logistic"
        problem, _, out = self._fit(kernel, whole, self._objectives, need_left_out=calibrated)
        if calibrated and out is not None:
            decisions = torch.cat([part.fitted for part in out], dim=1)
            self._calibration.value = self._calibrated(problem.data, decisions)
        self._keep_support()
        return self

    def decision_function(self, X: Any) -> Any:
        """Decisions of shape (m,) for two classes, positive for the second, else (m, classes)."""
        values = self._decisions(X)
        return self._floating(values[:, 0] if values.shape[1] == 1 else values, X)

    def predict(self, X: Any) -> Any:
        """The most likely class of each row."""
        values = self._decisions(X)
        codes = (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(1)
        return decoded(codes, self.classes_, X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of shape (m, classes).

        Those of the model itself for the logistic loss. For the others, a sigmoid of the decision, or for more than two
        classes the softmax of decisions times a number, fitted to decisions for rows left out when this is first
        called. The most likely class is always that of `predict`: of two classes, near the boundary where the sigmoid
        would say otherwise, both have probability one half.
        """
        values = self._decisions(X)
        if self._checked_loss().name != "logistic":
            return self._floating(self._found_calibration()(values), X)
        if values.shape[1] == 1:
            return self._floating(torch.cat([torch.sigmoid(-values), torch.sigmoid(values)], dim=1), X)
        return self._floating(torch.softmax(values, 1), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        p = self.predict_proba(X)
        return p.log() if isinstance(p, Tensor) else np.log(p)

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return classifier_report(self)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Draw the regions of the classes for two features, else how reliable the probabilities are at X, y."""
        check_is_fitted(self)
        return classifier_plot(self, X, y, ax)

    def _checked_loss(self) -> Loss:
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            known = ", ".join(map(repr, LOSSES))
            raise InputError(f"loss={self.loss!r}: choose one of {known}, or give a mercer.losses.Loss.")
        return get_loss(self.loss)

    def _weighted(self, whole: Sample, classes: np.ndarray, codes: np.ndarray) -> Sample:
        """The data with class weights in the weights of rows, and at least two classes."""
        by_class = class_weights(self.class_weight, classes, codes, whole.weights)
        if (by_class != 1).any():
            own = torch.ones(len(codes), dtype=torch.float64) if whole.weights is None else whole.weights
            whole = replace(whole, weights=own * torch.from_numpy(by_class[codes]))
        seen = codes if whole.weights is None else codes[(whole.weights > 0).numpy()]
        if len(np.unique(seen)) < 2:
            raise InputError(
                f"y has one class, {classes.tolist()[seen[0]]!r}, among the rows that have weight: a "
                "classifier needs at least two classes."
            )
        return whole

    def _objectives(self, data: Sample, alpha: float) -> list[Objective]:
        loss, t, device = self._checked_loss(), len(self.classes_), self._device()
        codes = data.targets[:, 0].to(device)
        weights = None if data.weights is None else data.weights.to(device)
        if t > 2 and loss.name == "logistic":
            return [Objective(Multinomial(), codes, alpha, weights, self.fit_intercept, t)]
        signs = _signs(codes, t)
        if isinstance(loss, Squared):
            return [Objective(loss, signs, alpha, weights, self.fit_intercept, signs.shape[1])]
        return [Objective(loss, column, alpha, weights, self.fit_intercept) for column in signs.split(1, dim=1)]

    def _keep_support(self) -> None:
        self._kinked = isinstance(self._checked_loss(), PiecewiseLinear)

    def _calibrated(self, data: Sample, decisions: Tensor) -> Calibration:
        return calibrate(decisions, data.targets[:, 0], data.weights)

    def _found_calibration(self) -> Calibration:
        """The calibration, found when it is first needed."""
        if self._calibration.value is None:
            if self._data is None:
                raise InputError("predict_proba: the model keeps no training rows to calibrate with.")
            data, places = self._data.positive()
            problem = self._problem(data, places, len(self._data.rows), self._data.rows)
            minima, first = [], 0
            objectives = self._objectives(data, self.alpha_)
            for objective in objectives:
                columns = slice(first, first + objective.outputs)
                first = columns.stop
                c = self._coef[:, columns] if places is None else self._coef[places][:, columns]
                fitted = problem.span.values(c.to(problem.span.device)) + self._intercept[columns]
                minima.append(
                    Minimum(
                        solver="",
                        converged=True,
                        residual=0.0,
                        value=c,
                        intercept=self._intercept[columns],
                        fitted=fitted,
                        objective=0.0,
                        dual=c,
                    )
                )
            out = self._left_out(problem, minima, objectives)
            self._calibration.value = self._calibrated(data, torch.cat([part.fitted for part in out], dim=1))
        return self._calibration.value

    def _decisions(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._columns(checked_rows(self, self.kernel_, X))

    def _floating(self, values: Tensor, X: Any) -> Any:
        """As the caller's kind of array, in the precision of X."""
        values = values.to(X.dtype) if isinstance(X, Tensor) and X.is_floating_point() else values
        return restore(checked_values(values, "Predictions"), X)

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return classifier_state(self)

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        return classifier_from_state(cls, meta, arrays)


def _signs(codes: Tensor, t: int) -> Tensor:
    """Labels -1 and 1: one column for two classes, else one for each."""
    wanted = torch.arange(1, 2) if t == 2 else torch.arange(t)
    return torch.where(codes.unsqueeze(1) == wanted.to(codes), 1.0, -1.0).to(torch.float64)
