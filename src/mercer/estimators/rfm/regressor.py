"""Regression that learns which features matter."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.core.arrays import restore
from mercer.data.given import Rows, Targets, Weights
from mercer.data.rows import RowSource
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.samples import checked_sample, checked_source, sampled
from mercer.estimators.dials import SAMPLED
from mercer.estimators.rfm.base import FeatureMachine
from mercer.estimators.rfm.fit import RFMFit, fit_rows, fit_source
from mercer.estimators.rfm.settings import RFMSettings
from mercer.files.persistence import register


@register
class RFMRegressor(MultiOutputMixin, RegressorMixin, FeatureMachine):
    r"""Kernel ridge regression that learns which directions of the inputs matter: a recursive feature machine.

    It fits a ridge regression with the kernel :math:`k(M^{1/2} x, M^{1/2} z)`, takes for M the average of
    :math:`\nabla f \nabla f^\top` at the rows, the average gradient outer product, and repeats. A fixed kernel sees
    all directions alike; this one finds f(x) = g(Ux) with few rows. No validation set is needed: kernel, length scale,
    the kind of M, the number of rounds and the ridge are chosen by cross-fitting, in which M is learned without the
    rows at which it is judged. Plain kernel ridge regression, no round, is among the choices.

    Parameters
    ----------
    kernel : Kernel, str or callable
        "auto" compares Laplace and Gaussian kernels. "laplace", "laplace_l1", "gaussian", "exponential_power" or a
        kernel of these classes; with the l1 distance M is diagonal. A length scale that is a number is in units of the
        columns' standard deviations.
    alpha : float, array-like of shape (t,), or str
        Ridge of the regression, a number > 0, or "auto" to choose it.
    matrix : str
        "full", "diagonal" (weights of columns only), or "auto" to compare both.
    max_iter : int or None
        Largest number of rounds.
    n_folds : int
        Folds of the cross-fitting.
    n_learn : int or None
        Largest number of rows that M is learned from. The regression is fitted to all rows.
    solver, n_landmarks, landmarks : str or solver object and int or None and str or array-like of shape (m, d)
        Of the regression with the learned M, as in `KernelRidge`.
    device, dtype, memory_budget, random_state, verbose : see `KernelRidge`
        As in `KernelRidge`.

    Attributes
    ----------
    agop_ : array of shape (d, d) or (d,)
        M, (d, d), or its diagonal, (d,), for columns in units of their standard deviation, the largest diagonal entry
        one.
    feature_importances_ : array of shape (d,)
        The shares of the columns in its trace.
    kernel_, alpha_, n_iter_ : Kernel and float or array of shape (t,) and int
        The kernel, ridge and number of rounds chosen (at least 1; see `report`).
    error_ : float or array of shape (t,)
        The root mean squared error at rows left out, which no M or ridge has seen; NaN for too few rows. Of up to 2,000
        rows it is cross-fitted, of more rows a tenth is held out for it.
    solver_report_ : SolverReport
        How the last system was solved.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, *Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models*, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(150, 6))
    >>> model = RFMRegressor("gaussian", max_iter=3, n_folds=2).fit(X, np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1])
    >>> sorted(np.argsort(-model.feature_importances_)[:2].tolist())
    [0, 1]
    """

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,) or (n, t), or to a `RowSource` that has both."""
        settings = RFMSettings.of(self.get_params(deep=False))
        if isinstance(X, RowSource):
            source = checked_source(self, X, y, sample_weight)
            return self._keep(fit_source(settings, source, sampled(source, SAMPLED, settings.seed)))
        sample = checked_sample(self, settings.candidates[0].kernel, X, y, sample_weight)
        return self._keep(fit_rows(settings, sample))

    def predict(self, X: Rows) -> Any:
        """The fitted function at the rows of X, or of a `RowSource`, of shape (m,) or (m, t), in the dtype of X."""
        values = self._source_values(X) if isinstance(X, RowSource) else self._values(X)
        return restore(values[:, 0] if self._fit.seen.one_target else values, X)

    def _keep(self, fit: RFMFit, *, warn: bool = True) -> Self:
        self._remember(fit, warn=warn)
        error = fit.error.cpu().numpy()
        self.error_ = float(error[0]) if fit.seen.one_target else error
        return self
