"""Public functions and methods, each with arguments that are right."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import mercer
from fuzz.data import Rng
from mercer import kernels as k
from mercer import neural, rows, stats, theory


def _module() -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()


def _score(X: Any) -> Any:
    return -X


def _log_prob(X: Any) -> Any:
    return -0.5 * (X**2).sum(-1)


def _three(X: Any) -> Any:
    return X[..., 0] * 0.0 + 3.0


@functools.cache
def _forecaster() -> Any:
    X = np.random.default_rng(0).normal(size=(80, 2))
    return theory.forecasters(k.Gaussian(1.0)(X), [np.sin(X[:, 0])])[0]


def _drift(X: Any, Y: Any, **options: Any) -> Any:
    detector = stats.DriftDetector(n_resamples=30, expected_run_length=100, **options).fit(X)
    return detector.test(Y), detector.update(Y)


def _embedding(X: Any, Y: Any, frequencies: Any, **options: Any) -> Any:
    first, second = (stats.MeanEmbedding(**options).fit(part) for part in (X, Y))
    return first.distance(second), first.inner(second), first.norm(), first.characteristic_function(frequencies)


def _fitted(name: str, **fixed: Any) -> Callable[..., Any]:
    """A model fitted to X and y, with one of its methods called on Z with options."""

    def call(X: Any, y: Any, Z: Any, method: str, options: dict[str, Any] | None = None, **settings: Any) -> Any:
        model = getattr(mercer, name)(**fixed | settings)
        model = model.fit(X) if y is None and not name.endswith("Classifier") else model.fit(X, y)
        found = getattr(model, method)
        return (found(Z, **options or {}) if Z is not None else found(**options or {})) if callable(found) else found

    return call


def _stream(X: Any, y: Any, parts: int, Z: Any, **settings: Any) -> Any:
    model = mercer.KernelRidge("gaussian", **settings)
    return model.fit(rows.ArrayRows(X, y, rows_at_once=parts)).predict(Z)


def _more(X: Any, y: Any, X2: Any, y2: Any, Z: Any, **settings: Any) -> Any:
    return mercer.KernelRidge("gaussian", alpha=0.1, **settings).fit(X, y).partial_fit(X2, y2).predict(Z)


def _process_more(X: Any, y: Any, X2: Any, y2: Any, Z: Any, **settings: Any) -> Any:
    model = mercer.GaussianProcessRegressor("gaussian", max_iter=3, **settings)
    return model.fit(X, y).partial_fit(X2, y2).predict(Z)


@dataclasses.dataclass(frozen=True)
class Call:
    """A public function with good arguments. `arrays` are rows that pathologies fit, `targets` columns of numbers."""

    call: Callable[..., Any]
    good: Callable[[Rng], dict[str, Any]]
    arrays: tuple[str, ...] = ("X",)
    targets: tuple[str, ...] = ()


def _xy(rng: Rng, n: int = 30, d: int = 2) -> dict[str, Any]:
    X = rng.normal(size=(n, d))
    return {"X": X, "y": np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)}


def _two(rng: Rng, n: int = 24, d: int = 2, **more: Any) -> dict[str, Any]:
    return {"X": rng.normal(size=(n, d)), "Y": rng.normal(size=(n, d)) + 0.3, **more}


def _on_sphere(rng: Rng, n: int, d: int) -> Any:
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _samples(rng: Rng, **more: Any) -> dict[str, Any]:
    return {"X": rng.normal(size=(24, 2)), **more}


def _model(name: str, method: str, options: dict[str, Any] | None = None, **settings: Any) -> Call:
    def good(rng: Rng) -> dict[str, Any]:
        given = _xy(rng)
        if name.endswith("Classifier"):
            given["y"] = np.where(given["y"] > 0, "yes", "no")
        wanted = options is None or "X" not in options
        extra = {name: value for name, value in (options or {}).items() if name != "X"}
        return {**given, "Z": rng.normal(size=(5, 2)) if wanted else None, "method": method, "options": extra}

    return Call(_fitted(name, **settings), good, ("X", "Z"), ("y",))


ALONE: dict[str, Any] = {"X": None}
"""Options of methods that take no rows."""
FEW = {"n_resamples": 30}
TWO = ("X", "Y")

CALLS: dict[str, Call] = {
    "mmd": Call(stats.mmd, lambda rng: _two(rng, kernel="gaussian", estimator="u", squared=True, weights_x=None), TWO),
    "mmd, blocks": Call(stats.mmd, lambda rng: _two(rng, estimator="block", block_size=6, squared=True), TWO),
    "mmd, budget": Call(stats.mmd, lambda rng: _two(rng, estimator="incomplete", budget=100, squared=True), TWO),
    "two_sample_test": Call(
        stats.two_sample_test, lambda rng: _two(rng, kernel=None, combine="fused", random_state=0, **FEW), TWO
    ),
    "two_sample_test, aggregated": Call(
        stats.two_sample_test, lambda rng: _two(rng, combine="agg", order=None, groups=None, **FEW), TWO
    ),
    "independence_test": Call(
        stats.independence_test, lambda rng: _two(rng, combine="fused", groups=None, order=None, **FEW), TWO
    ),
    "conditional_independence_test": Call(
        stats.conditional_independence_test,
        lambda rng: _two(rng, Z=rng.normal(size=(24, 1)), random_state=0, **FEW),
        (*TWO, "Z"),
    ),
    "hsic": Call(stats.hsic, lambda rng: _two(rng, kernel_x="gaussian", estimator="u"), TWO),
    "wasserstein": Call(stats.wasserstein, lambda rng: _two(rng, method="auto", n_projections=10), TWO),
    "wasserstein, sliced": Call(stats.wasserstein, lambda rng: _two(rng, method="sliced", n_projections=10), TWO),
    "total_variation": Call(stats.total_variation, lambda rng: _two(rng, d=1, bins=5), TWO),
    "kolmogorov": Call(stats.kolmogorov, lambda rng: _two(rng, d=1), TWO),
    "characteristic_function": Call(
        stats.characteristic_function,
        lambda rng: _samples(rng, frequencies=rng.normal(size=(3, 2)), sample_weight=None),
        ("X", "frequencies"),
    ),
    "change_points": Call(
        stats.change_points, lambda rng: _samples(rng, n_features=8, min_size=5, level=0.05, random_state=0, **FEW)
    ),
    "ksd": Call(stats.ksd, lambda rng: _samples(rng, score=_score, estimator="u", kernel=None, squared=True)),
    "ksd, log_prob": Call(stats.ksd, lambda rng: _samples(rng, log_prob=_log_prob)),
    "goodness_of_fit_test": Call(
        stats.goodness_of_fit_test, lambda rng: _samples(rng, score=_score, order=None, kernel=None, **FEW)
    ),
    "control_functional": Call(
        stats.control_functional,
        lambda rng: _samples(rng, f=rng.normal(size=24), score=_score, alpha=1e-6),
        ("X",),
        ("f",),
    ),
    "KernelThinning": Call(
        lambda X, **options: stats.KernelThinning(**options).fit(X).transform(X),
        lambda rng: _samples(rng, m=4, kernel="gaussian", compress=None, random_state=0),
    ),
    "KernelHerding": Call(
        lambda X, **options: stats.KernelHerding(**options).fit(X).transform(X),
        lambda rng: _samples(rng, m=4, kernel="gaussian"),
    ),
    "SteinThinning": Call(
        lambda X, score, **options: stats.SteinThinning(**options).fit(X, score).transform(X),
        lambda rng: _samples(rng, score=_score, m=4, kernel=None, standardize=False, regularisation=None),
    ),
    "DriftDetector": Call(_drift, lambda rng: _two(rng, level=0.05, random_state=0), TWO),
    "MeanEmbedding": Call(
        _embedding, lambda rng: _two(rng, frequencies=rng.normal(size=(3, 2)), kernel="gaussian"), (*TWO, "frequencies")
    ),
    "gradient_flow": Call(
        lambda X, y, Z, t, **options: neural.gradient_flow(X=X, y=y, **options).predict(Z, t),
        lambda rng: {**_xy(rng), "Z": rng.normal(size=(5, 2)), "t": 1.0, "kernel": k.Gaussian(1.0)},
        ("X", "Z"),
        ("y",),
    ),
    "empirical_ntk": Call(
        lambda **given: neural.empirical_ntk(_module(), **given),
        lambda rng: {"X": rng.normal(size=(4, 2)), "Z": rng.normal(size=(3, 2)), "full": False},
        ("X", "Z"),
    ),
    "ntk_product": Call(
        lambda **given: neural.ntk_product(_module(), **given),
        lambda rng: {"X": rng.normal(size=(4, 2)), "Z": rng.normal(size=(3, 2)), "V": rng.normal(size=(3, 1))},
        ("X", "Z", "V"),
    ),
    "last_layer_regression": Call(
        lambda X, y, **options: neural.last_layer_regression(_module(), X, y, **options).predict(X),
        lambda rng: {**_xy(rng), "alpha": 1.0},
        ("X",),
        ("y",),
    ),
    "lazy_training": Call(
        neural.lazy_training,
        lambda rng: {
            "widths": [4, 8],
            **_xy(rng, 10),
            "time": 1.0,
            "steps": 10,
            "scaling": "lazy",
            "activation": "tanh",
        },
        ("X",),
        ("y",),
    ),
    "two_layer": Call(
        neural.two_layer,
        lambda rng: {**_xy(rng, 10), "U": rng.normal(size=(2, 1)), "width": 8, "time": 1.0, "steps": 10, "moments": 3},
        ("X", "U"),
        ("y",),
    ),
    "LayerKernel": Call(
        lambda X, Z, layers, **options: k.as_kernel(neural.LayerKernel(layers, **options))(X, Z),
        lambda rng: {
            "X": rng.normal(size=(4, 2)),
            "Z": rng.normal(size=(3, 2)),
            "layers": (neural.Dense(), neural.Activation("relu"), neural.Dense()),
            "tangent": True,
        },
        ("X", "Z"),
    ),
    "krr_risk": Call(
        theory.krr_risk,
        lambda rng: {
            "spectrum": 1.0 / np.arange(1.0, 20) ** 2,
            "coefficients": rng.normal(size=19),
            "n": np.array([5, 10, 50]),
            "alpha": 0.1,
            "noise": 0.1,
            "tail": 0.0,
        },
        (),
        ("spectrum", "coefficients", "n"),
    ),
    "sequence_model": Call(
        theory.sequence_model,
        lambda rng: {
            "spectrum": 1.0 / np.arange(1.0, 20) ** 2,
            "coefficients": rng.normal(size=19),
            "n": 50,
            "alpha": 0.1,
            "noise": 0.1,
            "draws": 5,
        },
        (),
        ("spectrum", "coefficients"),
    ),
    "equivalents_accuracy": Call(
        theory.equivalents_accuracy,
        lambda rng: {
            "spectrum": 1.0 / np.arange(1.0, 20) ** 2,
            "coefficients": rng.normal(size=19),
            "n": [5, 10],
            "alpha": 0.1,
            "draws": 2,
        },
        (),
        ("spectrum", "coefficients"),
    ),
    "effective_regularisation": Call(
        theory.effective_regularisation,
        lambda rng: {"spectrum": 1.0 / np.arange(1.0, 20) ** 2, "n": 10, "alpha": 0.1, "tail": 0.0},
        (),
        ("spectrum",),
    ),
    "exact_risk": Call(
        theory.exact_risk,
        lambda rng: {
            "kernel": k.Gaussian(1.0),
            "X": rng.normal(size=(10, 2)),
            "target": lambda X: np.sin(X[:, 0]),
            "population": rng.normal(size=(20, 2)),
            "alpha": 1.0,
            "noise": 0.1,
        },
        ("X", "population"),
    ),
    "diagnostics": Call(
        theory.diagnostics,
        lambda rng: {"gram": k.Gaussian(1.0)(X := rng.normal(size=(20, 2))), "targets": X[:, 0], "alpha": 0.1},
        ("gram",),
        ("targets",),
    ),
    "learning_curve": Call(
        theory.learning_curve,
        lambda rng: {
            "gram": k.Gaussian(1.0)(X := rng.normal(size=(80, 2))),
            "targets": X[:, 0],
            "factors": (1, 2, 4),
            "level": 0.9,
        },
        ("gram",),
        ("targets",),
    ),
    "samples_needed": Call(
        theory.samples_needed, lambda rng: {"made": _forecaster(), "target": 0.1, "measure": "RMSE"}, ()
    ),
    "curve_of": Call(
        theory.curve_of, lambda rng: {"made": _forecaster(), "factors": (1, 2), "level": 0.9, "measure": "RMSE"}, ()
    ),
    "effective_dimension": Call(theory.effective_dimension, _samples),
    "dimension_lower_bound": Call(
        theory.dimension_lower_bound,
        lambda rng: {"functions_or_gram": k.Gaussian(1.0)(rng.normal(size=(20, 2))), "error": 0.1},
        ("functions_or_gram",),
    ),
    "degree_parts": Call(
        theory.degree_parts,
        lambda rng: {"kernel": lambda t: t**2, "X": _on_sphere(rng, 20, 4), "kmax": 3},
    ),
    "degree_reached": Call(theory.degree_reached, lambda rng: {"n": 100, "d": 10}, ()),
    "sphere_harmonics_dimension": Call(theory.sphere_harmonics_dimension, lambda rng: {"d": 3, "k": 2}, ()),
    "sphere_spectrum": Call(
        theory.sphere_spectrum, lambda rng: {"kernel": k.Gaussian(1.0), "d": 3, "kmax": 4, "radius": 1.0}, ()
    ),
    "taylor_coefficients": Call(
        theory.taylor_coefficients, lambda rng: {"kernel": k.Gaussian(1.0), "terms": 4, "radius": 1.0}, ()
    ),
    "minimax_rate": Call(theory.minimax_rate, lambda rng: {"smoothness": 1.0, "dimension": 2.0, "kind": "stone"}, ()),
    "curse_of_dimensionality": Call(
        theory.curse_of_dimensionality, lambda rng: {"dimensions": (1, 2), "error": 0.1, "smoothness": 1.0}, ()
    ),
    "project_degree": Call(
        theory.project_degree,
        lambda rng: {"f": lambda X: X[:, 0], "degree": 1, "d": 3, "draws": 200, "random_state": 0},
        (),
    ),
    "staircase": Call(
        theory.staircase, lambda rng: {"kernel": k.Gaussian(1.0), "d": 5, "alpha": 1e-3, "noise": 0.0, "repeats": 1}, ()
    ),
    "multiple_descent": Call(
        theory.multiple_descent,
        lambda rng: {"kernel": k.Gaussian(1.0), "d": 5, "alpha": 1e-3, "noise": 1.0, "repeats": 1},
        (),
    ),
    "universality": Call(
        theory.universality,
        lambda rng: {"kernel": k.Gaussian(1.0), **_xy(rng), "n": [5, 10], "alpha": 1.0, "repeats": 2},
        ("X",),
        ("y",),
    ),
    "gram": Call(
        lambda kernel, X, Z, V: mercer.gram(kernel, X, Z) @ V,
        lambda rng: {
            "kernel": k.Gaussian(1.0),
            "X": rng.normal(size=(6, 2)),
            "Z": rng.normal(size=(4, 2)),
            "V": rng.normal(size=4),
        },
        ("X", "Z"),
        ("V",),
    ),
    "kernel": Call(
        lambda X, Z: k.Matern(1.5)(X, Z),
        lambda rng: {"X": rng.normal(size=(6, 2)), "Z": rng.normal(size=(4, 2))},
        ("X", "Z"),
    ),
    "RKHSFunction": Call(
        lambda X, coef, Z: (f := mercer.RKHSFunction(k.Gaussian(1.0), X, coef))(Z) * f.norm() + f.bound(Z),
        lambda rng: {"X": rng.normal(size=(6, 2)), "coef": rng.normal(size=6), "Z": rng.normal(size=(4, 2))},
        ("X", "Z"),
        ("coef",),
    ),
    "stream": Call(
        _stream,
        lambda rng: {**_xy(rng), "parts": 7, "Z": rng.normal(size=(5, 2)), "n_landmarks": 10},
        ("X", "Z"),
        ("y",),
    ),
    "partial_fit": Call(
        functools.partial(_more, solver="random_features", n_features=20),
        lambda rng: {**_xy(rng), "X2": rng.normal(size=(6, 2)), "y2": rng.normal(size=6), "Z": rng.normal(size=(5, 2))},
        ("X", "X2", "Z"),
        ("y", "y2"),
    ),
    "partial_fit, landmarks": Call(
        functools.partial(_more, solver="nystrom", n_landmarks=10),
        lambda rng: {**_xy(rng), "X2": rng.normal(size=(6, 2)), "y2": rng.normal(size=6), "Z": rng.normal(size=(5, 2))},
        ("X", "X2", "Z"),
        ("y", "y2"),
    ),
    "partial_fit of a process": Call(
        _process_more,
        lambda rng: {**_xy(rng), "X2": rng.normal(size=(6, 2)), "y2": rng.normal(size=6), "Z": rng.normal(size=(5, 2))},
        ("X", "X2", "Z"),
        ("y", "y2"),
    ),
    "ridge": _model("KernelRidge", "predict"),
    "ridge, interval": _model("KernelRidge", "predict_interval", {"level": 0.9, "method": "residuals"}),
    "ridge, jackknife": _model("KernelRidge", "predict_interval", {"level": 0.9, "method": "jackknife+"}),
    "ridge, flow": _model("KernelRidge", "predict", {"t": 1.0}, solver="flow"),
    "ridge, primal": _model("KernelRidge", "predict", kernel=k.Linear(), solver="primal"),
    "ridge, features": _model("KernelRidge", "predict", kernel="gaussian", n_features=20),
    "ridge, influential": _model("KernelRidge", "influential", {"k": 3}),
    "ridge, label_weights": _model("KernelRidge", "label_weights"),
    "ridge, learning_curve": _model("KernelRidge", "learning_curve", {**ALONE, "factors": (1, 2), "level": 0.9}),
    "ridge, samples_needed": _model("KernelRidge", "samples_needed", {**ALONE, "target": 0.2}),
    "ridge, diagnostics": _model("KernelRidge", "diagnostics", ALONE),
    "classifier": _model("KernelClassifier", "predict_proba"),
    "classifier, learning_curve": _model("KernelClassifier", "learning_curve", {**ALONE, "factors": (1, 2)}),
    "regressor, interval": _model(
        "KernelRegressor", "predict_interval", {"level": 0.8}, loss="quantile", quantiles=[0.1, 0.9]
    ),
    "process": _model("GaussianProcessRegressor", "predict", {"return_std": True}, max_iter=5),
    "process, interval": _model("GaussianProcessRegressor", "predict_interval", {"level": 0.9}, max_iter=5),
    "process, sample_y": _model(
        "GaussianProcessRegressor", "sample_y", {"n_samples": 2, "random_state": 0}, max_iter=5
    ),
    "process, gradient": _model("GaussianProcessRegressor", "gradient", {"of": "mean"}, max_iter=5),
    "process, components": _model(
        "GaussianProcessRegressor",
        "predict_component",
        {"component": 0},
        kernel=k.Gaussian(1.0) + k.Linear(),
        max_iter=5,
    ),
    "process, loo": _model("GaussianProcessRegressor", "loo", ALONE, max_iter=5),
    "process classifier": _model("GaussianProcessClassifier", "latent_mean_and_variance", max_iter=5),
    "components, back": _model("KernelPCA", "fit_transform", n_components=2),
    "decomposition": _model("MercerDecomposition", "eigenfunctions"),
    "decomposition, error": _model("MercerDecomposition", "approximation_error", {"max_rows": 20}),
    "machine": _model("RFMRegressor", "predict", kernel="laplace", max_iter=1, n_folds=2),
    "machine of classes": _model("RFMClassifier", "predict", kernel="laplace", max_iter=1, n_folds=2),
    "nystrom features": _model("NystromFeatures", "transform", n_components=5),
    "fourier features": _model("RandomFourierFeatures", "transform", n_components=6),
    "network features": _model("RandomNetworkFeatures", "transform", n_components=6),
    "taylor features": _model("TaylorFeatures", "transform"),
    "tabular": _model("TabularEstimator", "predict"),
    "tabular, interval": _model("TabularEstimator", "predict_interval", {"level": 0.9}),
}
"""What a user may call, with arguments that are right."""
