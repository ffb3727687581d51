"""A kernel with the top of its spectrum flattened: what lets EigenPro take long steps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.decompose import eigh
from mercer.solvers.products import Products


@dataclass(frozen=True, eq=False)
class Flattened:
    r"""The kernel with its q top eigenvalues brought down to the next one, from a subsample S of s rows,

    .. math:: k_P(x, z) = k(x, z) - \sum_j \Bigl(1 - \frac{\sigma_{q+1}}{\sigma_j}\Bigr) \psi_j(x)\, \psi_j(z), \qquad
              \psi_j = \sigma_j^{-1/2} \sum_{i \in S} v_{ij}\, k(x_i, \cdot).

    With a ridge it is sigma + alpha s/n that is brought down. `peak` is the largest k_P(x, x) and `slope` its largest
    eigenvalue divided by the number of rows.
    """

    rows: Tensor
    values: Tensor  # (q + 1,)
    vectors: Tensor
    images: Tensor  # (q, n): the kernel rows of S in the basis of the eigenvectors
    damping: Tensor
    peak: float
    slope: float

    @classmethod
    def of(cls, products: Products, rows: Tensor, train: Tensor, q: int, alpha: float = 0.0) -> Flattened:
        core = torch.cat([products.rows(part)[:, rows] for part in rows.split(products.rows_at_once)])
        values, vectors = eigh((core + core.T) / 2)
        del core
        values, vectors = values.flip(0), vectors.flip(1)
        if float(values[-1]) < -(products.precision**0.5) * float(values[0].clamp(min=0.0)):
            raise NotPositiveDefiniteError(
                f"The Gram matrix of {len(rows)} rows has the eigenvalue {float(values[-1]):.3g}: the kernel is not "
                "positive semi-definite. Test it with mercer.testing.check_kernel."
            )
        floor = len(rows) * products.precision * float(values[0].clamp(min=0.0))
        q = max(0, min(q, int((values > floor).sum()) - 1))
        values, vectors = values[: q + 1].clamp(min=floor), vectors[:, :q].clone()
        images = torch.zeros(q, products.n, dtype=torch.float64, device=products.device)
        for part in torch.arange(len(rows), device=rows.device).split(products.rows_at_once):
            images.addmm_(vectors[part].T, products.rows(rows[part]))
        return cls(rows, values, vectors, images, torch.empty(0), 0.0, 0.0).cut(q, products, train, alpha)

    def cut(self, q: int, products: Products, train: Tensor, alpha: float) -> Flattened:
        """The same with the first q eigenpairs alone."""
        top, following, images = self.values[:q], float(self.values[q]), self.images[:q]
        ridge = alpha * len(self.rows) / len(train)
        damping = (1.0 - (following + ridge) / (top + ridge)) / top
        left = products.diag.clone()
        for weight, image in zip(damping.tolist(), images, strict=True):
            left.addcmul_(image, image, value=-weight)
        peak, slope = float(left[train].max()), following / len(self.rows)
        return Flattened(self.rows, self.values[: q + 1], self.vectors[:, :q], images, damping, peak, slope)

    @property
    def q(self) -> int:
        return len(self.values) - 1

    def critical_batch(self, alpha: float, n: int) -> float:
        """The batch size up to which twice the batch needs half the steps."""
        steepest = self.slope + alpha / n
        return (self.peak + alpha) / steepest if steepest > 0 else float(n)

    def correction(self, batch: Tensor, g: Tensor) -> Tensor:
        """What a step along sum_i g_i k(x_i, .) over the batch is too long by, as coefficients of the subsample."""
        return self.vectors @ (self.damping.unsqueeze(1) * (self.images[:, batch] @ g))
