"""The method of inducing points: an approximation whose cost is linear in the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.core.renamed import renamed
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.dials import SMALLEST_GAIN, SPARSE_LANDMARKS
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.means import Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Kept
from mercer.processes.sparse_evidence import SparseEvidence, Sums, inducing_points, whitening
from mercer.processes.sparse_posterior import AllRows, SparsePosterior


@renamed(n_inducing="n_landmarks")
@dataclass(frozen=True)
class Sparse:
    """Titsias' bound and posterior (SGPR).

    Attributes
    ----------
    place : Placement
        Where to compute; in float64 in any case.
    n_landmarks : int or None
        Number of inducing points, None for 500: rows that represent the others, chosen for the kernel at its start
        while learning, and again for the kernel that was learned.
    seed : int
        Of their choice.
    """

    place: Placement
    n_landmarks: int | None = None
    seed: int = 0
    name: str = "sgpr"
    gain: float = SMALLEST_GAIN

    def evidence(self, data: Observations, hyperparameters: Hyperparameters, mean: Mean) -> SparseEvidence:
        return SparseEvidence(data, hyperparameters, mean, self._in_float64, self._count, self.seed)

    def posterior(
        self, kernel: Kernel, noise: float, data: Observations, mean: Mean, reason: str = ""
    ) -> SparsePosterior:
        Z = inducing_points(kernel, noise, data, self._in_float64, self._count, self.seed)
        return SparsePosterior.condition(kernel, noise, data, mean, self._in_float64, Z, reason)

    def restored(self, kept: Kept) -> SparsePosterior:
        """The posterior of a model file."""
        kernel, noise, data, mean, weights, report, arrays = kept
        arrays = dict(arrays)
        Z = arrays.pop("inducing", None)
        if Z is None or Z.ndim != 2 or len(Z) != len(weights):
            raise ModelFileError("inducing points are missing, or do not fit the weights")
        if not data.X.is_tensor or Z.shape[1] != data.X.values.shape[1]:
            raise ModelFileError(f"inducing points of shape {tuple(Z.shape)} do not fit the rows")
        points = Points(Z.to(self.place.device, torch.float64), data.X.names)
        data = data.to(self.place.device)
        rows = _all_rows(arrays, kernel, points, data, len(mean.coef)) if arrays else None
        return SparsePosterior(kernel, noise, data, mean, weights, self._in_float64, report, points, rows)

    @property
    def _count(self) -> int:
        if self.n_landmarks is None:
            return SPARSE_LANDMARKS
        if self.n_landmarks < 1:
            raise InputError(f"n_landmarks={self.n_landmarks!r}: must be an integer >= 1, or None to choose.")
        return int(self.n_landmarks)

    @property
    def _in_float64(self) -> Placement:
        return replace(self.place, dtype=torch.float64)


def _all_rows(arrays: dict[str, Tensor], kernel: Kernel, Z: Points, data: Observations, p: int) -> AllRows:
    """The sums over rows that a model file holds in place of the rows."""
    t, r = data.n_targets, len(whitening(kernel, Z))
    shapes = {"squares": (r, r), "products": (r, t + p), "targets": (t + p, t + p), "missed": (), "log_noise": ()}
    shapes |= {"shift": (p, t), "count": (1,)}
    wrong = [
        name for name in {*shapes, *arrays} if shapes.get(name) != tuple(getattr(arrays.get(name), "shape", (-1,)))
    ]
    if wrong or not int(arrays["count"][0]) >= len(data):
        raise ModelFileError(f"sums over rows do not fit: {', '.join(sorted(wrong)) or 'count'}")
    if not all(bool(values.isfinite().all()) for values in arrays.values()):
        raise ModelFileError("sums over rows are not finite")
    sums = Sums(*(arrays[f.name].to(data.Y) for f in fields(Sums)))
    return AllRows(sums, int(arrays["count"][0]), arrays["shift"].to(data.Y))
