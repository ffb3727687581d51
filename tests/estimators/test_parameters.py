"""Every parameter of every estimator: a wrong type or value is an error of ours that names both."""

import inspect

import numpy as np
import pytest
import torch

import mercer.estimators
from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.estimators import GaussianProcessClassifier, KernelClassifier, KernelPCA, KernelRidge
from mercer.estimators.common.parameters import RULES, check_parameters
from mercer.solvers.choose import choose, choose_for_loss

ESTIMATORS = [getattr(mercer.estimators, name) for name in mercer.estimators.__all__]
X = np.random.default_rng(0).uniform(0.1, 1.0, size=(12, 2))
Y = X[:, 0] + X[:, 1]
LABELS = np.median(Y) < Y

NOT_COUNTS = ["x", 0.5, True, np.bool_(True), [1], {}, 1j, np.nan, object(), -1]
NOT_NUMBERS = ["x", True, np.bool_(False), [0.1], {}, 1j, np.nan, np.inf, object(), -1.0]
NOT_FLAGS = ["x", 1, 0, 0.5, [True], {}, object()]
NOT_NAMES = ["x", "", 3, 0.5, [], {}, object()]

WRONG = {
    "activation": ["x", 3, [1], {}],
    "alpha": ["x", True, np.nan, np.inf, -1.0, {}, 1j, object(), ["a"]],
    "alphas": ["x", [], [-1.0], ["a"], object()],
    "bias_scale": NOT_NUMBERS,
    "bounds": ["x", 3, [1], True],
    "center": NOT_FLAGS,
    "checkpoint": [3, [1], True, {}],
    "class_weight": ["x", 3, [1], True],
    "client": [],  # whatever Dask takes
    "degree": NOT_COUNTS,
    "delta": [*NOT_NUMBERS, 0.0],
    "device": ["x", "mps", 3, [], True],
    "dtype": ["x", "float16", 3, [], np.int64],
    "epsilon": NOT_NUMBERS,
    "fit_intercept": NOT_FLAGS,
    "inverse_alpha": ["x", True, np.nan, np.inf, -1.0, {}, 1j, object(), ["a"]],
    "inverse_kernel": ["x", 3, [], {}],
    "kernel": ["x", [], {}],
    "landmarks": ["x", 3, True, 0.5],
    "loss": NOT_NAMES,
    "max_iter": [*NOT_COUNTS, 0],
    "mean": ["x", [], {}],
    "memory_budget": ["x", "3 apples", -1, 0, np.nan, True, [], {}],
    "method": NOT_NAMES,
    "n_components": [*NOT_COUNTS, 0],
    "n_features": [*NOT_COUNTS, 0],
    "n_landmarks": [*NOT_COUNTS, 0],
    "n_learn": [*NOT_COUNTS, 0, 1],
    "n_restarts": NOT_COUNTS,
    "noise": ["x", True, np.nan, np.inf, -1.0, {}, object()],
    "tune": NOT_FLAGS,
    "pre_image": NOT_NAMES,
    "priors": ["x", 3, [1], True],
    "quantiles": ["x", [], [0.0], 1.5, [0.5, 0.5], np.nan, [[0.5]]],
    "random_state": ["x", -1, 0.5, True, [1], {}],
    "solver": NOT_NAMES,
    "standardize": NOT_FLAGS,
    "tol": [*NOT_NUMBERS, 0.0, 1.0],
    "verbose": ["x", 0.5, [1], {}],
    "weight_scale": NOT_NUMBERS,
}

NEEDS = {
    "delta": {"loss": "huber"},
    "epsilon": {"loss": "epsilon_insensitive"},
    "quantiles": {"loss": "quantile"},
    "alphas": {"alpha": "loo"},
}

CASES = [(estimator, name) for estimator in ESTIMATORS for name in estimator().get_params(deep=False)]


def fit(estimator):
    return estimator.fit(X, LABELS if "Classifier" in type(estimator).__name__ else Y)


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_what_a_parameter_cannot_be_is_named_and_quoted(estimator, name):
    quick = {"tune": False} if "GaussianProcess" in estimator.__name__ else {}
    for value in WRONG[name]:
        with pytest.raises(MercerError) as caught:
            fit(estimator(**{**quick, **NEEDS.get(name, {}), name: value}))
        words = str(caught.value)
        assert isinstance(caught.value, ValueError | TypeError), (value, words)
        assert name in words, (value, words)
        assert repr(value) in words or str(value) in words or f"{len(value)} points" in words, (value, words)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_defaults_and_numbers_of_numpy_are_taken(estimator):
    check_parameters(estimator())
    for name, value in estimator().get_params(deep=False).items():
        if name not in RULES or isinstance(value, str | None) or value is None:
            continue
        for kind in (np.bool_,) if isinstance(value, bool) else (np.int64, np.int32) if value == int(value) else ():
            check_parameters(estimator(**{name: kind(value)}))
        if isinstance(value, float):
            check_parameters(estimator(**{name: np.float32(value)}))
            check_parameters(estimator(**{name: np.float64(value)}))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_of_a_parameter_and_is_tried(name):
    assert any(name in inspect.signature(estimator).parameters for estimator in ESTIMATORS)
    assert WRONG[name]


def test_none_is_taken_where_the_signature_says_so():
    check_parameters(KernelRidge(max_iter=None, n_landmarks=None))
    with pytest.raises(InputTypeError, match="max_iter=None: must be an integer >= 1"):
        check_parameters(KernelPCA(max_iter=None))


def test_generators_are_not_used_up_by_the_check():
    generator = np.random.default_rng(0)
    check_parameters(KernelRidge(random_state=generator))
    assert generator.integers(2**31) == np.random.default_rng(0).integers(2**31)


@pytest.mark.parametrize("classifier", [KernelClassifier(), GaussianProcessClassifier(tune=False)])
@pytest.mark.parametrize(
    "labels", [[1, "a"] * 6, np.array([1, "a"] * 6, dtype=object), [None, "a"] * 6, [1.5, "a"] * 6]
)
def test_labels_of_several_types_are_refused(classifier, labels):
    with pytest.raises(InputError, match="labels of the types .*str"):
        classifier.fit(X, labels)


def test_devices_that_nothing_runs_on_are_refused_by_the_choice_of_a_solver():
    for device in ("mps", torch.device("mps")):
        with pytest.raises(InputError, match="device='mps'"):
            choose(10**6, 1, 1.0, memory_budget="1GiB", device=device)
        with pytest.raises(InputError, match="device='mps'"):
            choose_for_loss(10**6, memory_budget="1GiB", device=device)
