"""Numbers that somebody chose stand in the dials of their package; models are read and written by their own class."""

import ast
from pathlib import Path

import pytest

import mercer
from benchmarks.house import chosen

PACKAGE = Path(mercer.__file__).parent
GATHERED = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("dials.py"))
OWN = {"DAY", "SMALLEST", "MOST_COLUMNS", "PI", "LARGEST_ORDER", "SCALES", "SPACES", "HALVES"}
"""Units, powers that theory gives, and limits of what files and formulas may hold."""


@pytest.mark.parametrize("path", GATHERED, ids=str)
def test_each_dial_says_what_it_is(path):
    found = chosen(ast.parse((PACKAGE / path).read_text()))
    assert found[-1][1], f"{found[-1][0]} has no docstring"
    lines = (PACKAGE / path).read_text().splitlines()
    for name, documented in found:
        if not documented:  # one docstring for the lines above it
            place = next(i for i, line in enumerate(lines) if line.startswith((f"{name} ", f"{name}:")))
            assert lines[place + 1][:1] not in ("", "#"), f"{name} has no docstring"


@pytest.mark.parametrize("path", GATHERED, ids=str)
def test_a_number_has_its_name_alone(path):
    targets = [node.targets for node in ast.parse((PACKAGE / path).read_text()).body if isinstance(node, ast.Assign)]
    names = [name.id for target in targets for part in target for name in ast.walk(part) if isinstance(name, ast.Name)]
    assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]


@pytest.mark.parametrize("path", GATHERED, ids=str)
def test_no_module_of_a_package_with_dials_has_numbers_of_its_own(path):
    folder = (PACKAGE / path).parent
    others = [file for file in folder.rglob("*.py") if file.name not in ("dials.py", "costs.py")]
    found = {name for file in others for name, _ in chosen(ast.parse(file.read_text())) if not name.startswith("_")}
    assert found <= OWN, found - OWN


FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
MODELS = {"model", "estimator", "machine", "inner"}
SEES_COLUMNS = {Path("estimators/common/samples.py")}
"""Notes the columns of X in an estimator, as `validate_data` of scikit-learn does."""
OF_OTHERS = {"_meta", "_name", "_replace", "_asdict", "_getframe"}
"""Names of Dask, of named tuples and of Python."""


@pytest.mark.parametrize("path", FILES, ids=str)
def test_nobody_writes_into_a_model_from_outside_its_class(path):
    outside = [part for part in ast.parse((PACKAGE / path).read_text()).body if not isinstance(part, ast.ClassDef)]
    written = [
        ast.unparse(node)
        for part in outside
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and isinstance(node.value, ast.Name)
        and node.value.id in MODELS
    ]
    assert not written or path in SEES_COLUMNS, written


@pytest.mark.parametrize("path", FILES, ids=str)
def test_nobody_reads_a_private_name_of_an_object_outside_its_class(path):
    """In its class a name may be read of another object of the class, such as the other one of a sum."""
    tree = ast.parse((PACKAGE / path).read_text())
    own = {
        id(node): known
        for part in ast.walk(tree)
        if isinstance(part, ast.ClassDef)
        for known in [_defined(part)]
        for node in ast.walk(part)
    }
    read = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node.value) not in ("self", "cls", "super()")
        and node.attr not in own.get(id(node), set()) | OF_OTHERS
    ]
    assert not read, read


def _defined(owner):
    """The private names of a class: its methods, its fields, and what its methods set."""
    names = {
        node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    names |= {part.name for part in owner.body if isinstance(part, ast.FunctionDef)}
    return names | {part.target.id for part in owner.body if isinstance(part, ast.AnnAssign)}
