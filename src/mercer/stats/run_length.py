"""Watching rows one after the other for a change, with a stated expected number of rows until a false alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.core.rules import Rule, is_integer
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import Gaussian
from mercer.stats.dials import LEAST_STEPS, LONGEST, MEMORIES, STREAMS, WATCHED_FEATURES


@dataclass(eq=False)
class Watch:
    r"""Exponentially weighted means of random features, and their distance from the mean of the reference,

    .. math:: m_t = (1 - \lambda) m_{t-1} + \lambda (\varphi(x_t) - \hat\mu), \qquad
        S_t = \max_\lambda \frac{\|m_t\|^2 - c_\lambda}{s_\lambda}.

    Memory does not grow with the rows. An alarm is S_t above a threshold.

    References: Keriven, Garreau and Poli, *NEWMA: a new method for scalable model-free online change-point detection*,
    2020; Cobb, Van Looveren and Klaise, *Sequential multivariate change detection with calibrated and memoryless false
    detection rates*, 2022.
    """

    features: FourierFeatures
    centre: Tensor
    scale: Tensor
    mean: Tensor
    rates: Tensor
    levels: Tensor
    spreads: Tensor
    threshold: float
    state: Tensor
    columns: Tensor
    n_seen: int = 0
    statistic: float = 0.0
    alarm_at: int | None = None

    @classmethod
    def calibrated(cls, rows: Tensor, centre: Tensor, scale: Tensor, expected: int, seed: int) -> Watch:
        """From rows of the reference: simulated streams are drawn from a random half of the rows each, whose mean is as
        far from that of all rows as the mean of new rows is.
        """
        x = (rows.double() - centre) / scale
        distances = torch.nn.functional.pdist(x[:1000])
        median = float(distances[distances > 0].median()) if bool((distances > 0).any()) else 1.0
        features = FourierFeatures.draw(Gaussian(median / 2), Points(x), WATCHED_FEATURES, seed)
        phi = features(Points(x)).float()
        rates = torch.tensor([2.0 / (min(m, max(2.0, len(x) / 4)) + 1.0) for m in MEMORIES])
        records, levels, spreads, steps = _simulated(phi, rates, expected, seed)
        threshold = _threshold(records, steps, expected)
        zeros = torch.zeros(len(rates), phi.shape[1])
        d = x.shape[1]
        return cls(features, centre, scale, phi.mean(0), rates, levels, spreads, threshold, zeros, torch.zeros(2, d))

    def see(self, rows: Tensor) -> None:
        """Take rows in, one after the other; an alarm stays."""
        x = (rows.double() - self.centre) / self.scale
        moved = self.features(Points(x)).float() - self.mean
        slow = float(self.rates.min())
        for row, part in zip(x.float(), moved, strict=True):
            self.n_seen += 1
            self.state += self.rates.unsqueeze(1) * (part - self.state)
            self.columns += slow * (torch.stack([row, row.square() - 1.0]) - self.columns)
            self.statistic = float(((self.state.square().sum(1) - self.levels) / self.spreads).max())
            if self.statistic >= self.threshold and self.alarm_at is None:
                self.alarm_at = self.n_seen

    def begin_again(self) -> None:
        """Forget the rows seen."""
        self.state.zero_()
        self.columns.zero_()
        self.n_seen, self.statistic, self.alarm_at = 0, 0.0, None

    def arrays(self) -> dict[str, Tensor]:
        """Its arrays, for a model file."""
        return {name: getattr(self, name) for name in ARRAYS} | self.features.to_arrays()

    @classmethod
    def from_state(cls, numbers: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The watch with those numbers and what `arrays` gave."""
        mine = dict(arrays)
        features = FourierFeatures.from_arrays(mine)
        p, d = features.n_features, features.frequencies.shape[1]
        k = len(mine.get("rates", ()))
        shapes = {"centre": (d,), "scale": (d,), "mean": (p,), "rates": (k,), "levels": (k,), "spreads": (k,),
                  "state": (k, p), "columns": (2, d)}  # fmt: skip
        found = {name: tuple(values.shape) for name, values in mine.items()}
        if k == 0 or found != shapes:
            raise ModelFileError(f"the arrays of the watch have the shapes {found}, expected {shapes}")
        fields: dict[str, Any] = {**mine, **numbers}
        return cls(features, **fields)


ARRAYS = ("centre", "scale", "mean", "rates", "levels", "spreads", "state", "columns")


def _simulated(
    phi: Tensor, rates: Tensor, expected: int, seed: int
) -> tuple[list[tuple[np.ndarray, int, np.ndarray]], Tensor, Tensor, int]:
    """Records of S_t in simulated streams: which streams have a new largest value at which step."""
    n, steps = len(phi), max(LEAST_STEPS, expected)
    rng = np.random.default_rng(seed)
    halves = torch.from_numpy(np.stack([rng.permutation(n)[: (n + 1) // 2] for _ in range(STREAMS)]))
    mean = phi.mean(0)
    state = torch.zeros(len(rates), STREAMS, phi.shape[1])
    weights = rates[:, None, None]
    sizes = torch.empty(len(rates), STREAMS, steps)
    streams = torch.arange(STREAMS)
    for t in range(steps):
        drawn = halves[streams, torch.from_numpy(rng.integers(halves.shape[1], size=STREAMS))]
        state += weights * ((phi[drawn] - mean) - state)
        sizes[:, :, t] = torch.linalg.vector_norm(state, dim=2)
    sizes.square_()
    late = sizes[:, :, steps // 2 :].reshape(len(rates), -1)
    levels, spreads = late.mean(1), late.std(1).clamp(min=1e-12)
    statistic = ((sizes - levels[:, None, None]) / spreads[:, None, None]).amax(0)
    records, best = [], torch.full((STREAMS,), -torch.inf)
    running = statistic.cummax(1).values
    for t in range(steps):
        new = running[:, t] > best
        if bool(new.any()):
            best = running[:, t].clone()
            records.append((new.nonzero().squeeze(1).numpy(), t + 1, best[new].numpy()))
    return records, levels, spreads, steps


def _threshold(records: list[tuple[np.ndarray, int, np.ndarray]], steps: int, expected: int) -> float:
    """The threshold at which rows watched over alarms, those after an alarm left out, are as many as expected."""
    values = np.unique(np.concatenate([v for _, _, v in records]))
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _run_length(records, steps, values[middle]) < expected:
            low = middle + 1
        else:
            high = middle
    return float(values[low])


def _run_length(records: list[tuple[np.ndarray, int, np.ndarray]], steps: int, threshold: float) -> float:
    first = np.full(STREAMS, steps)
    alarmed = np.zeros(STREAMS, dtype=bool)
    for streams, t, values in records:
        hit = streams[(values >= threshold) & ~alarmed[streams]]
        first[hit], alarmed[hit] = t, True
    return float(first.sum() / alarmed.sum()) if alarmed.any() else float("inf")


RUN_LENGTH = Rule(is_integer, lambda value: 10 <= value <= LONGEST, f"an integer from 10 to {LONGEST:,}")


def checked_run_length(expected: Any) -> int:
    """A number of rows that can be simulated."""
    RUN_LENGTH.check("expected_run_length", expected, False)
    return int(expected)
