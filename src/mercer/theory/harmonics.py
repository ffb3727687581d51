"""Spherical harmonics: how many there are of each degree, and the polynomials that sum them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from mercer.theory.arguments import check


def sphere_harmonics_dimension(d: int, k: int) -> int:
    r"""The number of linearly independent spherical harmonics of degree k on the unit sphere in d dimensions,

    .. math:: B(d, k) = \frac{2k + d - 2}{k} \binom{k + d - 3}{k - 1}, \qquad B(d, 0) = 1,

    about :math:`d^k / k!`. It is how many rows it takes to learn that degree.

    References: Efthimiou and Frye, *Spherical Harmonics in p Dimensions*, 2014.

    >>> [sphere_harmonics_dimension(3, k) for k in range(4)]
    [1, 3, 5, 7]
    """
    check(d=d, k=k)
    return math.comb(k + d - 1, k) - (math.comb(k + d - 3, k - 2) if k >= 2 else 0)


def log_harmonics_dimensions(d: int, kmax: int) -> np.ndarray:
    """log B(d, k) for k up to kmax, where the numbers themselves may be too large for a float."""
    k = np.arange(1, kmax + 1)
    logs = np.log(2 * k + d - 2) - np.log(k) + gammaln(k + d - 2) - gammaln(k) - gammaln(d - 1)
    return np.concatenate([[0.0], logs]) if d > 2 else np.concatenate([[0.0], np.full(kmax, np.log(2.0))])


def legendre(d: int, kmax: int, t: Any) -> np.ndarray:
    r"""The polynomials P_0 .. P_kmax(t), orthogonal for the weight of the sphere and one at t = 1; first axis k,

    .. math:: (k + d - 2) P_{k+1}(t) = (2k + d - 2)\, t P_k(t) - k P_{k-1}(t).

    >>> float(legendre(3, 2, 0.5)[2])  # Legendre: (3 t^2 - 1) / 2
    -0.125
    """
    check(d=d, kmax=kmax)
    t = np.asarray(t, dtype=float)
    P = np.empty((kmax + 1, *t.shape))
    P[0] = 1.0
    if kmax:
        P[1] = t
    for k in range(1, kmax):
        P[k + 1] = ((2 * k + d - 2) * t * P[k] - k * P[k - 1]) / (k + d - 2)
    return P
