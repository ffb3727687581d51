r"""Average products of the gradients of a function :math:`f = \sum_j c_j k(z_j, \cdot)` of the distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp
from mercer.core.errors import InputError
from mercer.kernels import Kernel
from mercer.kernels.distances import l1_distances, squared_distances
from mercer.kernels.pair import DensePair, Pair


class Distances(Pair):
    """All pairs of two samples of which a kernel may ask the distance alone: the squared or the l1 distance."""

    def __init__(self, found: Tensor, metric: str) -> None:
        self.found, self.metric = found, metric

    def squared_distance(self, length_scale: Any = 1.0, *, exact: bool = False) -> Tensor:
        return self.found / self._scale(length_scale, "l2").square()

    def l1_distance(self, length_scale: Any = 1.0) -> Tensor:
        return self.found / self._scale(length_scale, "l1")

    def _scale(self, length_scale: Any, metric: str) -> Tensor:
        scale = torch.as_tensor(length_scale, dtype=torch.float64)
        if scale.ndim:
            raise _refused("one length scale for all columns, which learn their own weights")
        if metric != self.metric:
            self._other()
        return scale

    def same(self) -> Tensor:
        return torch.zeros_like(self.found)

    def warped(self, warp: Warp) -> NoReturn:
        raise _refused("no other change of the columns")

    def _other(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused("a kernel of the distance |x - z|, such as Laplace, Gaussian or ExponentialPower")

    squared_sum = inner = ends = _other

    def columns(self) -> NoReturn:
        self._other()

    def matrix(self, gram: Callable[[DensePair], Tensor], diag: Callable[[Points], Tensor]) -> NoReturn:
        self._other()


def _refused(needed: str) -> InputError:
    return InputError(f"Recursive feature machines need {needed}.")


def metric_of(kernel: Kernel) -> str:
    """The distance of which a kernel is a function, "l2" or "l1"."""
    return str(getattr(kernel, "metric", "l2"))


def values_and_slopes(kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor]:
    """k and its derivative by the squared distance, or by the l1 distance, for all pairs of rows."""
    found = _distances(kernel, x, x).fill_diagonal_(0.0).requires_grad_()
    values = kernel.of(Distances(found, metric_of(kernel)))
    (slopes,) = torch.autograd.grad(values.sum(), found)
    return values.detach(), slopes


def values_at(kernel: Kernel, x: Tensor, z: Tensor) -> Tensor:
    """k for all pairs of two samples."""
    values: Tensor = kernel.of(Distances(_distances(kernel, x, z), metric_of(kernel)))
    return values


def _distances(kernel: Kernel, x: Tensor, z: Tensor) -> Tensor:
    return l1_distances(x, z) if metric_of(kernel) == "l1" else squared_distances(x, z, exact=True)


def gradient_products(
    slopes: Tensor, x: Tensor, coef: Tensor, weights: Tensor, *, diagonal: bool, metric: str = "l2"
) -> Tensor:
    r"""The average of the products of the gradients at rows, summed over t functions,

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \nabla f(x_i) \nabla f(x_i)^\top, \qquad
        \nabla f(x_i) = 2 \sum_j c_j k'_{ij} (x_i - x_j),

    of shape (d, d), or only the diagonal, (d,), from products of matrices of size (n, n) and (n, d). For l1 distances
    it is :math:`\nabla f(x_i) = \sum_j c_j k'_{ij} \operatorname{sign}(x_i - x_j)`, column by column.

    >>> x = torch.tensor([[0.0], [1.0]]).double()
    >>> gradient_products(torch.ones(2, 2).double(), x, torch.ones(2, 1), torch.ones(2), diagonal=True)
    tensor([4.], dtype=torch.float64)
    """
    total: Any = 0.0
    share = (weights / weights.sum()).to(x).unsqueeze(1)
    for column in coef.to(x).T:
        pull = slopes * column
        gradient = _by_signs(pull, x) if metric == "l1" else 2.0 * (pull.sum(1, keepdim=True) * x - pull @ x)
        total = total + ((share * gradient.square()).sum(0) if diagonal else (share * gradient).mT @ gradient)
    return torch.as_tensor(total)


def _by_signs(pull: Tensor, x: Tensor) -> Tensor:
    signed = torch.empty_like(pull)
    found = torch.empty_like(x)
    for column, sums in zip(x.T, found.T, strict=True):
        torch.sum(torch.sub(column.unsqueeze(1), column, out=signed).sign_().mul_(pull), 1, out=sums)
    return found
