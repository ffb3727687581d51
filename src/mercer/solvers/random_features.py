"""Random Fourier features: a shift-invariant kernel becomes the inner product of p cosines and sines."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, check_finite
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import vectors
from mercer.solvers.products import generator_from
from mercer.solvers.row_blocks import PART_NUMBERS, Block

LARGEST = 1e100  # of a frequency: phases stay finite, and a cosine this fast is noise in any case


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""A random map whose inner products are, in the mean, the kernel :math:`k(x, z) = c + a E \cos \omega (x - z)`,

    .. math:: \varphi(x) = \left(\sqrt{c},\ \sqrt{2a/p}\,\cos(\omega_i \cdot x),\ \sqrt{2a/p}\,\sin(\omega_i \cdot x)
              \right)_{i \le p/2}, \qquad E\, \varphi(x) \cdot \varphi(z) = k(x, z).

    The standard deviation of :math:`\varphi(x) \cdot \varphi(z)` falls like :math:`1/\sqrt p`, and
    :math:`\varphi(x) \cdot \varphi(x) = k(x, x)` exactly. A constant part c of the kernel takes one feature. When the
    number p of the others is odd, the last frequency has no sine but a random offset b,
    :math:`\sqrt{2a/p}\,\cos(\omega \cdot x + b)`; the mean is the same, and :math:`\varphi(x) \cdot \varphi(x)` is
    :math:`k(x, x)` up to :math:`a/p`.

    Attributes
    ----------
    frequencies : (q, d), float64.
    offset : (1,), the offset of the last frequency, or (0,) when every cosine has its sine.
    amplitude, constant : a and c.

    References: Rahimi and Recht, *Random features for large-scale kernel machines*, 2007; Sutherland and Schneider,
    *On the error of random Fourier features*, 2015, for pairs of cosine and sine.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.tensor([[0.0], [1.0]]).double())
    >>> phi = FourierFeatures.draw(Gaussian(), X, n_features=2000, seed=0)(X)
    >>> phi.shape
    torch.Size([2, 2000])
    >>> (phi @ phi.T).round(decimals=2)
    tensor([[1.0000, 0.6100],
            [0.6100, 1.0000]], dtype=torch.float64)
    """

    frequencies: Tensor
    offset: Tensor
    amplitude: float = 1.0
    constant: float = 0.0

    def __post_init__(self) -> None:
        W, b = self.frequencies, self.offset
        if W.ndim != 2 or b.shape not in ((0,), (1,)) or len(b) > len(W) or W.shape[1] == 0:
            raise InputError(
                f"Frequencies of shape {tuple(W.shape)} with an offset of shape {tuple(b.shape)} make no features: "
                "expected (q, d) and (0,) or (1,)."
            )
        check_finite(torch.cat([W.reshape(-1), b, W.new_tensor([self.amplitude, self.constant])]), "Fourier features")
        if self.amplitude < 0 or self.constant < 0 or self.n_features == 0:
            raise InputError(
                f"amplitude={self.amplitude}, constant={self.constant} with {len(W)} frequencies make no features."
            )

    @classmethod
    def draw(cls, kernel: Kernel, X: Points, n_features: int, seed: int | torch.Generator = 0) -> FourierFeatures:
        """Random features of a kernel for rows like those of X, of which only the columns matter."""
        if isinstance(n_features, bool) or not isinstance(n_features, numbers.Integral):
            raise InputTypeError(f"n_features={n_features!r}: must be an integer >= 1.")
        if n_features < 1:
            raise InputError(f"n_features={n_features}: must be an integer >= 1.")
        measure = kernel.bind(X.names).spectral_measure(vectors(X).shape[1])
        if n_features == 1 and measure.constant > 0 and measure.amplitude > 0:
            raise InputError(
                f"n_features=1: the constant part of {kernel!r} takes one feature of its own; use at least 2."
            )
        pairs, alone = divmod(int(n_features) - (measure.constant > 0), 2)
        generator = generator_from(seed)
        frequencies = measure.draw(pairs + alone, generator).clamp(-LARGEST, LARGEST)
        offset = 2.0 * torch.pi * torch.rand(alone, dtype=torch.float64, generator=generator)
        return cls(frequencies, offset, measure.amplitude, measure.constant)

    @property
    def n_features(self) -> int:
        """The number of columns of the map's values."""
        return self._n_waves + (self.constant > 0)

    @property
    def _n_waves(self) -> int:
        return 2 * len(self.frequencies) - len(self.offset)

    def __call__(
        self, points: Points, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Tensor:
        """The features (n, p) of some rows, by default in the dtype and on the device of the rows.

        Phases are computed in float64, so that offsets of the data cost no accuracy.
        """
        x = vectors(points)
        if x.shape[1] != self.frequencies.shape[1]:
            raise InputError(f"X has {x.shape[1]} columns but the features are of {self.frequencies.shape[1]}.")
        place = x.device if device is None else torch.device(device)
        phases = x.to(device=place, dtype=torch.float64) @ self.frequencies.to(place).T
        if len(self.offset):
            phases[:, -1] += self.offset.to(place)
        waves = torch.cat([phases.cos(), phases[:, : self._n_waves // 2].sin()], dim=1)
        waves *= (2.0 * self.amplitude / max(1, self._n_waves)) ** 0.5
        if self.constant > 0:
            waves = torch.cat([waves.new_full((len(x), 1), self.constant**0.5), waves], dim=1)
        return waves.to(x.dtype if dtype is None else dtype)

    def to_arrays(self) -> dict[str, Tensor]:
        """The map as plain arrays, which a model file can hold."""
        masses = torch.tensor([self.amplitude, self.constant], dtype=torch.float64)
        return {"frequencies": self.frequencies, "offset": self.offset, "masses": masses}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Tensor]) -> FourierFeatures:
        """The map that `to_arrays` wrote; raises an error when the arrays do not fit together."""
        frequencies, offset, masses = (arrays[name] for name in ("frequencies", "offset", "masses"))
        if masses.shape != (2,):
            raise InputError(f"masses have shape {tuple(masses.shape)}; expected (2,).")
        return cls(frequencies.to(torch.float64), offset.to(torch.float64), *masses.tolist())


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The lazy matrix of the features of a sample: row i is phi(x_i), in float64 on `device`.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.arange(5.0).unsqueeze(1))
    >>> rows = FeatureRows(FourierFeatures.draw(Gaussian(), X, n_features=4), X)
    >>> rows.shape, rows.matmul(torch.ones(4, 1)).shape
    ((5, 4), torch.Size([5, 1]))
    """

    features: FourierFeatures
    X: Points
    device: torch.device | str | None = None
    dtype = torch.float64

    def __post_init__(self) -> None:
        place = vectors(self.X).device if self.device is None else torch.device(self.device)
        object.__setattr__(self, "device", place)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), self.features.n_features

    def rows(self, part: slice | Tensor) -> Tensor:
        """Some of the rows."""
        return self.features(self.X.take(part), self.dtype, self.device)

    def matmul(self, V: Tensor) -> Tensor:
        """The product with V (p, t), some rows at a time."""
        n, p = self.shape
        V = V.to(device=self.device, dtype=self.dtype)
        step = max(1, PART_NUMBERS // p)
        return torch.cat([self.rows(slice(start, start + step)) @ V for start in range(0, max(n, 1), step)])


def feature_block(
    features: FourierFeatures, X: Points, targets: Tensor, weights: Tensor | None = None, device: Any = None
) -> Block:
    r"""Rows with their features, for `NystromSums.of`, which reads some at a time; `solve(None, alpha)` then minimises

    .. math:: \sum_i w_i (\varphi(x_i) \cdot c - y_i)^2 + \alpha |c|^2.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers.nystrom import NystromSums
    >>> X = Points(torch.linspace(0, 3, 50).unsqueeze(1).double())
    >>> features = FourierFeatures.draw(Gaussian(), X, n_features=20)
    >>> sums = NystromSums.of([feature_block(features, X, X.values.sin())])
    >>> c = sums.solve(None, alpha=1e-6).value
    >>> bool((FeatureRows(features, X).matmul(c) - X.values.sin()).abs().max() < 1e-3)
    True
    """
    if targets.ndim != 2 or len(targets) != len(X):
        raise InputError(f"targets have shape {tuple(targets.shape)}; expected ({len(X)}, t).")
    if weights is not None and weights.shape != (len(X),):
        raise InputError(f"weights have shape {tuple(weights.shape)}; expected ({len(X)},).")
    return Block(FeatureRows(features, X, device), targets, weights)
