"""What is saved of fitted maps."""

from __future__ import annotations

from typing import Any

from mercer.data.sample import Seen
from mercer.estimators.common.state import KERNEL
from mercer.files.fields import Field, Fields, Rows, Where
from mercer.files.kinds import FLAG, TEXT, optional, whole

MAP: Fields = {
    "n_features": Field(optional(whole(1)), at=None, lacking=None, sizes=lambda d: {} if d is None else {"d": d}),
    "n_rows": Field(whole(1), at="seen.n_rows"),
    "kernel": Field(KERNEL),
    "note": Field(TEXT),
}
"""Of all maps; d is the number of columns."""


def rows(at: Where) -> Fields:
    """Of maps that keep rows."""
    return {"rows": Rows(at), "torch_in": Field(FLAG, at="seen.torch_in")}


def seen_of(found: Any) -> Seen:
    """What is remembered of the rows."""
    n = found.n_rows
    return Seen(n, 0, float(n), False, getattr(found, "torch_in", False), None)
