"""Functions of a seed, repeated over seeds in processes; p-values are written line by line as they come."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.stats import binomtest

Repeat = Callable[[int], dict[str, float]]
"""From a seed to the p-value of each test."""


@dataclass(frozen=True)
class Row:
    """A line of a table: `repeat` with seeds 0, 1, ...; `published` is what others report for it."""

    name: str
    repeat: Repeat
    repeats: int
    published: str = ""
    on_gpu: bool = False


def device() -> str:
    """Where rows that ask for a GPU are computed."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def made_once(module: ModuleType, name: str) -> Iterator[None]:
    """Within this block the function of a module gives what its first call gave: tests of the same data with the same
    seed, which differ in how they combine kernels, share their sums.
    """
    function, made = getattr(module, name), []

    def first(*args: Any, **options: Any) -> Any:
        if not made:
            made.append(function(*args, **options))
        return made[0]

    with patch.object(module, name, first):
        yield


def run(rows: list[Row], path: Path, processes: int, gpu_processes: int = 2) -> None:
    """Repeat all rows and print each line when it is complete. What the file has already is not repeated."""
    known = written(path)
    context = get_context("spawn")
    done = {row.name: len(known.get(row.name, {})) for row in rows}
    by_name = {row.name: row for row in rows}
    with (
        ProcessPoolExecutor(max(1, gpu_processes), context, initializer=_single) as gpu,
        ProcessPoolExecutor(processes, context, initializer=_single) as cpu,
        path.open("a") as out,
    ):
        jobs = [
            (gpu if row.on_gpu else cpu).submit(_chunk, row, seeds)
            for row in rows
            for seeds in _chunks([s for s in range(row.repeats) if s not in known.get(row.name, {})])
        ]
        for job in as_completed(jobs):
            name, lines = job.result()
            for seed, pvalues in lines:
                out.write(json.dumps({"row": name, "seed": seed, **pvalues}) + "\n")
            out.flush()
            done[name] += len(lines)
            if done[name] == by_name[name].repeats:
                print(summary(by_name[name], written(path)[name]), flush=True)


def written(path: Path) -> dict[str, dict[int, dict[str, float]]]:
    """The lines of a file: for each row and seed the p-values."""
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    if path.exists():
        for text in path.read_text().splitlines():
            line = json.loads(text)
            found[line.pop("row")][line.pop("seed")] = line
    return found


def summary(row: Row, found: dict[int, dict[str, float]]) -> str:
    """Shares that reject at 0.05, with the binomial interval of 95%."""
    names = list(dict.fromkeys(name for pvalues in found.values() for name in pvalues))
    parts = []
    for name in names:
        values = np.array([pvalues[name] for pvalues in found.values()])
        interval = binomtest(int((values <= 0.05).sum()), len(values)).proportion_ci()
        parts.append(f"{name} {(values <= 0.05).mean():.3f} ({interval.low:.3f} to {interval.high:.3f})")
    note = f"; published {row.published}" if row.published else ""
    return f"{row.name}, {len(found)} repeats: {', '.join(parts)}{note}"


def _single() -> None:
    torch.set_num_threads(1)


def _chunks(seeds: list[int], most: int = 10) -> Iterator[list[int]]:
    for start in range(0, len(seeds), most):
        yield seeds[start : start + most]


def _chunk(row: Row, seeds: list[int]) -> tuple[str, list[tuple[int, dict[str, float]]]]:
    return row.name, [(seed, row.repeat(seed)) for seed in seeds]
