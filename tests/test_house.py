"""Numbers that somebody chose stand in the dials of their package, each with what it is."""

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
def test_no_module_of_a_package_with_dials_has_numbers_of_its_own(path):
    folder = (PACKAGE / path).parent
    others = [file for file in folder.rglob("*.py") if file.name not in ("dials.py", "costs.py")]
    found = {name for file in others for name, _ in chosen(ast.parse(file.read_text())) if not name.startswith("_")}
    assert found <= OWN, found - OWN
