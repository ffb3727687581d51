"""The account of tuning as plain data, for model files."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.files.kinds import ANY_TABLE, TEXT, Either, Pairs, Several, Table, number, one_of, whole
from mercer.kernels import from_dict, to_dict
from mercer.selection import Tuned
from mercer.selection.tuning import CANDIDATES

TUNING = Table(
    {
        "kernel": ANY_TABLE,
        "alpha": Either((number(0), Several(number(0), 1))),
        "error": number(finite=False),
        "start_error": number(finite=False),
        "history": Several(number(finite=False)),
        "message": TEXT,
        "rows_used": whole(1),
        "tune": one_of(*CANDIDATES),
        "judged": Several(number(finite=False)),
        "compared": Pairs(TEXT, number(finite=False)),
    },
    may_lack=("tune", "judged", "compared"),
)


def plain_tuning(tuning: Tuned) -> dict[str, Any]:
    """An account as plain data."""
    values = {f.name: getattr(tuning, f.name) for f in fields(tuning)}
    alpha = values["alpha"]
    return values | {
        "kernel": to_dict(tuning.kernel),
        "alpha": alpha.tolist() if isinstance(alpha, Tensor) else alpha,
        "history": list(tuning.history),
        "judged": list(tuning.judged),
        "compared": [list(pair) for pair in tuning.compared],
    }


def read_tuning(values: dict[str, Any]) -> Tuned:
    """The account that was saved."""
    alpha, judged = values["alpha"], tuple(values.get("judged", ()))
    if len(judged) not in (0, len(CANDIDATES)):
        raise ModelFileError(f"the tuning was judged by {len(judged)} numbers, expected {len(CANDIDATES)} or none")
    found = {
        "kernel": from_dict(values["kernel"]),
        "alpha": torch.tensor(alpha, dtype=torch.float64) if isinstance(alpha, list) else float(alpha),
        "history": tuple(values["history"]),
        "judged": judged,
        "compared": tuple((str(name), float(error)) for name, error in values.get("compared", ())),
    }
    return Tuned(**values | found)
