"""What users read of a public name: it is on the page of the API, described, with parameters in their slots."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import mercer
from mercer import estimators

PACKAGE = Path(mercer.__file__).parent
PAGE = (PACKAGE.parents[1] / "docs" / "api.rst").read_text()
SECTION = re.compile(r"-{3,}$")
ENTRY = re.compile(r"\*{0,2}\w+(?:, \*{0,2}\w+)*(?: : (?P<type>.+))?$")
SENTENCE = re.compile(r"\b(the|whether|how|is|are|which|draws|takes)\b|\.$")
"""Words of a description, which no type has."""
CONSTANTS = {"LOSSES", "SOLVERS", "__version__"}
ELSEWHERE = {"gram", "from_dict", "to_dict", "as_mean"}
"""Names that stand on the page under another module, or that those who write parts of mercer use."""


def on_the_page():
    """The names in the tables of the page, by module."""
    found, module, inside = {}, "", False
    for line in PAGE.splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        inside = line.startswith(".. autosummary::") or (inside and (not line or line.startswith(" ")))
        if inside and re.match(r" +\w[\w.]*$", line):
            found.setdefault(module, []).append(line.strip())
    return found


def named(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


NAMES = [(module, name) for module, names in on_the_page().items() for name in names]
DESCRIBED = [pair for pair in NAMES if callable(named(*pair))]


def sections(text):
    """The entries of the sections that list names: section, line of the entry, and whether a description follows."""
    lines, inside = inspect.cleandoc(text).splitlines(), ""
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        if SECTION.match(after):
            inside = line
        elif line.startswith((">>>", "References: ")):
            inside = ""
        elif inside in ("Parameters", "Attributes") and line[:1].strip() and not SECTION.match(line):
            yield inside, line, after.startswith("    ")


@pytest.mark.parametrize("module", on_the_page())
def test_the_page_has_every_public_name_of_a_module(module):
    public = set(getattr(importlib.import_module(module), "__all__", ())) - CONSTANTS - ELSEWHERE
    public = {name for name in public if not inspect.ismodule(getattr(importlib.import_module(module), name))}
    public -= set(mercer.__all__) if module != "mercer" else set()
    assert public <= {name for names in on_the_page().values() for name in names}


@pytest.mark.parametrize(("module", "name"), DESCRIBED)
def test_a_public_name_is_described_with_all_parameters_that_it_lists(module, name):
    found = named(module, name)
    text = found.__doc__ or ""
    assert len(text.split()) > 2
    listed = [entry for section, entry, _ in sections(text) if section == "Parameters"]
    if listed and "signature" not in getattr(found, "__dict__", {}):
        documented = {part.strip(" *") for entry in listed for part in entry.split(" : ")[0].split(",")}
        missing = set(inspect.signature(found).parameters) - documented - {"self", "cls", "args", "kwargs"}
        assert not {word for word in missing if not re.search(rf"\b{word}\b", text)}, missing


@pytest.mark.parametrize("name", estimators.__all__)
def test_an_estimator_documents_each_parameter_in_its_section(name):
    found = getattr(mercer, name)
    listed = [entry for section, entry, _ in sections(found.__doc__) if section == "Parameters"]
    documented = {part.strip() for entry in listed for part in entry.split(" : ")[0].split(",")}
    assert set(inspect.signature(found).parameters) == documented
    assert ">>>" in found.__doc__


@pytest.mark.parametrize(("module", "name"), [pair for pair in NAMES if inspect.isfunction(named(*pair))])
def test_a_public_function_has_an_example(module, name):
    assert ">>>" in named(module, name).__doc__


@pytest.mark.parametrize("path", sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")), ids=str)
def test_types_stand_in_the_slot_of_types_and_descriptions_below(path):
    for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
        text = ast.get_docstring(node) if isinstance(node, ast.ClassDef | ast.FunctionDef) else None
        for _, entry, described in sections(text or ""):
            found = ENTRY.match(entry)
            assert found, f"{node.name}: {entry}"
            assert described, f"{node.name}: {entry} has no description"
            assert entry.startswith("**") or found["type"], f"{node.name}: {entry} has no type"
            assert not SENTENCE.search(found["type"] or ""), f"{node.name}: {entry}"
