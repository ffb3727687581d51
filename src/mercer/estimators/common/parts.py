"""Fits to rows that are read in parts: how many are looked at first, how the others are read, and checkpoints."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from mercer.core.memory import readable, require, resolve_budget
from mercer.data.checkpoint import Checkpoint
from mercer.data.engines import Engine
from mercer.data.given import Budget
from mercer.data.rows import RowSource
from mercer.estimators.common.saved_parameters import plain_param
from mercer.estimators.dials import FEWEST_SAMPLED
from mercer.functions.basis import Basis
from mercer.kernels import Kernel
from mercer.losses import Loss
from mercer.operators.placement import Placement
from mercer.solvers.basis_blocks import StreamedBlocks
from mercer.solvers.choose import landmark_count
from mercer.solvers.dials import POOL
from mercer.solvers.row_blocks import working_bytes
from mercer.solvers.spread_blocks import SpreadBlocks

SUMS = "rows, functions and targets"
"""What a checkpoint holds sums of: one with other sums is of another fit."""
HARMLESS = ("checkpoint", "verbose", "memory_budget", "device", "client")
"""Settings that do not change what is computed."""


class Settings(Protocol):
    """What the settings of every fit to parts have; they are frozen dataclasses."""

    @property
    def n_landmarks(self) -> int | None: ...
    @property
    def landmarks(self) -> Any: ...
    @property
    def memory_budget(self) -> Any: ...
    @property
    def checkpoint(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    @property
    def verbose(self) -> bool: ...


def rows_to_sample(settings: Settings, source: RowSource) -> int:
    """Rows of a source that landmarks and parameters are chosen from."""
    given = settings.n_landmarks
    m = given if given is not None else landmark_count(source.n_rows, None, "nystrom", settings.memory_budget, "cpu")
    spread = isinstance(settings.landmarks, str) and settings.landmarks != "uniform"
    return max(FEWEST_SAMPLED, (POOL if spread else 1) * m)


def reserved_bytes(memory_budget: Budget, source: RowSource) -> int:
    """What reading and working on parts of rows takes; an error where that does not fit."""
    reading, working = source.reading_bytes, working_bytes(0)
    advice = "Use a larger memory_budget, or sources with fewer rows_at_once."
    what = f"working on parts of rows, which takes {readable(reading)} to read,"
    require(reading + working, resolve_budget(memory_budget), what, advice)
    return reading + working


def blocks_in_parts(
    settings: Settings,
    basis: Basis,
    source: RowSource,
    place: Placement,
    engine: Engine | None,
    *,
    normal_equations: bool,
) -> Any:
    """The values of a basis at the rows of a source, read here or by an engine."""
    if engine is None:
        return StreamedBlocks(basis, source, place, settings.verbose)
    options = {"device": settings.device, "normal_equations": normal_equations, "verbose": settings.verbose}
    return SpreadBlocks(basis, source, place, engine, **options)


def checkpoint_of(settings: Settings, source: RowSource, basis: Basis) -> Checkpoint | None:
    """The checkpoint that was asked for, which knows the rows, the parameters and the functions of its fit."""
    if settings.checkpoint is None:
        return None
    names = [f.name for f in fields(settings) if f.name not in HARMLESS]  # type: ignore[arg-type]
    parameters = {name: plain_param(name, getattr(settings, name)) for name in names}
    identity = {"sums": SUMS, "rows": source.identity(), "parameters": parameters}
    return Checkpoint(settings.checkpoint, identity | {"kernel and landmarks": basis.digest()})


def where_read(source: RowSource, engine: Engine | None) -> str:
    """How rows were read, in words."""
    return f"rows were read in {len(source.parts()):,} parts{'' if engine is None else f' by {engine}'}"


def same_setting(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are the same; arrays may be copies."""
    if a is b or a is None or b is None:
        return a is b
    if isinstance(a, str | Kernel | Loss) or isinstance(b, str | Kernel | Loss):
        return type(a) is type(b) and bool(a == b)
    return np.array_equal(np.asarray(a), np.asarray(b))
