"""The cosine of the angle between two rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair, vectors
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(names={"cosine": {}}, examples=[{}])
class Cosine(Kernel):
    r"""The cosine of the angle between two rows,

    .. math:: k(x, z) = \frac{x \cdot z}{\|x\| \, \|z\|}, \qquad k(0, z) = 0.

    For counts of words and other rows whose length says little. Equal to scikit-learn's ``cosine_similarity``.

    References: Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, 2008, section 6.3.

    >>> Cosine()([[1.0, 0.0], [3.0, 3.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    def of(self, pair: Pair) -> Any:
        return pair.warped(on_sphere).inner()

    @property
    def properties(self) -> Properties:
        """A row of zeros has k(x, x) = 0, so that the kernel is not normalised."""
        return Properties(
            stationary=False,
            characteristic=False,
            universal=False,
            bounded=True,
            contains_constants=False,
            controls_convergence=False,
        )


def on_sphere(points: Points) -> Points:
    """Rows divided by their lengths; rows of zeros stay."""
    x = vectors(points)
    size = x.detach().abs().amax(1, keepdim=True) if x.shape[1] else x.new_ones(len(x), 1)
    scaled = x / size.masked_fill(size == 0, 1.0)  # squares neither overflow nor vanish
    return Points(scaled / _lengths(scaled), points.names)


def _lengths(x: Tensor) -> Tensor:
    squares = x.square().sum(1, keepdim=True)
    return squares.masked_fill(squares == 0, 1.0).sqrt()
