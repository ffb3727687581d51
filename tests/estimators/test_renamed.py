"""Old names are errors that give the new ones, wherever they are used."""

import inspect
import pickle

import pytest
from sklearn.base import clone

from mercer import GaussianProcessClassifier, GaussianProcessRegressor, KernelRidge
from mercer.core.errors import InputTypeError

PARAMETERS = [
    (GaussianProcessRegressor, "optimize", False, "tune"),
    (GaussianProcessRegressor, "n_inducing", 5, "n_landmarks"),
    (GaussianProcessClassifier, "optimize", False, "tune"),
]


@pytest.mark.parametrize(("estimator", "before", "value", "now"), PARAMETERS)
def test_an_old_parameter_is_refused_with_its_new_name(estimator, before, value, now):
    words = f"{estimator.__name__}.{before} is now {now}."
    with pytest.raises(InputTypeError, match=words):
        estimator(**{before: value})
    with pytest.raises(InputTypeError, match=words):
        estimator().set_params(**{before: value})
    with pytest.raises(AttributeError, match=words):
        getattr(estimator(), before)
    with pytest.raises(AttributeError, match=words):
        setattr(estimator(), before, value)
    assert getattr(estimator(**{now: value}), now) is value


def test_an_old_attribute_is_refused_with_its_new_name():
    with pytest.raises(AttributeError, match=r"is now report\(\)"):
        KernelRidge().report_  # noqa: B018


def test_old_names_are_no_part_of_an_estimator():
    model = GaussianProcessRegressor(tune=False)
    assert "optimize" not in inspect.signature(GaussianProcessRegressor).parameters
    assert not hasattr(model, "optimize")
    assert clone(model).tune is pickle.loads(pickle.dumps(model)).tune is False
