"""The private side of a ridge regression: settings become solver options, and a fit becomes attributes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError
from mercer.core.memory import give_back, readable, require, resolve_budget
from mercer.core.progress import Iterations, Progress
from mercer.core.results import SolverReport
from mercer.core.seeding import as_seed
from mercer.data.rows import RowSource, read_ahead
from mercer.estimators.base import KernelEstimator
from mercer.estimators.data import Seen, TrainingData, check_kernel_values
from mercer.estimators.expansion import Centres, Expansion, Features, Placement
from mercer.estimators.ridge_system import RidgeSystem
from mercer.kernels import Kernel, resolve
from mercer.kernels.pair import DiagonalPair
from mercer.selection import AlphaPath, Tuned, loo_predictions, tune_kernel
from mercer.solvers import SOLVERS, Cholesky, Eigh, choose
from mercer.solvers.choose import landmark_count, landmark_solver, memory_needed
from mercer.solvers.landmarks import POOL, check_landmarks, distinct_rows
from mercer.solvers.ridge import ITERATIVE
from mercer.solvers.row_blocks import working_bytes

if TYPE_CHECKING:
    from mercer.estimators.ridge_few import RunningSums
    from mercer.estimators.ridge_rows import RidgeFit

SINGLE = ITERATIVE | {"falkon"}
"""Solvers that iterate with products in the precision of the data."""

FEWEST_SAMPLED = 20_000
"""Rows of a source that medians and tuning see at least."""

DESCENTS = frozenset({"eigenpro", "gd"})
"""Solvers that without a ridge stop where rows held out are predicted best."""

ROUNDED = 1e-5
"""Share of a prediction's size that the rounding of float32 may take before it is made again in float64."""

HOLD_OUT_FROM = 50
"""Rows from which a descent holds some out to know when to stop."""

FIXED = ("kernel", "landmarks", "n_landmarks", "n_features")
"""Parameters that stay what they were in the first of several partial fits."""


class RidgeModel(KernelEstimator):
    """Parameters and fitted state of `KernelRidge`, and what its methods share."""

    alpha: Any
    tune: bool
    solver: str
    device: Any
    dtype: Any
    memory_budget: Any
    random_state: Any
    tol: float
    max_iter: int | None
    n_landmarks: int | None
    landmarks: Any
    n_features: int | None
    checkpoint: Any
    client: Any
    verbose: bool

    kernel_: Kernel
    alpha_: Any
    tuning_: Tuned | None
    alpha_path_: AlphaPath | None
    solver_report_: SolverReport

    _seen: Seen
    _data: TrainingData | None  # None where the fit keeps no training rows
    _sums: RunningSums | None = None  # what further rows can be added to
    _loo: Tensor | None
    _expansion: Expansion
    _coef: Tensor
    _solver: str
    _seed: int
    _reserved: int = 0  # memory for rows that are read in parts
    _asked: dict[str, Any]  # parameters that rows added later cannot change

    def _begin(
        self, whole: TrainingData, data: TrainingData, alpha: Any, streamed: RowSource | None = None
    ) -> tuple[str, str]:
        """Forget an earlier fit and decide on the solver; of rows that are `streamed`, `data` are some."""
        if self.checkpoint is not None and streamed is None:
            raise InputError(
                f"checkpoint={self.checkpoint!r} is for rows that are read in parts: "
                "wrap arrays in mercer.rows.ArrayRows."
            )
        for name in ("dual_coef_", "X_fit_", "coef_", "features_"):
            self.__dict__.pop(name, None)
        self._data = self._sums = self._loo = None
        self._seen, self._seed = whole.seen, as_seed(self.random_state)
        self._asked = {name: getattr(self, name) for name in FIXED}
        n, t, solver = len(data.rows), data.targets.shape[1], self.solver
        landmarks = self._checked_landmarks()
        self._reserved = 0
        if streamed is not None:
            self._reserve(streamed)
            self._seen = replace(self._seen, n_rows=streamed.n_rows)
            n, solver = streamed.n_rows, self._streamed_solver(alpha, landmarks)
        few = {"n_landmarks": landmarks, "n_features": self.n_features}
        budget, device = self._budget(whole.rows), self._device()
        self._solver, reason = choose(n, t, alpha, solver, budget, device, **few)
        if solver == "auto" and self._solver == "nystrom" and landmarks is None and self._domain() == "matrix":
            # a matrix has no rows to choose landmarks from: an error that says what would fit
            choose(n, t, alpha, "eigh", budget, device)
        if self.solver == "auto" and streamed is not None:
            reason = "chosen because the rows are read in parts"
        elif solver == "auto" and self._solver == "eigenpro" and (kinds := self._few_kinds(data)):
            # least squares, which a descent that looks at some rows at a time does not reach
            self._solver, reason = "nystrom", f"chosen because only {kinds:,} of {n:,} rows are different"
        return self._solver, reason

    def _few_kinds(self, data: TrainingData) -> int | None:
        """The number of different rows where all of them can be landmarks."""
        if self._domain() == "matrix":
            return None
        kinds = len(distinct_rows(data.rows, data.weights)[0])
        most = landmark_count(len(data.rows), None, "nystrom", self.memory_budget, self._device())
        return kinds if kinds <= most else None

    def _reserve(self, source: RowSource) -> None:
        """Set aside what reading and working on parts of rows takes, before any work."""
        budget = resolve_budget(self.memory_budget)
        reading, working = source.reading_bytes, working_bytes(0)
        advice = "Use a larger memory_budget, or sources with fewer rows_at_once."
        what = f"working on parts of rows, which takes {readable(reading)} to read,"
        require(reading + working, budget, what, advice)
        self._reserved = reading + working

    def _left_beside_rows(self) -> int:
        """The budget for landmarks."""
        device = self._device()
        budget = resolve_budget(self.memory_budget, device)
        return budget if device.type != "cpu" else budget - self._reserved

    def _streamed_solver(self, alpha: Any, landmarks: int | None) -> str:
        if self.solver == "auto":
            if self.n_features is not None:
                return "random_features"
            return landmark_solver(landmarks or 0, alpha)
        if self.solver in SOLVERS:
            raise InputError(
                f"solver={self.solver!r} needs all rows in memory: pass arrays, or use solver='nystrom', 'falkon' or "
                "'random_features' for rows that are read in parts."
            )
        return self.solver

    def _sample_size(self, source: RowSource) -> int:
        """Rows of a source that landmarks and parameters are chosen from."""
        given = self._checked_landmarks()
        m = given if given is not None else landmark_count(source.n_rows, None, "nystrom", self.memory_budget, "cpu")
        spread = isinstance(self.landmarks, str) and self.landmarks != "uniform"
        return max(FEWEST_SAMPLED, (POOL if spread else 1) * m)

    def _checked_landmarks(self) -> int | None:
        count = check_landmarks(self.landmarks, self.n_landmarks)
        named = isinstance(self.landmarks, str)
        if self.solver in (*SOLVERS, "random_features") and not (named and self.landmarks == "uniform"):
            what = f"landmarks={self.landmarks!r}" if named else f"landmarks, given as {count} points,"
            verb = "has" if named else "have"
            raise InputError(f"{what} {verb} no meaning for solver={self.solver!r}: use 'nystrom' or 'falkon'.")
        return count

    def _resolve_kernel(self, kernel: Kernel, data: TrainingData, alpha: Any) -> None:
        self.kernel_ = resolve(kernel.bind(data.rows.names), data.rows, data.weights, seed=self._seed)
        check_kernel_values(self.kernel_, data.rows)
        self.tuning_ = None
        if self.tune:
            progress = _print_progress if self.verbose else None
            self.tuning_ = tune_kernel(
                self.kernel_, data.rows, data.targets, data.weights, alpha, seed=self._seed, progress=progress
            )
            self.kernel_ = self.tuning_.kernel

    def _keep(self, fitted: RidgeFit, reason: str, seconds: float) -> None:
        expansion, solution, alpha = fitted.expansion, fitted.solution, fitted.alpha
        words = "; ".join(filter(None, [reason, expansion.note, solution.reason]))
        self.solver_report_ = solution.report(solver=self._solver, reason=words, seconds=seconds)
        if not solution.converged:
            warnings.warn(f"KernelRidge: {self.solver_report_}", ConvergenceWarning, stacklevel=4)
        self.alpha_path_, self._loo, self._sums = fitted.path, fitted.loo, fitted.sums
        self._restore_fit(expansion, fitted.coef, alpha)

    def _restore_fit(self, expansion: Any, coef: Tensor, alpha: float | Tensor) -> None:
        """The fitted attributes that a model file holds too."""
        seen = self._seen
        self.alpha_ = alpha if isinstance(alpha, float) else float(alpha[0]) if seen.one_target else alpha.cpu().numpy()
        self.lambda_ = self.alpha_ / seen.total_weight
        self.n_iter_ = max(1, self.solver_report_.iterations)
        self._expansion, self._coef = expansion, coef
        if isinstance(expansion, Features):
            self.features_, self.coef_ = expansion.features, seen.given_back(coef)
            return
        self.dual_coef_ = seen.given_back(coef)
        rows = expansion.points.values
        self.X_fit_ = rows if seen.torch_in or not isinstance(rows, Tensor) else rows.numpy()

    def _values(self, rows: Points) -> Tensor:
        """The fitted function, of shape (m,) or (m, t)."""
        values = self._at(rows, self._place())
        return values.reshape(len(values)) if self._seen.one_target else values

    def _at(self, rows: Points, place: Placement) -> Tensor:
        """The fitted function in the precision of `place`, in float64 where large coefficients magnify its rounding."""
        operator = self._expansion.at(rows, place)
        values: Tensor = operator.matmul(self._coef.to(operator.device))
        if operator.dtype != torch.float32 or self.dtype != "auto" or not isinstance(self._expansion, Centres):
            return values
        if self.kernel_.domain == "matrix":
            return values
        here, there = (self.kernel_.on(DiagonalPair(p)).abs().max() for p in (rows, self._expansion.points))
        peak = float(here.cpu() * there.cpu()) ** 0.5
        rounding = torch.finfo(torch.float32).eps * peak * self._coef.norm(dim=0).to(values.device)
        if bool((rounding <= ROUNDED * values.square().mean(0).sqrt()).all()):
            return values
        return self._at(rows, replace(place, dtype=torch.float64))

    def _values_of(self, source: RowSource) -> Tensor:
        """The fitted function at the rows of a source, part after part."""
        shape = (len(source),) if self._seen.one_target else (len(source), self._seen.n_targets)
        values = torch.empty(shape, dtype=source.dtype)
        with Progress(len(source), "predictions", shown=self.verbose) as progress:
            for part, chunk in read_ahead(source.read, source.parts()):
                found = self._values(Points(chunk.X, source.names)).cpu().to(values.dtype)
                values[part.before : part.before + len(part)] = checked_values(found, "Predictions", part.before)
                del chunk
                give_back()
                progress.advance(len(part))
        return values

    def _all_rows(self, what: str) -> TrainingData:
        """The training data, which a fit on few functions does not keep."""
        solver = self.solver_report_.solver
        if self._data is None:
            raise InputError(f"{what} needs every training row, but solver={solver!r} does not keep them.")
        if solver in DESCENTS:
            raise InputError(f"{what} has no closed form for a descent that stops early, solver={solver!r}.")
        return self._data

    def _loo_columns(self) -> Tensor:
        """Leave-one-out predictions (n, t), found again when the fit did not need them."""
        if self._data is None and self._loo is not None:
            return self._loo
        data = self._all_rows("leave-one-out")
        if self._loo is None:
            system = self._system()
            alpha: Any = self.alpha_ if isinstance(self.alpha_, float) else torch.as_tensor(self.alpha_)
            direct = isinstance(alpha, float) and alpha > 0
            n, t = system.data.targets.shape
            require(
                memory_needed(n, "cholesky" if direct else "eigh", t),
                resolve_budget(self.memory_budget, self._device()),
                f"leave-one-out of {n:,} rows, which factorises their Gram matrix,",
                "Use a larger memory_budget, or rows that were held out: plot(X, y).",
            )
            prepared = Cholesky().prepare(system.operator, alpha) if direct else Eigh().prepare(system.operator)
            self._loo = system.spread(loo_predictions(prepared, system.data.targets, system.data.weights, alpha))
        if data.weights is not None and bool((data.weights == 0).any()):
            idle = (data.weights == 0).nonzero().squeeze(1)  # never used in the fit: the prediction itself
            self._loo[idle] = self._values(data.rows.take(idle)).reshape(len(idle), -1).to(self._loo)
        return self._loo

    def _spread_loo(self, whole: TrainingData, places: Tensor | None) -> None:
        """Leave-one-out predictions of the rows that have weight become those of all: the others were never used."""
        if self._loo is None or places is None or self._data is not None:
            return
        idle = torch.ones(len(whole.rows), dtype=torch.bool)
        idle[places] = False
        full = self._loo.new_empty(len(whole.rows), self._loo.shape[1])
        full[places.to(full.device)] = self._loo
        rows = whole.rows.take(idle.nonzero().squeeze(1))
        full[idle.to(full.device)] = self._values(rows).reshape(len(rows), -1).to(full)
        self._loo = full

    def _options(self, solver: str, n: int) -> dict[str, Any]:
        """What an iterative solver is told; nothing for a direct one."""
        if solver not in SINGLE:
            return {}
        options: dict[str, Any] = {"tol": self.tol, "seed": self._seed}
        if self.max_iter is not None:
            options["max_iter"] = self.max_iter
        if solver == "pcg":
            options["memory_budget"] = self._budget()
        if solver == "falkon":
            options["refine"] = self.dtype == "auto"
            options["among_rows"] = isinstance(self.landmarks, str)
        what = "relative residual"
        if solver in DESCENTS:
            no_ridge = not isinstance(self.alpha, str) and not np.any(self.alpha)
            options["validation"] = 0.1 if n >= HOLD_OUT_FROM and no_ridge else 0.0
            what = "error on rows held out" if options["validation"] else what
        return options | {"callback": Iterations(self.tol, self.max_iter, what) if self.verbose else None}

    def _system(self, dtype: torch.dtype | None = None) -> RidgeSystem:
        data, place = self._data, self._place()
        assert data is not None
        pairwise = self.kernel_.domain == "matrix"
        return RidgeSystem.of(data, pairwise, lambda X: place.gram(self.kernel_, X, dtype=dtype))

    def _place(self) -> Placement:
        if self.dtype == "auto":
            single = self._solver in SINGLE and self._seen.dtype == torch.float32
            dtype = torch.float32 if single else torch.float64
        else:
            dtype = choose_dtype(self.dtype)
        return Placement(self._device(), dtype, self._budget())

    def _device(self) -> torch.device:
        seen = self._seen
        return choose_device(self.device, torch.empty(0, device=seen.device) if seen.torch_in else None)


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)
