"""Many kernels of the same points: a distance that one has asked for serves the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair


class SharedPair(DensePair):
    """A `DensePair` that keeps its distances, which differ for two widths by a factor only.

    >>> from mercer.kernels import Gaussian
    >>> pair = SharedPair(Points(torch.tensor([[0.0], [2.0]])), dtype=torch.float32)
    >>> [float(Gaussian(width).of(pair)[0, 1].log()) for width in (1.0, 2.0)]
    [-2.0, -0.5]
    """

    def __init__(
        self,
        x: Points,
        z: Points | None = None,
        ids: tuple[Tensor, Tensor] | None = None,
        *,
        dtype: torch.dtype,
        kept: dict[Any, Tensor] | None = None,
        warps: tuple[Warp, ...] = (),
    ) -> None:
        super().__init__(x, z, ids)
        self.dtype, self.warps = dtype, warps
        self.kept: dict[Any, Tensor] = {} if kept is None else kept

    def warped(self, warp: Warp) -> SharedPair:
        z = None if self.z is None else warp(self.z)
        return SharedPair(warp(self.x), z, self.ids, dtype=self.dtype, kept=self.kept, warps=(*self.warps, warp))

    def squared_distance(self, length_scale: Any = 1.0, *, exact: bool = False) -> Tensor:
        shape, size = _shape_and_size(length_scale)
        base = self._keep(
            ("l2", shape, exact), lambda: super(SharedPair, self).squared_distance(_scale(shape), exact=exact)
        )
        return base * size**-2

    def l1_distance(self, length_scale: Any = 1.0) -> Tensor:
        shape, size = _shape_and_size(length_scale)
        return self._keep(("l1", shape), lambda: super(SharedPair, self).l1_distance(_scale(shape))) / size

    def inner(self) -> Tensor:
        return self._keep(("inner",), super().inner)

    def _keep(self, what: tuple[Any, ...], make: Callable[[], Tensor]) -> Tensor:
        key = (self.warps, *what)
        if key not in self.kept:
            self.kept[key] = make().to(self.dtype)
        return self.kept[key]

    def value(self, kernel: Kernel) -> Tensor:
        """The kernel as a full matrix of its own, in the dtype of the pair."""
        value = kernel.of(self)
        if not isinstance(value, Tensor):
            value = torch.tensor(float(value))
        device = self.x.values.device if self.x.is_tensor else "cpu"
        value = value.to(device=device, dtype=self.dtype).expand(self.shape)
        mine = any(value.data_ptr() == kept.data_ptr() for kept in self.kept.values())
        return value.clone() if mine or not value.is_contiguous() else value


def _shape_and_size(length_scale: Any) -> tuple[tuple[str, ...] | None, float]:
    """A width per column as its shape, in units of its first entry, and that entry."""
    if isinstance(length_scale, float | int):
        return None, float(length_scale)
    entries = [float(v) for v in length_scale]
    return tuple(f"{v / entries[0]:.9e}" for v in entries), entries[0]


def _scale(shape: tuple[str, ...] | None) -> Any:
    return 1.0 if shape is None else tuple(map(float, shape))
