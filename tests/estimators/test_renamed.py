"""Old names are errors that give the new ones, wherever they are used."""

import inspect
import pickle
import re
from pathlib import Path

import pytest
from sklearn.base import clone

import mercer
from mercer import GaussianProcessClassifier, GaussianProcessRegressor, KernelRidge, estimators
from mercer.core.errors import InputTypeError
from mercer.core.renamed import Renamed
from mercer.processes.sparse import Sparse

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"

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


def renamed_ones():
    """Every old name of a class, with its new one."""
    classes = [getattr(estimators, name) for name in estimators.__all__]
    for owner in (Sparse, *(cls for cls in classes if inspect.isclass(cls))):
        for base in owner.__mro__:
            for before, value in vars(base).items():
                if isinstance(value, Renamed):
                    yield owner, before, value.words.rstrip(".").split(" is now ")[1]


def test_the_changelog_has_a_line_for_each_old_name_and_no_other():
    table = CHANGELOG.read_text().split("### Renamed")[1].split("### ")[0]
    lines = re.findall(r"^\| `(\w+)` of (.*) \| `(.*)` \| `(.*)` \|$", table, re.M)
    found = {(before, now) for _, before, now in renamed_ones()}
    assert {(before, now) for before, _, now, _ in lines} == found
    assert len(lines) == table.count("\n| `")


def test_the_new_names_are_there():
    for owner, _, now in renamed_ones():
        name = now.removesuffix("()")
        assert hasattr(owner, name) or name in inspect.signature(owner).parameters, (owner, now)


def test_lines_of_the_changelog_run():
    table = CHANGELOG.read_text().split("### Renamed")[1].split("### ")[0]
    names = vars(mercer) | {"Sparse": Sparse, "place": None}
    for line in re.findall(r"`((?:[A-Z]\w+)\(.*\))` \|$", table, re.M):
        eval(line, {"GaussianProcessRegressor": GaussianProcessRegressor} | names)


def test_an_old_option_of_inducing_points_is_refused_with_its_new_name():
    with pytest.raises(InputTypeError, match="Sparse.n_inducing is now n_landmarks"):
        Sparse(None, n_inducing=3)
    assert Sparse(None, n_landmarks=3).n_landmarks == 3
