"""Gaussian processes on one GPU.

``MERCER_DATA=folder python -m benchmarks.gpu_gaussian_process [parity] [peers] [published] [large] [--small]`` prints
tables. `parity` compares with GPyTorch at given hyperparameters, in float64 on 700 rows.
`peers` compares with GPyTorch's defaults in the same run, `published` with published results of exact processes,
`large` conditions on all rows of levitus_ocean_temp and draws functions. Errors are in units of the standard deviation
of the training targets, NLL is the mean negative log density of a test target. The mean function of our processes is a
constant or a line, whichever the likelihood of some training rows asks for. ``--small`` runs all of it on little data,
also on a CPU, to see that it works.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.stats import norm

from benchmarks.real_data import Split, random_split, split
from benchmarks.regression_peers import fixed_process, process_with_defaults
from mercer import GaussianProcessRegressor
from mercer.kernels import Matern

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PEERS = ("kin40k", "protein")
PUBLISHED = {
    "pol": (0.088, -0.660),
    "bike": (0.043, -0.984),
    "kin40k": (0.080, -0.755),
    "protein": (0.511, 0.960),
    "elevators": (0.36, None),
}
"""RMSE and NLL of exact processes with learned hyperparameters, 64/16/20 splits; Wang et al., *Exact Gaussian processes
on a million data points*, 2019; that of elevators on shuffled data.
"""
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Score:
    """How well a process predicts the test rows."""

    rmse: float
    nll: float
    coverage: float
    intervals: float | None = None
    """Coverage of `predict_interval`, which looks at rows left out; `coverage` is that of mean and deviation."""
    squared: np.ndarray | None = None
    """Squared errors of the rows."""

    @classmethod
    def of(cls, data: Split, mean: np.ndarray, std: np.ndarray) -> Score:
        """From means and standard deviations of the observations."""
        error = (np.asarray(mean, dtype=np.float64) - data.y_test) / std
        inside = np.abs(error) <= norm.ppf(0.975)
        nll = 0.5 * error**2 + np.log(std) + 0.5 * np.log(2 * np.pi)
        squared = (np.asarray(mean, dtype=np.float64) - data.y_test) ** 2
        return cls(data.rmse(mean), float(nll.mean()), float(inside.mean()), squared=squared)

    def ahead_of(self, other: Score) -> str:
        """The difference of the two RMSEs with its standard error, from the rows' differences."""
        assert self.squared is not None
        assert other.squared is not None
        difference = (self.squared - other.squared) / (self.rmse + other.rmse)
        return f"{difference.mean():+.4f} ± {difference.std() / len(difference) ** 0.5:.4f}"

    def __str__(self) -> str:
        words = f"RMSE {self.rmse:.4f}   NLL {self.nll:+.4f}   95% interval covers {self.coverage:.1%}"
        return words if self.intervals is None else f"{words}, predict_interval {self.intervals:.1%}"


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    names = [name for name in arguments if name != "--small"]
    where = torch.cuda.get_device_name(0) if DEVICE == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}", flush=True)
    parts: dict[str, Callable[[bool], None]] = {
        "parity": parity,
        "peers": peers,
        "published": published,
        "large": large,
    }
    for name in names or parts:
        print(f"\n== {name}", flush=True)
        started = time.perf_counter()
        parts[name](small)
        print(f"({name}: {time.perf_counter() - started:.0f} s)", flush=True)


def parity(small: bool) -> None:
    """Differences from GPyTorch with the same hyperparameters."""
    data = split(PEERS[0]).part(700)
    lengths, signal, noise = np.linspace(1.0, 3.0, data.X.shape[1]), 0.8, 0.05
    theirs = fixed_process(data, (lengths, signal, noise))
    if theirs is None:
        print("  GPyTorch is not installed")
        return
    kernel = signal * Matern(1.5, tuple(lengths))
    model = GaussianProcessRegressor(
        kernel, mean="zero", noise=noise, tune=False, standardize=False, device=DEVICE, dtype="float64"
    ).fit(data.X.astype(np.float64), data.y.astype(np.float64))
    mean, std = model.predict(data.X_test.astype(np.float64), return_std=True)
    print(
        f"  largest difference of means {np.abs(mean - theirs[0]).max():.1e}, of deviations "
        f"{np.abs(std - theirs[1]).max():.1e}; log marginal likelihood {model.log_marginal_likelihood_:.6f} and "
        f"{theirs[2]:.6f}",
        flush=True,
    )


def peers(small: bool) -> None:
    """Fit, and mean and variance at all test rows, against GPyTorch's defaults; the first published split."""
    started = time.perf_counter()
    little = split(PEERS[0]).part(1200)
    little = replace(little, X_test=little.X_test[:100], y_test=little.y_test[:100])
    print("before, so that libraries are loaded and loops compiled, a fit of each to 1,200 rows:", flush=True)
    fit_and_predict(little, "iterative")
    process_with_defaults(little, DEVICE, 2)
    print(f"  ({time.perf_counter() - started:.1f} s)", flush=True)
    for name in PEERS:
        data = split(name).part(1500) if small else split(name)
        print(f"\n{name}: {len(data.y):,} training rows, d = {data.X.shape[1]}", flush=True)
        ours = fit_and_predict(data, "iterative")
        fit_and_predict(data, "iterative", n_learn=len(data.y) // 2 if small else 20_000)
        reset_peak()
        theirs = process_with_defaults(data, DEVICE, 3 if small else 50)
        if theirs is not None:
            score = Score.of(data, theirs.mean, theirs.std)
            print(
                f"  {'GPyTorch, 50 Adam steps':<26}fit {theirs.fit:.2f} s + predict {theirs.predict:.2f} s   "
                f"{score}   {peak()}; our RMSE minus this one {ours.ahead_of(score)}",
                flush=True,
            )


def published(small: bool) -> None:
    """Learned hyperparameters on random 64/16/20 splits; the 16% for validation are not used.

    Intervals are those of the process, and those of `predict_interval`.
    """
    for name, (rmse, nll) in PUBLISHED.items():
        print(f"\n{name}: published RMSE {rmse}, NLL {nll}", flush=True)
        scores = []
        for seed in SEEDS[: 1 if small else 3]:
            data = random_split(name, seed)
            data = data.part(600) if small else data
            scores.append(fit_and_predict(data, "iterative", intervals=True))
        mean = [np.mean([getattr(s, field) for s in scores]) for field in ("rmse", "nll", "coverage", "intervals")]
        print(f"  mean: {Score(*map(float, mean))}", flush=True)


def fit_and_predict(data: Split, method: str, intervals: bool = False, n_learn: int | None = None) -> Score:
    reset_peak()
    model = GaussianProcessRegressor(
        "matern32", mean="auto", method=method, n_restarts=0, n_learn=n_learn, max_iter=MAX_ITER, device=DEVICE
    )
    started = time.perf_counter()
    model.fit(data.X, data.y)
    fitted = time.perf_counter()
    mean, std = model.predict(data.X_test, return_std=True)
    done = time.perf_counter()
    score, found = Score.of(data, mean, std), model.optimum_
    if intervals:
        low, high = model.predict_interval(data.X_test)
        score = replace(score, intervals=float(((low <= data.y_test) & (data.y_test <= high)).mean()))
    print(
        f"  {'mercer, ' + method:<26}fit {fitted - started:.2f} s + predict {done - fitted:.2f} s   {score}   "
        f"{peak()}; "
        f"noise {model.noise_:.2e}, evidence {model.log_marginal_likelihood_ / len(data.y):.4f} a row; "
        f"{found.evaluations} evaluations in the last stage, {found.message}; {model._fit.posterior.report}; "
        f"mean {model.report().as_dict()['mean']}",
        flush=True,
    )
    return score


MAX_ITER = 50


def large(small: bool) -> None:
    """The posterior of all rows of levitus_ocean_temp, and functions drawn from it."""
    data = split("levitus_ocean_temp").part(3000) if small else split("levitus_ocean_temp")
    print(f"\n{data.name}: {len(data.y):,} training rows, d = {data.X.shape[1]}", flush=True)
    reset_peak()
    kernel = Matern(1.5, 0.06)
    budget = "40MiB" if small else None
    model = GaussianProcessRegressor(
        kernel, mean="zero", noise=0.1, tune=False, method="iterative", device=DEVICE, memory_budget=budget
    )
    started = time.perf_counter()
    model.fit(data.X, data.y)
    print(f"  fit {time.perf_counter() - started:.1f} s; {model._fit.posterior.report}; {peak()}", flush=True)
    started = time.perf_counter()
    mean = model.predict(data.X_test)
    print(
        f"  mean at {len(mean):,} test rows {time.perf_counter() - started:.2f} s, RMSE {data.rmse(mean):.4f}",
        flush=True,
    )
    started = time.perf_counter()
    functions = model.sample_functions(8, random_state=0)
    drawn = time.perf_counter()
    values = functions(data.X_test)
    print(
        f"  8 functions drawn in {drawn - started:.1f} s, at all test rows in {time.perf_counter() - drawn:.2f} s; "
        f"their mean differs from the mean by {np.sqrt(np.mean((values.mean(0) - mean) ** 2)):.4f}, and each by "
        f"{np.sqrt(np.mean((values - mean) ** 2)):.4f}",
        flush=True,
    )
    few = 16
    started = time.perf_counter()
    _, std = model.predict(data.X_test[:few], return_std=True, latent=True)
    seconds = time.perf_counter() - started
    there = values[:, :few].std(0, ddof=1)
    print(
        f"  deviations at {few} test rows by solves in {seconds:.1f} s: {np.sqrt((std**2).mean()):.4f}; of 8 functions "
        f"there: {np.sqrt((there**2).mean()):.4f}; {peak()}",
        flush=True,
    )


def reset_peak() -> None:
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak() -> str:
    return f"peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if DEVICE == "cuda" else "peak not known"


if __name__ == "__main__":
    main(sys.argv[1:])
