"""The part of a function in the RKHS that some points know."""

from __future__ import annotations

from typing import Any

import torch

from mercer.core.errors import InputTypeError
from mercer.functions import RKHSFunction
from mercer.solvers.decompose import pinv


def project(function: RKHSFunction, points: Any) -> RKHSFunction:
    r"""The orthogonal projection of a function onto the span of :math:`k(z_1, \cdot), \dots, k(z_m, \cdot)`,

    .. math:: P f = \sum_j c_j\, k(z_j, \cdot), \qquad c = K(Z, Z)^{+} f(Z):

    the function of smallest norm with the values of f at the points, and the nearest one that is made of them.
    Combinations of the points that vanish to rounding take no part.

    References: Schölkopf, Herbrich and Smola, *A generalized representer theorem*, 2001.

    >>> from mercer.kernels import Gaussian
    >>> f = RKHSFunction(Gaussian(), [[0.0], [0.1], [2.0]], [1.0, 1.0, -1.0])
    >>> g = project(f, [[0.0], [2.0]])
    >>> g.n_centres, round(f.distance(g), 4)
    (2, 0.0951)
    """
    if not isinstance(function, RKHSFunction):
        raise InputTypeError(f"project({type(function).__name__}): must be an RKHSFunction.")
    kernel, Z = function.kernel, function.kernel.points(points, "points")
    values = torch.as_tensor(function(points)).detach().to(torch.float64)
    K = torch.as_tensor(kernel(Z.values)).detach().to(torch.float64)
    inverse = pinv(K, "The kernel matrix of the points")
    coef = inverse @ values
    return RKHSFunction(kernel, Z, coef if isinstance(function.coef, torch.Tensor) else coef.cpu().numpy())
