"""The kernel of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.formula.maths import exp
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair, vectors
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(examples=[{"n_levels": 3, "length_scale": 0.7}])
class Categorical(Kernel):
    r"""The kernel of categories, of the columns in which two rows differ,

    .. math:: k(x, z) = \exp\Big(-\sum_j \frac{[x_j \ne z_j]}{\ell_j}\Big).

    Each column holds codes 0, 1, ... below its number of levels, `n_levels`, one number for all columns or one for
    each; every other value is one more level, the unknown. A short length scale tells levels apart, a long one lets
    them share what they know. Multiply it with kernels of numbers: ``Subspace(Gaussian(), ["age"]) *
    Subspace(Categorical(12), ["city"])``. Differences are squared distances of 0/1 columns, so fast back ends run it.

    References: Aitchison and Aitken, *Multivariate binary discrimination by the kernel method*, 1976.

    >>> Categorical(n_levels=3, length_scale=2.0)([[0.0], [1.0], [1.0]]).round(4)
    array([[1.    , 0.6065, 0.6065],
           [0.6065, 1.    , 1.    ],
           [0.6065, 1.    , 1.    ]])
    """

    n_levels: Any
    length_scale: Any = parameter(1.0, vector=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.n_levels
        several = list(given) if isinstance(given, list | tuple) else [given]
        if not several or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in several):
            raise InputTypeError(f"Categorical(n_levels={given!r}): must be a whole number >= 1, or one per column.")
        object.__setattr__(self, "n_levels", tuple(several) if isinstance(given, list | tuple) else given)

    def of(self, pair: Pair) -> Any:
        scale: Any = self.length_scale
        if isinstance(scale, Tensor):
            scale = (2.0 * scale).sqrt()
            scale = scale if scale.ndim == 0 else scale.repeat_interleave(torch.tensor(self._widths(len(scale))))
        elif isinstance(scale, tuple):
            widths = self._widths(len(scale))
            scale = tuple((2.0 * l) ** 0.5 for l, width in zip(scale, widths, strict=True) for _ in range(width))
        else:
            scale = (2.0 * scale) ** 0.5
        return exp(-pair.warped(Levels(self.n_levels)).squared_distance(scale))

    def _widths(self, n_columns: int) -> list[int]:
        return [n + 1 for n in levels_of(self.n_levels, n_columns)]

    @property
    def properties(self) -> Properties:
        """It is a Gaussian of 0/1 columns: bounded and normalised; characteristic on the codes it knows."""
        return Properties(stationary=False, bounded=True, is_normalised=True, smoothness=None, universal=None)


@dataclass(frozen=True)
class Levels:
    """The warp from codes to 0/1 columns, the last of each code's for unknown levels.

    >>> Levels(2)(Points(torch.tensor([[0.0], [1.0], [7.0]]))).values
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """

    n_levels: Any

    def __call__(self, points: Points) -> Points:
        codes = vectors(points)
        columns = []
        for j, n in enumerate(levels_of(self.n_levels, codes.shape[1])):
            known = torch.arange(n, device=codes.device, dtype=codes.dtype)
            one = (codes[:, j : j + 1].detach() == known).to(codes.dtype)
            columns += [one, 1.0 - one.sum(1, keepdim=True)]
        return Points(torch.cat(columns, dim=1))


def levels_of(n_levels: Any, n_columns: int) -> tuple[int, ...]:
    """The number of levels of each column."""
    if isinstance(n_levels, int):
        return (n_levels,) * n_columns
    if len(n_levels) != n_columns:
        raise InputError(f"Categorical has {len(n_levels)} numbers of levels but X has {n_columns} columns.")
    return tuple(n_levels)
