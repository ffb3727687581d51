"""The fits of the golden file: a name, what is fitted, and how exactly its numbers must come back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_data as data
import numpy as np
import pandas as pd
import torch
from golden_names import estimator, result, solver_name

from mercer import RKHSFunction, gram
from mercer import kernels as k
from mercer.losses import Huber
from mercer.processes import LogNormal
from mercer.rows import ArrayRows, ParquetRows, chunk_rows

PRECISION = {"direct": 1e-9, "float32": 2e-5, "iterative": 2e-5, "learned": 1e-4}
"""Largest difference from the recorded numbers, relative to the largest of them, that processors may make: of a system
solved directly, of float32 products, of iterations that stop at a tolerance, and of maxima of flat likelihoods."""


@dataclass(frozen=True)
class Case:
    """Something that gives numbers and names, and its precision."""

    numbers: Callable[[], dict[str, Any]]
    precision: str = "direct"


SCALE, OWN = 1.3, (0.9, 1.4, 2.1)
KERNELS = {
    "gaussian": k.Gaussian(SCALE),
    "gaussian_ard": k.Gaussian(OWN),
    "laplace": k.Laplace(SCALE),
    "laplace_ard": k.Laplace(OWN),
    "laplace_l1": k.Laplace(SCALE, metric="l1"),
    "exponential_power": k.ExponentialPower(SCALE, power=1.4),
    "matern12": k.Matern(0.5, SCALE),
    "matern32": k.Matern(1.5, OWN),
    "matern52": k.Matern(2.5, SCALE),
    "matern_any": k.Matern(0.8, SCALE),
    "rational_quadratic": k.RationalQuadratic(SCALE, alpha=0.7),
    "imq": k.InverseMultiquadric(SCALE, power=0.6),
    "periodic": k.Periodic(1.1, period=2.5),
    "periodic_ard": k.Periodic(OWN, period=(2.0, 3.0, 2.5)),
    "brownian": k.Brownian(),
    "linear": k.Linear(bias=0.5),
    "polynomial": k.Polynomial(3, scale=0.3, offset=1.0),
    "all_subsets": k.AllSubsets(),
    "white": k.Gaussian(SCALE) + k.WhiteNoise(0.3),
    "sum": k.Gaussian(0.6) + k.Laplace(2.0) + 1.0,
    "product": 2.5 * k.Matern(1.5) * k.Linear(bias=1.0) ** 2,
    "power": (0.5 * (2.0 * k.RationalQuadratic()) ** 2) ** 2,
    "subspaces": k.Subspace(k.Matern(1.5, "median"), (0, 1)) + k.Subspace(k.Linear(), 2) + 1.0,
    "median": k.Laplace("median") + 1.0,
}
NAMES = ("gaussian", "laplace", "laplace_l1", "matern12", "matern32", "matern52", "exponential_power", "imq", "poly")
FEW = ("gaussian", "matern52")


# Ridge


def ridge_numbers(model: Any, new: Any = data.X_NEW, more: tuple[str, ...] = ()) -> dict[str, Any]:
    predictions = model.predict(new)
    numbers = {"predict": predictions, "dtype": str(predictions.dtype), "solver": solver_name(model)}
    return numbers | {name: result(model, name) for name in ("alpha", "lambda", *more)}


def ridge(X: Any = data.X, y: Any = data.Y[:, 0], weights: Any = None, more: tuple[str, ...] = (), **settings: Any):
    settings = {"alpha": 0.1, "fit_intercept": False, "random_state": 0} | settings
    new = settings.pop("new", data.X_NEW)
    return lambda: ridge_numbers(estimator("KernelRidge", **settings).fit(X, y, weights), new, more)


TARGETS = {
    "plain": {},
    "weighted": {"weights": data.WEIGHTS},
    "two_targets": {"y": data.Y},
    "two_alphas": {"y": data.Y, "alpha": [0.05, 2.0], "weights": data.WEIGHTS},
    "repeated": {"X": data.X[data.REPEATED]},
    "float32": {"X": data.X.astype(np.float32)},
}
SOLVERS = {
    "cholesky": ("direct", {}),
    "eigh": ("direct", {}),
    "mixed_cholesky": ("direct", {}),
    "pcg": ("iterative", {}),
    "nystrom": ("direct", {"n_landmarks": 25}),
    "falkon": ("iterative", {"n_landmarks": 25}),
    "random_features": ("direct", {"n_features": 80}),
}


def ridge_cases() -> Iterator[tuple[str, Case]]:
    for name, kernel in KERNELS.items():
        yield f"kernel {name}", Case(ridge(kernel=kernel, more=("left_out",)))
    for name in NAMES:
        yield f"name {name}", Case(ridge(kernel=name))
    for solver, (precision, options) in SOLVERS.items():
        for name in FEW:
            for targets, given in TARGETS.items():
                settings = {"kernel": KERNELS[name], "solver": solver} | options | given
                yield f"{solver} {name} {targets}", Case(ridge(**settings), precision)
    for criterion in ("loo", "gcv"):
        for solver in ("eigh", "nystrom", "random_features"):
            for targets in ("plain", "weighted", "two_targets"):
                settings = TARGETS[targets] | SOLVERS[solver][1] | {"alpha": criterion, "solver": solver}
                # features that are nearly dependent, at the least alpha of a path, keep few digits
                precision = "learned" if solver == "random_features" else "direct"
                yield f"{criterion} {solver} {targets}", Case(ridge(kernel=KERNELS["laplace"], **settings), precision)
    laplace = {"kernel": KERNELS["laplace"]}
    yield "path given", Case(ridge(alpha="loo", alphas=[0.01, 0.1, 1.0, 10.0], **laplace))
    yield "interpolant", Case(ridge(alpha=0.0, **laplace))
    yield "interpolant repeated", Case(ridge(X=data.X[data.REPEATED], alpha=0.0, **laplace))
    yield "interpolant weighted", Case(ridge(alpha=0.0, weights=data.WEIGHTS, **laplace))
    yield "eigenpro", Case(ridge(alpha=0.0, solver="eigenpro", tol=1e-8, max_iter=400, **laplace), "iterative")
    yield "gd", Case(ridge(alpha=0.0, solver="gd", tol=1e-8, max_iter=400, **laplace), "iterative")
    for landmarks in ("uniform", "pivoted", "leverage", data.X[:12]):
        how = landmarks if isinstance(landmarks, str) else "given"
        few = {} if how == "given" else {"n_landmarks": 15}
        yield f"landmarks {how}", Case(ridge(solver="nystrom", landmarks=landmarks, **few, **laplace))
    for name in ("gaussian_ard", "matern52", "sum"):
        for alpha in (0.1, "loo"):
            settings = {"kernel": KERNELS[name], "alpha": alpha, "tune": True}
            yield f"tune {name} {alpha}", Case(ridge(**settings), "learned")


def stream(kind: str, columns: int, weights: np.ndarray | None) -> Callable[[Path], Any]:
    """A source of the sample's rows, in parts of 13, which may lie in a folder."""
    y = data.Y[:, 0] if columns == 1 else data.Y
    if kind == "arrays":
        return lambda folder: ArrayRows(data.X, y, weights, rows_at_once=13)
    if kind == "chunks":
        parts = [slice(i, i + 20) for i in range(0, data.ROWS, 20)]
        return lambda folder: chunk_rows([(data.X[part], y[part]) for part in parts], rows_at_once=13)

    def parquet(folder: Path) -> Any:
        table = pd.DataFrame(data.X, columns=["a", "b", "c"])
        targets = ["y", "z"][:columns]
        table[targets] = data.Y[:, :columns]
        table["w"] = 1.0 if weights is None else weights
        table.to_parquet(folder / "rows.parquet", row_group_size=17)
        return ParquetRows(folder / "rows.parquet", target=targets[0] if columns == 1 else targets, weight="w")

    return parquet


def streamed(source: Callable[[Path], Any], **settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            rows = source(Path(folder))
            model = estimator("KernelRidge", random_state=0, fit_intercept=False, **settings).fit(rows)
            new = pd.DataFrame(data.X_NEW, columns=["a", "b", "c"]) if isinstance(rows, ParquetRows) else data.X_NEW
            return ridge_numbers(model, new) | {"predict_source": model.predict(rows)[:10]}

    return numbers


def stream_cases() -> Iterator[tuple[str, Case]]:
    for kind in ("arrays", "chunks", "parquet"):
        for solver in ("nystrom", "falkon", "random_features"):
            precision, options = SOLVERS[solver]
            settings = {"kernel": KERNELS["matern52"], "solver": solver, "alpha": 0.1} | options
            yield f"{kind} {solver}", Case(streamed(stream(kind, 1, None), **settings), precision)
            if kind != "chunks":
                yield (
                    f"{kind} {solver} weighted targets",
                    Case(streamed(stream(kind, 2, data.WEIGHTS), **settings), precision),
                )
        loo = {"kernel": "laplace", "alpha": "loo", "n_landmarks": 20}
        yield f"{kind} loo", Case(streamed(stream(kind, 1, None), **loo))


def in_parts(solver: str, **options: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        settings = {"kernel": KERNELS["laplace"], "alpha": 0.1, "fit_intercept": False, "random_state": 0}
        model = estimator("KernelRidge", solver=solver, **settings, **options)
        for part in (slice(0, 30), slice(30, 45), slice(45, None)):
            model.partial_fit(data.X[part], data.Y[part], data.WEIGHTS[part])
        return ridge_numbers(model)

    return numbers


def explained(**settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator("KernelRidge", fit_intercept=False, **settings).fit(data.X, data.Y[:, 0], data.WEIGHTS)
        return {"label_weights": model.label_weights(data.X_NEW[:3]), "left_out": result(model, "left_out")}

    return numbers


def input_cases() -> Iterator[tuple[str, Case]]:
    y, laplace = data.Y[:, 0], KERNELS["laplace"]
    frame, new = (pd.DataFrame(rows, columns=["a", "b", "c"]) for rows in (data.X, data.X_NEW))
    named = k.Subspace(k.Laplace(1.0), ["a", "c"]) + k.Subspace(k.Linear(), "b")
    K, K_new = KERNELS["laplace"](data.X), KERNELS["laplace"](data.X_NEW, data.X)
    single, single_new = torch.tensor(data.X, dtype=torch.float32), torch.tensor(data.X_NEW, dtype=torch.float32)
    yield "frame", Case(ridge(X=frame, y=frame["a"] * y, kernel=named, new=new))
    yield "lists", Case(ridge(X=data.X.tolist(), y=y.tolist(), kernel=laplace, new=data.X_NEW.tolist()[:3]))
    yield "torch", Case(ridge(X=torch.tensor(data.X), y=torch.tensor(y), kernel=laplace, new=torch.tensor(data.X_NEW)))
    yield "torch float32", Case(ridge(X=single, y=torch.tensor(y), kernel=laplace, new=single_new), "float32")
    yield "dtype float32", Case(ridge(kernel=laplace, dtype="float32"), "float32")
    yield "pcg dtype float32", Case(ridge(kernel=laplace, dtype="float32", solver="pcg"), "iterative")
    yield "integers", Case(ridge(X=(10 * data.X).astype(int), kernel=k.Laplace(10.0)))
    yield "fortran", Case(ridge(X=np.asfortranarray(data.X), kernel=laplace))
    yield "precomputed", Case(ridge(X=K, kernel="precomputed", new=K_new))
    yield "function", Case(ridge(kernel=data.inner_product, alpha=1.0))
    yield "words", Case(ridge(X=data.WORDS, kernel=k.Spectrum(2), new=data.NEW_WORDS))
    yield "feature map", Case(ridge(kernel=k.FeatureMap(np.cos)))
    for solver in ("nystrom", "random_features"):
        yield f"in parts {solver}", Case(in_parts(solver, **SOLVERS[solver][1]))
    for alpha in (0.0, 0.1, "loo"):
        yield f"label weights {alpha}", Case(explained(kernel=laplace, alpha=alpha))
    yield "label weights pcg", Case(explained(kernel=laplace, alpha=0.1, solver="pcg"), "iterative")


# Gaussian processes


def process_numbers(model: Any, new: Any = data.X_NEW) -> dict[str, Any]:
    mean, std = model.predict(new, return_std=True)
    low, high = model.predict_interval(new, level=0.8, calibrated=False)
    return {
        "mean": mean,
        "std": std,
        "latent_std": model.predict(new, return_std=True, latent=True)[1],
        "low": low,
        "high": high,
        "evidence": result(model, "evidence"),
        "noise": result(model, "noise"),
        "target_scale": result(model, "target_scale"),
        "solver": solver_name(model),
    }


def process(X: Any = data.X, y: Any = data.Y[:, 0], **settings: Any) -> Callable[[], dict[str, Any]]:
    settings = {"random_state": 0, "n_restarts": 0} | settings
    return lambda: process_numbers(estimator("GaussianProcessRegressor", **settings).fit(X, y))


def given_process(**settings: Any) -> dict[str, Any]:
    return {"kernel": 1.5 * k.Matern(2.5, OWN), "noise": 0.1, "tune": False} | settings


def drawn(**settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator("GaussianProcessRegressor", random_state=0, **given_process(**settings))
        prior = model.sample_y(data.X_NEW[:4], 2, random_state=1)
        model.fit(data.X, data.Y[:, 0])
        functions = model.sample_functions(3, random_state=2)
        _, covariance = model.predict(data.X_NEW[:4], return_cov=True)
        return {
            "prior": prior,
            "samples": model.sample_y(data.X_NEW[:4], 3, random_state=1),
            "functions": functions(data.X_NEW[:4]),
            "covariance": covariance,
            "gradient": model.gradient(data.X_NEW[:4]),
        }

    return numbers


def process_in_parts(**settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator("GaussianProcessRegressor", random_state=0, **given_process(**settings))
        return process_numbers(model.partial_fit(data.X[:40], data.Y[:40, 0]).partial_fit(data.X[40:], data.Y[40:, 0]))

    return numbers


PROCESS_DATA = {
    "constant": {},
    "zero": {"mean": "zero"},
    "linear": {"mean": "linear"},
    "number": {"mean": 0.7},
    "noise of rows": {"noise": data.VARIANCES},
    "two targets": {"y": data.Y},
    "repeated": {"X": data.X[data.REPEATED]},
}
METHODS = {"exact": ("direct", {}), "iterative": ("iterative", {}), "sgpr": ("direct", {"n_landmarks": 20})}


def process_cases() -> Iterator[tuple[str, Case]]:
    for method, (precision, options) in METHODS.items():
        for name, given in PROCESS_DATA.items():
            settings = given_process(method=method, **options, **given)
            yield f"process {method} {name}", Case(process(**settings), precision)
        yield f"process {method} in parts", Case(process_in_parts(method=method, **options), precision)
        yield f"process {method} drawn", Case(drawn(method=method, **options), precision)
    for name in ("laplace", "gaussian", "periodic", "sum", "subspaces"):
        yield f"process exact {name}", Case(process(**given_process(kernel=KERNELS[name])))
    for name in ("gaussian", "matern32", "laplace", "rational_quadratic"):
        yield f"process learned {name}", Case(process(kernel=name), "learned")
    learned = {
        "mean linear": {"mean": "linear"},
        "mean auto": {"mean": "auto"},
        "noise fixed": {"noise": 0.1},
        "two targets": {"y": data.Y},
        "bounds": {"kernel": KERNELS["gaussian"], "bounds": {"noise": (0.05, 0.2)}},
        "priors": {"kernel": KERNELS["gaussian"], "priors": {"length_scale": LogNormal(1.0, 0.3)}},
        "few": {"n_learn": 30},
        "sum": {"kernel": KERNELS["sum"]},
        "restarts": {"n_restarts": 1},
        "sgpr": {"method": "sgpr", "n_landmarks": 15, "kernel": KERNELS["matern52"]},
    }
    for name, settings in learned.items():
        yield f"process learned {name}", Case(process(**({"kernel": "matern52"} | settings)), "learned")
    iterative = {"kernel": KERNELS["matern52"], "method": "iterative", "max_iter": 5}
    yield "process learned iterative", Case(process(**iterative), "learned")


# Losses

TEXTBOOK = {"alpha": 0.2, "fit_intercept": False, "random_state": 0}


def classifier(X: Any = data.X, y: Any = data.TWO, weights: Any = None, **settings: Any):
    def numbers() -> dict[str, Any]:
        model = estimator("KernelClassifier", **(TEXTBOOK | settings)).fit(X, y, weights)
        return {
            "decision": model.decision_function(data.X_NEW),
            "classes": result(model, "classes").tolist(),
            "probabilities": model.predict_proba(data.X_NEW),
            "objective": result(model, "objective"),
            "alpha": result(model, "alpha"),
            "solver": solver_name(model),
        }

    return numbers


def regressor(y: Any = data.Y[:, 0], weights: Any = None, **settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator("KernelRegressor", **(TEXTBOOK | settings)).fit(data.X, y, weights)
        names = ("objective", "alpha", "crossings")
        return {
            "predict": model.predict(data.X_NEW),
            "solver": solver_name(model),
            **{name: result(model, name) for name in names},
        }

    return numbers


def process_classifier(y: Any = data.TWO, **settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        settings_now = {"random_state": 0, "n_restarts": 0} | settings
        model = estimator("GaussianProcessClassifier", **settings_now).fit(data.X, y)
        latent = model.latent_mean_and_variance(data.X_NEW)
        return {
            "probabilities": model.predict_proba(data.X_NEW),
            "latent_mean": latent[0],
            "latent_variance": latent[1],
            "evidence": result(model, "evidence"),
            "solver": solver_name(model),
        }

    return numbers


LOSS_SOLVERS = {"dense": {}, "pcg": {}, "nystrom": {"n_landmarks": 20}}


def loss_cases() -> Iterator[tuple[str, Case]]:
    classes = {"two": data.TWO, "three": data.THREE}
    for loss in ("logistic", "hinge", "squared_hinge", "squared"):
        for solver, options in LOSS_SOLVERS.items():
            for name, y in classes.items():
                settings = {"kernel": KERNELS["laplace"], "loss": loss, "solver": solver} | options
                yield f"classifier {loss} {solver} {name}", Case(classifier(y=y, **settings), "iterative")
        settings = {"kernel": KERNELS["gaussian"], "loss": loss, "fit_intercept": True, "weights": data.WEIGHTS}
        yield f"classifier {loss} intercept weighted", Case(classifier(**settings), "iterative")
        settings = {"kernel": "laplace", "loss": loss, "alpha": "auto", "class_weight": "balanced"}
        yield f"classifier {loss} auto", Case(classifier(y=data.TWO, **settings), "iterative")
    for loss in ("squared", "huber", "quantile", "epsilon_insensitive", Huber(0.5)):
        word = loss if isinstance(loss, str) else "own"
        for solver, options in LOSS_SOLVERS.items():
            settings = {"kernel": KERNELS["laplace"], "loss": loss, "units": "raw", "solver": solver} | options
            yield f"regressor {word} {solver}", Case(regressor(**settings), "iterative")
        settings = {
            "kernel": KERNELS["gaussian"],
            "loss": loss,
            "units": "raw",
            "fit_intercept": True,
            "weights": data.WEIGHTS,
        }
        yield f"regressor {word} intercept weighted", Case(regressor(**settings), "iterative")
        yield (
            f"regressor {word} auto",
            Case(regressor(kernel="laplace", loss=loss, units="raw", alpha="auto"), "iterative"),
        )
    quantiles = {"loss": "quantile", "quantiles": [0.2, 0.5, 0.9]}
    yield "regressor quantiles", Case(regressor(kernel=KERNELS["laplace"], **quantiles), "iterative")
    for name, y in classes.items():
        given = 4.0 * KERNELS["matern52"]
        yield f"process classifier {name}", Case(process_classifier(y, kernel=given, tune=False), "iterative")
        yield f"process classifier learned {name}", Case(process_classifier(y, kernel=given, max_iter=30), "learned")
    yield "process classifier by name", Case(process_classifier(kernel="gaussian"), "learned")


# Transformers, functions and products


def transformer(name: str, read: tuple[str, ...] = (), **settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator(name, **settings).fit(data.X)
        features = model.transform(data.X_NEW)
        return {"inner_products": features @ features.T, **{key: result(model, key) for key in read}}

    return numbers


def pre_images(**settings: Any) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        model = estimator("KernelPCA", n_components=4, kernel=KERNELS["gaussian"], **settings).fit(data.X)
        return {"pre_images": model.inverse_transform(model.transform(data.X_NEW))}

    return numbers


def transformer_cases() -> Iterator[tuple[str, Case]]:
    few = {"n_components": 4}
    for name in ("gaussian", "laplace", "polynomial", "sum"):
        pca = few | {"kernel": KERNELS[name]}
        yield f"pca {name}", Case(transformer("KernelPCA", ("eigenvalues",), **pca))
        yield f"pca not centred {name}", Case(transformer("KernelPCA", ("eigenvalues",), center=False, **pca))
        yield f"mercer {name}", Case(transformer("MercerDecomposition", ("eigenvalues", "trace"), **pca))
    for solver in ("dense", "krylov"):
        pca = few | {"kernel": KERNELS["laplace"], "solver": solver}
        yield f"pca {solver}", Case(transformer("KernelPCA", ("eigenvalues",), **pca))
    for landmarks in ("uniform", "pivoted", "leverage"):
        settings = {"kernel": KERNELS["laplace"], "landmarks": landmarks, "random_state": 0}
        yield f"pca landmarks {landmarks}", Case(transformer("KernelPCA", n_landmarks=20, **few, **settings))
        yield f"nystrom features {landmarks}", Case(transformer("NystromFeatures", n_components=20, **settings))
    for pre_image in ("ridge", "fixed_point"):
        yield f"pre-images {pre_image}", Case(pre_images(pre_image=pre_image), "iterative")
    for name in ("gaussian", "laplace", "matern32", "laplace_l1"):
        for method in ("pairs", "offset", "qmc"):
            settings = {"kernel": KERNELS[name], "n_components": 32, "random_state": 0, "method": method}
            yield f"fourier {method} {name}", Case(transformer("RandomFourierFeatures", **settings))
    settings = {"kernel": KERNELS["gaussian"], "n_components": 32, "random_state": 0, "method": "orthogonal"}
    yield "fourier orthogonal", Case(transformer("RandomFourierFeatures", **settings))
    for activation in ("relu", "erf", "tanh", "sin"):
        settings = {"n_components": 30, "random_state": 0, "activation": activation}
        yield f"network {activation}", Case(transformer("RandomNetworkFeatures", **settings))
    yield "taylor", Case(transformer("TaylorFeatures", degree=5, kernel=2.0))
    yield "taylor about zero", Case(transformer("TaylorFeatures", degree=3, kernel="gaussian", center=False))


def products(kernel: k.Kernel, dtype: type) -> Callable[[], dict[str, Any]]:
    def numbers() -> dict[str, Any]:
        K = gram(k.resolve(kernel, k.Gaussian().points(data.X)), data.X.astype(dtype), data.X_NEW.astype(dtype))
        return {"matmul": K.T @ data.Y.astype(dtype), "dense": K.dense()[:5]}

    return numbers


def function_numbers() -> dict[str, Any]:
    f = RKHSFunction(KERNELS["gaussian"], data.X[:5], data.Y[:5, 0])
    g = RKHSFunction(KERNELS["gaussian"], data.X[5:9], data.Y[5:9, 0])
    h = f + 0.5 * g
    return {
        "values": h(data.X_NEW),
        "norms": [h.norm(), f.inner(g), f.distance(g)],
        "gradient": h.gradient(data.X_NEW[:3]),
    }


def product_cases() -> Iterator[tuple[str, Case]]:
    for name in ("gaussian_ard", "laplace_l1", "matern_any", "periodic", "product", "power"):
        yield f"gram {name}", Case(products(KERNELS[name], np.float64))
        yield f"gram float32 {name}", Case(products(KERNELS[name], np.float32), "float32")
    yield "functions", Case(function_numbers)


CASES: dict[str, Case] = {
    name: case
    for family in (
        ridge_cases,
        stream_cases,
        input_cases,
        process_cases,
        loss_cases,
        transformer_cases,
        product_cases,
    )
    for name, case in family()
}
