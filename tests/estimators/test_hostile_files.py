"""Whatever a stranger writes into a well-formed, signed model file: `load` refuses it, or the model works."""

from __future__ import annotations

import copy
import json
import random
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    RKHSFunction,
    TaylorFeatures,
    load,
)
from mercer.cli.model import TableModel
from mercer.core.errors import InputError, MercerError, ModelFileError
from mercer.data.rows import ArrayRows
from mercer.estimators.common.parameters import RULES
from mercer.estimators.common.saved_parameters import KINDS, PLACE
from mercer.estimators.tabular.state import TABULAR
from mercer.files import modelfile
from mercer.files.persistence import _registry, read_model
from mercer.kernels import Gaussian, Linear, Matern, Periodic, Precomputed, Spectrum, Subspace
from mercer.processes import Gamma, LogNormal
from mercer.stats.drift import PARAMS as DRIFT

rng = np.random.default_rng(0)
X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
LABELS = np.array(["a", "b", "c"])[np.arange(12) % 3]
NEW = rng.normal(size=(3, 2))
WORDS = ["ACGT", "AACC", "GGTT", "ACAC", "CCGA"]
COMPOSED = 2.0 * Gaussian((1.0, 2.0)) + Subspace(Periodic(1.0, 2.0), [1]) ** 2
KERNEL = 1.2 * Matern(2.5, (1.0, 2.0))
PRIORS = {"bounds": {"noise": (0.01, 2.0), "factor": "fixed"}, "priors": {"length_scale": LogNormal(1.0, 1.0)}}
GRAM = X @ X.T + np.eye(12)


def _frame(values):
    import pandas as pd

    return pd.DataFrame(values, columns=["left", "right"])


MODELS = {
    "ridge": (lambda: KernelRidge("gaussian", alpha="loo", alphas=[0.1, 1.0]).fit(X, y), NEW),
    "ridge, composed": (lambda: KernelRidge(COMPOSED, alpha=[0.1, 1.0]).fit(X, np.c_[y, -y], np.arange(12) + 1.0), NEW),
    "ridge, tuned": (lambda: KernelRidge(Gaussian(1.0), alpha="loo", tune=True).fit(X, y), NEW),
    "ridge, landmarks": (lambda: KernelRidge("laplace", solver="nystrom", landmarks=X[:5]).fit(_frame(X), y), NEW),
    "ridge, features": (lambda: KernelRidge("laplace", solver="random_features", n_features=6).fit(X, y), NEW),
    "ridge, flow": (lambda: KernelRidge(Gaussian(1.0), solver="flow").fit(X, y), NEW),
    "ridge, primal": (lambda: KernelRidge(Linear(1.0), solver="primal", alpha=0.1).fit(X, y), NEW),
    "ridge, words": (lambda: KernelRidge(Spectrum(2), alpha=0.1).fit(WORDS, y[:5]), WORDS),
    "ridge, ready": (lambda: KernelRidge(Precomputed(), alpha=0.1).fit(GRAM, y), GRAM[:3]),
    "table": (lambda: TableModel(KernelRidge().fit(X, y), ("u", "v"), "y", np.zeros(2), np.ones(2), 0.5), NEW),
    "classifier": (lambda: KernelClassifier(alpha="auto", class_weight={"a": 2.0, "b": 1.0}).fit(X, LABELS), NEW),
    "support vectors": (lambda: KernelClassifier(loss="hinge", solver="nystrom").fit(X, y > 0), NEW),
    "regressor": (lambda: KernelRegressor(loss="quantile", quantiles=[0.2, 0.8]).fit(X, y), NEW),
    "process": (lambda: GaussianProcessRegressor(n_restarts=0, max_iter=2, **PRIORS).fit(X, y), NEW),
    "process, linear": (
        lambda: GaussianProcessRegressor(KERNEL, mean="linear", noise=np.linspace(0.1, 1, 12), tune=False).fit(
            X, np.c_[y, -y]
        ),
        NEW,
    ),
    "process, sparse": (
        lambda: GaussianProcessRegressor(
            KERNEL, method="sgpr", n_landmarks=4, noise=0.1, tune=False, priors={"factor": Gamma(2.0, 1.0)}
        ).fit(X, y),
        NEW,
    ),
    "process of classes": (lambda: GaussianProcessClassifier(n_restarts=0, max_iter=2).fit(X, LABELS), NEW),
    "pca": (lambda: KernelPCA(2, n_landmarks=8).fit(X), NEW),
    "mercer": (lambda: MercerDecomposition(3).fit(_frame(X)), NEW),
    "nystrom": (lambda: NystromFeatures(4).fit(X), NEW),
    "fourier": (lambda: RandomFourierFeatures(6, COMPOSED.k1).fit(X), NEW),
    "taylor": (lambda: TaylorFeatures(2).fit(X), NEW),
    "network": (lambda: RandomNetworkFeatures(5, "erf").fit(X), NEW),
    "function": (lambda: RKHSFunction(COMPOSED, _frame(X), y), NEW),
}

USES = (
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "inverse_transform",
    "eigenfunctions",
    "label_weights",
    "__call__",
)
"""Methods of rows; the first that a model has are what it is for."""

HOSTILE = (
    *(None, True, False, 0, 1, -1, 3, 10**12, 2**53, 2**63, -(2**63)),
    *(0.5, -0.5, 1.5, 1e-320, 1e300, -1e300, float("inf"), float("-inf"), float("nan")),
    *("", "x", "1", "auto", "tcp://127.0.0.1:9", "__class__", "os.system", "\ud800", "a" * 5000),
    *([], [1], [0.5, 0.5], ["x"], [None], [[1.0]], [["left", 1]], {}, {"a": 1}, {"class": "Linear", "params": {}}),
)
FAR = 1e100
"""Numbers beyond this and below its inverse may leave float64: that may be an error of ours where they are used."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The class, the plain data and the arrays of each model's file, and rows to use it with."""
    found = {}
    for name, (make, rows) in MODELS.items():
        path = tmp_path_factory.mktemp("models") / "model"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        model.save(path)
        found[name] = (*read_model(path, _registry.keys()), rows)
    return found


def write(path, name, meta, arrays):
    """A well-formed file with a right checksum and any content, NaN in its document too."""
    expected = {key: [modelfile.DTYPES.get(a.dtype, "F16"), list(a.shape)] for key, a in arrays.items()}
    content = {"format": modelfile.FORMAT, "class": name, "meta": meta, "arrays": expected}
    document = json.dumps(content)
    arrays = {key: array.clone(memory_format=torch.contiguous_format) for key, array in arrays.items()}
    digest = modelfile._digest(document, arrays)
    save_file(arrays, path, metadata={"mercer": document, "sha256": digest})


def use(model, rows):
    """Everything that a reader may do first."""
    repr(model)
    if isinstance(rows, np.ndarray):
        rows = rows[:, : getattr(model, "n_features_in_", rows.shape[1])]
    if hasattr(model, "report"):
        str(model.report())
    if isinstance(model, GaussianProcessRegressor):
        model.predict(rows, return_std=True)
    for name in USES:
        if name == "label_weights" and getattr(model, "_data", None) is None:
            continue
        if hasattr(model, name):
            try:
                values = getattr(model, name)(model.transform(rows) if name == "inverse_transform" else rows)
            except MercerError:
                if name != "inverse_transform":  # a fit, with parameters of its own
                    raise
                continue
            assert len(values) == len(rows)
            if values.dtype.kind == "f":
                assert np.isfinite(values).all()
    if hasattr(model, "get_params"):
        assert not {name for name in PLACE if model.get_params(deep=False).get(name) not in (None, False, "auto")}


def refused_or_works(path, rows, extreme):
    """Whether the file was refused; an error in using the model is one of ours, and only for extreme numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except ModelFileError as error:
            reason = error
        else:
            reason = None
        if reason is not None:
            assert str(path) in str(reason)
            assert reason.__cause__ is None or isinstance(reason.__cause__, MercerError)
            return True
        try:
            use(model, rows)
        except (MercerError, AssertionError):
            if not extreme:
                raise
        return False


def places(value, path=()):
    """The paths of all values in plain data."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from places(inner, (*path, key))


def changed(meta, path, value):
    """The same data with another value at a place; without it for `...`."""
    meta = copy.deepcopy(meta)
    inner = meta
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return meta


def is_far(value):
    numbers = [value] if isinstance(value, int | float) else []
    return any(x == x and x != 0 and not 1 / FAR < abs(x) < FAR for x in numbers)


def mutations_of_data(meta):
    for path in places(meta):
        for value in (..., *HOSTILE):
            yield path, value
    for path in [(), *(p for p in places(meta) if isinstance(at(meta, p), dict))]:
        yield (*path, "client"), "tcp://127.0.0.1:9"
        yield (*path, "more"), 1


def at(meta, path):
    for key in path:
        meta = meta[key]
    return meta


def mutations_of_array(array):
    """The same array in another type, shape or with other numbers; and whether these are extreme."""
    yield array.reshape(-1), False
    yield array.unsqueeze(0), False
    yield array[:0], False
    yield torch.cat([array, array]) if array.ndim else array.unsqueeze(0), False
    if array.ndim == 2:
        yield array[:, :0], False
        yield array[:, :1], False
        yield array.T, False
    for dtype in (torch.float16, torch.float32, torch.int64, torch.bool, torch.uint8):
        yield array.to(dtype), False
    for value in (0.0, -1.0, 7.0):
        yield torch.full_like(array, value), False
    if array.is_floating_point():
        for value in (1e-320, 1e300, float("nan"), float("inf")):
            yield torch.full_like(array, value), True


def check_data(saved, model, path, chosen):
    name, meta, arrays, rows = saved[model]
    refused = 0
    for place, value in chosen:
        write(path, name, changed(meta, place, value), arrays)
        try:
            refused += refused_or_works(path, rows, is_far(value))
        except Exception as error:
            error.add_note(f"{model}: {place} = {value!r:.80}")
            raise
    return refused


@pytest.mark.parametrize("model", MODELS)
def test_a_file_as_it_was_written_works(saved, model, tmp_path):
    name, meta, arrays, rows = saved[model]
    write(tmp_path / "m", name, meta, arrays)
    assert not refused_or_works(tmp_path / "m", rows, extreme=False)


@pytest.mark.parametrize("model", MODELS)
def test_some_changes_of_the_plain_data_are_refused_or_do_no_harm(saved, model, tmp_path):
    everything = list(mutations_of_data(saved[model][1]))
    chosen = random.Random(model).sample(everything, 60)
    assert check_data(saved, model, tmp_path / "m", chosen) > 30


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("model", MODELS)
def test_every_change_of_the_plain_data_is_refused_or_does_no_harm(saved, model, tmp_path):
    check_data(saved, model, tmp_path / "m", mutations_of_data(saved[model][1]))


@pytest.mark.parametrize("model", MODELS)
def test_some_changes_of_an_array_are_refused_or_do_no_harm(saved, model, tmp_path):
    everything = [(key, other) for key, array in saved[model][2].items() for other in mutations_of_array(array)]
    check_arrays(saved, model, tmp_path / "m", random.Random(model).sample(everything, 30))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_change_of_an_array_is_refused_or_does_no_harm(saved, model, tmp_path):
    everything = [(key, other) for key, array in saved[model][2].items() for other in mutations_of_array(array)]
    check_arrays(saved, model, tmp_path / "m", everything)


def check_arrays(saved, model, path, chosen):
    name, meta, arrays, rows = saved[model]
    for key, (other, extreme) in chosen:
        write(path, name, meta, arrays | {key: other})
        try:
            refused_or_works(path, rows, extreme)
        except Exception as error:
            error.add_note(f"{model}: {key} = {other!r:.200}")
            raise


@pytest.mark.parametrize("model", MODELS)
def test_arrays_too_many_or_too_few_are_refused(saved, model, tmp_path):
    name, meta, arrays, rows = saved[model]
    write(tmp_path / "m", name, meta, arrays | {"more": torch.ones(2)})
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")
    for key in arrays:
        write(tmp_path / "m", name, meta, {k: array for k, array in arrays.items() if k != key})
        refused_or_works(tmp_path / "m", rows, extreme=False)


@pytest.mark.parametrize(
    ("model", "field", "right", "wrong"),
    [("pca", "n_features", 2, 3), ("fourier", "n_features", 2, 3), ("ridge, features", "objects", [], ["a"])],
)
def test_what_files_said_before_fields_were_declared_is_read_and_checked(saved, model, field, right, wrong, tmp_path):
    name, meta, arrays, rows = saved[model]
    write(tmp_path / "m", name, meta | {field: right}, arrays)
    assert not refused_or_works(tmp_path / "m", rows, extreme=False)
    write(tmp_path / "m", name, meta | {field: wrong}, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


# Where a model runs is for its reader to choose

PLACED = [
    KernelRidge(
        Gaussian(1.0), client="tcp://127.0.0.1:9", checkpoint=None, device="cpu", memory_budget="1GiB", verbose=True
    ),
    KernelClassifier(Gaussian(1.0), device="cpu", memory_budget=10**9, verbose=True),
    KernelRegressor(Gaussian(1.0), device="cpu", verbose=True),
    GaussianProcessRegressor(KERNEL, noise=0.1, tune=False, device="cpu", verbose=True),
    GaussianProcessClassifier(KERNEL, tune=False, device="cpu", verbose=True),
    KernelPCA(2, device="cpu", memory_budget="1GiB"),
    MercerDecomposition(2, device="cpu"),
    NystromFeatures(3, device=torch.device("cpu")),
]


@pytest.mark.parametrize("model", PLACED, ids=lambda model: type(model).__name__)
def test_files_say_nothing_of_where_a_fit_ran_and_load_refuses_those_that_do(model, tmp_path):
    targets = LABELS if hasattr(model, "predict_proba") else y
    client = getattr(model, "client", None)
    if client is not None:
        model.client = None
    model.fit(X, targets)
    if client is not None:
        model.client = client
    model.save(tmp_path / "m")
    text = (tmp_path / "m").read_bytes()
    assert not any(f'\\"{name}\\"'.encode() in text for name in PLACE)
    again = load(tmp_path / "m")
    for name in PLACE:
        default = type(model)().get_params().get(name)
        assert getattr(again, name, default) == default
    name, meta, arrays = read_model(tmp_path / "m", _registry.keys())
    for word in PLACE:
        for value in ("tcp://127.0.0.1:9", None, "auto", False):
            write(tmp_path / "n", name, changed(meta, ("params", word), value), arrays)
            with pytest.raises(ModelFileError, match=f"it contains the parameter '{word}'"):
                load(tmp_path / "n")


def test_a_loaded_model_connects_to_nothing(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.data.engines.choose.dask_module", lambda: pytest.fail("connected"))
    name, meta, arrays, rows = saved["ridge"]
    write(tmp_path / "m", name, meta, arrays)
    load(tmp_path / "m").predict(ArrayRows(rows))


OWN_RULES = {"TabularEstimator": TABULAR, "DriftDetector": DRIFT}
"""Classes whose files have tables of their own for parameters."""


def test_every_parameter_of_an_estimator_has_a_rule_for_files():
    for cls in _registry.values():
        own = cls.__name__ in OWN_RULES
        names = set(cls._get_param_names()) if hasattr(cls, "_get_param_names") else set()
        rules = RULES.keys() | getattr(cls, "own_rules", {}).keys() | KINDS.keys()
        known = OWN_RULES[cls.__name__].fields.keys() | {"estimator"} if own else rules
        assert names <= known | set(PLACE), cls


def test_parameters_that_could_not_be_read_back_are_refused_when_saved(tmp_path):
    model = KernelRidge(Gaussian(1.0)).fit(X, y).set_params(max_iter="many")
    with pytest.raises(InputError, match="max_iter='many': must be an integer >= 1, or None; it does not"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(Gaussian(1.0), alpha=np.float64(0.5), max_iter=np.int64(7), tol=np.float32(1e-3), dtype="float64"),
        KernelRidge(Gaussian(1.0), alpha=(0.5,), alphas=[np.float64(1.0), np.int64(2)], random_state=np.int32(4)),
        KernelRidge(Gaussian(1.0), alpha="loo", alphas=np.logspace(-2, 2, 5), dtype=torch.float64),
        KernelRegressor(Gaussian(1.0), loss="huber", delta=np.float64(1.0), fit_intercept=np.bool_(True)),
        KernelRegressor(Gaussian(1.0), loss="quantile", quantiles=(0.25, np.float64(0.75))),
    ],
    ids=repr,
)
def test_parameters_of_every_type_that_a_fit_takes_can_be_saved(model, tmp_path):
    targets = y.reshape(-1, 1) if isinstance(model.alpha, tuple) else y
    model.fit(X, targets).save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(NEW), model.predict(NEW))
