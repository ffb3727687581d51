"""Kernel ridge and ridgeless regression."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.core.report import Report
from mercer.core.seeding import as_seed
from mercer.data.engines import using_engine
from mercer.data.rows import DaskRows, RowSource, is_dask
from mercer.estimators.alpha import checked_alpha, checked_alphas
from mercer.estimators.base import all_or_nothing
from mercer.estimators.data import check_features, prediction_rows, sampled_data, training_data
from mercer.estimators.expansion import Centres
from mercer.estimators.influence import Influence, most_influential
from mercer.estimators.ridge_few import RunningSums, choose_expansion, fit_few, fit_source
from mercer.estimators.ridge_model import RidgeModel
from mercer.estimators.ridge_plot import ridge_plot
from mercer.estimators.ridge_report import ridge_report
from mercer.estimators.ridge_rows import fit_rows, solve_rows
from mercer.estimators.ridge_state import ridge_from_state, ridge_state
from mercer.estimators.scores import ScoreMixin
from mercer.estimators.spread import predicted_later, spread_values
from mercer.files.persistence import register
from mercer.functions import RKHSFunction
from mercer.kernels import Kernel, as_kernel
from mercer.solvers import SOLVERS
from mercer.solvers.choose import memory_needed

MERGEABLE = ("nystrom", "random_features")
"""Solvers whose sums over rows can be continued."""


@register
class KernelRidge(ScoreMixin, MultiOutputMixin, RegressorMixin, RidgeModel):
    r"""Least-squares regression in the RKHS of a kernel.

    Finds :math:`f = \sum_i c_i k(x_i, \cdot)` that minimises

    .. math:: \sum_i w_i (f(x_i) - y_i)^2 + \alpha \|f\|_k^2,
        \qquad (K + \alpha W^{-1}) c = y,

    and at ``alpha=0`` the interpolant of smallest norm, also when K is singular.

    Parameters
    ----------
    kernel : a `Kernel`, its name, or a function of two points. A name has the median length scale.
    alpha : ridge: a number >= 0, one per target, or "loo" / "gcv" to choose it for each target by leave-one-out
        or generalised cross-validation from one eigendecomposition.
    alphas : the path that "loo" and "gcv" search; by default 30 values relative to the largest eigenvalue.
    tune : fit the kernel's parameters too, by the gradient of the leave-one-out error.
    solver : "auto" decides by the size of the job and says why. A coefficient for every row: "cholesky", "eigh",
        "mixed_cholesky" (half of the memory, well-conditioned systems only), and without storing the Gram matrix "pcg"
        (conjugate gradients), "eigenpro" and "gd" (descents that stop by rows held out; use alpha=0). On landmarks:
        "nystrom" (one pass over the rows) and "falkon" (iterations, for many landmarks). "random_features".
    device : "auto", "cpu", "cuda" or a torch device.
    dtype : "float32" or "float64" of kernel values; systems are solved in float64. "auto" is float64, but float32 for
        float32 data where a solver iterates with products ("pcg", "falkon", "eigenpro", "gd").
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free.
    random_state : seed of the subsamples that medians and tuning use on large data, and of the solvers.
    tol : largest relative residual of an iterative solver.
    max_iter : its largest number of iterations, epochs for "eigenpro"; None for the solver's own.
    n_landmarks : of "nystrom" and "falkon"; by default 4 sqrt(n), between 500 and 4000.
    landmarks : "uniform", "pivoted", "leverage", or an array of points; see `mercer.solvers.choose_landmarks`.
    n_features : of "random_features", 1000 by default.
    checkpoint : path of a file that keeps the state of a fit to a `RowSource`; the same fit goes on from there after
        whatever ended it, and removes the file when it is done.
    client : a `dask.distributed.Client`, or the address of a Dask scheduler, whose workers read and work on the rows of
        a `RowSource`. A client stays open; with an address each call connects and disconnects. Rows of a Dask
        collection are worked on by the client that is active without being asked.
    verbose : print the progress of tuning, of passes and of iterations.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    alpha_, lambda_ : the ridge, and the ridge of the averaged loss, alpha divided by the total weight.
    dual_coef_ : the coefficients c, of shape (n,) or (n, t); one for each landmark when there are landmarks.
    X_fit_ : the points of those coefficients: training rows or landmarks.
    coef_, features_ : instead of these, the coefficients and the map of random features.
    function_ : the fitted `RKHSFunction`.
    solver_report_ : how the system was solved.
    n_iter_ : iterations of the solver, 1 for a direct one.
    alpha_path_ : errors along the path when alpha was chosen, else None.
    tuning_ : the account of the tuning, else None.

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

    def __init__(
        self,
        kernel: Any = "laplace",
        *,
        alpha: Any = 1.0,
        alphas: Any = None,
        tune: bool = False,
        solver: str = "auto",
        device: Any = "auto",
        dtype: Any = "auto",
        memory_budget: Any = None,
        random_state: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Any = "uniform",
        n_features: int | None = None,
        checkpoint: Any = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.alphas = alphas
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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,) or (n, t), or to a `RowSource` that has both.

        X, y and `sample_weight` may be Dask arrays or data frames; y may then name a column of X.
        """
        kernel = as_kernel(self.kernel)
        if is_dask(X):
            X, y, sample_weight = DaskRows(X, y, sample_weight), None, None
        if isinstance(X, RowSource):
            return self._fit_source(kernel, X, y, sample_weight)
        if self.client is not None:
            raise InputError("client= is for rows that are read in parts: wrap arrays in mercer.rows.ArrayRows.")
        whole = training_data(self, kernel, X, y, sample_weight)
        data, places = whole.positive(kernel.domain == "matrix")
        alpha = checked_alpha(self.alpha, data.targets.shape[1])
        alphas = checked_alphas(self.alphas)
        solver, reason = self._begin(whole, data, alpha)
        self._resolve_kernel(kernel, data, alpha)
        started = time.perf_counter()
        if solver in SOLVERS:
            self._data = whole = replace(whole, rows=self._own(whole.rows))
            fitted = fit_rows(self, whole, alpha, alphas, solver)
        else:
            fitted = fit_few(self, data, alpha, alphas, solver)
        self._keep(fitted, reason, time.perf_counter() - started)
        self._spread_loo(whole, places)
        return self

    def _fit_source(self, kernel: Kernel, source: RowSource, y: Any, sample_weight: Any) -> Self:
        seed = as_seed(self.random_state)
        with using_engine(self.client, source) as engine:
            some = sampled_data(self, source, y, sample_weight, self._sample_size(source), seed, engine)
            data = some.positive(pairwise=False)[0]
            alpha, alphas = checked_alpha(self.alpha, source.n_targets), checked_alphas(self.alphas)
            solver, reason = self._begin(some, data, alpha, streamed=source)
            self._resolve_kernel(kernel, data, alpha)
            started = time.perf_counter()
            fitted = fit_source(self, source, data, alpha, alphas, solver, engine)
        where = f"{reason}; rows were read in {len(source.parts()):,} parts{'' if engine is None else f' by {engine}'}"
        self._keep(fitted, where, time.perf_counter() - started)
        return self

    @available_if(lambda self: self.solver in MERGEABLE)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to a fit on landmarks or random features; the result is that of one fit to all rows so far.

        For ``solver="nystrom"`` and ``"random_features"``. The first call decides the kernel's median length scale and,
        unless they are given, the landmarks, from its own rows. With both given, the order of calls does not matter.
        """
        kernel = as_kernel(self.kernel)
        begun = hasattr(self, "solver_report_")
        if begun and self._solver != self.solver:
            raise InputError(f"partial_fit cannot continue a fit by solver={self._solver!r}: start from a new model.")
        if begun and self._sums is None:
            raise InputError("partial_fit cannot continue a model that was read from a file: its sums are not there.")
        changed = (
            [name for name, value in self._asked.items() if not _same(value, getattr(self, name))] if begun else ()
        )
        if changed:
            raise InputError(
                f"partial_fit cannot continue with another {' and '.join(changed)}: start from a new model."
            )
        whole = training_data(self, kernel, X, y, sample_weight, reset=not begun)
        data = whole.positive(kernel.domain == "matrix")[0]
        alpha = checked_alpha(self.alpha, data.targets.shape[1])
        if isinstance(alpha, str):
            raise InputError(f"alpha={alpha!r}: partial_fit needs a number; a path needs all rows again: use fit.")
        started = time.perf_counter()
        sums, seen = self._sums, whole.seen
        if sums is not None:
            seen = self._seen.with_more(seen)
        else:
            self._begin(whole, data, alpha)
            self._resolve_kernel(kernel, data, alpha)
            sums = RunningSums.begin(choose_expansion(self, data, self.solver), self._place())
        fitted = sums.add(sums.working.blocks(data, self._place())).solve(alpha)
        self._seen = seen
        self._keep(fitted, "rows were added in parts", time.perf_counter() - started)
        return self

    def predict(self, X: Any) -> Any:
        """The fitted function at the rows of X, or of a `RowSource`, of shape (m,) or (m, t), in the dtype of X.

        For a Dask array or data frame a Dask array, which is computed when it is asked for.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predicted_later(self, X)
        if isinstance(X, RowSource):
            check_features(self, X)
            if len(X) == 0:
                raise InputError("The source has no rows to predict at.")
            with using_engine(self.client, X) as engine:
                if engine is not None:
                    return spread_values(self, X, engine).numpy()
            return self._values_of(X).numpy()
        rows = prediction_rows(self, self.kernel_, X)
        values = self._values(rows)
        values = values.to(rows.values.dtype) if rows.is_tensor else values
        return restore(checked_values(values, "Predictions"), X)

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function, an element of the RKHS."""
        check_is_fitted(self)
        if not isinstance(self._expansion, Centres):
            raise AttributeError("random features are not functions of the kernel's RKHS; use predict.")
        return RKHSFunction(self.kernel_, Points(self._expansion.points.values), self.dual_coef_)

    @property
    def loo_predictions_(self) -> Any:
        """For each training row the prediction of the model fitted without it (without one unit of its weight)."""
        check_is_fitted(self)
        return self._seen.given_back(self._loo_columns())

    def label_weights(self, X: Any) -> Any:
        r"""The weights of the training labels in each prediction, of shape (m, n); (m, n, t) with one alpha per target.

        .. math:: f(x) = \sum_i w_i(x) y_i, \qquad w(x) = (K + \alpha W^{-1})^{-1} k(X, x).
        """
        check_is_fitted(self)
        data = self._all_rows("label_weights")
        cross = self._place().gram(self.kernel_, prediction_rows(self, self.kernel_, X), data.rows).dense()
        checked_values(torch.as_tensor(cross), "Kernel values")
        system, solver = self._system(), self.solver_report_.solver
        budget = resolve_budget(self.memory_budget, self._device())
        if solver == "pcg" and memory_needed(len(data.rows), "cholesky", len(cross)) <= budget:
            system, solver = self._system(torch.float64), "cholesky"
        rhs = system.scale * system.select(cross.T)
        solutions = [solve_rows(self, system, rhs, a, solver) for a in np.atleast_1d(self.alpha_).tolist()]
        for solution in solutions:
            if not solution.converged:
                warnings.warn(f"KernelRidge.label_weights: {solution}", ConvergenceWarning, stacklevel=2)
        each = [system.coefficients(solution.value).T for solution in solutions]
        return restore(each[0] if isinstance(self.alpha_, float) else torch.stack(each, dim=2), X)

    def influential(self, X: Any, k: int = 10) -> Influence:
        """The `k` training rows behind each prediction: those with the largest label weights."""
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"influential(k={k!r}): k must be an integer >= 1.")
        weights = np.asarray(self.label_weights(X))
        if weights.ndim == 3:
            raise InputError("influential needs one alpha for all targets; see label_weights for one alpha per target.")
        data = self._all_rows("influential")
        labels = data.targets.numpy()
        return most_influential(weights, labels[:, 0] if data.one_target else labels, int(k))

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return ridge_report(self)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Draw the function for one feature, else predicted against actual values: leave-one-out, or at X, y."""
        check_is_fitted(self)
        return ridge_plot(self, X, y, ax)

    def __getstate__(self) -> dict[str, Any]:
        """A connection stays where it is."""
        return super().__getstate__() | {"client": self.client if isinstance(self.client, str) else None}

    def __sklearn_clone__(self) -> Self:
        client, self.client = self.client, None
        try:
            twin = super().__sklearn_clone__()
        finally:
            self.client = client
        twin.client = client
        return twin

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return ridge_state(self)

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        return ridge_from_state(cls, meta, arrays)


def _same(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are the same; arrays may be copies."""
    if a is b or a is None or b is None:
        return a is b
    if isinstance(a, str | Kernel) or isinstance(b, str | Kernel):
        return type(a) is type(b) and bool(a == b)
    return np.array_equal(np.asarray(a), np.asarray(b))
