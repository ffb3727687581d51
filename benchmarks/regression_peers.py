"""Whole fits by other libraries, those that are installed: the seconds each took, its predictions and a note."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.real_data import Hyperparameters, Split


@dataclass(frozen=True)
class PeerFit:
    """What a peer reached."""

    name: str
    seconds: float
    predicted: np.ndarray
    note: str


def boosting(data: Split, **options: Any) -> PeerFit:
    """Histogram gradient boosting of scikit-learn, on the CPU."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    started = time.perf_counter()
    model = HistGradientBoostingRegressor(random_state=0, **options).fit(data.X, data.y)
    note = ", ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
    return PeerFit("HistGradientBoosting", time.perf_counter() - started, model.predict(data.X_test), note)


def exact_process(
    data: Split, given: Hyperparameters | None, device: str, rows: int = 10_000, steps: int = 60
) -> PeerFit | None:
    """GPyTorch's exact process, Matern-3/2 with a length scale per feature, by Cholesky in float64.

    Without given hyperparameters they are trained on some rows; the prediction uses all.
    """
    try:
        import gpytorch
    except ImportError:
        return None

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, X: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    started = time.perf_counter()
    X, y, X_test = (_tensor(a, device) for a in (data.X, data.y, data.X_test))
    noise = gpytorch.constraints.GreaterThan(1e-6)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=noise)
    direct = gpytorch.settings.fast_computations(False, False, False)
    if given is not None:
        model = Model(X, y, likelihood).to(X)
        model.covar_module.base_kernel.lengthscale = torch.as_tensor(given.length_scale).to(X)
        model.covar_module.outputscale = given.signal**2
        likelihood.noise = given.noise**2
        note = "published hyperparameters"
    else:
        some = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))[:rows].to(X.device)
        model = Model(X[some], y[some], likelihood).to(X)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        with direct:
            for _ in range(steps):
                optimiser.zero_grad()
                loss = -objective(model(X[some]), y[some])
                loss.backward()
                optimiser.step()
        model.set_train_data(X, y, strict=False)
        note = f"marginal likelihood on {len(some):,} rows, {steps} Adam steps; all rows to predict"
    model.eval()
    with direct, torch.no_grad(), gpytorch.settings.skip_posterior_variances():
        predicted = model(X_test).mean.cpu().numpy()
    return PeerFit("GPyTorch exact", time.perf_counter() - started, predicted, note)


@dataclass(frozen=True)
class ProcessFit:
    """Seconds to fit and to predict, and the predictions with the deviations of observations."""

    fit: float
    predict: float
    mean: np.ndarray
    std: np.ndarray


def process_with_defaults(data: Split, device: str, steps: int = 50) -> ProcessFit | None:
    """GPyTorch's exact process as its tutorial writes it: float32, default settings, Adam on all rows."""
    try:
        import gpytorch
    except ImportError:
        return None

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, X: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    started = time.perf_counter()
    X, y, X_test = (torch.from_numpy(values).to(device) for values in (data.X, data.y, data.X_test))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(X)
    model = Model(X, y, likelihood).to(X)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimiser.step()
    float(loss.detach())
    fitted = time.perf_counter()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(X_test))
        mean, std = predicted.mean.cpu().numpy(), predicted.stddev.cpu().numpy()
    return ProcessFit(fitted - started, time.perf_counter() - fitted, mean, std)


def fixed_process(data: Split, kernel_parameters: tuple[Any, float, float]) -> tuple[Any, Any, float] | None:
    """GPyTorch's exact process in float64 with a zero mean and given (length scales, signal, noise), on few rows.

    Mean and standard deviation of the observations at the test rows, and the log marginal likelihood.
    """
    try:
        import gpytorch
    except ImportError:
        return None
    lengths, signal, noise = kernel_parameters

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, X: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    X, y, X_test = (torch.from_numpy(values).double() for values in (data.X, data.y, data.X_test))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(X, y, likelihood).double()
    likelihood.noise, model.covar_module.outputscale = noise, signal
    model.covar_module.base_kernel.lengthscale = torch.as_tensor(lengths).double().reshape(1, -1)
    exactly = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
    with exactly, torch.no_grad():
        evidence = float(gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(X), y)) * len(y)
        model.eval()
        likelihood.eval()
        predicted = likelihood(model(X_test))
        return predicted.mean.numpy(), predicted.stddev.numpy(), evidence


def variational_process(
    data: Split, seconds: float, device: str, inducing: int = 1024, batch: int = 4096
) -> PeerFit | None:
    """GPyTorch's stochastic variational process, Matern-3/2 with a length scale per feature, for a given time."""
    try:
        import gpytorch
    except ImportError:
        return None

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, Z: Tensor) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
            super().__init__(gpytorch.variational.VariationalStrategy(self, Z, distribution))
            self.mean_module = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=Z.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, X: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    started = time.perf_counter()
    X, y, X_test = (_tensor(a, device).float() for a in (data.X, data.y, data.X_test))
    generator = torch.Generator().manual_seed(0)
    Z = X[torch.randperm(len(X), generator=generator)[:inducing].to(X.device)]
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(X)
    model = Model(Z).to(X)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.02)
    steps = 0
    while time.perf_counter() - started < seconds:
        some = torch.randint(len(X), (batch,), generator=generator).to(X.device)
        optimiser.zero_grad()
        loss = -objective(model(X[some]), y[some])
        loss.backward()
        optimiser.step()
        steps += 1
        for group in optimiser.param_groups:  # the last third of the time with falling steps
            left = 1.0 - (time.perf_counter() - started) / seconds
            group["lr"] = 0.02 * min(1.0, max(0.02, 3.0 * left))
    model.eval()
    with torch.no_grad():
        predicted = torch.cat([model(part).mean for part in X_test.split(8192)]).cpu().numpy()
    note = f"{inducing:,} inducing points, {steps * batch / len(X):.1f} epochs in batches of {batch:,}"
    return PeerFit("GPyTorch SVGP", time.perf_counter() - started, predicted, note)


def _tensor(values: np.ndarray, device: str) -> Tensor:
    return torch.from_numpy(values).to(device=device, dtype=torch.float64)
