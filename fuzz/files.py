"""Model files with values changed and their checksums made right again: refused by `load`, or working models."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import mercer
from fuzz.data import Rng
from fuzz.trial import Finding, Trial
from mercer import kernels as k
from mercer.core.errors import MercerError, ModelFileError
from mercer.files.modelfile import DTYPES, _digest
from mercer.rows import ArrayRows

ROWS = np.random.default_rng(0).normal(size=(12, 2))
TARGET = np.sin(ROWS[:, 0])
NEW = ROWS[:3] + 0.1
BOTH = np.c_[TARGET, -TARGET]
CLASSES = np.array(["a", "b", "c"] * 4)
KERNEL = 2.0 * k.Subspace(k.Matern(1.5, 0.7), (0, 1)) + k.Gaussian((1.0, 2.0)) * k.Linear(1.0) + 1.0

MODELS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: mercer.KernelRidge(KERNEL).fit(ROWS, TARGET),
    "ridge, path": lambda: mercer.KernelRidge("laplace", alpha="loo", tune=True).fit(ROWS, BOTH),
    "ridge, landmarks": lambda: mercer.KernelRidge("gaussian", n_landmarks=5).fit(ArrayRows(ROWS, TARGET)),
    "ridge, features": lambda: mercer.KernelRidge("matern32", n_features=6).fit(ROWS, TARGET, np.arange(12.0)),
    "ridge, pcg": lambda: mercer.KernelRidge("matern52", solver="pcg").fit(ROWS.astype(np.float32), TARGET),
    "process": lambda: mercer.GaussianProcessRegressor("gaussian", max_iter=5).fit(ROWS, BOTH),
    "process, sgpr": lambda: mercer.GaussianProcessRegressor(KERNEL, method="sgpr", tune=False).fit(ROWS, TARGET),
    "process, iterative": lambda: mercer.GaussianProcessRegressor(
        KERNEL, method="iterative", tune=False, noise=np.full(12, 0.1), mean="linear"
    ).fit(ROWS, TARGET),
    "process classifier": lambda: mercer.GaussianProcessClassifier(KERNEL, max_iter=5).fit(ROWS, CLASSES),
    "classifier": lambda: mercer.KernelClassifier("gaussian", alpha="auto").fit(ROWS, CLASSES),
    "classifier, hinge": lambda: mercer.KernelClassifier(KERNEL, loss="hinge").fit(ROWS, TARGET > 0),
    "regressor": lambda: mercer.KernelRegressor("gaussian", loss="huber", n_landmarks=5).fit(ROWS, TARGET),
    "quantiles": lambda: mercer.KernelRegressor("laplace", loss="quantile", quantiles=[0.2, 0.8]).fit(ROWS, TARGET),
    "ridge, intercept": lambda: mercer.KernelRidge("gaussian", fit_intercept=True).fit(ROWS, BOTH),
    "machine": lambda: mercer.RFMRegressor("laplace", max_iter=1, n_folds=2).fit(ROWS, TARGET),
    "machine of classes": lambda: mercer.RFMClassifier("laplace", max_iter=1, n_folds=2).fit(ROWS, CLASSES),
    "components": lambda: mercer.KernelPCA(3).fit(ROWS),
    "decomposition": lambda: mercer.MercerDecomposition(3).fit(ROWS),
    "nystrom": lambda: mercer.NystromFeatures(4).fit(ROWS),
    "fourier": lambda: mercer.RandomFourierFeatures(6).fit(ROWS),
    "network": lambda: mercer.RandomNetworkFeatures(6).fit(ROWS),
    "taylor": lambda: mercer.TaylorFeatures(3).fit(ROWS),
    "function": lambda: mercer.RKHSFunction(KERNEL, ROWS, TARGET),
    "words": lambda: mercer.KernelRidge(k.Spectrum(2)).fit(["abc", "bcd", "cde"], [1.0, 2.0, 3.0]),
}
"""What is saved: models of every class, small and in several states."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 10**12, 2**63, -(2**63), 0.0, 0.5, -0.5, 1e-300, 1e300, 1e-30,
    float("inf"), -float("inf"), "", "x", "auto", "cuda", "float16", "loo", "tcp://127.0.0.1:9", "\x00", "__class__",
    "é" * 300, [], [[]], [None], [1, 2, 3], ["x"], [[1.0, "x"]], {}, {"x": 1}, {"type": "Gaussian"}, {"class": "Sum"},
)  # fmt: skip
"""What entries are replaced by."""

ADDED = ("client", "checkpoint", "device", "verbose", "memory_budget", "x", "kernel", "solver", "dtype", "__class__")
TYPES = tuple(DTYPES)

ARRAYS: dict[str, Callable[[torch.Tensor, Rng], torch.Tensor]] = {
    "zeros": lambda a, rng: torch.zeros_like(a),
    "minus": lambda a, rng: -a if a.dtype not in (torch.bool, torch.uint8) else a,
    "huge": lambda a, rng: torch.full_like(a, 1e300) if a.dtype == torch.float64 else a,
    "tiny": lambda a, rng: torch.full_like(a, 1e-300) if a.dtype == torch.float64 else a,
    "NaN": lambda a, rng: torch.full_like(a, float("nan")) if a.is_floating_point() else a,
    "far integers": lambda a, rng: torch.full_like(a, 2**31 - 1) if a.dtype in (torch.int32, torch.int64) else a,
    "negative integers": lambda a, rng: torch.full_like(a, -1) if a.dtype in (torch.int32, torch.int64) else a,
    "empty": lambda a, rng: a[:0] if a.ndim else a.reshape(1)[:0],
    "one row": lambda a, rng: a[:1] if a.ndim else a,
    "one row more": lambda a, rng: torch.cat([a, a[:1]]) if a.ndim else a.reshape(1),
    "transposed": lambda a, rng: a.T if a.ndim == 2 else a,
    "flat": lambda a, rng: a.reshape(-1),
    "a column": lambda a, rng: a.reshape(-1, 1),
    "deep": lambda a, rng: a.unsqueeze(0),
    "first column": lambda a, rng: a[:, :1] if a.ndim == 2 else a,
    "scalar": lambda a, rng: a.reshape(-1)[0] if a.numel() else a,
    "reversed": lambda a, rng: a.flip(0) if a.ndim else a,
    "another type": lambda a, rng: a.to(TYPES[int(rng.integers(len(TYPES)))]),
    "random": lambda a, rng: torch.as_tensor(rng.normal(size=tuple(a.shape)) * 10.0 ** rng.integers(-5, 6)),
}
"""What arrays are replaced by."""

File = tuple[dict[str, Any], dict[str, torch.Tensor]]


@functools.cache
def saved(name: str) -> File:
    """Document and arrays of the file of a model."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.safetensors"
        MODELS[name]().save(path)
        with safe_open(path, framework="pt") as file:
            document = json.loads(file.metadata()["mercer"])
            return document, {key: file.get_tensor(key) for key in document["arrays"]}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of nested dictionaries and lists, as what holds it and its key."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def change_value(file: File, rng: Rng) -> str:
    found = list(places(file[0]["meta"]))
    holder, key = found[int(rng.integers(len(found)))]
    before, how = holder[key], rng.random()
    if how < 0.1:
        del holder[key]
        return f"{key!r} deleted"
    if how < 0.2 and isinstance(before, dict | list):
        key = str(rng.choice(ADDED))
        value = VALUES[int(rng.integers(len(VALUES)))]
        before.insert(0, value) if isinstance(before, list) else before.__setitem__(key, value)
        return f"{key!r}: {value!r:.40} added"
    if how < 0.35:
        other, at = found[int(rng.integers(len(found)))]
        value = copy.deepcopy(other[at])
    elif how < 0.45 and isinstance(before, int | float):
        value = before * float(rng.choice([-1, 2, 0.5, 1e10]))
    else:
        value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    holder[key] = value
    return f"{key!r}: {before!r:.40} -> {value!r:.40}"


def change_array(file: File, rng: Rng) -> str:
    document, arrays = file
    if not arrays:
        return "no array"
    name, how = str(rng.choice(list(arrays))), str(rng.choice(list(ARRAYS)))
    arrays[name] = ARRAYS[how](arrays[name], rng).contiguous().clone()
    if rng.random() < 0.05:
        other = "x" if rng.random() < 0.5 else str(rng.choice(list(arrays)))
        arrays[other] = arrays.pop(name)
    document["arrays"] = {key: [DTYPES[a.dtype], list(a.shape)] for key, a in arrays.items()}
    return f"array {name!r} {how}"


def change_class(file: File, rng: Rng) -> str:
    file[0]["class"] = str(rng.choice([saved(name)[0]["class"] for name in MODELS]))
    return f"class {file[0]['class']}"


def write(file: File, path: Path) -> None:
    """A file whose checksum is right."""
    text = json.dumps(file[0])
    save_file(file[1], path, metadata={"mercer": text, "sha256": _digest(text, file[1])})


def trials(seed: int, numbers: range) -> Iterator[Trial]:
    """The trials of these numbers; each has a random generator of its own."""
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        name = str(rng.choice(list(MODELS)))
        document, arrays = saved(name)
        file = (copy.deepcopy(document), dict(arrays))
        changes = [change_value, change_value, change_value, change_array, change_array, change_class]
        shares = np.array([3, 3, 3, 2, 2, 0.2])
        picks = rng.choice(len(changes), size=int(rng.choice([1, 1, 1, 2, 3])), p=shares / shares.sum())
        words = [changes[int(pick)](file, rng) for pick in picks]
        yield Trial(number, f"{name}: {'; '.join(words)}", functools.partial(opened, file, name))


def opened(file: File, name: str) -> str:
    """Load and use; errors of ours are right."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        write(file, path)
        try:
            model = mercer.load(path)
        except ModelFileError:
            return "refused by load"
        for parameter in ("client", "checkpoint"):
            if getattr(model, parameter, None) is not None:
                raise Finding(f"load takes {parameter}={getattr(model, parameter)!r:.60} from a file")
        return use(model, ["abcd", "bbcc"] if name == "words" else NEW)


def use(model: Any, rows: Any) -> str:
    """Everything a reader of a model does with it."""
    if not repr(model):
        raise Finding("repr is empty")
    if not hasattr(model, "report"):
        return "a function" if _in_own_words(lambda: model(rows)) else "a function that refuses"
    str(model.report())
    calls = [
        lambda: model.predict(rows) if hasattr(model, "predict") else model.transform(rows),
        lambda: model.predict_proba(rows) if hasattr(model, "predict_proba") else None,
        lambda: model.predict(rows, return_std=True) if hasattr(model, "sample_y") else None,
    ]
    done = [_in_own_words(call) for call in calls]
    return "a working model" if all(done) else "a model that refuses to predict"


def _in_own_words(call: Callable[[], Any]) -> bool:
    """Whether a call works; an error of ours is an answer too."""
    try:
        call()
    except MercerError:
        return False
    return True
