"""Taylor features of the Gaussian kernel: monomials times a bell curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.blocks import new_matrix
from mercer.core.errors import InputError
from mercer.core.memory import readable, require, resolve_budget
from mercer.features.dials import TAYLOR_CACHE_NUMBERS
from mercer.kernels.pair import vectors


@dataclass(frozen=True, eq=False)
class TaylorMap:
    r"""The Taylor series of the Gaussian kernel about a centre, up to a degree. With u = (x - centre) / length_scale,

    .. math:: e^{-|u - v|^2/2} = e^{-|u|^2/2}\, e^{-|v|^2/2} \sum_{\alpha} \frac{u^\alpha v^\alpha}{\alpha!}, \qquad
              \varphi_\alpha(x) = e^{-|u|^2/2} \prod_j \frac{u_j^{\alpha_j}}{\sqrt{\alpha_j!}}, \quad
              |\alpha| \le D.

    In one dimension with :math:`g = 1/(2 \ell^2)` these are :math:`\psi_l(x) = e^{-g x^2} x^l` with the weights
    :math:`(2g)^l / l!`. There are :math:`\binom{d + D}{D}` features, and the error is at most
    :math:`(|u||v|)^{D+1}/(D+1)!`: good for few columns and rows within a few length scales of the centre.

    References: Cotter, Keshet and Srebro, *Explicit approximations of the Gaussian kernel*, 2011.

    >>> phi = TaylorMap.of(torch.tensor([2.0, 2.0]), degree=3)
    >>> phi.n_features, phi.exponents[3].tolist()
    (10, [2, 0])
    """

    scale: Tensor
    centre: Tensor
    degree: int

    def __post_init__(self) -> None:
        if self.scale.shape != self.centre.shape or self.scale.ndim != 1 or not len(self.scale) or self.degree < 0:
            raise InputError(
                f"A Taylor map needs a length scale and a centre for each column and degree >= 0, got shapes "
                f"{tuple(self.scale.shape)}, {tuple(self.centre.shape)} and degree={self.degree}."
            )

    @classmethod
    def of(cls, scale: Tensor, degree: int, centre: Tensor | None = None) -> TaylorMap:
        """The map for one length scale per column, about zero by default."""
        scale = scale.to(torch.float64)
        return cls(scale, torch.zeros_like(scale) if centre is None else centre.to(torch.float64), degree)

    @property
    def n_features(self) -> int:
        return math.comb(len(self.scale) + self.degree, self.degree)

    @property
    def exponents(self) -> Tensor:
        """The multi-indices alpha, of shape (n_features, d), by degree."""
        d = len(self.scale)
        powers = [torch.zeros(1, d, dtype=torch.long)]
        for parents, columns in self._steps():
            previous = torch.cat(powers)[parents]
            previous[torch.arange(len(columns)), columns] += 1
            powers.append(previous)
        return torch.cat(powers)

    def _steps(self) -> list[tuple[Tensor, Tensor]]:
        """For each degree from one: the features of one degree less to multiply, and the columns to multiply by.

        Columns never fall along a product, so that each monomial is made once.
        """
        d, steps, start, last = len(self.scale), [], 0, [0]
        for _ in range(self.degree):
            made = [(start + i, j) for i, first in enumerate(last) for j in range(first, d)]
            steps.append((torch.tensor([i for i, _ in made]), torch.tensor([j for _, j in made])))
            start, last = start + len(last), [j for _, j in made]
        return steps

    def __call__(self, points: Points) -> Tensor:
        """The features (n, p) of some rows, in the dtype and on the device of the rows."""
        x = vectors(points)
        if x.shape[1] != len(self.scale):
            raise InputError(f"X has {x.shape[1]} columns, but the feature map expects {len(self.scale)}.")
        needed = len(x) * self.n_features * x.dtype.itemsize
        advice = f"Use a lower degree: there are {self.n_features:,} monomials for each row."
        require(needed, resolve_budget(None, x.device), f"{readable(needed)} of Taylor features", advice)
        out = new_matrix(len(x), self.n_features, x.dtype, x.device)
        step = max(1, TAYLOR_CACHE_NUMBERS // self.n_features)
        table = [(a.to(x.device), b.to(x.device)) for a, b in self._steps()]
        root = self.exponents.to(torch.float64).add_(1.0).lgamma().sum(1).mul_(-0.5).exp_().to(x.device)
        for start in range(0, len(x), step):
            out[start : start + step] = self._values(x[start : start + step].detach(), table) * root
        return out

    def _values(self, x: Tensor, table: list[tuple[Tensor, Tensor]]) -> Tensor:
        u = (x.to(torch.float64) - self.centre.to(x.device)) / self.scale.to(x.device)
        values = u.new_empty(len(u), self.n_features)
        values[:, :1] = u.square().sum(1, keepdim=True).mul_(-0.5).exp_()
        done = 1
        for parents, columns in table:
            torch.mul(values[:, parents], u[:, columns], out=values[:, done : done + len(parents)])
            done += len(parents)
        return values
