"""Parameters of kernels: what each may be, checked once when a kernel is made."""

from __future__ import annotations

import math
import numbers
from dataclasses import MISSING, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError

MEDIAN = "median"
"""One number, the median distance."""
AUTO = "auto"
"""One number for each column, in its units."""


@dataclass(frozen=True)
class Parameter:
    """The range of one numeric parameter; `tunable` ones are positive and optimised on a log scale."""

    lower: float = 0.0
    upper: float = math.inf
    lower_open: bool = True
    vector: bool = False
    median: bool = False
    integer: bool = False
    infinite: bool = False
    tunable: bool = True

    def check(self, value: Any, owner: str, name: str) -> Any:
        """The value as a float, int, tuple or tensor, or an error that names the kernel and the value."""
        where = _Where(owner, name, value)
        if self.median and isinstance(value, str) and value in (AUTO, MEDIAN):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value, where, name)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return self._scalar(value, where, name)
        if self.vector and isinstance(value, list | tuple | np.ndarray):
            return self._tuple(value, where, name)
        raise InputTypeError(f"{where}: {name} must be {self.words()}.")

    def words(self) -> str:
        """The range in words, for error messages."""
        kind = "an integer" if self.integer else "a number"
        sign = ">" if self.lower_open else ">="
        bound = f"{kind} {sign} {self.lower:g}"
        if math.isfinite(self.upper):
            bound += f" and <= {self.upper:g}"
        if self.vector:
            bound += " or one such number per column"
        return bound + (', "auto" or "median"' if self.median else "")

    def _scalar(self, value: Any, where: _Where, name: str) -> float | int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not (self.lower < number <= self.upper and number < math.inf):  # else it is in the range without a tensor
            self._check_range(torch.tensor(number, dtype=torch.float64), where)
        if not self.integer:
            return number
        if number != int(number):
            raise InputError(f"{where}: {name} must be {self.words()}.")
        return int(value)

    def _tuple(self, value: Any, where: _Where, name: str) -> tuple[float, ...]:
        try:
            array = np.asarray(value)
        except ValueError:
            raise InputTypeError(f"{where}: {name} must be {self.words()}.") from None
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "fiu":
            raise InputTypeError(f"{where}: {name} must be {self.words()}.")
        entries = array.astype(np.float64)
        self._check_range(torch.from_numpy(entries), where)
        return tuple(entries.tolist())

    def _tensor(self, value: Tensor, where: _Where, name: str) -> Tensor:
        if not value.is_floating_point():
            raise InputTypeError(f"{where}: a tensor parameter must be a floating-point tensor.")
        if value.ndim > (1 if self.vector else 0) or value.numel() == 0:
            raise InputError(f"{where}: {name} must be {self.words()}, got shape {tuple(value.shape)}.")
        self._check_range(value.detach(), where)
        return value

    def _check_range(self, values: Tensor, where: _Where) -> None:
        below = values <= self.lower if self.lower_open else values < self.lower
        bad = below | (values > self.upper) | values.isnan()
        if not self.infinite:
            bad |= values.isinf()
        if not bool(bad.any()):
            return
        entry = ""
        if values.ndim:
            place = int(bad.nonzero()[0])
            entry = f"entry {place} is {values[place].item():g}; "
        raise InputError(f"{where}: {entry}must be {self.words()}.")


def parameter(default: Any = MISSING, **spec: Any) -> Any:
    """A dataclass field that carries its `Parameter`."""
    return field(default=default, metadata={"parameter": Parameter(**spec)})


def length_scale(default: Any = 1.0) -> Any:
    """The field of a width: positive, one number, one per column, "auto" or "median"."""
    return parameter(default, vector=True, median=True)


@dataclass(frozen=True)
class _Where:
    """The kernel, the parameter and its value in words, which are made only for an error."""

    owner: str
    name: str
    value: Any

    def __str__(self) -> str:
        text = repr(self.value)
        return f"{self.owner}({self.name}={text if len(text) <= 60 else text[:57] + '...'})"
