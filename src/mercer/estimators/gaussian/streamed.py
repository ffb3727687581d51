"""A process given rows that are read in parts: learned from a sample, conditioned on all of them by inducing points."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.engines import Engine
from mercer.data.rows import RowSource, read_ahead
from mercer.estimators.common.parts import reserved_bytes, where_read
from mercer.estimators.common.samples import sampled
from mercer.estimators.dials import FEWEST_SAMPLED
from mercer.estimators.gaussian.fit import ProcessFit, fit_process, likelihood_of
from mercer.estimators.gaussian.plan import plan_process
from mercer.estimators.gaussian.settings import ProcessSettings
from mercer.processes.sparse_posterior import SparsePosterior
from mercer.processes.sparse_rows import conditioned_on_source


def fit_source(settings: ProcessSettings, source: RowSource, engine: Engine | None) -> ProcessFit:
    """Learn from some rows of a source, and condition on all."""
    if settings.method not in ("auto", "sgpr"):
        raise InputError(f"method={settings.method!r} needs all rows in memory: use method='sgpr' for rows in parts.")
    if settings.row_noise is not None:
        raise InputError("noise= has a variance for each row, which goes with rows in memory: give one number.")
    reserved_bytes(settings.memory_budget, source)
    some = sampled(source, FEWEST_SAMPLED, settings.seed, engine)
    if some.weights is not None:
        raise InputError("The source has sample weights, which a Gaussian process does not take.")
    plan = plan_process(replace(settings, method="sgpr"), some)
    plan = replace(plan, reason=f"sgpr: {where_read(source, engine)}, learned from {len(some):,} of them")
    fit = fit_process(plan, some)
    assert isinstance(fit.posterior, SparsePosterior)
    posterior = conditioned_on_source(fit.posterior, source, plan.target_scale, engine)
    seen = replace(some.seen, n_rows=source.n_rows, total_weight=float(source.n_rows))
    return replace(fit, seen=seen, posterior=posterior, likelihood=likelihood_of(plan, posterior))


def mean_and_std_of(fit: ProcessFit, source: RowSource, *, latent: bool) -> tuple[Tensor, Tensor]:
    """The mean and deviations at all rows of a source."""
    found = [
        fit.mean_and_std(Points(chunk.X, source.names), latent=latent)
        for _, chunk in read_ahead(source.read, source.parts())
    ]
    means, deviations = zip(*found, strict=True)
    return torch.cat(means).to(source.dtype), torch.cat(deviations).to(source.dtype)
