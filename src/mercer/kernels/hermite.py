r"""Smooth activations in Hermite polynomials, the way to E phi(u) phi(v) without a closed form.

With :math:`a_k(p) = E\, \varphi(\sqrt p\, g)\, h_k(g)` for normal g and normalised Hermite polynomials,
:math:`E\, \varphi(u) \varphi(v) = \sum_k a_k(p)\, a_k(r)\, \rho^k`, positive semi-definite wherever it is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from scipy.special import roots_hermitenorm
from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels.dials import MISSING, NODES, TERMS
from mercer.kernels.directions import Variance
from mercer.kernels.pair import call_on_rows, function_name


@dataclass(frozen=True)
class LayerVariance:
    """The variance before layer l, as a function of rows; `inverse_root` gives its power -1/2, zero at zero."""

    function: Callable[[Tensor], Any]
    weight: Any
    bias: Any
    first: Variance
    layer: int
    inverse_root: bool = False

    def __call__(self, rows: Tensor) -> Tensor:
        variance = self.first(rows.double())
        for _ in range(self.layer):
            variance = self.weight * coefficients(self.function, variance).square().sum(1) + self.bias
        if self.inverse_root:
            zero = variance == 0
            variance = variance.masked_fill(zero, 1.0).rsqrt().masked_fill(zero, 0.0)
        return variance.to(rows)


@dataclass(frozen=True)
class Coefficient:
    """a_k of the variance before a layer, as a function of rows."""

    variance: LayerVariance
    k: int

    def __call__(self, rows: Tensor) -> Tensor:
        return coefficients(self.variance.function, self.variance(rows.double()))[:, self.k].to(rows)


def coefficients(function: Callable[[Tensor], Any], variance: Tensor) -> Tensor:
    """a_k(p) for k below `TERMS`, a row for each variance p.

    >>> coefficients(lambda u: u, torch.tensor([4.0]).double())[0, :3].round(decimals=6).abs()
    tensor([0., 2., 0.], dtype=torch.float64)
    """
    nodes, weights, polynomials = (t.to(variance) for t in _quadrature())
    positive = variance > 0
    root = torch.where(positive, variance, 1.0).sqrt() * positive
    values = call_on_rows(function, root.unsqueeze(1) * nodes)
    if values.shape != (len(variance), len(nodes)):
        raise InputError(f"{function_name(function)} must keep the shape of its input; it made {tuple(values.shape)}.")
    found = (values * weights) @ polynomials
    _check_tail(function, variance.detach(), values.detach().square() @ weights, found.detach().square().sum(1))
    return found


@cache
def _quadrature() -> tuple[Tensor, Tensor, Tensor]:
    """Nodes and weights of the normal distribution, and the normalised Hermite polynomials at the nodes."""
    nodes, weights = map(torch.from_numpy, roots_hermitenorm(NODES))
    polynomials = [torch.ones_like(nodes), nodes]
    for k in range(1, TERMS - 1):
        polynomials.append((nodes * polynomials[k] - k**0.5 * polynomials[k - 1]) / (k + 1) ** 0.5)
    return nodes, weights / weights.sum(), torch.stack(polynomials, 1)


def _check_tail(function: Any, variance: Tensor, whole: Tensor, kept: Tensor) -> None:
    bad = (whole - kept > MISSING * whole).nonzero()
    if len(bad):
        i = int(bad[0])
        raise InputError(
            f"The Hermite series of {function_name(function)} misses {float(1 - kept[i] / whole[i]):.1%} of its "
            f"size at row {i}, where the variance before a layer is {float(variance[i]):.4g}; use smaller rows or a "
            f"smaller w_var."
        )
