"""What a fit and its predictions add to a process stays within the memory budget, just below where plans change."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from measured import STATUS, peaks_of

from mercer.core.errors import MemoryBudgetError
from mercer.core.memory import resolve_budget
from mercer.operators.placement import Placement
from mercer.processes.laplace_posterior import check_memory
from mercer.solvers.choose import choose, choose_for_loss, landmark_count

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="memory is read from /proc")

MiB = 2**20
BUDGET = 60 * MiB
NEARLY = BUDGET - 2**18
"""What is left for systems when a fit has copied its rows."""
ALLOWANCE = 4 * MiB
"""Stacks of threads, holes in the heap and modules that are imported late; it does not grow with the rows."""


class Job(NamedTuple):
    """A fit to so many rows, then calls of methods; `classes` of zero are targets."""

    model: str
    rows: int
    options: dict[str, Any]
    classes: int = 0
    calls: tuple[str, ...] = ("predict",)
    budget: int = BUDGET


def largest(fits: Callable[[int], Any], most: int = 100_000) -> int:
    """The largest number that fits."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            fits_there = fits(middle)
        except MemoryBudgetError:
            fits_there = False
        low, high = (middle, high) if fits_there else (low, middle - 1)
    return low


def rows_of(solver: str) -> int:
    return largest(lambda n: choose(n, 1, "loo" if solver == "eigh" else 1.0, solver, NEARLY))


def landmarks_of(solver: str) -> int:
    return largest(lambda m: landmark_count(10**6, m, solver, BUDGET, "cpu"))


def process_rows(classes: int, budget: int) -> int:
    """Rows of a process for classes with the hyperparameters given."""
    place = Placement(torch.device("cpu"), torch.float64, budget - 2**18)
    return largest(lambda n: check_memory(n, classes, False, place) is None)


LOSS_ROWS = largest(lambda n: choose_for_loss(n, memory_budget=BUDGET)[0] == "dense")
ALL = ("predict", "predict_proba")
NAMED = {
    "logistic 3000": Job("KernelClassifier", 3000, {"loss": "logistic"}, 2, ALL, 130 * MiB),
    "logistic 2000": Job("KernelClassifier", 2000, {"loss": "logistic"}, 2, ALL),
    "process, std": Job("GaussianProcessRegressor", 2500, {"tune": False}, 0, ("std",)),
    "nystrom": Job("KernelRidge", 6000, {"solver": "nystrom", "n_landmarks": landmarks_of("nystrom")}),
    "process of classes": Job(
        "GaussianProcessClassifier", process_rows(2, BUDGET), {"tune": False}, 2, ("predict_proba",)
    ),
}
NEAR_THRESHOLDS = {
    "cholesky": Job("KernelRidge", rows_of("cholesky"), {"alpha": 1.0}),
    "path": Job("KernelRidge", rows_of("eigh"), {"alpha": "loo"}),
    "least norm": Job("KernelRidge", rows_of("eigh"), {"alpha": 0.0}),
    "mixed": Job("KernelRidge", rows_of("mixed_cholesky"), {"solver": "mixed_cholesky", "alpha": 1.0}),
    "pcg": Job("KernelRidge", 8000, {"alpha": 1.0}),
    "eigenpro": Job("KernelRidge", 4000, {"solver": "eigenpro", "alpha": 0.0}),
    "nystrom path": Job(
        "KernelRidge", 6000, {"solver": "nystrom", "n_landmarks": landmarks_of("nystrom"), "alpha": "loo"}
    ),
    "falkon": Job("KernelRidge", 6000, {"solver": "falkon", "n_landmarks": landmarks_of("falkon"), "alpha": 1.0}),
    "random features": Job("KernelRidge", 6000, {"solver": "random_features", "n_features": 1000, "alpha": 1.0}),
    "logistic": Job("KernelClassifier", LOSS_ROWS, {"loss": "logistic"}, 2, ALL),
    "logistic, direct": Job("KernelClassifier", 1700, {"loss": "logistic"}, 2, ALL),
    "logistic, alpha": Job("KernelClassifier", 1600, {"loss": "logistic", "alpha": "auto"}, 2, ALL),
    "logistic, 3 classes": Job("KernelClassifier", LOSS_ROWS, {"loss": "logistic"}, 3, ALL),
    "hinge": Job("KernelClassifier", LOSS_ROWS, {"loss": "hinge", "alpha": 1.0}, 2),
    "squared hinge": Job("KernelClassifier", LOSS_ROWS, {"loss": "squared_hinge", "alpha": 1.0}, 2),
    "logistic, pcg": Job("KernelClassifier", LOSS_ROWS + 500, {"loss": "logistic", "alpha": 1.0}, 2, ALL),
    "logistic, nystrom": Job(
        "KernelClassifier",
        4000,
        {"loss": "logistic", "solver": "nystrom", "n_landmarks": landmarks_of("nystrom")},
        2,
        ALL,
    ),
    "huber": Job("KernelRegressor", LOSS_ROWS, {"loss": "huber", "alpha": 1.0}),
    "quantile": Job("KernelRegressor", LOSS_ROWS, {"loss": "quantile", "alpha": 1.0}),
    "iterative": Job("GaussianProcessRegressor", 4000, {"method": "iterative", "tune": False}, 0, ("predict", "std")),
    "sgpr": Job("GaussianProcessRegressor", 6000, {"method": "sgpr", "tune": False}, 0, ("predict", "std", "cov")),
    "process of 2 classes": Job(
        "GaussianProcessClassifier", process_rows(2, 300 * MiB), {"tune": False}, 2, ("predict_proba",), 300 * MiB
    ),
    "process of 3 classes": Job(
        "GaussianProcessClassifier", process_rows(3, BUDGET), {"tune": False}, 3, ("predict_proba",)
    ),
    "process that learns": Job("GaussianProcessRegressor", 1600, {"n_restarts": 0, "max_iter": 3}, 0, ("predict",)),
    "process, samples": Job("GaussianProcessRegressor", 1500, {"tune": False}, 0, ("cov", "samples")),
    "descent": Job("KernelRidge", 4000, {"solver": "gd", "max_iter": 30}),
    "hinge, nystrom": Job(
        "KernelClassifier",
        3000,
        {"loss": "hinge", "alpha": 1.0, "solver": "nystrom", "n_landmarks": landmarks_of("nystrom")},
        2,
    ),
    "3 classes, alpha": Job("KernelClassifier", 600, {"loss": "logistic", "alpha": "auto"}, 3, ALL),
    "principal components": Job("KernelPCA", 1700, {"n_components": 10}, 0, ("transform",)),
    "all principal components": Job("KernelPCA", int((NEARLY / 56) ** 0.5), {}, 0, ()),
    "eigenfunctions": Job("MercerDecomposition", 1700, {"n_components": 10}, 0, ("transform",)),
    "nystrom features": Job("NystromFeatures", 6000, {"n_components": 600}, 0, ("transform",)),
}


def steps_of(job: Job) -> list[Callable[[], Any]]:
    """The fit and the calls, after the same with few rows."""
    import mercer
    from mercer.kernels import Gaussian

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((job.rows, 4)), rng.standard_normal((3000, 4))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(job.rows)
    if job.classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, job.classes) / job.classes))

    def new() -> Any:
        few = {name: min(100, value) if name.startswith("n_") else value for name, value in job.options.items()}
        return getattr(mercer, job.model)(kernel=Gaussian(1.5), memory_budget=job.budget, **few)

    small = new().fit(X[:150], y[:150])
    for call in job.calls:
        answer(small, call, Z[:50])
    model = getattr(mercer, job.model)(kernel=Gaussian(1.5), memory_budget=job.budget, **job.options)
    return [partial(model.fit, X, y), *(partial(answer, model, call, Z) for call in job.calls)]


def answer(model: Any, call: str, Z: np.ndarray) -> Any:
    if call == "samples":
        return model.sample_y(Z[:300], 5)
    if call == "std":
        return model.predict(Z, return_std=True)
    return model.predict(Z[:300], return_cov=True) if call == "cov" else getattr(model, call)(Z)


@pytest.mark.parametrize(
    "job",
    [
        *(pytest.param(job, id=name) for name, job in NAMED.items()),
        *(pytest.param(job, id=name, marks=pytest.mark.slow) for name, job in NEAR_THRESHOLDS.items()),
    ],
)
def test_fits_and_predictions_stay_within_the_budget(job: Job) -> None:
    peaks = peaks_of(steps_of, job)
    assert max(peaks) <= resolve_budget(job.budget) + ALLOWANCE, [f"{peak / MiB:.1f} MiB" for peak in peaks]
