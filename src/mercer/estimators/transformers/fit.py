"""A fitted map: the features, the kernel they stand for, and how they were found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.data.sample import Seen
from mercer.features import FeatureMapping
from mercer.kernels import Kernel

M = TypeVar("M", bound=FeatureMapping)


@dataclass(frozen=True, eq=False)
class MapFit(Generic[M]):
    """What a fit knows.

    Attributes
    ----------
    seen : Seen
        What is remembered of the rows.
    kernel : Kernel, str or callable
        The kernel, with every parameter found.
    features : M
        The map.
    note : str
        How it was chosen, in words.
    limit : callable or None
        What inner products of ever more features tend to, where that is not `kernel`.
    """

    seen: Seen
    kernel: Kernel
    features: M
    note: str = ""
    limit: Callable[[Tensor, Tensor], Tensor] | None = None

    def values(self, rows: Points) -> Tensor:
        """The features of the rows, in their dtype."""
        values = self.features(rows)
        return checked_values(values.to(rows.values) if rows.is_tensor else values, "Features")

    @property
    def exact(self) -> Any:
        """What inner products of the features come close to."""
        return self.kernel if self.limit is None else self.limit
