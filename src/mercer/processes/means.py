"""Mean functions: what a Gaussian process returns to far from the data."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels.pair import row_values, vectors
from mercer.processes.dials import LARGEST, NEGLIGIBLE
from mercer.solvers.decompose import pinv

NORMAL = "The normal matrix of the mean function"

KNOWN = '"zero", "constant", "linear", "auto", a number or a function of rows'


class Mean(Protocol):
    r"""A function :math:`m(x) = o(x) + h(x) \cdot \beta` with given o and h, and coefficients to be found."""

    def offset(self, X: Points) -> Tensor | None:
        """o at m points, of shape (m, 1); None for zero."""

    def basis(self, X: Points) -> Tensor | None:
        """h at m points, of shape (m, p); None where there is nothing to find."""


@dataclass(frozen=True)
class ZeroMean:
    """m(x) = 0."""

    def offset(self, X: Points) -> Tensor | None:
        return None

    def basis(self, X: Points) -> Tensor | None:
        return None


@dataclass(frozen=True)
class ConstantMean:
    """m(x) = b; found from the data, or given."""

    value: float | None = None

    def offset(self, X: Points) -> Tensor | None:
        return None if self.value is None else torch.full_like(_ones(X), self.value)

    def basis(self, X: Points) -> Tensor | None:
        return _ones(X) if self.value is None else None


@dataclass(frozen=True, eq=False)
class LinearMean:
    """m(x) = b_0 + b . (x - centre) / scale, with a column scaled by its deviation so that coefficients are alike.

    A column that is constant but for rounding has scale zero and no part.
    """

    centre: Tensor
    scale: Tensor

    @classmethod
    def of(cls, X: Points) -> LinearMean:
        """With centre and scale of these points."""
        x = vectors(X).detach().to("cpu", torch.float64)
        spread, size = x.std(0, correction=0), x.abs().amax(0)
        return cls(x.mean(0), torch.where(spread > NEGLIGIBLE * size, spread, 0.0))

    def offset(self, X: Points) -> Tensor | None:
        return None

    def basis(self, X: Points) -> Tensor | None:
        x = vectors(X).to(torch.float64)
        scale = self.scale.to(x)
        return torch.cat([_ones(X), torch.where(scale > 0, (x - self.centre.to(x)) / scale, 0.0)], dim=1)


@dataclass(frozen=True)
class FunctionMean:
    """A given function from rows (n, d) to numbers (n,)."""

    function: Callable[..., Any]

    def offset(self, X: Points) -> Tensor | None:
        return row_values(self.function, X).to(torch.float64).unsqueeze(1)

    def basis(self, X: Points) -> Tensor | None:
        return None


def as_mean(mean: Any, X: Points) -> Mean:
    """The mean function that a name, a number or a function stands for, for data like X.

    >>> as_mean("constant", Points(torch.zeros(2, 1)))
    ConstantMean(value=None)
    """
    if isinstance(mean, str):
        if mean == "zero":
            return ZeroMean()
        if mean == "constant":
            return ConstantMean()
        if mean == "linear":
            return _linear(X)
        raise InputError(f"mean={mean!r}: give {KNOWN}.")
    if isinstance(mean, numbers.Real) and not isinstance(mean, bool):
        if not math.isfinite(mean):
            raise InputError(f"mean={mean!r}: must be finite.")
        return ConstantMean(float(mean))
    if isinstance(mean, ZeroMean | ConstantMean | LinearMean | FunctionMean):
        return mean
    if callable(mean):
        return FunctionMean(mean)
    raise InputTypeError(f"mean={mean!r}: give {KNOWN}.")


def _linear(X: Points) -> LinearMean:
    n, d = vectors(X).shape
    if n < d + 2:
        raise InputError(
            f'mean="linear" has {d + 1} coefficients for {d} features, too many for {n} rows; use mean="constant".'
        )
    return LinearMean.of(X)


@dataclass(frozen=True, eq=False)
class FittedMean:
    """A mean function with its coefficients (p, t)."""

    mean: Mean
    coef: Tensor

    def __call__(self, X: Points) -> Tensor:
        """Values of shape (m, t), float64, where the points are."""
        basis, offset = self.mean.basis(X), self.mean.offset(X)
        if basis is not None:
            values = basis @ self.coef.to(basis)
        else:
            values = _ones(X).expand(len(X), self.coef.shape[1]) * 0.0
        return values if offset is None else values + offset


@dataclass(frozen=True, eq=False)
class Centring:
    r"""A mean function at the rows of the data: what the values lose before a Gaussian process explains them.

    With A the covariance of the values, the coefficients that maximise their likelihood are those of generalised least
    squares,

    .. math:: \beta = (H^T A^{-1} H)^{-1} H^T A^{-1} (y - o), \qquad a = A^{-1} (y - o - H \beta).

    Because they maximise it, the derivative of the likelihood in any other parameter is the one at fixed
    coefficients. Directions in which H is degenerate get no part.

    Attributes
    ----------
    mean : Mean
        The function.
    R : Tensor
        Y - o, of shape (n, t).
    H : Tensor
        (n, p), p may be zero.

    References
    ----------
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 2.7.
    """

    mean: Mean
    R: Tensor
    H: Tensor

    @classmethod
    def of(cls, mean: Mean, X: Points, Y: Tensor) -> Centring:
        """For values Y (n, t) at X."""
        offset, basis = mean.offset(X), mean.basis(X)
        H = Y.new_empty(len(Y), 0) if basis is None else basis.to(Y)
        R = Y if offset is None else Y - offset.to(Y)
        largest = float(R.detach().abs().max())
        if not largest <= LARGEST:
            what = "y" if offset is None else "y less mean="
            raise InputError(
                f"The largest value of {what} is {largest:.0e}, whose square float64 cannot hold: rescale it."
            )
        return cls(mean, R, H)

    @property
    def right_hand_sides(self) -> Tensor:
        """[R H], of shape (n, t + p): what A^-1 is to be applied to."""
        return torch.cat([self.R, self.H], dim=1)

    @property
    def least_squares(self) -> Tensor:
        """Coefficients (p, t) that bring y - o near zero: squares of what is left lose no digits to a large mean."""
        scale = self.H.norm(dim=0).clamp(min=torch.finfo(self.H.dtype).tiny)
        H = self.H / scale
        result: Tensor = pinv(H.mT @ H, NORMAL) @ (H.mT @ self.R) / scale.unsqueeze(1)
        return result

    @property
    def shifted(self) -> Tensor:
        """[R - H b, H] with these coefficients b, (n, t + p)."""
        return torch.cat([self.R - self.H @ self.least_squares, self.H], dim=1)

    def fit(self, solved: Tensor) -> tuple[FittedMean, Tensor, Tensor]:
        """The mean, the residuals y - m and the weights a, from ``solved = A^-1 [R H]``."""
        t = self.R.shape[1]
        S_R, S_H = solved[:, :t], solved[:, t:]
        if not self.H.shape[1]:
            return FittedMean(self.mean, self.R.new_empty(0, t)), self.R, S_R
        coef = self.inverse_normal(S_H) @ (S_H.mT @ self.R)
        return FittedMean(self.mean, coef), self.R - self.H @ coef, S_R - S_H @ coef

    def inverse_normal(self, S_H: Tensor) -> Tensor:
        """(H^T A^-1 H)^-1, from ``S_H = A^-1 H``."""
        M = self.H.mT @ S_H
        scale = M.diagonal().clamp(min=torch.finfo(M.dtype).tiny).rsqrt()
        unit = scale.unsqueeze(1) * (M + M.mT) * (0.5 * scale)
        return scale.unsqueeze(1) * pinv(unit, NORMAL, rtol=NEGLIGIBLE) * scale


def _ones(X: Points) -> Tensor:
    like = X.values if X.is_tensor else torch.empty(0)
    return torch.ones(len(X), 1, dtype=torch.float64, device=like.device)
