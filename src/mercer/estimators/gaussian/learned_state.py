"""What is saved of a learned kernel, for both Gaussian processes, and how it is made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import ModelFileError
from mercer.estimators.common.state import KERNEL, REPORT, SEEN
from mercer.estimators.dials import SMALLEST_VARIANCE
from mercer.files.fields import Array, Field, Fields, Rows
from mercer.files.kinds import (
    FLAG,
    TEXT,
    TEXTS,
    Either,
    Made,
    Plain,
    Several,
    Table,
    number,
    optional,
    whole,
)
from mercer.processes import Hyperparameters, Maximum
from mercer.processes.start import Scales

OPTIMUM = Table(
    {
        "value": number(finite=False),
        "start_value": number(finite=False),
        "history": Made(Several(number(finite=False)), tuple, list),
        "evaluations": whole(),
        "converged": FLAG,
        "message": TEXT,
        "n_rows": whole(1),
        "n_copies": whole(),
    }
)
"""A `Maximum` but for theta, which is an array."""

NOISE = Either((Plain("0", lambda value: type(value) in (int, float) and value == 0), number(SMALLEST_VARIANCE)))
"""Zero, or a number that float64 can divide by."""


LEARNED: Fields = {
    "seen": SEEN,
    "rows": Rows(at="posterior.data.X"),
    "kernel": Field(KERNEL, at="posterior.kernel"),
    "start_kernel": Field(KERNEL, at="plan.hyper.kernel"),
    "start_noise": Field(NOISE, at="plan.hyper.noise"),
    "learn_noise": Field(FLAG, at="plan.hyper.learn_noise"),
    "tied": Field(TEXTS, at=lambda fit: sorted(fit.plan.hyper.tied)),
    "report": Field(REPORT, at="posterior.report"),
    "likelihood": Field(number(finite=False)),
    "optimum": Field(optional(OPTIMUM), at=lambda fit: None if fit.optimum is None else vars(fit.optimum)),
    "theta": Array("h", at="optimum.theta", may_lack=True),
    "start_bounds": Array("h 2", at="plan.hyper.bounds"),
    "X_scale": Array("d", at="plan.scales.X", least=SMALLEST_VARIANCE, may_lack=True),
    "targets": Array("m t", at="posterior.data.Y"),
}
"""What both processes have; h is the number of hyperparameters."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What learning found."""

    hyper: Hyperparameters
    scales: Scales
    optimum: Maximum | None
    likelihood: float


def learned(model: Any, found: Any, y_scale: float) -> Learned:
    """What learning found, of a file."""
    n = found.seen.n_rows
    kept_some = "count" in getattr(found, "posterior", {})  # the others were read in parts, and stand in sums
    if len(found.rows) > n or (len(found.rows) < n and not kept_some):
        raise ModelFileError(f"there are {len(found.rows)} points but {n} rows")
    hyper, optimum = _hyperparameters(model, found), None
    if (found.optimum is None) != (found.theta is None):
        raise ModelFileError("array 'theta' and the account of learning go together")
    if found.optimum is not None:
        optimum = Maximum(theta=found.theta.numpy(), **found.optimum)
    scale = None if found.X_scale is None else found.X_scale.numpy()
    return Learned(hyper, Scales(scale, y_scale), optimum, float(found.likelihood))


def _hyperparameters(model: Any, found: Any) -> Hyperparameters:
    """The kernel and the noise that learning began with, and the box they could move in."""
    kernel, learn, tied = found.start_kernel, found.learn_noise, frozenset(found.tied)
    if not tied <= kernel.tunable().keys():
        raise ModelFileError(f"tied is {sorted(tied)!r:.60}, expected parameters of the kernel")
    noise = float(found.start_noise)
    if learn and noise == 0.0:
        raise ModelFileError("start_noise is 0, expected a number > 0 where the noise is learned")
    plain = Hyperparameters.of(kernel, noise, learn, priors=model.priors, tied=tied)
    bounds: np.ndarray = found.start_bounds.numpy()
    if len(bounds) != len(plain):
        raise ModelFileError(f"array 'start_bounds' has {len(bounds)} rows, expected {len(plain)}")
    if (bounds[:, 0] > bounds[:, 1]).any():
        raise ModelFileError("array 'start_bounds' has ranges that end before they begin")
    return Hyperparameters(kernel, noise, learn, bounds, plain.priors, tied)
