"""Nyström features: the kernel of a few landmarks, made orthonormal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels.base import Kernel
from mercer.operators import gram
from mercer.solvers.whitening import rounding_of, whitening


@dataclass(frozen=True, eq=False)
class NystromMap:
    r"""Coordinates of k(x, .) in an orthonormal basis of the span of the kernels at landmarks Z,

    .. math:: \varphi(x) = E^T k(Z, x), \qquad E^T K_{ZZ} E = I, \qquad
              \varphi(x) \cdot \varphi(z) = k(x, Z)\, K_{ZZ}^{+}\, k(Z, z).

    Inner products with a landmark are the kernel exactly, and the others are those of the projections.

    Attributes
    ----------
    kernel, landmarks : Kernel, str or callable and Points
        K and Z.
    basis : Tensor
        E, of shape (m, r) for the rank r of the landmarks' Gram matrix, in float64. `of` makes it lower triangular:
        feature j needs the landmarks from j on, which saves up to half of the product.
    dtype : torch.dtype
        Of kernel values and products.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Z = Points(torch.tensor([[0.0], [1.0], [1.0]]).double())
    >>> phi = NystromMap.of(Gaussian(), Z)
    >>> phi.n_features, torch.allclose(phi(Z) @ phi(Z).T, Gaussian()(Z.values))
    (2, True)
    """

    kernel: Kernel
    landmarks: Points
    basis: Tensor
    dtype: torch.dtype = torch.float64
    device: torch.device | None = None
    memory_budget: Any = None

    def __post_init__(self) -> None:
        if self.basis.ndim != 2 or len(self.basis) != len(self.landmarks):
            raise InputError(f"basis has shape {tuple(self.basis.shape)}; expected ({len(self.landmarks)}, r).")

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Points, dtype: torch.dtype = torch.float64, **place: Any) -> NystromMap:
        """The map of some landmarks; directions that are rounding error are left out.

        In float32 so are those that would magnify the rounding of kernel values more than ten thousand times.
        """
        m = len(landmarks)
        empty = torch.empty(m, 0, dtype=torch.float64)
        unfinished = cls(kernel, landmarks, empty, dtype=dtype, **place)
        K = torch.as_tensor(unfinished._gram(landmarks, torch.float64).dense())
        if not bool(K.any()):
            raise InputError(f"{kernel!r} is zero at all landmarks, so they give no features; choose other landmarks.")
        basis = whitening(K, rounding_of(dtype, m))
        lower = torch.linalg.qr(basis.mT, mode="r").R.mT  # the same inner products: basis = lower Q
        return replace(unfinished, basis=lower.contiguous())

    @property
    def n_features(self) -> int:
        return self.basis.shape[1]

    def __call__(self, points: Points) -> Tensor:
        """The features (n, r) of some rows; products run tile by tile and never store k(x, Z)."""
        operator = self._gram(points, self.dtype)
        result: Tensor = operator.matmul(self.basis.to(device=operator.device, dtype=self.dtype))
        return result

    def _gram(self, points: Points, dtype: torch.dtype) -> Any:
        place = {"device": self.device, "memory_budget": self.memory_budget, "dtype": dtype}
        return gram(self.kernel, points, self.landmarks, **place)
