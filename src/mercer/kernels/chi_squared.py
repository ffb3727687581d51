"""The kernel of histograms."""

from __future__ import annotations

from typing import Any

from mercer.formula.maths import exp, less
from mercer.kernels.base import Kernel
from mercer.kernels.dials import EMPTY
from mercer.kernels.nonnegative import NonNegative
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(names={"chi2": {}}, examples=[{}, {"gamma": 0.3}])
class ChiSquared(Kernel):
    r"""The kernel of the chi-squared distance of histograms,

    .. math:: k(x, z) = \exp\Big(-\gamma \sum_j \frac{(x_j - z_j)^2}{x_j + z_j}\Big), \qquad x, z \ge 0,

    where columns that are zero in both rows add nothing. Equal to scikit-learn's ``chi2_kernel``.

    References: Zhang, Marszalek, Lazebnik and Schmid, *Local features and kernels for classification of texture and
    object categories*, 2007.

    >>> ChiSquared()([[1.0, 0.0], [0.5, 0.5]]).round(4)
    array([[1.    , 0.5134],
           [0.5134, 1.    ]])
    """

    gamma: float = parameter(1.0)

    def of(self, pair: Pair) -> Any:
        total: Any = 0.0
        for j in range(pair.columns()):
            x, z = pair.ends(NonNegative(j, "ChiSquared"))
            both = x + z
            total = total + (x - z) ** 2 / (both + less(both, EMPTY))
        return exp(-self.gamma * total)

    @property
    def properties(self) -> Properties:
        return Properties(
            stationary=False,
            bounded=True,
            controls_convergence=False,
            is_normalised=True,
        )
