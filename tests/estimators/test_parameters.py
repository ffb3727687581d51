"""Every parameter of every estimator: a wrong type or value is an error of ours that names both."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

import mercer.estimators
from fuzz.trial import within
from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.estimators import (
    GaussianProcessClassifier,
    KernelClassifier,
    KernelPCA,
    KernelRidge,
    RFMRegressor,
    TabularEstimator,
)
from mercer.estimators.common.parameters import RULES, check_parameters
from mercer.estimators.rfm.base import FeatureMachine
from mercer.solvers.choose import choose, choose_for_loss

ESTIMATORS = [
    getattr(mercer.estimators, name) for name in mercer.estimators.__all__ if name != "TabularEstimator"
]  # whose own parameters have tests of their own
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
    "matrix": NOT_NAMES,
    "max_iter": [*NOT_COUNTS, 0],
    "mean": ["x", [], {}],
    "memory_budget": ["x", "3 apples", -1, 0, np.nan, True, [], {}],
    "method": NOT_NAMES,
    "n_components": [*NOT_COUNTS, 0],
    "n_features": [*NOT_COUNTS, 0],
    "n_folds": [*NOT_COUNTS, 0, 1],
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
    "units": NOT_NAMES,
    "verbose": ["x", 0.5, [1], {}],
    "weight_scale": NOT_NUMBERS,
}

FLAGS = ("center", "fit_intercept", "standardize", "tune")
CASES = [(estimator, name) for estimator in ESTIMATORS for name in estimator().get_params(deep=False)]


RIGHT = {
    "alpha": [1, 0.5, np.float32(0.5), np.int64(2), [0.5], np.array([1.0]), torch.tensor([1.0]), "auto", "loo", "gcv"],
    "alphas": [None, [1.0], (1, 2), np.array([0.1, 1.0], dtype=np.float32)],
    "checkpoint": [None, "fit.state", Path("fit.state")],
    "class_weight": [None, "balanced", {0: 1.0}],
    "mean": ["zero", "constant", "linear", "auto", 1, np.float32(2.0), np.sum],
    "memory_budget": [None, "1GiB", 10**9, np.int64(10**9)],
    "noise": ["learn", 0, 0.1, np.float32(0.1), [0.1, 0.2], np.full(3, 0.1, dtype=np.float32)],
    "quantiles": [0.5, np.float32(0.5), [0.1, 0.9], np.array([0.1])],
    "random_state": [None, 0, np.int32(3), np.random.default_rng(0), np.random.RandomState(0)],
    "verbose": [True, False, 1, np.bool_(True), np.int64(2)],
}
"""Values besides the defaults that a parameter may have."""

SEVERAL = {"alpha", "degree", "kernel", "loss", "max_iter", "method", "n_components", "solver"}
"""Parameters whose words tell of what the class has: names and limits of its own, an alpha above zero, its first
parameters."""


def refused(estimator, name, value):
    """The error for a value of one parameter."""
    with pytest.raises(MercerError) as caught:
        estimator(**{name: value})._check_parameters()
    return caught.value


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_what_a_parameter_cannot_be_is_named_and_quoted_before_a_fit_does_anything(estimator, name):
    for value in WRONG[name]:
        words = str(refused(estimator, name, value))
        assert name in words, (value, words)
        assert repr(value) in words or str(value) in words or f"{len(value)} points" in words, (value, words)


@pytest.mark.parametrize("name", sorted(WRONG))
def test_the_same_mistake_has_the_same_words_and_class_of_error_in_all_estimators(name):
    owners = [estimator for estimator, own in CASES if own == name]
    for value in WRONG[name]:
        errors = [refused(estimator, name, value) for estimator in owners]
        assert len({type(error) for error in errors}) == 1, (value, errors)
        assert (
            name in SEVERAL or len({str(error).removesuffix(", or None.").removesuffix(".") for error in errors}) == 1
        )


@pytest.mark.parametrize("name", sorted(set(WRONG) - {"client"}))
def test_what_is_of_another_kind_is_a_type_error_and_what_is_out_of_range_a_value_error(name):
    owner = next(estimator for estimator, own in CASES if own == name)
    optional = inspect.signature(owner).parameters[name].default is None
    for value in [object(), *[True] * (name not in FLAGS and name != "verbose"), *[None] * (not optional)]:
        if value is None and name in ("random_state", "device", "dtype"):
            continue  # as if it were not given
        assert isinstance(refused(owner, name, value), TypeError), (name, value)


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_what_a_parameter_may_be_is_taken_also_as_a_number_of_numpy(estimator, name):
    default = inspect.signature(estimator).parameters[name].default
    values = [default, *RIGHT.get(name, [])]
    if issubclass(estimator, FeatureMachine) and name == "alpha":  # searched with M, one for all targets
        values = [value for value in values if value == "auto" or (np.isscalar(value) and not isinstance(value, str))]
    if isinstance(default, bool):
        values += [not default, np.bool_(default)]
    elif isinstance(default, int):
        values += [np.int64(default), np.int32(default), np.uint8(min(default, 200))]
    elif isinstance(default, float):
        values += [np.float64(default), np.float32(default)]
    for value in values:
        estimator(**{name: value})._check_parameters()


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_default_obeys_the_rule_of_its_parameter(estimator, name):
    """A check leaves out what has its default."""
    rules, default = {**RULES, **estimator.own_rules}, inspect.signature(estimator).parameters[name].default
    if name in rules and default is not None:
        rules[name].check(name, default, False)


@pytest.mark.parametrize(("estimator", "name"), [(KernelRidge, "alpha"), (KernelClassifier, "loss")])
def test_a_fit_looks_at_parameters_first(estimator, name):
    with pytest.raises(MercerError, match=f"{name}="):
        estimator(**{name: object()}).fit(None, None)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_of_a_parameter_and_is_tried(name):
    assert any(name in inspect.signature(estimator).parameters for estimator in ESTIMATORS)
    assert WRONG[name]


COUNTS = [(estimator, name) for estimator, name in CASES if "an integer" in getattr(RULES.get(name), "words", "")] + [
    (RFMRegressor, "n_folds"),
    (TabularEstimator, "rare"),
    (TabularEstimator, "max_levels"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [10**12, 10**30], ids="{:.0e}".format)
@pytest.mark.parametrize(("estimator", "name"), COUNTS, ids=lambda case: getattr(case, "__name__", case))
def test_a_fit_with_a_count_too_large_to_be_made_ends(estimator, name, count):
    X = np.random.default_rng(0).normal(size=(12, 2))
    y = X[:, 0] > 0 if "Classifier" in estimator.__name__ else X[:, 0]
    try:
        with within(30.0):
            estimator(**{name: count}).fit(X, y)
    except MercerError as error:
        assert str(count) in str(error).replace(",", "")  # noqa: PT017


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
