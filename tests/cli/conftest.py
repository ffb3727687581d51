"""A small table in each file format, and the command run inside this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from mercer.cli import account, output
from mercer.cli.app import app
from mercer.plots.canvas import new_figure

FEATURES = ("area", "rooms", "year")


@pytest.fixture
def houses() -> dict[str, Any]:
    """Sixty houses whose price is a smooth function of their columns; the columns have very different scales."""
    rng = np.random.default_rng(0)
    area, rooms = rng.uniform(40, 200, 60).round(1), rng.integers(1, 7, 60)
    year = rng.integers(1950, 2020, 60)
    price = (1000 + 5 * area + 80 * np.sin(rooms) + 0.02 * (year - 1980) ** 2 + rng.normal(0, 5, 60)).round(2)
    return {"area": area, "rooms": rooms, "year": year, "price": price}


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Write columns to a file whose format its name says."""

    def _save(name: str, columns: dict[str, Any]) -> Path:
        path = tmp_path / name
        if name.endswith(".npz"):
            np.savez(path, **columns)
        elif name.endswith(".parquet"):
            pa.parquet.write_table(pa.table(columns), path)
        else:
            pa.csv.write_csv(pa.table(columns), path)
        return path

    return _save


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command in an empty folder and give its result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return run


@pytest.fixture
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty picture instead of the plot, for tests that are about something else."""
    for module, name in (
        (output, "regression_summary"),
        (account, "regression_summary"),
        (account, "_figure_of_classes"),
    ):
        monkeypatch.setattr(module, name, lambda *args, **words: new_figure(0.1, 0.1))


class _Blocker:
    """Makes some packages look as if they were not installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Take packages away for the rest of the test."""

    def take_away(*names: str) -> None:
        for module in [m for m in sys.modules if m.partition(".")[0] in names]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setattr(sys, "meta_path", [_Blocker(names), *sys.meta_path])

    return take_away
