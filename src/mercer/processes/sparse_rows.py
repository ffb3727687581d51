"""Inducing points for rows that are read in parts: what the bound asks of them adds up, wherever they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.data.engines import Arrays, Engine, SerialEngine, added, grouped, most_rows
from mercer.data.rows import Part, RowSource, read_ahead
from mercer.kernels import Kernel
from mercer.processes.means import Centring, Mean
from mercer.processes.observations import Observations
from mercer.processes.sparse_evidence import Sums, block_sums, blocks_of, total, whitening
from mercer.processes.sparse_posterior import AllRows, SparsePosterior


class Asked(NamedTuple):
    """What is to be added up: kernel, noise, inducing points and their features, and what targets are less."""

    kernel: Kernel
    noise: float
    Z: Points
    T: Tensor
    mean: Mean
    shift: Tensor
    scale: Tensor


def conditioned_on_source(
    posterior: SparsePosterior, source: RowSource, scale: Tensor, engine: Engine | None
) -> SparsePosterior:
    """The process of a sample, given all rows of a source, whose targets are divided by `scale`."""
    mean, data = posterior.mean_function.mean, posterior.data
    shift = Centring.of(mean, data.X, data.Y).least_squares
    asked = _asked(posterior, mean, shift, scale)
    engine = SerialEngine() if engine is None else engine
    groups = grouped(source.parts(), engine.group_rows or most_rows(source))
    found = engine.reduce(added, engine.map_groups(_group_sums, source, groups, engine.broadcast(asked)))
    sums = Sums(**{name: value.to(data.Y) for name, value in found.items()})
    return with_sums(posterior, AllRows(sums, source.n_rows, shift))


def with_sums(posterior: SparsePosterior, rows: AllRows) -> SparsePosterior:
    """The same process given the rows of other sums."""
    p, reason = posterior, f"{posterior.report.reason.split('; an approximation')[0]}; given {rows.n_rows:,} rows"
    return SparsePosterior.condition(p.kernel, p.noise, p.data, p.mean_function.mean, p.place, p.Z, reason, rows)


def sums_of(posterior: SparsePosterior, data: Observations, shift: Tensor) -> AllRows:
    """The sums over some rows."""
    asked = _asked(posterior, posterior.mean_function.mean, shift, torch.ones(data.n_targets).double())
    return AllRows(_sums(asked, data), len(data), shift)


def _asked(posterior: SparsePosterior, mean: Mean, shift: Tensor, scale: Tensor) -> Asked:
    with torch.no_grad():
        T = whitening(posterior.kernel, posterior.Z)
    return Asked(posterior.kernel, posterior.noise, posterior.Z, T, mean, shift, scale)


def _group_sums(rows: RowSource, parts: list[Part], asked: Asked) -> Arrays:
    found: Arrays | None = None
    for _, chunk in read_ahead(rows.read, parts):
        assert chunk.targets is not None
        data = Observations(Points(chunk.X, rows.names), chunk.targets / asked.scale).to(asked.T.device)
        here = {name: value.cpu() for name, value in _sums(asked, data).to_arrays().items()}
        found = here if found is None else added(found, here)
    assert found is not None
    return found


def _sums(asked: Asked, data: Observations) -> Sums:
    centring = Centring.of(asked.mean, data.X, data.Y)
    B = torch.cat([centring.R - centring.H @ asked.shift.to(centring.H), centring.H], dim=1)
    noise = torch.tensor(asked.noise, dtype=torch.float64, device=data.Y.device)
    with torch.no_grad():
        blocks = blocks_of(data, B, len(asked.Z))
        return total(block_sums(asked.kernel, noise, asked.Z, asked.T, *block) for block in blocks)
