"""The private side of a Gaussian process regression: settings become hyperparameters, a method and a posterior."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from mercer.core.arrays import Points, as_points, checked_values, restore
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError, InputTypeError
from mercer.core.seeding import as_seed
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.base import KernelEstimator
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.overflow import check_kernel_values
from mercer.kernels.pair import DensePair
from mercer.operators.placement import Placement
from mercer.processes import ExactPosterior, Hyperparameters, Maximum, Observations, Posterior, as_mean
from mercer.processes.calibration import credible_width, half_width, left_out_width
from mercer.processes.choose_mean import choose_mean
from mercer.processes.copies import without_copies
from mercer.processes.means import FittedMean, Mean, ZeroMean
from mercer.processes.methods import METHODS, Method, MethodOptions, choose_method
from mercer.processes.pathwise import Functions, prior_values
from mercer.processes.prior_functions import PriorFunctions
from mercer.processes.stages import learn
from mercer.processes.start import LARGEST_NOISE, NOISE_SHARE, SMALLEST_NOISE, Scales, start_kernel

LEARN, AUTO = "learn", "auto"


class GaussianProcessModel(KernelEstimator):
    """Parameters and fitted state of `GaussianProcessRegressor`, and what its methods share."""

    mean: Any
    noise: Any
    method: str
    n_restarts: int
    priors: Any
    bounds: Any
    optimize: bool
    standardize: bool
    device: Any
    dtype: Any
    memory_budget: Any
    random_state: Any
    n_inducing: int | None
    n_learn: int | None
    max_iter: int
    verbose: bool

    kernel_: Kernel
    noise_: Any
    log_marginal_likelihood_: float
    optimum_: Maximum | None

    _seen: Seen
    _posterior: Posterior
    _method: Method
    _hyperparameters: Hyperparameters
    _scales: Scales
    _target_scale: Tensor  # (t,)
    _seed: int
    _mean_reason: str  # why the mean function is what it is, where that was chosen

    # What is learned from

    def _observations(self, data: Sample, noise: Tensor | None) -> Observations:
        rows = data.rows
        if rows.is_tensor:
            rows = Points(rows.values.to(self._place().device), rows.names)
        Y = (data.targets / self._target_scale).to(self._place().device)
        return Observations(rows, Y, noise, square=as_kernel(self.kernel).domain == "matrix")

    def _checked_noise(self, n: int) -> tuple[float | None, Tensor | None]:
        """The variance all rows share, None where it is learned, and the variances of each row."""
        noise = self.noise
        if isinstance(noise, str):
            if noise != LEARN:
                raise InputError(f'noise={noise!r}: give "learn", a variance >= 0 or one for each row.')
            return None, None
        if noise is None or isinstance(noise, bool | np.bool_):
            raise InputTypeError(f'noise={noise!r}: give "learn", a variance >= 0 or one for each row.')
        if isinstance(noise, numbers.Real):
            return float(check_variances(noise, "noise", 0)), None
        return 0.0, check_variances(noise, "noise", n)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.method, str) or self.method not in ("auto", *METHODS):
            known = ", ".join(map(repr, ("auto", *METHODS)))
            raise InputError(f"method={self.method!r} is unknown; the methods are {known}.")

    def _start(self, data: Observations, shared: float | None) -> Hyperparameters:
        """Kernel and noise at their start, in the units of the data, and the box they may move in."""
        rows = data.X
        self._scales = Scales.of(rows, data.Y, data.square)
        columns = None if self._scales.X is None else len(self._scales.X)
        start = self._scales if self.standardize else Scales.unit(columns)
        kernel, tied = start_kernel(self.kernel, rows, start, self._seed)
        check_kernel_values(kernel, rows)
        floor = SMALLEST_NOISE * self._scales.y
        return Hyperparameters.of(
            kernel,
            NOISE_SHARE * start.y if shared is None else shared,
            learn_noise=shared is None,
            noise_bounds=(floor, max(LARGEST_NOISE * self._scales.y, 10.0 * floor)),
            bounds=self.bounds,
            priors=self.priors,
            tied=tied,
        )

    def _scaled_targets(self, data: Sample) -> Tensor:
        """What each of several targets is divided by, so that one kernel serves all; of mean square one."""
        t = data.targets.shape[1]
        given = isinstance(self.mean, str)
        if t == 1 or not (self.standardize and self.optimize and given):
            return torch.ones(t, dtype=torch.float64)
        spread = data.targets.std(0, correction=0)
        spread = torch.where(spread > 0, spread, 1.0)
        return spread / spread.square().mean().sqrt()

    # Learning

    def _fit(self, data: Sample, shared: float | None, row_noise: Tensor | None) -> None:
        """Find the hyperparameters and condition on the data."""
        n = len(data.rows)
        self._target_scale = self._scaled_targets(data)
        observations = self._observations(data, row_noise)
        teaching = self._teaching(observations)
        hyper = self._hyperparameters = self._start(teaching, shared)
        learn = self.optimize and hyper.open and len(teaching) > 1
        mean = self._mean(teaching, hyper, learn)
        n_taught = min(len(teaching), self.n_learn or n) if learn else 0
        name, reason = choose_method(self.method, n, n_taught, self._place())
        self._method = self._make_method(name)
        self.optimum_ = self._learn(teaching, hyper, mean, n_copies=n - len(teaching)) if learn else None
        theta = hyper.start if self.optimum_ is None else self.optimum_.theta
        kernel, noise = hyper.kernel_at(theta), hyper.noise_at(theta)
        self._keep(self._method.posterior(kernel, noise, observations, mean, f"{name}: {reason}"))

    def _teaching(self, data: Observations) -> Observations:
        """The rows that hyperparameters are learned from, or some of them: no copies, unless all rows are asked for."""
        if not self.optimize or (self.n_learn or 0) >= len(data):
            return data
        return without_copies(data)

    def _mean(self, data: Observations, hyper: Hyperparameters, learn: bool) -> Mean:
        """The mean function that was asked for, or that the data ask for."""
        self._mean_reason = ""
        if not (isinstance(self.mean, str) and self.mean == AUTO):
            return as_mean(self.mean, data.X)
        chosen = choose_mean(data, hyper, self._place(), learn=learn, max_iter=self.max_iter, seed=self._seed)
        self._mean_reason = chosen.reason
        return chosen.mean

    def _make_method(self, name: str) -> Method:
        return METHODS[name](self._place(name), MethodOptions(self._seed, self.n_inducing))

    def _learn(self, data: Observations, hyper: Hyperparameters, mean: Mean, n_copies: int) -> Maximum:
        found = learn(
            self._method,
            data,
            hyper,
            mean,
            self._place(),
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            seed=self._seed,
            n_learn=self.n_learn,
            progress=_print_progress if self.verbose else None,
        )
        return replace(found, n_copies=n_copies)

    def _keep(self, posterior: Posterior) -> None:
        self._restore(posterior, self._likelihood_of(posterior))
        if not posterior.report.converged:
            warnings.warn(f"GaussianProcessRegressor: {posterior.report}", ConvergenceWarning, stacklevel=5)

    def _likelihood_of(self, posterior: Posterior) -> float:
        """The log marginal likelihood in the units of the targets."""
        return posterior.log_marginal_likelihood() - len(posterior.data) * float(self._target_scale.log().sum())

    def _restore(self, posterior: Posterior, likelihood: float) -> None:
        """The fitted attributes that a model file holds too."""
        self._posterior, self.kernel_ = posterior, posterior.kernel
        row_noise = posterior.data.noise
        self.noise_ = posterior.noise if row_noise is None else row_noise.cpu().numpy() + posterior.noise
        self.log_marginal_likelihood_ = likelihood
        self.n_iter_ = 1 if self.optimum_ is None else max(1, len(self.optimum_.history))
        self.X_fit_ = self._seen_points(posterior.data.X)

    def _seen_points(self, X: Points) -> Any:
        if not X.is_tensor:
            return X.values
        return X.values.to(self._seen.device) if self._seen.torch_in else X.values.cpu().numpy()

    # Using

    def _new_noise(self) -> float:
        """The variance of the noise of a new observation: that of all rows, or the mean where each has its own."""
        return float(np.mean(self.noise_))

    def _scaled(self, values: Tensor, power: int = 1) -> Tensor:
        """Values (..., t) in the units of the targets; (...) for one target."""
        values = values * self._target_scale.to(values) ** power
        return values.squeeze(-1) if self._seen.one_target else values

    def _place(self, method: str = "exact") -> Placement:
        """Where to compute; iterations use the precision of the data, unless one is given."""
        seen = self._seen
        device = choose_device(self.device, torch.empty(0, device=seen.device) if seen.torch_in else None)
        if self.dtype == "auto":
            single = method != "exact" and seen.dtype == torch.float32
            return Placement(device, torch.float32 if single else torch.float64, self._budget())
        return Placement(device, choose_dtype(self.dtype), self._budget())

    def _std(self, rows: Points, latent: bool) -> Tensor:
        """Deviations (m,) or (m, t) in the units of the targets."""
        variance = self._posterior.variance(rows) + (0.0 if latent else self._new_noise())
        return self._scaled(variance.sqrt().unsqueeze(-1).expand(-1, self._posterior.data.n_targets))

    def _interval_width(self, level: float, latent: bool, calibrated: Any) -> Any:
        """How many deviations an interval reaches either way: a number, or one for each target."""
        if not (isinstance(calibrated, bool | np.bool_) or calibrated == AUTO):
            raise InputError(f'predict_interval(calibrated={calibrated!r}): give True, False or "auto".')
        if np.ndim(level):
            raise InputError(f"predict_interval(level={level!r}): must be one number between 0 and 1.")
        own = float(half_width(level))
        if not calibrated or (calibrated == AUTO and (latent or not isinstance(self._posterior, ExactPosterior))):
            return own
        if latent:
            raise InputError("predict_interval(latent=True, calibrated=True): the function itself was never observed.")
        posterior = self._exact("predict_interval(calibrated=True)")
        width = credible_width if calibrated == AUTO else left_out_width
        reach = width(level, posterior.left_out_deviates())
        return float(reach[0]) if self._seen.one_target else reach

    def _gradient(self, rows: Points, of: str) -> Tensor:
        with torch.enable_grad():
            x = rows.values.detach().to(torch.float64).requires_grad_()
            points = Points(x, rows.names)
            values = self._posterior.mean(points) if of == "mean" else self._posterior.variance(points).sqrt()[:, None]
            columns = [torch.autograd.grad(v.sum(), x, retain_graph=True)[0] for v in values.T]
        if of == "std":
            columns = columns * self._posterior.data.n_targets
        stacked = torch.stack(columns, dim=1) * self._target_scale.to(x).unsqueeze(-1)
        return stacked.squeeze(1) if self._seen.one_target else stacked

    def _given(self, values: Tensor, rows: Points, X: Any) -> Any:
        """Values as the caller's kind of array, in the precision of the rows."""
        values = values.to(rows.values) if rows.is_tensor else values
        return restore(checked_values(values, "Predictions"), X)

    def _exact(self, what: str) -> ExactPosterior:
        if not isinstance(self._posterior, ExactPosterior):
            raise InputError(f'{what} needs method="exact", but the fit used {self._method.name!r}.')
        return self._posterior

    def _prior(self, rows: Points) -> tuple[Kernel, float, FittedMean]:
        """Kernel, noise and mean before any data; coefficients of the mean that data would decide are zero."""
        columns = rows.values.shape[1] if rows.is_tensor else None
        kernel, _ = start_kernel(self.kernel, rows, Scales.unit(columns), self._draw_seed(None))
        shared, row_noise = self._checked_noise(len(rows))
        if row_noise is not None:
            shared = float(row_noise.mean())
        mean = ZeroMean() if isinstance(self.mean, str) else as_mean(self.mean, rows)
        return kernel, NOISE_SHARE if shared is None else shared, FittedMean(mean, torch.empty(0, 1))

    def _prior_at(self, rows: Points) -> tuple[Tensor, Tensor, float]:
        """Mean (m, 1), covariance and noise before any data."""
        kernel, noise, mean = self._prior(rows)
        return mean(rows), kernel.on(DensePair(rows)).to(torch.float64), noise

    def _prior_functions(self, n: int, seed: int) -> Functions:
        drawn: dict[int, PriorFunctions] = {}

        def values(rows: Points) -> Tensor:
            kernel, _, mean = self._prior(rows)
            columns = rows.values.shape[1]
            if columns not in drawn:
                drawn[columns] = PriorFunctions.draw(kernel, rows, n, seed)
            return prior_values(drawn[columns], mean, rows, 1).squeeze(-1)

        return Functions(n, as_points, values)

    def _draw_seed(self, random_state: Any) -> int:
        return as_seed(self.random_state if random_state is None else random_state)


def check_variances(values: Any, name: str, n: int) -> Tensor:
    """Variances as finite float64 numbers >= 0: one for n = 0, else one for each of n rows."""
    try:
        array = torch.from_numpy(np.asarray(values, dtype=np.float64).copy())
    except (TypeError, ValueError):
        raise InputTypeError(f'{name}={values!r}: give "learn", a variance >= 0 or one for each row.') from None
    if array.shape != ((n,) if n else ()):
        wanted = f"there are {n} rows: give one variance for each" if n else "one variance for all rows is needed"
        raise InputError(f"{name} has shape {tuple(array.shape)} but {wanted}.")
    bad = ~(torch.isfinite(array) & (array >= 0))
    if bool(bad.any()):
        raise InputError(f"{name}={float(array[bad][0]) if n else values!r}: variances are finite numbers >= 0.")
    return array


def _print_progress(iteration: int, value: float) -> None:
    print(f"step {iteration}: log marginal likelihood {value:.6g}", flush=True)
