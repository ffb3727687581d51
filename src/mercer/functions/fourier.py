"""Random Fourier features: a shift-invariant kernel becomes the inner product of p cosines and sines."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, check_finite
from mercer.core.blocks import new_matrix, rows_at_once
from mercer.core.errors import InputError, InputTypeError
from mercer.core.seeding import generator_from
from mercer.core.threads import side_by_side
from mercer.functions.dials import CACHE_NUMBERS, SINGLE_REACH
from mercer.kernels.base import Kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.kernels.pair import vectors
from mercer.operators.backends.costs import costs

METHODS = {"pairs": "random", "offset": "random", "orthogonal": "orthogonal", "qmc": "qmc"}
"""The kinds of features, and how their frequencies are drawn."""
LARGEST = torch.finfo(torch.float64).max  # of a frequency: tails are heavy


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""A random map whose inner products are, in the mean, the kernel :math:`k(x, z) = c + a E \cos \omega (x - z)`,

    .. math:: \varphi(x) = \left(\sqrt{c},\ \sqrt{2a/p}\,\cos(\omega_i \cdot x),\ \sqrt{2a/p}\,\sin(\omega_i \cdot x)
              \right)_{i \le p/2}, \qquad E\, \varphi(x) \cdot \varphi(z) = k(x, z).

    The standard deviation of :math:`\varphi(x) \cdot \varphi(z)` falls like :math:`1/\sqrt p`, and
    :math:`\varphi(x) \cdot \varphi(x) = k(x, x)` exactly. A constant part c of the kernel takes one feature. When the
    number p of the others is odd, the last frequency has no sine but a random offset b,
    :math:`\sqrt{2a/p}\,\cos(\omega \cdot x + b)`; the mean is the same, and :math:`\varphi(x) \cdot \varphi(x)` is
    :math:`k(x, x)` up to :math:`a/p`. With ``method="offset"`` no cosine has a sine and all have offsets.

    Attributes
    ----------
    frequencies : Tensor
        (q, d), float64.
    offset : Tensor
        (k,), the offsets of the last k frequencies, which have no sine.
    amplitude, constant : float
        A and c.

    References
    ----------
    Rahimi and Recht, *Random features for large-scale kernel machines*, 2007; Sutherland and Schneider,
    *On the error of random Fourier features*, 2015, for pairs of cosine and sine.

    Examples
    --------
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
        if W.ndim != 2 or b.ndim != 1 or len(b) > len(W) or W.shape[1] == 0:
            raise InputError(
                f"Frequencies of shape {tuple(W.shape)} with an offset of shape {tuple(b.shape)} make no features: "
                "expected (q, d) and (k,) with k <= q."
            )
        check_finite(torch.cat([W.reshape(-1), b, W.new_tensor([self.amplitude, self.constant])]), "Fourier features")
        if self.amplitude < 0 or self.constant < 0 or self.n_features == 0:
            raise InputError(
                f"amplitude={self.amplitude}, constant={self.constant} with {len(W)} frequencies make no features."
            )

    @classmethod
    def draw(
        cls, kernel: Kernel, X: Points, n_features: int, seed: int | torch.Generator = 0, method: str = "pairs"
    ) -> FourierFeatures:
        """Random features of a kernel for rows like those of X, of which only the columns matter.

        `method` is "pairs" (cosine and sine of independent frequencies), "offset" (a cosine with a random offset for
        each), "orthogonal" (pairs, frequencies in orthogonal directions) or "qmc" (pairs, frequencies from a scrambled
        Sobol sequence). All have the mean k(x, z); the last two come closer to it.
        """
        if isinstance(n_features, bool) or not isinstance(n_features, numbers.Integral):
            raise InputTypeError(f"n_features={n_features!r}: must be an integer >= 1.")
        if n_features < 1:
            raise InputError(f"n_features={n_features}: must be an integer >= 1.")
        if not isinstance(method, str) or method not in METHODS:
            raise InputError(f"method={method!r}: give one of {', '.join(map(repr, METHODS))}.")
        measure = kernel.bind(X.names).spectral_measure(vectors(X).shape[1])
        if n_features == 1 and measure.constant > 0 and measure.amplitude > 0:
            raise InputError(
                f"n_features=1: the constant part of {kernel!r} takes one feature of its own; use at least 2."
            )
        n_waves = int(n_features) - (measure.constant > 0)
        pairs, alone = (0, n_waves) if method == "offset" else divmod(n_waves, 2)
        generator = generator_from(seed)
        frequencies = measure.draw(pairs + alone, generator, METHODS[method]).clamp(-LARGEST, LARGEST)
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

        Phases are exact to the precision of the rows, so that offsets of the data cost no accuracy.
        """
        x = vectors(points)
        if x.shape[1] != self.frequencies.shape[1]:
            raise InputError(f"X has {x.shape[1]} columns, but the feature map expects {self.frequencies.shape[1]}.")
        place = x.device if device is None else torch.device(device)
        wanted = x.dtype if dtype is None else dtype
        if x.requires_grad and torch.is_grad_enabled():
            return self._differentiable(x.to(device=place, dtype=torch.float64)).to(wanted)
        out = new_matrix(len(x), self.n_features, wanted, place)
        self._write(x.detach().to(place), out)
        return out

    @property
    def _scale(self) -> float:
        return float((2.0 * self.amplitude / max(1, self._n_waves)) ** 0.5)

    def _differentiable(self, x: Tensor) -> Tensor:
        phases = x @ self.frequencies.to(x.device).T
        n_sines = len(self.frequencies) - len(self.offset)
        phases = phases + torch.cat([self.offset.new_zeros(n_sines), self.offset]).to(x.device)
        parts = [x.new_full((len(x), 1), self.constant**0.5)] if self.constant > 0 else []
        return torch.cat([*parts, phases.cos() * self._scale, phases[:, :n_sines].sin() * self._scale], dim=1)

    def _write(self, x: Tensor, out: Tensor) -> None:
        """The features, some rows at a time, so that they stay in the caches while they are made."""
        if self.constant > 0:
            out[:, 0] = self.constant**0.5
        if not len(self.frequencies) or not len(x):
            return
        W, waves = self.frequencies.to(x.device).T, out[:, self.n_features - self._n_waves :]
        if out.dtype == x.dtype == torch.float32:
            centre = x.mean(0)
            reach = float((x - centre).abs().max()) * x.shape[1] ** 0.5 * float(W.norm(dim=0).max())
            if reach <= SINGLE_REACH:
                return self._write_single(x, centre, W, waves)
        self._write_double(x, W, waves)

    def _write_single(self, x: Tensor, centre: Tensor, W: Tensor, out: Tensor) -> None:
        """Phases in float32, of the rows less their mean; a sine is a cosine a quarter of a turn later."""
        n_sines = W.shape[1] - len(self.offset)
        turn = torch.cat([self.offset.new_zeros(n_sines), self.offset]).to(W.device) + centre.to(W) @ W
        added = torch.remainder(torch.cat([turn, turn[:n_sines] - torch.pi / 2]), 2.0 * torch.pi).to(x.dtype)
        both = torch.cat([W, W[:, :n_sines]], dim=1).to(x.dtype)

        def write(part: slice) -> None:
            torch.addmm(added, x[part] - centre, both, out=out[part])
            _to_cosines(out[part]).mul_(self._scale)

        side_by_side(list(self._parts(x)), lambda: write, torch.get_num_threads() if x.device.type == "cpu" else 1)

    def _write_double(self, x: Tensor, W: Tensor, out: Tensor) -> None:
        """Phases in float64; whole turns are taken off before they are rounded to the dtype of `out`."""
        q, n_sines, offset = W.shape[1], W.shape[1] - len(self.offset), self.offset.to(x.device)
        for part in self._parts(x):
            phases = x[part].to(torch.float64) @ W
            phases[:, n_sines:] += offset
            if out.dtype != torch.float64:
                phases = phases.sub_(phases.mul(0.5 / torch.pi).round_(), alpha=2.0 * torch.pi).to(out.dtype)
            torch.cos(phases, out=out[part, :q])
            torch.sin(phases[:, :n_sines], out=out[part, q:])
            out[part] *= self._scale

    def _parts(self, x: Tensor) -> Iterator[slice]:
        on_cpu, q = x.device.type == "cpu", self._n_waves
        step = max(1, CACHE_NUMBERS // q) if on_cpu else rows_at_once(q, x.device)
        return (slice(start, start + step) for start in range(0, len(x), step))

    text = ""
    """What tells these features from others, beside their arrays."""

    @property
    def at_origin(self) -> FourierFeatures:
        """The features themselves: they have no shift."""
        return self

    def shifted_by(self, coef: Tensor) -> Tensor:
        """Zero for each column of coefficients."""
        return coef.new_zeros(coef.shape[1])

    def to_arrays(self) -> dict[str, Tensor]:
        """The map as plain arrays, which a model file can hold."""
        masses = torch.tensor([self.amplitude, self.constant], dtype=torch.float64)
        return {"frequencies": self.frequencies, "offset": self.offset, "masses": masses}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Tensor]) -> FourierFeatures:
        """The map that `to_arrays` wrote, its arrays taken out; raises an error when they do not fit together."""
        names = ("frequencies", "offset", "masses")
        missing = [name for name in names if name not in arrays]
        if missing:
            raise InputError(f"The array {missing[0]!r} of random features is missing.")
        frequencies, offset, masses = parts = [arrays.pop(name) for name in names]
        if any(array.dtype != torch.float64 or bool((array.abs() > LARGEST).any()) for array in parts):
            raise InputError(f"The arrays of random features must be float64, up to {LARGEST:g}.")
        if masses.shape != (2,):
            raise InputError(f"masses have shape {tuple(masses.shape)}; expected (2,).")
        return cls(frequencies, offset, *masses.tolist())


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The lazy matrix of the features of a sample: row i is phi(x_i), in float64 on `device`.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.arange(5.0).unsqueeze(1))
    >>> rows = FeatureRows(FourierFeatures.draw(Gaussian(), X, n_features=4), X)
    >>> rows.shape, rows.matmul(torch.ones(4, 1)).shape
    ((5, 4), torch.Size([5, 1]))
    """

    features: FourierFeatures | ExplicitFeatures
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

    @property
    def step(self) -> int:
        """The number of rows of a part."""
        return rows_at_once(self.features.n_features, torch.device(self.device or "cpu"))

    def parts(self) -> Iterator[Tensor]:
        """The rows, some at a time."""
        step = self.step
        return (self.rows(slice(start, start + step)) for start in range(0, max(len(self.X), 1), step))

    def matmul(self, V: Tensor) -> Tensor:
        """The product with V (p, t), some rows at a time."""
        V = V.to(device=self.device, dtype=self.dtype)
        return torch.cat([part @ V for part in self.parts()])


def _to_cosines(phases: Tensor) -> Tensor:
    """The cosines of float32 phases in their place, by the library that is quicker at them here."""
    if phases.device.type == "cpu" and costs().cosines_by_numpy:
        np.cos(phases.numpy(), out=phases.numpy())
        return phases
    return phases.cos_()
