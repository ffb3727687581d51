"""Random fits over all estimators: settings drawn from tables, outcomes judged by a dense reference and by laws."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import mercer
from fuzz import reference
from fuzz.data import Rng, Sample, random_labels, random_order, random_sample
from fuzz.tables import random_table
from fuzz.trial import Finding, Trial
from mercer import kernels as k
from mercer.core.errors import MercerError
from mercer.core.report import Report
from mercer.rows import ArrayRows
from mercer.solvers import (
    PCG,
    Cholesky,
    DenseEigen,
    DenseNewton,
    EigenPro,
    Eigh,
    Falkon,
    Flow,
    GradientDescent,
    Krylov,
    MixedCholesky,
    Nystrom,
    NystromNewton,
    PCGNewton,
    Primal,
    RandomFeatures,
)
from mercer.testing.compositions import random_kernel

NAMES = ("gaussian", "laplace", "laplace_l1", "matern12", "matern32", "matern52", "imq", "poly", "linear", "periodic")
ALPHAS = (1.0, 1e-1, 1e-3, 1e-6, 1e-10, 1e6)
COMMON = {
    "dtype": ("auto", "float64", "float32"),
    "memory_budget": (None, "1GiB", "30MiB", "1MiB", 1000),
    "random_state": (0, 1, None),
}
FEW = {"n_landmarks": (None, 3, 20, 1000), "landmarks": ("uniform", "pivoted", "leverage")}
RIDGE = (
    "auto", "cholesky", "eigh", "mixed_cholesky", "pcg", "nystrom", "falkon", "random_features", "gd", "eigenpro",
    "flow", "primal", GradientDescent(momentum=0.9), Flow(stop="gcv"), Flow(t=1.0, space="coefficients"), Cholesky(),
    Cholesky(initial_jitter=1e-6), Eigh(rank_tol=1e-6), MixedCholesky(), PCG(rank=3), PCG(rank=10**30),
    PCG(tol=1e-9, max_iter=5), PCG(preconditioner="nystrom"), PCG(preconditioner=None), Nystrom(), Falkon(sample=5),
    Falkon(tol=1e-9, refine=False),
    RandomFeatures(), Primal(), EigenPro(max_iter=3, batch_size=2), EigenPro(n_eigenpairs=2, subsample=4),
)  # fmt: skip
NEWTON = (DenseNewton(tol=1e-9), DenseNewton(max_iter=1), NystromNewton(), PCGNewton(rank=3), PCGNewton(rank=10**30),
          PCGNewton(tol=1e-3, max_iter=5))  # fmt: skip
EIGEN = ("auto", "dense", "krylov", DenseEigen(), Krylov(tol=1e-6), Krylov(max_iter=1))
WRONG = (-1, 0, 0.5, float("nan"), float("inf"), "x", None, True, (), {}, [1, 2], 10**30, 5e-324, 1e308)


@dataclass(frozen=True)
class Family:
    """An estimator with the values its settings may take, usual ones first, and how its fits are judged."""

    name: str
    settings: dict[str, tuple[Any, ...]]
    judge: Callable[[Any, Sample], str]
    labels: bool = False
    weighted: bool = False
    supervised: bool = True
    ordered: bool = False


# Laws of all estimators


def finite(values: Any, what: str) -> np.ndarray:
    """The values as float64; NaN and infinite ones are a finding."""
    values = np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values, dtype=np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        raise Finding(f"{what}: {bad.sum()} of {values.size} are NaN or inf without a word")
    return values


def same(found: np.ndarray, again: np.ndarray, what: str, rounding: float = 0.0) -> None:
    size, off = np.abs(found).max(initial=0.0), np.abs(found - again).max(initial=0.0)
    if not np.array_equal(found, again) and off > 1e-9 * size + rounding:
        raise Finding(f"{what}: {off:.1e} of {size:.1e}")


def rounding_of(model: Any) -> float:
    """What sums with large coefficients may change in another order: files hold no budget, which cuts the tiles."""
    f = getattr(model, "function_", None)
    if f is None or not isinstance(f.X, np.ndarray):
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.abs(f.coef).sum() * np.abs(f.kernel.diag(f.X)).max())
    return 16 * np.finfo(np.float64).eps * size if np.isfinite(size) else np.inf


OUTPUTS = ("decision_function", "predict_proba", "predict", "transform")


def output(model: Any, X: Any, where: str = "") -> np.ndarray:
    """The first that a model has of decisions, probabilities, predictions and coordinates."""
    name = next(name for name in OUTPUTS if hasattr(model, name))
    return finite(getattr(model, name)(X), name + where)


def scribble(sample: Sample) -> None:
    """Overwrite the caller's arrays, which a fitted model must not notice."""
    for values in (sample.X, sample.y, sample.weights):
        if isinstance(values, np.ndarray) and values.flags.writeable and values.dtype.kind == "f":
            values[...] = 7.0
        elif isinstance(values, torch.Tensor) and values.is_floating_point():
            values.fill_(7.0)


def check_laws(model: Any, sample: Sample, rng: Rng) -> None:
    """What holds for every fitted estimator."""
    found = output(model, sample.new)
    rows = len(next(iter(sample.new.values()))) if isinstance(sample.new, dict) else len(sample.new)
    if len(found) != rows:
        raise Finding(f"{len(found)} predictions for {rows} rows")
    output(model, sample.X)
    with contextlib.suppress(MercerError):
        check_far(model, sample.new, rng)
    if not isinstance(model.report(), Report) or not str(model.report()) or not repr(model):
        raise Finding("report() is empty")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        again = output(mercer.load(path), sample.new)
        same(found, again, "a saved model predicts otherwise", rounding_of(model))
    clone(model)
    scribble(sample)
    same(found, output(model, sample.new), "predictions change with the caller's X")


def check_far(model: Any, new: Any, rng: Rng) -> None:
    """Far rows give numbers, or an error of ours."""
    if isinstance(new, np.ndarray) and new.dtype.kind == "f":
        factor = float(rng.choice([1e3, 1e10, 1e60, 1e160]))
        with np.errstate(all="ignore"):
            far = new * new.dtype.type(factor)
        if np.isfinite(far).all():
            output(model, far, f" at rows times {factor:g}")


# Judges: each gives a word for what the fit was compared with


def exact_rows(sample: Sample) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, new = sample.numbers
    y = np.asarray(sample.y, dtype=np.float64).reshape(len(X), -1)
    w = np.ones(len(X)) if sample.weights is None else np.broadcast_to(np.float64(sample.weights), len(X))
    return X, new, y, w


def in_float32(model: Any, sample: Sample) -> bool:
    """Whether kernel values may have been float32 numbers."""
    return model.dtype == "float32" or (model.dtype == "auto" and "float32" in str(getattr(sample.X, "dtype", "")))


def compare(found: np.ndarray, expected: reference.Prediction, spread: float, share: float, what: str) -> bool:
    if not expected.usable(spread):
        return False
    error = np.abs(found - expected.values)
    allowed = share * spread + expected.uncertainty
    if (error > allowed).any():
        raise Finding(f"{what} is off by {error.max():.1e}, y spreads over {spread:.1e}, allowed {allowed.max():.1e}")
    return True


def judge_ridge(model: Any, sample: Sample) -> str:
    report = model.solver_report_
    if report.solver in ("cholesky", "eigh", "pcg") and report.converged:
        finite(model.loo_predictions_, "loo_predictions_")
        finite(model.label_weights(sample.new), "label_weights")
    found = finite(model.predict(sample.new), "predict")
    if not report.converged:
        return "own warning: not converged"
    solver, few = report.solver, report.solver in ("nystrom", "falkon")
    if solver in ("random_features", "gd", "eigenpro", "flow"):
        return f"finite: {solver}"
    X, new, y, w = exact_rows(sample)
    if few and len(model.X_fit_) < len(np.unique(X[w > 0], axis=0)):
        return f"finite: {solver}"
    single = in_float32(model, sample)
    share = 1e-3 if few or solver == "pcg" or single else 1e-6
    alphas = np.broadcast_to(model.alpha_, y.shape[1])
    compared = True
    for column, alpha in enumerate(alphas):
        try:
            expected = reference.ridge(
                model.kernel_, X, y[:, column], w, float(alpha), new, single, model.fit_intercept
            )
        except (reference.Unknown, np.linalg.LinAlgError):
            return "finite: no reference"
        spread = float(np.abs(y[:, column]).max())
        compared &= compare(found.reshape(len(new), -1)[:, column], expected, spread, share, f"{solver}, predict")
    return "right: ridge" if compared else "finite: too ill-conditioned to compare"


def judge_process(model: Any, sample: Sample) -> str:
    mean, std = (finite(values, "mean and std") for values in model.predict(sample.new, return_std=True))
    latent = finite(model.predict(sample.new, return_std=True, latent=True)[1], "latent std")
    if (std < 0).any() or (latent > std * (1 + 1e-9)).any():
        raise Finding("the latent deviation is larger than that of an observation")
    finite(model.log_marginal_likelihood_, "log_marginal_likelihood_")
    finite(model.noise_, "noise_")
    finite(model.predict_interval(sample.new), "predict_interval")
    finite(model.sample_y(sample.new, 2, random_state=0), "sample_y")
    report = model.solver_report_
    if not report.converged:
        return "own warning: not converged"
    X, new, y, _ = exact_rows(sample)
    name = model._fit.plan.method.name
    method = "iterative" if "iterative" in name else name
    if method == "sgpr" or y.shape[1] > 1 or model.mean == "auto" or callable(model.mean):
        return f"finite: process {method}"
    try:
        expected, variance, evidence = reference.process(model.kernel_, X, y[:, 0], model.noise_, model.mean, new)
    except (reference.Unknown, np.linalg.LinAlgError):
        return "finite: no reference"
    spread = float(np.abs(y).max())
    share = 1e-6 if method == "exact" and model.dtype != "float32" else 1e-2
    compared = compare(mean.reshape(-1), expected, spread, share, f"{method}, mean")
    if method == "exact" and variance.usable(float(np.abs(variance.values).max())):
        compare(latent.reshape(-1) ** 2, variance, float(np.abs(variance.values).max()), share, "latent variance")
    if method == "exact" and evidence is not None and model.dtype != "float32":
        difference = abs(model.log_marginal_likelihood_ - evidence)
        if difference > 1e-3 * max(1.0, abs(evidence)):
            raise Finding(f"the evidence is {model.log_marginal_likelihood_:.6g}, the reference {evidence:.6g}")
    return f"right: process {method}" if compared else "finite: too ill-conditioned to compare"


SETTINGS = {"huber": "delta", "quantile": "level", "epsilon_insensitive": "epsilon"}


def judge_loss(model: Any, sample: Sample) -> str:
    """The dual bounds the distance from the least objective, whatever the solver was."""
    finite(model.objective_, "objective_")
    if hasattr(model, "predict_proba"):
        proba = finite(model.predict_proba(sample.new), "predict_proba")
        if (proba < 0).any() or np.abs(proba.sum(1) - 1).max(initial=0.0) > 1e-6:
            raise Finding("probabilities do not add up to one")
        model.predict(sample.new)
    if not model.solver_report_.converged:
        return "own warning: not converged"
    c, X = np.asarray(model.dual_coef_), sample.numbers[0]
    few = name_of(model.solver) == "nystrom" or model.n_landmarks is not None
    if not np.array_equal(np.asarray(model.X_fit_), X) or (few and model.loss not in reference.SLOPES):
        return "finite: loss on landmarks"
    if (
        model.fit_intercept
        or c.ndim > 1
        or model.solver_report_.solver == "nystrom"
        or getattr(model, "class_weight", None)
    ):
        return "finite: loss"
    y = np.asarray(sample.y).reshape(len(c))
    y = np.where(y == model.classes_[1], 1.0, -1.0) if hasattr(model, "classes_") else y.astype(np.float64)
    w = np.ones(len(c)) if sample.weights is None else np.broadcast_to(np.float64(sample.weights), len(c))
    kept, single = w > 0, in_float32(model, sample)
    try:
        K = reference.kernel_matrix(model.kernel_, X, X)[np.ix_(kept, kept)]
    except reference.Unknown:
        return "finite: no reference"
    if (
        not np.isfinite(K).all()
        or np.abs(K).max() * np.abs(c).max() * reference.rounding(model.kernel_, X, single) > 1e-6
    ):
        return "finite: too ill-conditioned to compare"
    setting = getattr(model.losses_[0], SETTINGS[model.loss]) if model.loss in SETTINGS else 0.0
    primal, gap = reference.duality_gap(model.loss, setting, K, c[kept], y[kept], w[kept], model.alpha_)
    with np.errstate(over="ignore"):
        size = float((w * reference.DUALS[model.loss][0](y, 0.0 * y, setting)).sum())
    if not gap <= 1e-3 * max(primal, 1e-6 * size):
        raise Finding(f"loss {model.loss}: converged with a duality gap of {gap:.1e} at an objective of {primal:.1e}")
    return "right: loss"


def judge_probabilities(model: Any, sample: Sample) -> str:
    proba = finite(model.predict_proba(sample.new), "predict_proba")
    if (proba < 0).any() or np.abs(proba.sum(1) - 1).max(initial=0.0) > 1e-6:
        raise Finding("probabilities do not add up to one")
    finite(model.log_marginal_likelihood_, "log_marginal_likelihood_")
    model.predict(sample.new)
    return "finite: process classifier"


def judge_components(model: Any, sample: Sample) -> str:
    values = finite(model.eigenvalues_, "eigenvalues_")
    X = sample.numbers[0]
    try:
        K = reference.kernel_matrix(model.kernel_, X, X)
    except reference.Unknown:
        return "finite: no reference"
    n, centred = len(X), bool(getattr(model, "center", False))
    P = np.eye(n) - centred / n
    if not np.isfinite(K).all() or getattr(model, "landmarks", None) is not None or getattr(model, "n_landmarks", None):
        return "finite: components"
    expected = np.linalg.eigvalsh(P @ K @ P)[::-1][: len(values)] / (1 if hasattr(model, "center") else n)
    if not model.solver_report_.converged:
        return "own warning: not converged"
    error = np.abs(values - expected).max(initial=0.0)
    size = max(np.abs(K).max() * (n if hasattr(model, "center") else 1.0), 1e-300)
    if error > (1e-8 + 10 * n * reference.rounding(model.kernel_, X)) * size:
        raise Finding(f"eigenvalues are off by {error:.1e} of {size:.1e}")
    return "right: components"


def judge_machine(model: Any, sample: Sample) -> str:
    """Recursive feature machines: weights of columns, and probabilities where the rows suffice for them."""
    importances = finite(model.feature_importances_, "feature_importances_")
    if (importances < 0).any():
        raise Finding("a column counts less than nothing")
    if hasattr(model, "predict_proba"):
        with contextlib.suppress(MercerError):
            proba = finite(model.predict_proba(sample.new), "predict_proba")
            if np.abs(proba.sum(1) - 1).max(initial=0.0) > 1e-6:
                raise Finding("probabilities do not add up to one")
    return "finite: feature machine"


def check_intervals(model: Any, new: Any) -> None:
    """The ends of intervals are in order and never NaN; few rows have infinite ones."""
    if not hasattr(model, "predict_interval"):
        return
    with contextlib.suppress(MercerError):
        low, high = (np.asarray(end, dtype=np.float64) for end in model.predict_interval(new))
        if np.isnan(low).any() or np.isnan(high).any():
            raise Finding("predict_interval gives NaN without a word")
        if (low > high).any():
            raise Finding("the lower end of an interval is above the upper")


def judge_table(model: Any, sample: Sample) -> str:
    """Columns of a table: all that is encoded is finite, and one row alone is predicted as among others."""
    output(model, sample.new)
    if hasattr(model, "predict_proba"):
        finite(model.predict_proba(sample.new), "predict_proba")
    return f"finite: table, {type(model.estimator_).__name__}"


def judge_features(model: Any, sample: Sample) -> str:
    finite(model.transform(sample.new), "transform")
    return f"finite: {type(model).__name__}"


LOSS = {
    "alpha": (1.0, 0.1, 1e-3, "auto", 1e-8),
    "fit_intercept": (False, True),
    "solver": ("auto", "dense", "pcg", "nystrom", *NEWTON),
    "tune": (False, False, False, True, "ard"),
    "tol": (1e-6, 1e-3, 1e-9),
    "max_iter": (None, 3),
    **FEW,
    **COMMON,
}
PROCESS = {
    "n_restarts": (0, 1),
    "tune": (False, True),
    "standardize": (True, False),
    "max_iter": (10, 100),
    **COMMON,
}
MACHINE = {
    "max_iter": (1, 2, 4),
    "n_folds": (2, 3),
    "matrix": ("auto", "diagonal", "full"),
    "alpha": ("auto", 1.0, 1e-6),
    "n_learn": (4000, 10),
    **FEW,
    **COMMON,
}
FEATURES = {"n_components": (5, 1, 30), "random_state": (0, None)}

FAMILIES = (
    Family(
        "KernelRidge",
        {
            "alpha": (*ALPHAS, "loo", "gcv", 0.0),
            "alphas": (None, None, [0.1, 1.0], [1e-8, 1.0, 1e8]),
            "tune": (False, False, False, True),
            "solver": RIDGE,
            "tol": (1e-6, 1e-3, 1e-10),
            "max_iter": (None, 2, 50),
            "n_features": (None, 10, 300),
            "fit_intercept": (False, False, True),
            **FEW,
            **COMMON,
        },
        judge_ridge,
        weighted=True,
        ordered=True,
    ),
    Family(
        "GaussianProcessRegressor",
        {
            "method": ("auto", "exact", "iterative", "sgpr"),
            "noise": ("learn", 0.1, 1e-3, 1e-10, 0.0),
            "mean": ("constant", "zero", "linear", 1.5, "auto"),
            "n_landmarks": (None, 3, 20),
            "n_learn": (None, 5, 30),
            "bounds": (None, None, {"noise": (1e-3, 1.0)}, {"noise": "fixed"}),
            **PROCESS,
        },
        judge_process,
        ordered=True,
    ),
    Family("GaussianProcessClassifier", PROCESS, judge_probabilities, labels=True),
    Family(
        "KernelClassifier",
        {"loss": ("logistic", "hinge", "squared_hinge", "squared"), "class_weight": (None, None, "balanced"), **LOSS},
        judge_loss,
        labels=True,
        weighted=True,
    ),
    Family(
        "KernelRegressor",
        {
            "loss": ("squared", "huber", "quantile", "epsilon_insensitive"),
            "quantiles": (0.5, 0.1, [0.1, 0.9]),
            "epsilon": (0.1, 0.0, 10.0),
            "delta": (1.345, 1e-3),
            "units": ("spread", "raw"),
            **LOSS,
        },
        judge_loss,
        weighted=True,
        ordered=True,
    ),
    Family(
        "KernelPCA",
        {
            "n_components": (3, None, 50),
            "center": (True, False),
            "landmarks": (None, None, "uniform", "pivoted"),
            "n_landmarks": (None, 4, 20),
            "solver": EIGEN,
            "tol": (1e-12, 1e-3),
            "max_iter": (500, 1),
            "pre_image": ("ridge", "fixed_point"),
            "memory_budget": COMMON["memory_budget"],
            "random_state": (0, None),
        },
        judge_components,
        supervised=False,
    ),
    Family(
        "MercerDecomposition",
        {"n_components": (3, None, 50), "solver": EIGEN, "random_state": (0, None)},
        judge_components,
        supervised=False,
    ),
    Family("NystromFeatures", FEATURES | {"landmarks": FEW["landmarks"]} | COMMON, judge_features, supervised=False),
    Family(
        "RandomFourierFeatures",
        FEATURES | {"method": ("pairs", "offset", "orthogonal", "qmc")},
        judge_features,
        supervised=False,
    ),
    Family(
        "RandomNetworkFeatures",
        FEATURES | {"activation": ("relu", "erf", "tanh", "sin")},
        judge_features,
        supervised=False,
    ),
    Family("TaylorFeatures", {"degree": (3, 1, 6), "center": (True, False)}, judge_features, supervised=False),
    Family("RFMRegressor", MACHINE, judge_machine, weighted=True),
    Family("RFMClassifier", {"class_weight": (None, "balanced"), **MACHINE}, judge_machine, labels=True, weighted=True),
)
TABLES = 0.12
"""How many of the fits are to tables."""
SHARES = np.array([8, 5, 3, 4, 4, 2, 1, 1, 1, 1, 1, 1, 1], dtype=float)


def name_of(solver: Any) -> str:
    """A name as it is, an object's class without what it is for."""
    return solver if isinstance(solver, str) else type(solver).__name__.removesuffix("Newton").lower()


def random_settings(rng: Rng, family: Family, n_columns: int) -> dict[str, Any]:
    """Usual values for most settings, others for a few, and now and then one that cannot be."""
    chosen = {name: values[0] for name, values in family.settings.items()}
    names = list(family.settings)
    for name in rng.choice(names, size=int(rng.integers(0, min(6, len(names)))), replace=False):
        values = family.settings[name]
        chosen[str(name)] = values[int(rng.integers(len(values)))]
    if name_of(chosen.get("solver", "auto")) not in ("auto", "nystrom", "falkon"):
        chosen |= {name: None for name in ("n_landmarks", "n_features") if name in chosen}
    if rng.random() < 0.05:
        chosen[str(rng.choice(names))] = WRONG[int(rng.integers(len(WRONG)))]
    if family.name == "RandomNetworkFeatures":
        return chosen
    return chosen | {"kernel": random_choice_of_kernel(rng, family, n_columns)}


def random_choice_of_kernel(rng: Rng, family: Family, n_columns: int) -> Any:
    if family.name.startswith("RFM"):
        return ("auto", "laplace", "gaussian", k.Laplace(2.0), "exponential_power")[int(rng.integers(5))]
    if family.name == "TaylorFeatures":
        return ("gaussian", 1.0, k.Gaussian(0.5))[int(rng.integers(3))]
    chance = rng.random()
    if chance < 0.4:
        return str(rng.choice(NAMES))
    if chance < 0.5:
        extremes = (k.Polynomial(6), k.Gaussian(1e-160), k.Gaussian(1e160), k.Linear(), k.Brownian(), k.AllSubsets())
        return extremes[int(rng.integers(len(extremes)))]
    return random_kernel(rng, n_columns)


def trials(seed: int, numbers: range) -> Iterator[Trial]:
    """The trials of these numbers; each has a random generator of its own."""
    for number in numbers:
        yield random_trial(seed, number)


def random_trial(seed: int, number: int) -> Trial:
    rng = np.random.default_rng([seed, number])
    if rng.random() < TABLES:
        return random_table_trial(rng, number)
    family = FAMILIES[int(rng.choice(len(FAMILIES), p=SHARES / SHARES.sum()))]
    sample = random_sample(rng, int(rng.choice([0, 0, 1, 1, 1, 2])), family.weighted)
    shape = sample.words[0].split(" x ")
    if family.labels:
        sample.y, kind = random_labels(rng, int(shape[0]))
        sample.words.append(kind)
    settings = random_settings(rng, family, int(shape[1]))
    order = random_order(rng, sample) if family.ordered and rng.random() < 0.15 else None
    if family.name == "KernelRidge" and order is None and rng.random() < 0.15:
        sample.parts = int(rng.choice([1, 7, 1000]))
        sample.words.append(f"a stream of parts of {sample.parts}")
    changed = {name: value for name, value in settings.items() if value != family.settings.get(name, (None,))[0]}
    written = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return Trial(
        number,
        f"{family.name}({written}) on {', '.join(sample.words)}",
        lambda: fit(family, settings, sample, rng, order),
    )


def random_table_trial(rng: Rng, number: int) -> Trial:
    """Any estimator on a table as people have them."""
    inner, sample, options = random_table(rng)
    family = Family(
        "TabularEstimator", {}, judge_table, weighted=True, supervised=not isinstance(inner, mercer.KernelPCA)
    )
    written = ", ".join(f"{name}={value!r}" for name, value in options.items())
    words = f"tabular({inner!r}, {written}) on {', '.join(sample.words)}"
    return Trial(number, words, lambda: fit(family, {"estimator": inner, **options}, sample, rng))


AFTER = (
    "overflow",
    "is defined for inputs",
    "memory budget",
    "does not fit a model file",
    "cannot go into a model file",
    "at least two rows",
    "curvature of the labels",
    "forecasts need at least",
    "as in the training rows",
    "when the model was fitted",
    "is infinite in row",
    "calibrated intervals need at least",
)
"""What a fitted model may refuse: new rows out of its reach, what does not fit the budget, labels beyond rounding,
intervals of few moments, columns of another kind or with infinite numbers."""


def fit(family: Family, settings: dict[str, Any], sample: Sample, rng: Rng, order: Any = None) -> str:
    """Fit, judge, and check the laws of all estimators."""
    model = getattr(mercer, family.name)(**settings)
    given = (sample.X, sample.y) if family.supervised else (sample.X,)
    if sample.parts:
        model.fit(ArrayRows(*given, sample.weights, rows_at_once=sample.parts))
    else:
        more = {"sample_weight": sample.weights, "order": order}
        model.fit(*given, **{name: value for name, value in more.items() if value is not None})
    try:
        outcome = family.judge(model, sample)
        if not sample.parts:
            check_intervals(model, sample.new)
            check_laws(model, sample, rng)
    except MercerError as error:
        if any(words in str(error) for words in AFTER):
            raise
        raise Finding(f"refused after the fit: {str(error)[:200]}") from error
    return outcome
