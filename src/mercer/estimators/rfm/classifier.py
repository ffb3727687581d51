"""Classification that learns which features matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin

from mercer.core.arrays import restore
from mercer.core.errors import InputError
from mercer.data.given import Alpha, Budget, ClassWeight, Device, Landmarks, Precision, Rows, Seed, Targets, Weights
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.labels import decoded, encoded, with_class_weights
from mercer.estimators.common.refused import refuse_parts
from mercer.estimators.common.samples import checked_sample
from mercer.estimators.rfm.base import FeatureMachine
from mercer.estimators.rfm.fit import RFMFit, codes_of, fit_rows
from mercer.estimators.rfm.settings import RFMSettings
from mercer.files.persistence import register
from mercer.kernels.names import KernelLike
from mercer.solvers.registry import SolverLike


@register
class RFMClassifier(ClassifierMixin, FeatureMachine):
    r"""Classification by a recursive feature machine: least squares on labels -1 and 1, one function for each class.

    Features are learned as in `RFMRegressor`; the largest function wins. Probabilities are fitted to cross-fitted
    decisions.

    Parameters
    ----------
    class_weight : dict, str or None
        None, a dictionary of weights by class, or "balanced".
    kernel, alpha, matrix, max_iter, n_folds, n_learn, solver, n_landmarks, landmarks : as in `RFMRegressor`
        The machine and its fits.
    device, dtype, memory_budget, random_state, verbose : as in `RFMRegressor`
        Where and how it is fitted.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    accuracy_ : float
        The share of rows left out that is right; they were seen by no M and no ridge. NaN for too few rows.
    agop_, feature_importances_, kernel_, alpha_, n_iter_, solver_report_ : see `RFMRegressor`
        As in `RFMRegressor`.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, *Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models*, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(150, 6))
    >>> model = RFMClassifier("laplace", max_iter=3, n_folds=2).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> sorted(np.argsort(-model.feature_importances_)[:2].tolist())
    [0, 1]
    """

    classes_: np.ndarray

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        alpha: Alpha = "auto",
        matrix: str = "auto",
        max_iter: int = 6,
        n_folds: int = 5,
        n_learn: int = 4000,
        class_weight: ClassWeight = None,
        solver: SolverLike = "auto",
        n_landmarks: int | None = None,
        landmarks: Landmarks = "uniform",
        device: Device = "auto",
        dtype: Precision = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            alpha=alpha,
            matrix=matrix,
            max_iter=max_iter,
            n_folds=n_folds,
            n_learn=n_learn,
            solver=solver,
            n_landmarks=n_landmarks,
            landmarks=landmarks,
            device=device,
            dtype=dtype,
            memory_budget=memory_budget,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Fit to rows X of shape (n, d) and labels y of shape (n,)."""
        refuse_parts(self, X)
        settings = RFMSettings.of(self.get_params(deep=False))
        classes, codes = encoded(y)
        kernel = settings.candidates[0].kernel
        sample = checked_sample(self, kernel, X, codes.astype(np.float64), sample_weight)
        sample = with_class_weights(sample, settings.class_weight, classes, codes)
        return self._keep(fit_rows(settings, _signed(sample, len(classes)), classes))

    def decision_function(self, X: Rows) -> Any:
        """Decisions of shape (m,) for two classes, positive for the second, else (m, classes)."""
        values = self._values(X)
        return restore(values[:, 0] if values.shape[1] == 1 else values, X)

    def predict(self, X: Rows) -> Any:
        """The most likely class of each row."""
        return decoded(codes_of(self._values(X)), self.classes_, X)

    def predict_proba(self, X: Rows) -> Any:
        """Probabilities of shape (m, classes); the most likely class is that of `predict`."""
        values = self._values(X)
        if self._fit.calibration is None:
            raise InputError(
                "predict_proba needs a fit to at least four rows: probabilities are calibrated on rows left out."
            )
        return restore(self._fit.calibration(values), X)

    def _keep(self, fit: RFMFit, *, warn: bool = True) -> Self:
        self._remember(fit, warn=warn)
        assert fit.classes is not None
        self.classes_, self.accuracy_ = fit.classes, fit.accuracy
        return self


def _signed(sample: Sample, classes: int) -> Sample:
    """A sample of codes with a column of -1 and 1 for each class, one column for two."""
    codes = sample.targets.long()
    own = codes if classes == 2 else (codes == torch.arange(classes)).long()
    return replace(sample, targets=2.0 * own.double() - 1.0, one_target=False)
