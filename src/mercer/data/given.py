"""What users may give, as types: annotations of public parameters name these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from mercer.core.arrays import Points
from mercer.data.rows.source import RowSource

if TYPE_CHECKING:
    import matplotlib.axes


class Frame(Protocol):
    """A data frame of pandas, polars, arrow, Dask or another library."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""

    def __len__(self) -> int: ...


Rows: TypeAlias = np.ndarray | Tensor | Frame | RowSource | Points | Sequence[Any]
"""Rows of a table, or objects."""
Targets: TypeAlias = ArrayLike | Tensor
"""A number, a label or several for each row."""
Weights: TypeAlias = ArrayLike | Tensor | None
"""A weight for each row; None for equal ones."""
Order: TypeAlias = ArrayLike | Tensor | None
"""A number, date or text for each row that tells what came first."""
Numbers: TypeAlias = float | Sequence[float] | np.ndarray | Tensor
"""A number, or several."""
Alpha: TypeAlias = str | Numbers
"""A ridge, one for each target, or the word for how to choose it."""
Noise: TypeAlias = str | Numbers
"""A variance of noise, one for each row, or "learn"."""
Mean: TypeAlias = str | float | Callable[..., Any]
"""A mean function of a process or its name, a number, or a function of rows."""
Landmarks: TypeAlias = str | Rows
"""How to choose landmarks, or the landmarks."""
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
"""What `random_state` may be."""
Budget: TypeAlias = int | str | None
"""Bytes, text such as "2GiB", or None for half of what is free."""
Device: TypeAlias = str | torch.device | None
"""Where to compute; None and "auto" decide by what is there."""
Precision: TypeAlias = str | torch.dtype | None
"""In which numbers to compute; None and "auto" decide by the rows."""
ClassWeight: TypeAlias = Mapping[Any, float] | str | None
"""Weights by class, "balanced", or None."""
ByName: TypeAlias = Mapping[str, Any] | None
"""Something for each of some parameters, by name."""
Axes: TypeAlias = "matplotlib.axes.Axes"
"""Where to draw."""
Path: TypeAlias = str | PathLike[str]
