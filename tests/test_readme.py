"""What the README, the guide, the design and CONTRIBUTING show is what happens.

A `python` block runs in the namespace of the blocks before it; a `text` block right after it is what it prints. In a
`console` block the lines after `$` are commands, the others what they print.
"""

import contextlib
import importlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OWN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "design.md"]
PAGES = [*OWN, *sorted((ROOT / "docs" / "guide").glob("*.md"))]
SHOWN = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_PYTHON = [page for page in PAGES if SHOWN.search(page.read_text(encoding="utf-8"))]
WITH_COMMANDS = [page for page in PAGES if SESSION.search(page.read_text(encoding="utf-8"))]
MODULES = [
    "",
    ".engines",
    ".features",
    ".kernels",
    ".losses",
    ".neural",
    ".operators",
    ".plots",
    ".functions",
    ".rows",
    ".theory",
    ".selection",
    ".solvers",
    ".stats",
    ".testing",
]
VARIES = re.compile(r"residual \S+|\d+(?:\.\d+)? (?:s|min)\b")


def words(text):
    """The text as words and numbers, without times and residuals, which differ from run to run."""
    return re.findall(r"-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?|[^\W\d_]+|[^\w\s]", VARIES.sub("", text))


def number(word):
    try:
        return float(word.replace(",", ""))
    except ValueError:
        return None


def same(printed, shown):
    """Whether both have the same words, and numbers that agree to one in a hundred."""
    a, b = words(printed), words(shown)
    pairs = [(x, y, number(x), number(y)) for x, y in zip(a, b, strict=False)]
    agree = [x == y if p is None or q is None else p == pytest.approx(q, rel=1e-2, abs=1e-9) for x, y, p, q in pairs]
    return len(a) == len(b) and all(agree)


def test_the_comparison_sees_a_wrong_word_and_a_wrong_number():
    assert same("R2 0.351, residual 1e-17, 0.31 s", "R2 0.35, residual 3e-16, 2.00 s")
    assert not same("R2 0.45", "R2 0.35")
    assert not same("kernel laplace", "kernel gaussian")
    assert not same("one", "one two")


def test_the_pages_with_code_are_found():
    assert {"README", "CONTRIBUTING", "design", "kernels", "regression", "from_scikit_learn"} <= {
        page.stem for page in WITH_PYTHON
    }
    assert {"README", "command_line"} == {page.stem for page in WITH_COMMANDS}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_the_python_on_the_page_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for code, shown in SHOWN.findall(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, str(page), "exec"), namespace)
        assert same(printed.getvalue(), shown), f"{code}\nprints\n{printed.getvalue()}\nnot\n{shown}"


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_its_place_in_the_reference(module):
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", (ROOT / "docs" / "api.rst").read_text(), re.MULTILINE))
    room = importlib.import_module(f"mercer{module}")
    public = {name for name in room.__all__ if not (name.isupper() or name.startswith("_"))}
    things = {name for name in public if not inspect.ismodule(getattr(room, name))}
    assert things <= listed


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_on_the_page_print_what_is_shown(page, tmp_path):
    env = os.environ | {"COLUMNS": "80", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    for session in SESSION.findall(page.read_text(encoding="utf-8")):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            program, *arguments = shlex.split(command)
            assert program == "mercer"
            result = subprocess.run(
                [sys.executable, "-m", "mercer", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True
            )
            assert result.returncode == 0, result.stderr
            assert same(result.stdout, shown), f"{command}\nprints\n{result.stdout}"
