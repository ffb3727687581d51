"""Kernel ridge and ridgeless regression."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, restore
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError
from mercer.core.persistence import register
from mercer.core.report import Report
from mercer.core.seeding import as_seed
from mercer.estimators.alpha import checked_alpha, checked_alphas
from mercer.estimators.base import KernelEstimator
from mercer.estimators.data import prediction_rows, training_data
from mercer.estimators.influence import Influence, most_influential
from mercer.estimators.ridge_plot import ridge_plot
from mercer.estimators.ridge_report import ridge_report
from mercer.estimators.ridge_state import ridge_from_state, ridge_state
from mercer.estimators.ridge_system import RidgeSystem
from mercer.kernels import as_kernel, resolve
from mercer.kernels.objects import is_unproven
from mercer.operators import gram
from mercer.rkhs import RKHSFunction
from mercer.selection import loo_predictions, select_alpha, tune_kernel
from mercer.solvers import Cholesky, Eigh, choose, ridge_solve
from mercer.solvers.semidefinite import require_semidefinite


@register
class KernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
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
    solver : "auto", "cholesky", "eigh", or "pcg": conjugate gradients, which never store the Gram matrix.
    device : "auto", "cpu", "cuda" or a torch device.
    dtype : "auto" (float64), "float32" or "float64" of the Gram products; systems are solved in float64.
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free.
    random_state : seed of the subsamples that medians and tuning use on large data, and of preconditioners.
    tol, max_iter : largest relative residual and number of iterations of "pcg".
    verbose : print the progress of tuning and of iterations.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    alpha_, lambda_ : the ridge, and the ridge of the averaged loss, alpha divided by the total weight.
    dual_coef_ : the coefficients c, of shape (n,) or (n, t).
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
        max_iter: int = 1000,
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
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X of shape (n, d) and targets y of shape (n,) or (n, t)."""
        kernel = as_kernel(self.kernel)
        self._data = training_data(self, kernel, X, y, sample_weight)
        data = self._data.positive(kernel.domain == "matrix")[0]
        rows, n_targets = data.rows, data.targets.shape[1]
        alpha, alphas = checked_alpha(self.alpha, n_targets), checked_alphas(self.alphas)
        self._seed = seed = as_seed(self.random_state)
        solver, reason = choose(len(rows), n_targets, alpha, self.solver, self.memory_budget, self._device(rows))
        self.kernel_ = resolve(kernel.bind(rows.names), rows, data.weights, seed=seed)
        self.tuning_ = None
        if self.tune:
            progress = _print_progress if self.verbose else None
            self.tuning_ = tune_kernel(
                self.kernel_, rows, data.targets, data.weights, alpha, seed=seed, progress=progress
            )
            self.kernel_ = self.tuning_.kernel
        self._solve(alpha, alphas, solver, reason)
        return self

    def predict(self, X: Any) -> Any:
        """The fitted function at the rows of X, of shape (m,) or (m, t)."""
        check_is_fitted(self)
        rows = prediction_rows(self, self.kernel_, X)
        operator = self._gram(rows, self._data.rows)
        values = operator.matmul(torch.as_tensor(self.dual_coef_).to(operator.device))
        return restore(values.to(rows.values.dtype) if rows.is_tensor else values, X)

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function, an element of the RKHS."""
        check_is_fitted(self)
        return RKHSFunction(self.kernel_, self.X_fit_, self.dual_coef_)

    @property
    def loo_predictions_(self) -> Any:
        """For each training row the prediction of the model fitted without it (without one unit of its weight)."""
        check_is_fitted(self)
        return self._data.given_back(self._loo_columns())

    def label_weights(self, X: Any) -> Any:
        r"""The weights of the training labels in each prediction, of shape (m, n); (m, n, t) with one alpha per target.

        .. math:: f(x) = \sum_i w_i(x) y_i, \qquad w(x) = (K + \alpha W^{-1})^{-1} k(X, x).
        """
        check_is_fitted(self)
        system = self._system()
        cross = self._gram(prediction_rows(self, self.kernel_, X), self._data.rows).dense()
        rhs = system.scale * system.select(cross.T)
        alphas = np.atleast_1d(self.alpha_).tolist()
        solver = self.solver_report_.solver
        options = self._options()
        each = [system.coefficients(ridge_solve(system.operator, rhs, a, solver, **options).value).T for a in alphas]
        return restore(each[0] if isinstance(self.alpha_, float) else torch.stack(each, dim=2), X)

    def influential(self, X: Any, k: int = 10) -> Influence:
        """The `k` training rows behind each prediction: those with the largest label weights."""
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"influential(k={k!r}): k must be an integer >= 1.")
        weights = np.asarray(self.label_weights(X))
        if weights.ndim == 3:
            raise InputError("influential needs one alpha for all targets; see label_weights for one alpha per target.")
        labels = self._data.targets.numpy()
        return most_influential(weights, labels[:, 0] if self._data.one_target else labels, int(k))

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        check_is_fitted(self)
        return ridge_report(self)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Draw the function for one feature, else predicted against actual values: leave-one-out, or at X, y."""
        check_is_fitted(self)
        return ridge_plot(self, X, y, ax)

    def _solve(self, alpha: str | float | Tensor, alphas: Tensor | None, solver: str, reason: str) -> None:
        system = self._system()
        if is_unproven(self.kernel_):
            require_semidefinite(system.operator)
        self.alpha_path_ = self._loo = None
        if isinstance(alpha, str):
            spectrum = Eigh().prepare(system.operator)
            data = system.data
            self.alpha_path_ = select_alpha(spectrum, data.targets, data.weights, alphas, criterion=alpha)
            alpha = self.alpha_path_.alpha
            self._loo = system.spread(loo_predictions(spectrum, data.targets, data.weights, alpha))
        if self.alpha_path_ is not None and solver == "eigh":
            solution = spectrum.solve(system.rhs, alpha)
        else:
            solution = ridge_solve(system.operator, system.rhs, alpha, solver, **self._options())
        self.solver_report_ = solution.report(reason="; ".join(filter(None, [reason, solution.reason])))
        if not solution.converged:
            warnings.warn(f"KernelRidge: {self.solver_report_}", ConvergenceWarning, stacklevel=3)
        self._keep(system.coefficients(solution.value), alpha)

    def _keep(self, coef: Tensor, alpha: float | Tensor) -> None:
        data = self._data
        self.alpha_ = alpha if isinstance(alpha, float) else float(alpha[0]) if data.one_target else alpha.cpu().numpy()
        self.lambda_ = self.alpha_ / data.total_weight
        self.n_iter_ = max(1, self.solver_report_.iterations)
        self.dual_coef_ = data.given_back(coef)
        rows = data.rows.values
        self.X_fit_ = rows if data.torch_in or not isinstance(rows, Tensor) else rows.numpy()

    def _loo_columns(self) -> Tensor:
        """Leave-one-out predictions (n, t), found again when the fit did not need them."""
        data = self._data
        if self._loo is None:
            system = self._system()
            alpha: Any = self.alpha_ if isinstance(self.alpha_, float) else torch.as_tensor(self.alpha_)
            direct = isinstance(alpha, float) and alpha > 0
            prepared = Cholesky().prepare(system.operator, alpha) if direct else Eigh().prepare(system.operator)
            self._loo = system.spread(loo_predictions(prepared, system.data.targets, system.data.weights, alpha))
        if data.weights is not None and bool((data.weights == 0).any()):
            idle = (data.weights == 0).nonzero().squeeze(1)  # never used in the fit: the prediction itself
            operator = self._gram(data.rows.take(idle), data.rows)
            coef = torch.as_tensor(self.dual_coef_).reshape(len(data.rows), -1)
            self._loo[idle] = operator.matmul(coef.to(operator.device)).to(self._loo)
        return self._loo

    def _options(self) -> dict[str, Any]:
        """What the iterative solvers are told."""
        callback = _print_residual if self.verbose else None
        limits = {"tol": self.tol, "max_iter": self.max_iter, "memory_budget": self.memory_budget}
        return limits | {"seed": self._seed, "callback": callback}

    def _system(self) -> RidgeSystem:
        return RidgeSystem.of(self._data, self.kernel_.domain == "matrix", self._gram)

    def _gram(self, X: Points, Z: Points | None = None) -> Any:
        dtype = torch.float64 if self.dtype == "auto" else choose_dtype(self.dtype)
        device = self._device(self._data.rows)
        return gram(self.kernel_, X, Z, memory_budget=self.memory_budget, device=device, dtype=dtype)

    def _device(self, rows: Points) -> torch.device:
        return choose_device(self.device, rows.values if self._data.torch_in else None)

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return ridge_state(self)

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        return ridge_from_state(cls, meta, arrays)


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)


def _print_residual(iteration: int, residual: float) -> None:
    print(f"iteration {iteration}: relative residual {residual:.2e}", flush=True)
