"""Parameters of estimators in model files: by the rules that a fit checks them with; objects as plain data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer import losses
from mercer.core.errors import InputError, MercerError, ModelFileError
from mercer.estimators.common.parameters import check_parameters
from mercer.files.kinds import (
    ANY_TABLE,
    FLAG,
    LARGEST_WHOLE,
    TEXT,
    Either,
    Kind,
    Made,
    Pairs,
    Plain,
    Several,
    Table,
    number,
    one_of,
    optional,
)
from mercer.kernels import Kernel, from_dict, to_dict
from mercer.losses import Loss
from mercer.processes.priors import PRIORS
from mercer.solvers import registry as solvers
from mercer.solvers.landmarks import HOW

PLACE = ("client", "checkpoint", "device", "memory_budget", "verbose")
"""Parameters of where and how a fit runs, not of what it finds: they stay on the machine where they were given.

A file that had them would choose for its reader, such as which cluster gets the rows.
"""

GIVEN = "given"
"""Stands for landmarks that are points: those of the model, so that they are written once."""

SCALAR = Plain(
    "text, a number, true, false or nothing",
    lambda v: v is None or isinstance(v, str | float) or (isinstance(v, int) and abs(v) <= LARGEST_WHOLE),
)
PLAIN = Either((SCALAR, Several(SCALAR, 1)))
"""What other parameters are in a file; their rules are those of every fit."""


@dataclass(frozen=True)
class ObjectOr(Kind):
    """An object that a function reads, or a scalar."""

    make: Callable[[Any], Any]
    words = SCALAR.words

    def read(self, value: Any, where: str) -> Any:
        return self.make(value) if isinstance(value, dict) else SCALAR.read(value, where)


BOUNDS = optional(Pairs(TEXT, Either((one_of("fixed"), Several(number(), 1), Several(Several(number(), 1), 1)))))
PRIORS_SAVED = {name: Table({f.name: number(above=0) for f in fields(cls)}) for name, cls in PRIORS.items()}


def _prior(values: dict[str, Any]) -> Any:
    name = values.get("prior")
    if not isinstance(name, str) or name not in PRIORS:
        raise ModelFileError(f"priors names {name!r:.60}, expected one of {', '.join(PRIORS)}")
    own = {key: value for key, value in values.items() if key != "prior"}
    return PRIORS[name](**PRIORS_SAVED[name].read(own, name))


KINDS: dict[str, Kind] = {
    "bounds": BOUNDS,
    "class_weight": Either((one_of(None, "balanced"), Pairs(Either((TEXT, FLAG, number())), number(0)))),
    "inverse_kernel": ObjectOr(from_dict),
    "kernel": ObjectOr(from_dict),
    "landmarks": one_of(None, *HOW, GIVEN),
    "loss": ObjectOr(losses.from_dict),
    "priors": optional(Pairs(TEXT, Made(ANY_TABLE, _prior, asdict))),
    "solver": ObjectOr(solvers.from_dict),
}
"""Parameters that may be objects."""


def checked_params(estimator: Any) -> dict[str, Any]:
    """The parameters as plain data, where they can be read back: they may have been set to anything after `fit`."""
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in PLACE}
    params = {name: plain_param(name, value) for name, value in given.items()}
    try:
        read_params(type(estimator), params)
    except MercerError as error:
        raise InputError(f"{str(error).rstrip('.')}; it does not fit a model file.") from None
    return params


def read_params(cls: Any, params: dict[str, Any], points: Any = "uniform") -> Any:
    """An unfitted estimator with the parameters that `checked_params` gave; `points` are the landmarks of the file."""
    placed = [name for name in PLACE if name in params]
    if placed:
        raise ModelFileError(
            f"it contains the parameter {placed[0]!r}, which a model file must not set (files of earlier versions "
            "do: fit and save the model again)"
        )
    kinds = {name: KINDS.get(name, PLAIN) for name in cls._get_param_names() if name not in PLACE}
    found = Table(kinds, may_lack=kinds).read(params, "params")
    if found.get("landmarks") == GIVEN:
        found["landmarks"] = points
    model = cls(**found)
    check_parameters(model, cls.own_rules)
    return model


def plain_param(name: str, value: object) -> Any:
    """A parameter as JSON can hold it."""
    if name == "landmarks" and not isinstance(value, str | None):
        return GIVEN
    if isinstance(value, Kernel):
        return to_dict(value)
    if isinstance(value, Loss):
        return losses.to_dict(value)
    if solvers.is_solver(value):
        return solvers.to_dict(value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_param("", entry) for entry in value]
    if isinstance(value, dict):
        return [[plain_param("", key), plain_param(f"{name}[{key!r}]", entry)] for key, entry in value.items()]
    if PRIORS.get(type(value).__name__) is type(value):
        return {"prior": type(value).__name__} | asdict(value)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "random_state" and not isinstance(value, int | None):
        return None  # a generator has no lasting meaning once it was used
    if callable(value) and not isinstance(value, type):
        raise InputError(f"{name} is a Python function, which does not fit a model file. Use pickle instead.")
    return value
