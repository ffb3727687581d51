"""The Stein kernel of a discrete distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Kernel
from mercer.kernels.algebra import need_function, need_kernel
from mercer.kernels.pair import DensePair, Pair, row_values, vectors
from mercer.kernels.properties import Properties


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteSteinKernel(Kernel):
    r"""The Stein kernel of a distribution on :math:`\{0, \dots, q - 1\}^d` known up to its constant.

    With the cyclic shifts N_i (one up in coordinate i) and P_i (one down), :math:`s_i(x) = 1 - p(N_i x) / p(x)` and
    :math:`D_i f(x) = f(x) - f(P_i x)`,

    .. math:: k_p(x, y) = \sum_i s_i(x) s_i(y) k - s_i(x) D_i^y k - s_i(y) D_i^x k + D_i^x D_i^y k,

    whose mean under p is zero.

    Parameters
    ----------
    base : Kernel
        A kernel on the rows.
    log_prob : callable
        A function from rows (n, d) to log p, up to a constant.
    n_values : int
        Q, the number of values of a column.

    References
    ----------
    Yang, Liu, Rao and Neville, *Goodness-of-fit testing for discrete distributions via Stein discrepancy*,
    2018.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> k = DiscreteSteinKernel(Gaussian(1.0), lambda X: X[:, 0] * 0.7, 2)
    >>> p = torch.softmax(torch.tensor([0.0, 0.7], dtype=torch.float64), 0).numpy()
    >>> bool(abs(p @ k([[0.0], [1.0]])).max() < 1e-12)
    True
    """

    base: Kernel
    log_prob: Callable[..., Any]
    n_values: int = 2
    is_stein = True

    def __post_init__(self) -> None:
        need_kernel(self.base, "DiscreteSteinKernel", "base")
        need_function(self.log_prob, "DiscreteSteinKernel", "log_prob")
        if isinstance(self.n_values, bool) or not isinstance(self.n_values, int) or self.n_values < 2:
            raise InputError(f"DiscreteSteinKernel(n_values={self.n_values!r}): must be an integer >= 2.")

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, self._diag)

    def _gram(self, pair: DensePair) -> Tensor:
        x = self._checked(pair.x)
        z = x if pair.z is None else self._checked(pair.z)
        s_x, s_z = self._scores(x), self._scores(z)
        k = self._base(x, z)
        total = k * (s_x @ s_z.T)
        for i in range(x.shape[1]):
            before_x, before_z = self._moved(x, i, -1), self._moved(z, i, -1)
            at_z, at_x = self._base(x, before_z), self._base(before_x, z)
            total -= s_x[:, i : i + 1] * (k - at_z) + s_z[:, i] * (k - at_x)
            total += k - at_z - at_x + self._base(before_x, before_z)
        return total

    def _diag(self, points: Points) -> Tensor:
        rows = (points.take(slice(i, i + 1)) for i in range(len(points)))
        return torch.cat([self._gram(DensePair(row)).reshape(1) for row in rows])

    def _base(self, x: Tensor, z: Tensor) -> Tensor:
        return self.base.on(DensePair(Points(x), Points(z)))

    def _scores(self, x: Tensor) -> Tensor:
        here = self._log_prob(x)
        ratios = [torch.exp(self._log_prob(self._moved(x, i, 1)) - here) for i in range(x.shape[1])]
        return 1.0 - torch.stack(ratios, 1)

    def _log_prob(self, x: Tensor) -> Tensor:
        return row_values(self.log_prob, Points(x))

    def _moved(self, x: Tensor, column: int, step: int) -> Tensor:
        moved = x.clone()
        moved[:, column] = torch.remainder(x[:, column] + step, self.n_values)
        return moved

    def _checked(self, points: Points) -> Tensor:
        x = vectors(points)
        inside = (x == x.round()) & (x >= 0) & (x < self.n_values)
        if not bool(inside.all()):
            row, column = (~inside).nonzero()[0].tolist()
            raise InputError(
                f"Row {row}, column {column} is {float(x[row, column]):g}; expected an integer from 0 to "
                f"{self.n_values - 1}."
            )
        return x

    @property
    def properties(self) -> Properties:
        return Properties(stationary=False)
