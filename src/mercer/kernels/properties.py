"""What is known about a kernel, as data, and how it passes through sums, products, scalings and powers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

ANALYTIC = math.inf


@dataclass(frozen=True)
class Properties:
    """Facts about a kernel on R^d; None means not known.

    Attributes
    ----------
    stationary : bool or None
        k(x, z) depends on x - z alone.
    characteristic : bool or None
        The mean embedding tells any two distributions apart.
    universal : bool or None
        The RKHS is dense in the continuous functions on every compact set.
    bounded : bool or None
        k(x, x) is bounded.
    smoothness : float or None
        The nu for which the RKHS is as smooth as that of the Matern kernel of order nu, a Sobolev space of order nu +
        d/2; infinite for analytic kernels.
    contains_constants : bool or None
        Constant functions belong to the RKHS.
    controls_convergence : bool or None
        Convergence of the Stein discrepancy built on it implies weak convergence, in every dimension.
    is_normalised : bool or None
        k(x, x) = 1.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian().characteristic, Linear().characteristic, (Gaussian() + Linear()).bounded
    (True, False, False)
    >>> from mercer.kernels import Matern
    >>> Matern(2.5).path_smoothness, Matern(2.5).metrizes_weak_convergence, Linear().metrizes_weak_convergence
    (2, True, False)
    """

    stationary: bool | None = None
    characteristic: bool | None = None
    universal: bool | None = None
    bounded: bool | None = None
    smoothness: float | None = None
    contains_constants: bool | None = None
    controls_convergence: bool | None = None
    is_normalised: bool | None = None

    @property
    def path_smoothness(self) -> float | None:
        """How many times functions drawn from the process with this covariance are differentiable."""
        if self.smoothness is None or self.smoothness <= 0:
            return None
        return self.smoothness if self.smoothness == ANALYTIC else math.ceil(self.smoothness) - 1

    @property
    def metrizes_weak_convergence(self) -> bool | None:
        """The distance of mean embeddings goes to zero exactly where distributions converge weakly.

        Simon-Gabriel, Barp, Schölkopf and Mackey, *Metrizing weak convergence with maximum mean discrepancies*, 2023.
        """
        if self.characteristic is False:
            return False
        return True if self.characteristic and self.bounded and self.stationary else None


def of_sum(a: Properties, b: Properties) -> Properties:
    """Properties of k1 + k2: its RKHS contains both, and squared embedding distances add."""
    bounded = both(a.bounded, b.bounded)
    return Properties(
        stationary=_stationary(a, b),
        characteristic=True if bounded and (a.characteristic or b.characteristic) else None,
        universal=True if a.universal or b.universal else None,
        bounded=bounded,
        smoothness=rougher(a.smoothness, b.smoothness),
        contains_constants=True if a.contains_constants or b.contains_constants else None,
        is_normalised=False if a.is_normalised and b.is_normalised else None,
    )


def of_product(a: Properties, b: Properties) -> Properties:
    """Properties of k1 * k2: the spectral measure of a product of stationary kernels is a convolution."""
    spread = a.stationary and b.stationary and (a.characteristic or b.characteristic)
    return Properties(
        stationary=_stationary(a, b),
        characteristic=True if spread else None,
        universal=True if spread else None,
        bounded=b.bounded if a.is_normalised else a.bounded if b.is_normalised else _all(a.bounded, b.bounded),
        smoothness=rougher(a.smoothness, b.smoothness),
        contains_constants=_all(a.contains_constants, b.contains_constants),
        is_normalised=b.is_normalised if a.is_normalised else a.is_normalised if b.is_normalised else None,
    )


def of_scaled(inner: Properties, factor: Any) -> Properties:
    """Properties of factor * k: the same RKHS with another norm."""
    if factor == 1:
        return inner
    return replace(inner, is_normalised=False if inner.is_normalised else None)


def of_power(inner: Properties, exponent: int) -> Properties:
    """Properties of k ** exponent."""
    if exponent == 1:
        return inner
    squared = of_product(inner, inner)
    return replace(squared, bounded=inner.bounded, is_normalised=inner.is_normalised)


def both(a: bool | None, b: bool | None) -> bool | None:
    """Three-valued and: False wins, then not known."""
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def rougher(a: float | None, b: float | None) -> float | None:
    """The smaller smoothness."""
    return None if a is None or b is None else min(a, b)


def _all(a: bool | None, b: bool | None) -> bool | None:
    return True if a and b else None


def _stationary(a: Properties, b: Properties) -> bool | None:
    """Two non-stationary kernels can make a stationary one: sin x sin z + cos x cos z = cos(x - z)."""
    return None if a.stationary is False and b.stationary is False else both(a.stationary, b.stationary)
