"""The backward error of a solve, judged against the matrix although that was overwritten by its factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from mercer.solvers.dials import PROBES, UNSOLVED
from mercer.solvers.scaling import column_norms, powers_of_two


@dataclass(frozen=True, eq=False)
class BackwardError:
    r"""Estimates the normwise backward error of M x = b from a random sketch of M

    .. math:: \eta = \frac{\|b - M x\|}{\|M\| \|x\| + \|b\|}, \qquad
              \|r\| \approx \|\Omega^T r\|, \quad \Omega^T r = \Omega^T b - (\Omega^T M) x,

    with 32 columns of random signs in Omega: within a factor 2 of the truth but once in a million. The matrix itself
    is not kept.

    References: Rigal and Gaches, *On the compatibility of a given solution with the data of a linear system*, 1967;
    Achlioptas, *Database-friendly random projections*, 2003.

    >>> M = torch.eye(3, dtype=torch.float64)
    >>> error = BackwardError.of(M)
    >>> error(torch.ones(3, 1).double(), torch.ones(3, 1).double()).item()
    0.0
    """

    probes: Tensor
    image: Tensor
    norm: float

    @classmethod
    def of(cls, M: Tensor) -> BackwardError:
        """Sketch a symmetric matrix; its largest absolute row sum bounds its norm."""
        probes = _probes(len(M)).to(M)
        norm = float(torch.linalg.vector_norm(M, ord=1, dim=1).max())
        return cls(probes.T, probes.T @ M, norm)  # M is symmetric; few columns are quicker on the left

    def __call__(self, x: Tensor, b: Tensor, shift: float | Tensor = 0.0) -> Tensor:
        """The backward error of (M + shift I) x = b, one for each column; infinite where x is not finite."""
        return self.both(x, b, shift)[0]

    def both(self, x: Tensor, b: Tensor, shift: float | Tensor = 0.0) -> tuple[Tensor, Tensor]:
        """The backward error, and |b - (M + shift I) x| / |b|, one for each column."""
        unit = powers_of_two(b)
        x, b = x / unit, b / unit
        shift = shift.to(x) if isinstance(shift, Tensor) else float(shift)
        size = abs(shift) if isinstance(shift, float) else shift.abs()
        residual, length = (self.probes @ (b - shift * x) - self.image @ x).norm(dim=0), b.norm(dim=0)
        scale = (self.norm + size) * column_norms(x) + length
        return _relative(residual, scale), _relative(residual, length)


@lru_cache(maxsize=1)
def _probes(n: int) -> Tensor:
    """Random signs (n, 32) over the root of 32, the same for every matrix of n rows."""
    signs = torch.randint(0, 2, (n, PROBES), generator=torch.Generator().manual_seed(0))
    return (signs.to(torch.float64) * 2 - 1) / PROBES**0.5


def told(residual: float) -> str:
    """What to say of a residual, relative to b, that is too large although the backward error is small.

    >>> told(1e-5), told(0.3)[:51]
    ('', 'alpha is below the rounding errors of the Gram matr')
    """
    if residual <= UNSOLVED:
        return ""
    return (
        f"alpha is below the rounding errors of the Gram matrix, which change predictions by {residual:.0e} of the "
        "norm of the targets: use a larger alpha, or centre and scale the features"
    )


def _relative(size: Tensor, scale: Tensor) -> Tensor:
    """The share of a size that is zero where the scale is; infinite where one is no number."""
    ratio = size / scale.clamp(min=torch.finfo(scale.dtype).tiny)
    return ratio.nan_to_num(torch.inf, torch.inf)
