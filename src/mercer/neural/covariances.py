"""Covariances of the outputs of an infinitely wide network for all pairs of images, and its tangent kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels.activations import Function, PiecewiseLinear, Smooth
from mercer.kernels.dials import TERMS
from mercer.kernels.directions import turn_of
from mercer.kernels.hermite import coefficients
from mercer.kernels.networks import mean_slope

Average = Callable[[Tensor, str], Tensor]
"""Means of covariances over places, for covariances of a form."""

FLAT, SAME, PAIRS = "flat", "same places", "pairs of places"
"""What covariances are known between: rows without places, the same place of two images, or any two places."""


@dataclass(frozen=True, eq=False)
class Covariances:
    """Those of two samples of images at one layer, S, and of the tangent kernel, T.

    Attributes
    ----------
    cross, tangent : Tensor
        S and T of all pairs of images, (n, m), and where images have places (n, m, H, W) or (n, m, H, W, H, W).
    left, right : Tensor
        S of each image with itself, without the other first dimension; NaN where it is not known.
    form, own : str
        `FLAT`, `SAME` or `PAIRS`: that of pairs of images, and of each image with itself, where the same places are
        enough unless activations follow a pooling layer.
    """

    cross: Tensor
    tangent: Tensor
    left: Tensor
    right: Tensor
    form: str
    own: str

    @classmethod
    def of_images(cls, x: Tensor, z: Tensor, form: str, own: str) -> Covariances:
        """Of images (n, channels, H, W) themselves, or of rows (n, d): means of products over channels."""
        if form == FLAT:
            S = x @ z.T / x.shape[1]
        else:
            S = torch.einsum("ncij,mcij->nmij" if form == SAME else "ncij,mckl->nmijkl", x, z) / x.shape[1]
        if own == PAIRS:
            left, right = (torch.einsum("ncij,nckl->nijkl", part, part) / x.shape[1] for part in (x, z))
        else:
            left, right = (part.square().mean(1) for part in (x, z))
        return cls(S, torch.zeros_like(S), left, right, form, own)

    def averaged(self, average: Average, flat: bool = False) -> Covariances:
        """After a layer without parameters that takes means of places."""
        cross, tangent = (average(part, self.form) for part in (self.cross, self.tangent))
        left, right = (average(part, self.own) for part in (self.left, self.right))
        return Covariances(cross, tangent, left, right, *((FLAT, FLAT) if flat else (self.form, self.own)))

    def weighted(self, average: Average, w: float, b: float) -> Covariances:
        """After a layer with weights of variance w / inputs and biases of variance b, which train."""
        found = self.averaged(average)
        cross, left, right = (w * part + b for part in (found.cross, found.left, found.right))
        return Covariances(cross, cross + w * found.tangent, left, right, self.form, self.own)

    def activated(self, phi: PiecewiseLinear | Smooth | Function) -> Covariances:
        """After an activation: F of S, and F' of S times T."""
        p, r = self._variances(self.left), self._variances(self.right)
        cross, slope = duals(phi, self.cross, *_ends(p.unsqueeze(1), r.unsqueeze(0), self.form))
        left, right = (duals(phi, S, *_ends(v, v, self.own))[0] for S, v in ((self.left, p), (self.right, r)))
        return Covariances(cross, slope * self.tangent, left, right, self.form, self.own)

    def __add__(self, other: Covariances) -> Covariances:
        """Of the sum of two networks with weights of their own."""
        if self.cross.shape != other.cross.shape or self.form != other.form:
            raise InputError("Residual: its layers must keep the shape of what they are added to.")
        names = "cross", "tangent", "left", "right"
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    def _variances(self, own: Tensor) -> Tensor:
        """Of each image at each place."""
        if self.own != PAIRS:
            return own
        places = own.shape[1:3]
        return own.flatten(3, 4).flatten(1, 2).diagonal(dim1=1, dim2=2).reshape(len(own), *places)


def _ends(p: Tensor, r: Tensor, form: str) -> tuple[Tensor, Tensor]:
    """Variances of both ends in the dimensions of covariances."""
    return (p[..., None, None], r[..., None, None, :, :]) if form == PAIRS else (p, r)


def duals(phi: PiecewiseLinear | Smooth | Function, q: Tensor, p: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """F = E phi(u) phi(v) and F' = E phi'(u) phi'(v) for covariances q of normal u, v with variances p and r.

    >>> from mercer.kernels.activations import RELU
    >>> one = torch.ones(1).double()
    >>> [part.round(decimals=4).item() for part in duals(RELU, 0.0 * one, one, one)]
    [0.1592, 0.25]
    """
    if isinstance(phi, Smooth):
        return phi.dual(q, p, r), phi.slope(q, p, r)
    over = _inverse_root(p) * _inverse_root(r)
    if isinstance(phi, PiecewiseLinear):
        size = p.sqrt() * r.sqrt()
        turn = turn_of((1.0 - q * over).clamp(min=0.0, max=2.0))
        slope = mean_slope(phi, turn)
        return size * (phi.kink * turn.sine + slope * turn.cosine), slope
    rho, left, right = (q * over).clamp(-1.0, 1.0), _series(phi, p), _series(phi, r)
    value, slope = torch.zeros_like(q), torch.zeros_like(q)
    for k in reversed(range(TERMS)):
        slope = slope * rho + value
        value = value * rho + left[..., k] * right[..., k]
    return value, slope * over


def _inverse_root(variance: Tensor) -> Tensor:
    """Zero for no variance."""
    positive = variance > 0
    return torch.where(positive, variance, 1.0).rsqrt() * positive


def _series(phi: Any, variance: Tensor) -> Tensor:
    return coefficients(phi, variance.flatten()).reshape(*variance.shape, TERMS)
