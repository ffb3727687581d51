"""The parts of a process whose kernel is a sum."""

from __future__ import annotations

from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Kernel
from mercer.kernels.algebra import Scaled, Sum
from mercer.processes.means import FittedMean, ZeroMean
from mercer.processes.posterior import Posterior


def terms_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernels that a kernel is a sum of, from left to right; itself where it is none.

    >>> from mercer.kernels import Gaussian, Linear
    >>> terms_of(2.0 * (Gaussian(1.0) + Linear()))
    (2.0 * Gaussian(length_scale=1.0), 2.0 * Linear(bias=0.0))
    """
    if isinstance(kernel, Sum):
        return terms_of(kernel.k1) + terms_of(kernel.k2)
    if isinstance(kernel, Scaled) and isinstance(kernel.kernel, Sum):
        return tuple(term if kernel.factor == 1 else kernel.factor * term for term in terms_of(kernel.kernel))
    return (kernel,)


class Component(Posterior):
    r"""One part of a process with the kernel :math:`k = \sum_j k_j`, given the data,

    .. math:: \mu_j(x) = k_j(x, D)\, a, \qquad c_j(x, x') = k_j(x, x') - k_j(x, D)\, A^{-1} k_j(D, x').

    The means of all parts and the mean function add up to the mean of the process.

    References: Duvenaud, *Automatic model construction with Gaussian processes*, 2014, section 2.4.5.
    """

    def __init__(self, whole: Posterior, term: Kernel) -> None:
        self.whole, self.kernel = whole, term
        self.noise, self.data, self.weights, self.place = whole.noise, whole.data, whole.weights, whole.place
        self.report = whole.report
        self.mean_function = FittedMean(ZeroMean(), whole.weights.new_zeros(0, whole.weights.shape[1]))

    @property
    def centres(self) -> Points:
        return self.whole.centres

    @property
    def held_bytes(self) -> int:
        return self.whole.held_bytes

    def solve(self, B: Tensor) -> Tensor:
        return self.whole.solve(B)

    def explained(self, cross: Tensor) -> Tensor:
        return self.whole.explained(cross)

    def explained_covariance(self, cross: Tensor) -> Tensor:
        return self.whole.explained_covariance(cross)

    def log_marginal_likelihood(self) -> float:
        """That of the data under the whole process."""
        return self.whole.log_marginal_likelihood()
