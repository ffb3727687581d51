"""What is known about a kernel, as data, and how it passes through sums and products."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Properties:
    """Facts about a kernel on R^d; None means not known.

    Attributes
    ----------
    stationary : k(x, z) depends on x - z alone.
    characteristic : the mean embedding tells any two distributions apart.
    universal : the RKHS is dense in the continuous functions on every compact set.
    bounded : k(x, x) is bounded.
    smoothness : the nu for which the RKHS functions have nu derivatives in the Sobolev sense (nu + d/2 in all);
        infinite for analytic kernels.
    contains_constants : constant functions belong to the RKHS.
    controls_convergence : convergence of the Stein discrepancy built on it implies weak convergence.
    is_normalised : k(x, x) = 1.
    """

    stationary: bool | None = None
    characteristic: bool | None = None
    universal: bool | None = None
    bounded: bool | None = None
    smoothness: float | None = None
    contains_constants: bool | None = None
    controls_convergence: bool | None = None
    is_normalised: bool | None = None


def of_sum(a: Properties, b: Properties) -> Properties:
    """Properties of k1 + k2."""
    bounded = both(a.bounded, b.bounded)
    return Properties(
        stationary=both(a.stationary, b.stationary),
        characteristic=either(a.characteristic, b.characteristic) if bounded else None,
        universal=True if a.universal or b.universal else None,
        bounded=bounded,
        smoothness=rougher(a.smoothness, b.smoothness),
        contains_constants=True if a.contains_constants or b.contains_constants else None,
        is_normalised=False if a.is_normalised and b.is_normalised else None,
    )


def of_product(a: Properties, b: Properties) -> Properties:
    """Properties of k1 * k2: the spectral measure of a product of stationary kernels is a convolution."""
    stationary = both(a.stationary, b.stationary)
    spread = stationary and (a.characteristic or b.characteristic)
    return Properties(
        stationary=stationary,
        characteristic=True if spread else None,
        universal=True if spread else None,
        bounded=True if a.bounded and b.bounded else None,
        smoothness=rougher(a.smoothness, b.smoothness),
        contains_constants=True if a.contains_constants and b.contains_constants else None,
        is_normalised=True if a.is_normalised and b.is_normalised else None,
    )


def both(a: bool | None, b: bool | None) -> bool | None:
    """Three-valued and: False wins, then not known."""
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    """Three-valued or for properties that a sum may have though neither term does."""
    return True if a or b else None


def rougher(a: float | None, b: float | None) -> float | None:
    """The smaller smoothness."""
    return None if a is None or b is None else min(a, b)


ANALYTIC = math.inf
