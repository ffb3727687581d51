"""Whole regressions on one GPU, with peers in the same run.

``MERCER_DATA=folder python -m benchmarks.gpu_regression [exact] [landmarks] [billion] [mnist] [growth] [--small]``
prints tables. Errors of regressions are in units of the standard deviation of the training targets. ``--small`` runs
all of it on little data, also on a CPU, to see that it works.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from benchmarks.gpu_billion import billion
from benchmarks.gpu_growth import growth
from benchmarks.real_data import Split, find, published, split
from benchmarks.regression_peers import PeerFit, boosting, exact_process, variational_process
from mercer import KernelRidge
from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Kernel, Laplace, Matern
from mercer.selection import tune_kernel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAMILIES: dict[str, Callable[..., Kernel]] = {
    "Laplace": Laplace,
    "Matern 3/2": lambda scale: Matern(1.5, scale),
    "Matern 5/2": lambda scale: Matern(2.5, scale),
}
TRIED = {"kin40k": ("Matern 3/2", "Matern 5/2"), "protein": ("Laplace", "Matern 3/2")}


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    names = [name for name in arguments if name != "--small"]
    where = torch.cuda.get_device_name(0) if DEVICE == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}", flush=True)
    parts: dict[str, Callable[[bool], None]] = {
        "exact": exact,
        "landmarks": landmarks,
        "billion": lambda small: billion(200_000, 500, 10**5, DEVICE) if small else billion(device=DEVICE),
        "mnist": mnist,
        "growth": lambda small: growth(small, DEVICE),
    }
    for name in names or parts:
        print(f"\n== {name}", flush=True)
        started = time.perf_counter()
        parts[name](small)
        print(f"({name}: {time.perf_counter() - started:.0f} s)", flush=True)


# Full kernel ridge regression by conjugate gradients


def exact(small: bool) -> None:
    """Every row has a coefficient; products are float32 and fused, and nothing of size n x n is stored."""
    for name, families in TRIED.items():
        data = split(name).part(3000) if small else split(name)
        print(f"\n{name}: {len(data.y):,} training rows, d = {data.X.shape[1]}", flush=True)
        started = time.perf_counter()
        kernel, alpha = chosen(data, families, 500 if small else 5000)
        print(f"  chosen in {time.perf_counter() - started:.1f} s: {short(kernel)}, alpha = {alpha:g}", flush=True)
        full_fit(data, kernel, alpha, "auto")
        rows, steps = (500, 3) if small else (10_000, 60)
        report(data, exact_process(data, published(name), DEVICE, rows, steps))
        report(data, boosting(data, max_iter=1000, max_leaf_nodes=63, early_stopping=True))
    data = split("levitus_ocean_temp").part(4000) if small else split("levitus_ocean_temp")
    print(f"\n{data.name}: {len(data.y):,} training rows, d = {data.X.shape[1]}", flush=True)
    started = time.perf_counter()
    kernel, alpha = chosen_nearby(data, 800 if small else 5000)
    print(f"  chosen in {time.perf_counter() - started:.1f} s: {short(kernel)}, alpha = {alpha:g}", flush=True)
    full_fit(data, kernel, alpha, "float32", max_iter=200)
    report(data, variational_process(data, 3.0 if small else 10.0, DEVICE))
    report(data, boosting(data, max_iter=300, max_leaf_nodes=255, learning_rate=0.2))


def chosen(data: Split, families: Sequence[str], rows: int) -> tuple[Kernel, float]:
    """Length scales by leave-one-out on some rows; family, width and alpha on rows held out of fits to the others."""
    inner, d = data.validation(), data.X.shape[1]
    some = inner.part(rows)
    X, y = Points(torch.from_numpy(some.X).to(DEVICE)), torch.from_numpy(some.y).to(DEVICE).unsqueeze(1)
    alphas = np.array([1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1])
    best: tuple[float, Kernel, float] = (np.inf, Laplace(), 1.0)
    for family in families:
        make = FAMILIES[family]
        started = time.perf_counter()
        tuned = tune_kernel(make((1.0,) * d), X, y, None, 1e-2, max_rows=rows)
        seconds = time.perf_counter() - started
        for factor in (0.4, 1.0):
            kernel = make(tuple(factor * scale for scale in tuned.kernel.get_params()["length_scale"]))
            errors = errors_of_path(inner, kernel, alphas)
            best = min(best, (float(errors.min()), kernel, float(alphas[errors.argmin()])), key=lambda found: found[0])
            print(f"  {family} x {factor}: validation RMSE {errors.round(4)}, tuned in {seconds:.1f} s", flush=True)
    return best[1], best[2]


def errors_of_path(data: Split, kernel: Kernel, alphas: np.ndarray) -> np.ndarray:
    """One solve for all alphas, each a column of targets; a loose tolerance will do."""
    model = KernelRidge(
        kernel, fit_intercept=False, alpha=alphas, solver="pcg", tol=1e-3, max_iter=100, device=DEVICE, dtype="float32"
    )
    predicted = quietly(model, data.X, repeated(data.y, len(alphas))).predict(data.X_test)
    return np.sqrt(np.mean((predicted - data.y_test[:, None]) ** 2, axis=0))


def chosen_nearby(data: Split, count: int) -> tuple[Kernel, float]:
    """For dense data: width and alpha from the rows around three centres, where the sample is as dense as it is."""
    errors: dict[tuple[float, float], float] = {}
    for seed, scale, alpha in product(range(3), (0.05, 0.07), (0.1,)):
        centre = data.X[np.random.default_rng(seed).integers(len(data.X))]
        near = np.argsort(((data.X - centre) ** 2).sum(1))[:count]
        inner = replace(data, X=data.X[near], y=data.y[near]).validation()
        model = KernelRidge(Matern(1.5, scale), fit_intercept=False, alpha=alpha, solver="cholesky", device=DEVICE).fit(
            inner.X, inner.y
        )
        squares = inner.rmse(model.predict(inner.X_test)) ** 2
        errors[scale, alpha] = errors.get((scale, alpha), 0.0) + squares / 3
    scale, alpha = min(errors, key=lambda pair: errors[pair])
    return Matern(1.5, scale), alpha


def full_fit(data: Split, kernel: Kernel, alpha: float, dtype: str, max_iter: int = 500) -> None:
    model = KernelRidge(
        kernel, fit_intercept=False, alpha=alpha, solver="pcg", tol=1e-6, max_iter=max_iter, device=DEVICE, dtype=dtype
    )
    fitted_line(data, "mercer pcg", model)


# Landmarks


def landmarks(small: bool) -> None:
    """Nyström regression on a million rows and more."""
    data = split("flights2001_3m").part(20_000) if small else split("flights2001_3m")
    print(f"\n{data.name}: {len(data.y):,} training rows, d = {data.X.shape[1]}", flush=True)
    few, many, most = (200, 1000, 2000) if small else (2000, 10_000, 30_000)
    started = time.perf_counter()
    kernel, alpha = chosen_on_landmarks(data.validation(most=100_000), few)
    print(f"  chosen in {time.perf_counter() - started:.1f} s: {short(kernel)}, alpha = {alpha:g}", flush=True)
    for solver, m in (("nystrom", few), ("falkon", many), ("falkon", most)):
        options = {"tol": 1e-3, "max_iter": 50} if solver == "falkon" else {}
        model = KernelRidge(
            kernel,
            fit_intercept=False,
            alpha=alpha,
            solver=solver,
            n_landmarks=m,
            device=DEVICE,
            dtype="float32",
            **options,
        )
        fitted_line(data, f"mercer {solver}, m = {m:,}", model)
    report(data, variational_process(data, 3.0 if small else 10.0, DEVICE))
    report(data, boosting(data))
    report(data, boosting(data, max_iter=300, max_leaf_nodes=63))


FLIGHTS = (
    (1.0, 40.0, 10.0, 200.0, 20.0, 20.0, 20.0, 20.0),
    (1.0, 40.0, 10.0, 200.0, 10.0, 10.0, 10.0, 10.0),
    (0.5, 40.0, 10.0, 200.0, 20.0, 20.0, 20.0, 20.0),
    (1.0, 40.0, 5.0, 200.0, 10.0, 10.0, 10.0, 10.0),
)
"""Length scales for day of the year, weekday, time of day, distance, and the places of origin and destination: short
where delays are local, in the day above all.
"""


def chosen_on_landmarks(data: Split, m: int) -> tuple[Kernel, float]:
    """Length scales and alpha on rows held out, with few landmarks; one solve for all alphas."""
    alphas = np.array([0.03, 0.1, 0.3])
    found: list[tuple[float, Kernel, float]] = []
    for scales in FLIGHTS:
        kernel = Laplace(scales, metric="l1")
        model = KernelRidge(
            kernel,
            fit_intercept=False,
            alpha=alphas,
            solver="falkon",
            n_landmarks=m,
            tol=1e-2,
            max_iter=20,
            device=DEVICE,
            dtype="float32",
        )
        predicted = quietly(model, data.X, repeated(data.y, len(alphas))).predict(data.X_test)
        errors = np.sqrt(np.mean((predicted - data.y_test[:, None]) ** 2, axis=0))
        print(f"  {short(kernel)}: validation RMSE {errors.round(4)}", flush=True)
        found.append((float(errors.min()), kernel, float(alphas[errors.argmin()])))
    return min(found, key=lambda one: one[0])[1:]


# MNIST


def mnist(small: bool) -> None:
    """One-hot least squares on rows of unit length, no other preparation of the images."""
    path = find("mnist")
    if path is None:
        raise SystemExit("mnist.npz is not there: set MERCER_DATA to the folder of the data.")
    with np.load(path, allow_pickle=False) as archive:
        X, X_test = (unit_rows(archive[name]) for name in ("X_train", "X_test"))
        y, y_test = archive["y_train"].astype(int), archive["y_test"].astype(int)
    if small:
        X, y = X[:2000], y[:2000]
    Y = np.eye(10, dtype=np.float32)[y]
    kernel = Gaussian(0.45)
    solvers = {"pcg": {"tol": 1e-3}, "eigenpro": {"alpha": 0.0, "max_iter": 20}, "cholesky": {}}
    for solver, options in solvers.items():
        model = KernelRidge(
            kernel, fit_intercept=False, solver=solver, device=DEVICE, random_state=0, **{"alpha": 1e-3} | options
        )
        times = []
        for rows in (1500, len(X)):  # the first use compiles the loops
            started = time.perf_counter()
            model.fit(X[:rows], Y[:rows])
            times.append(time.perf_counter() - started)
            predicted = model.predict(X_test)
            times.append(time.perf_counter() - started)
        wrong = float((predicted.argmax(1) != y_test).mean())
        account = model.solver_report_
        print(
            f"  {solver:<10}{short(kernel)}, alpha = {model.alpha}: test error {100 * wrong:.2f}%, "
            f"fit {times[2]:.2f} s, with prediction {times[3]:.2f} s "
            f"({times[1]:.1f} s before that to compile and fit 1,500 rows); "
            f"{account.iterations} iterations, residual {account.residual:.1e}",
            flush=True,
        )


def unit_rows(pixels: np.ndarray) -> np.ndarray:
    rows = pixels.reshape(len(pixels), -1).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# Lines of the tables


def fitted_line(data: Split, name: str, model: KernelRidge) -> None:
    """Fit and say how it went."""
    started = time.perf_counter()
    quietly(model, data.X, data.y)
    seconds = time.perf_counter() - started
    predicted = model.predict(data.X_test)
    account = model.solver_report_
    print(
        f"  {name:<28}{seconds:>8.2f} s   RMSE {data.rmse(predicted):.4f}   R2 {data.r2(predicted):.4f}   "
        f"{account.iterations} iterations, residual {account.residual:.1e}, converged: {account.converged}; "
        f"{account.reason}",
        flush=True,
    )


def quietly(model: KernelRidge, X: np.ndarray, y: np.ndarray) -> KernelRidge:
    """Fit without warnings of what did not converge: the tables say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def repeated(y: np.ndarray, count: int) -> np.ndarray:
    return np.tile(y[:, None], count)


def report(data: Split, fit: PeerFit | None) -> None:
    if fit is not None:
        errors = f"RMSE {data.rmse(fit.predicted):.4f}   R2 {data.r2(fit.predicted):.4f}"
        print(f"  {fit.name:<28}{fit.seconds:>8.2f} s   {errors}   {fit.note}", flush=True)


def short(kernel: Kernel) -> str:
    """The kernel with few digits."""
    scale = kernel.get_params()["length_scale"]
    digits = f"{scale:.3g}" if np.ndim(scale) == 0 else "(" + ", ".join(f"{s:.2g}" for s in scale) + ")"
    nu = f"{kernel.get_params()['nu']:g}, " if "nu" in kernel.get_params() else ""
    return f"{type(kernel).__name__}({nu}{digits})"


if __name__ == "__main__":
    main(sys.argv[1:])
