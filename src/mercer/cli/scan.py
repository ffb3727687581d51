"""One pass over the training rows: means, deviations, and all that a linear model needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mercer.cli.problem import quoted
from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.checkpoint import Checkpoint
from mercer.data.rows import Chunk, RowSource, read_ahead
from mercer.solvers.decompose import eigh


@dataclass(eq=False)
class Moments:
    r"""Weight W, means and centred second moments of z = (x, y), which merge over disjoint rows:

    .. math:: S = S_a + S_b + \frac{W_a W_b}{W_a + W_b} (\bar z_a - \bar z_b)(\bar z_a - \bar z_b)^T.

    Reference: Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances*,
    1979.

    >>> X, y = torch.tensor([[1.0], [2.0], [6.0]]).double(), torch.tensor([[0.0], [1.0], [5.0]]).double()
    >>> parts = [Moments.of(Chunk(X[:1], y[:1], None)), Moments.of(Chunk(X[1:], y[1:], None))]
    >>> both = parts[0].merge(parts[1])
    >>> both.mean, both.products[0, 0] / both.weight
    (tensor([3., 2.], dtype=torch.float64), tensor(4.6667, dtype=torch.float64))
    """

    rows: int
    weight: float
    mean: Tensor
    products: Tensor
    least: Tensor
    most: Tensor

    @classmethod
    def of(cls, chunk: Chunk) -> Moments:
        assert chunk.targets is not None
        Z, w = torch.cat([chunk.X.double(), chunk.targets], 1), chunk.weights
        if w is not None and bool((w == 0).any()):
            Z, w = Z[w > 0], w[w > 0]
        if len(Z) == 0:
            d = Z.shape[1]
            far = torch.full((d,), torch.finfo(torch.float64).max, dtype=torch.float64)
            return cls(0, 0.0, torch.zeros(d).double(), torch.zeros(d, d).double(), far, -far)
        weight = float(len(Z) if w is None else w.sum())
        mean = Z.mean(0) if w is None else (w @ Z) / weight
        least, most = Z.amin(0), Z.amax(0)
        Z = Z - mean
        return cls(len(Z), weight, mean, Z.T @ (Z if w is None else Z * w.unsqueeze(1)), least, most)

    def merge(self, other: Moments) -> Moments:
        """The moments of all rows of both."""
        weight = self.weight + other.weight
        if not weight:
            return self
        gap = other.mean - self.mean
        return Moments(
            self.rows + other.rows,
            weight,
            self.mean + gap * (other.weight / weight),
            self.products + other.products + torch.outer(gap, gap) * (self.weight * other.weight / weight),
            torch.minimum(self.least, other.least),
            torch.maximum(self.most, other.most),
        )

    def to_arrays(self) -> dict[str, Tensor]:
        """Plain arrays, which a checkpoint can hold."""
        counts = torch.tensor([float(self.rows), self.weight], dtype=torch.float64)
        return {"counts": counts, "mean": self.mean, "products": self.products, "least": self.least, "most": self.most}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Tensor]) -> Moments:
        rows, weight = arrays["counts"].tolist()
        return cls(int(rows), weight, *(arrays[name] for name in ("mean", "products", "least", "most")))

    @property
    def target_mean(self) -> float:
        """The mean of the targets, rounded."""
        return float(_rounded(self.mean[-1:].numpy(), np.array([self.target_variance**0.5]))[0])

    @property
    def target_variance(self) -> float:
        """The mean squared distance of the targets from their mean."""
        return float(self.products[-1, -1]) / self.weight

    def scaling(self, features: tuple[str, ...], standardize: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Centre and scale of each feature, rounded, and a note on those that never vary."""
        d = len(features)
        if not standardize:
            return np.zeros(d), np.ones(d), []
        deviations = (self.products.diagonal()[:d] / self.weight).clamp(min=0.0).sqrt().numpy().copy()
        constant = (self.least == self.most)[:d].numpy()
        deviations[constant | (deviations == 0)] = 1.0
        names = [name for name, same in zip(features, constant, strict=True) if same]
        notes = [f"Constant in every training row, so of no use: {quoted(names)}."] if names else []
        return _rounded(self.mean[:d].numpy(), deviations), _rounded(deviations, deviations), notes


def _rounded(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Values to a millionth of a scale: the last digits of sums depend on how rows are cut, a model should not.

    >>> _rounded(np.array([1 / 3]), np.array([1.0])) == _rounded(np.array([1 / 3 + 1e-15]), np.array([1.0]))
    array([ True])
    """
    unit = 2.0 ** (np.floor(np.log2(np.where(scale > 0, scale, 1.0))) - 20)
    return np.round(values / unit) * unit


def scan(rows: RowSource, path: Path | None, shown: bool) -> Moments:
    """The moments of all rows, from where a checkpoint left off."""
    checkpoint = None if path is None else Checkpoint(path, {"rows": rows.identity(), "scan": 1})
    saved = None if checkpoint is None else checkpoint.load()
    done, found = (0, None) if saved is None else (saved[0], Moments.from_arrays(saved[1]))
    parts = rows.parts()
    with Progress(rows.n_rows, "means and deviations", done=sum(map(len, parts[:done])), shown=shown) as progress:
        for part, chunk in read_ahead(rows.read, parts[done:]):
            found = Moments.of(chunk) if found is None else found.merge(Moments.of(chunk))
            done += 1
            give_back()
            progress.advance(len(part))
            if checkpoint is not None:
                checkpoint.offer(done, found.to_arrays)
    if found is None or found.weight <= 0:
        raise InputError("All training rows have weight zero.")
    if checkpoint is not None:
        checkpoint.save(done, found.to_arrays())
    return found


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Ridge regression on standardised features, alpha chosen by generalised cross-validation, from moments alone."""

    center: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: float

    @classmethod
    def of(cls, moments: Moments, features: tuple[str, ...], alphas: np.ndarray) -> LinearModel:
        products, d = moments.products.numpy(), len(features)
        center, scale = moments.mean[:d].numpy(), moments.scaling(features, True)[1]
        unit = torch.from_numpy(products[:d, :d] / np.outer(scale, scale))
        values, vectors = (part.numpy() for part in eigh(unit, "The covariance of the features"))
        values = np.maximum(values, 0.0)[:, None]
        b = (vectors.T @ (products[:d, -1] / scale))[:, None]
        error = products[-1, -1] - (b**2 * (values + 2 * alphas) / (values + alphas) ** 2).sum(0)
        free = moments.weight - 1 - (values / (values + alphas)).sum(0)
        best = alphas[int(np.argmin(error / np.maximum(free, 1e-12) ** 2))]
        coef = vectors @ (b / (values + best))[:, 0]
        return cls(center, scale, coef, float(moments.mean[-1]))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predictions for rows X."""
        return np.asarray(self.intercept + ((X - self.center) / self.scale) @ self.coef)
