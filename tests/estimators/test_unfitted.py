"""Before a fit every use is scikit-learn's NotFittedError; only processes have something to draw from: their prior."""

import inspect

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer.estimators

X = np.zeros((3, 2))
BEFORE_TABLES = {"inner"}
ARGUMENTS = {"path": "model.safetensors", "X": X, "Y": X, "y": np.zeros(3)}
BEFORE = {"fit", "partial_fit", "fit_transform", "get_params", "set_params", "get_metadata_routing", "set_output"}
PRIORS = {"sample_y", "sample_functions"}


def is_used_before(name):
    return name in BEFORE | BEFORE_TABLES | PRIORS or name.startswith("_") or name.endswith("_request")


def members():
    for estimator in (getattr(mercer.estimators, name) for name in mercer.estimators.__all__):
        for name in dir(estimator):
            found = inspect.getattr_static(estimator, name)
            if not is_used_before(name) and (inspect.isfunction(found) or isinstance(found, property)):
                yield estimator, name


def required(method):
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            yield ARGUMENTS.get(name, 1)


@pytest.mark.parametrize(("estimator", "name"), list(members()), ids=lambda case: getattr(case, "__name__", case))
def test_what_needs_a_fit_says_so(estimator, name):
    model = estimator()
    used = required(getattr(model, name)) if inspect.isfunction(inspect.getattr_static(estimator, name)) else None
    with pytest.raises(NotFittedError):
        getattr(model, name) if used is None else getattr(model, name)(*used)


def test_processes_draw_from_their_prior():
    process = mercer.GaussianProcessRegressor("gaussian", noise=0.1)
    assert process.sample_y(X).shape == (3, 1)
    assert process.sample_functions(2)(X).shape == (2, 3)
