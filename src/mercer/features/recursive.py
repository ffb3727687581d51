"""Recursive feature machines: ridge regression, and the directions in which it varies, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from mercer.features.dials import STEP_RIDGE
from mercer.features.gradients import gradient_products, metric_of, values_and_slopes, values_at
from mercer.features.lens import Lens
from mercer.kernels import Kernel
from mercer.solvers.factor import factorise


@dataclass(frozen=True, eq=False)
class Round:
    """A lens, the rows and their kernel matrix seen through it, and their targets."""

    kernel: Kernel
    lens: Lens
    rows: Tensor
    values: Tensor
    targets: Tensor
    weights: Tensor
    known: dict[float, Tensor] = field(default_factory=dict)

    def coefficients(self, alpha: float) -> Tensor:
        """(K + alpha W^-1)^-1 Y, factorised once for each alpha."""
        if alpha not in self.known:
            self.known[alpha] = self._solved(alpha)
        return self.known[alpha]

    def _solved(self, alpha: float) -> Tensor:

        def system() -> Tensor:
            matrix = self.values.clone()
            matrix.diagonal().add_(alpha / self.weights)
            return matrix

        return factorise(system, what="The kernel matrix", advice="use a larger alpha").solve(self.targets)

    def at(self, rows: Tensor, coef: Tensor) -> Tensor:
        """The fitted functions at other rows, as they were before the lens."""
        return values_at(self.kernel, self.lens.rows(rows), self.rows) @ coef


def rounds(
    kernel: Kernel, lens: Lens, rows: Tensor, targets: Tensor, weights: Tensor, *, diagonal: bool, count: int
) -> Iterator[Round]:
    r"""The first lens and `count` better ones, each with

    .. math:: M \leftarrow M^{1/2} \left(\frac{1}{n} \sum_i g_i g_i^\top\right) M^{1/2},

    for the gradients g of a ridge regression at the rows seen through the lens before: the average of
    :math:`\nabla f \nabla f^\top`. It ends where a function is flat.

    References: Radhakrishnan, Beaglehole, Pandit and Belkin, *Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models*, 2024.
    """
    for number in range(count + 1):
        seen = lens.rows(rows)
        values, slopes = values_and_slopes(kernel, seen)
        found = Round(kernel, lens, seen, values, targets, weights)
        yield found
        if number == count:
            return
        coef = found.coefficients(STEP_RIDGE * float(values[0, 0]))
        products = gradient_products(slopes, seen, coef, weights, diagonal=diagonal, metric=metric_of(kernel))
        matrix = _through(lens.root, products)
        if not float((matrix if diagonal else matrix.diagonal()).max()) > 0.0:
            return
        lens = lens.with_matrix(matrix)


def _through(root: Tensor, products: Tensor) -> Tensor:
    """The products of gradients by the columns, from those by what is seen through a lens."""
    if products.ndim == 1:
        return root.square() * products
    return root.unsqueeze(1) * products * root if root.ndim == 1 else root @ products @ root
