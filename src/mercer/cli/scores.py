"""How well predictions fit, and what to conclude, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.cli.dials import CLEAR


@dataclass(frozen=True)
class Score:
    """R2 and the root mean squared error of predictions, rows counted with their weights."""

    r2: float
    rmse: float


def score(actual: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> Score:
    """Compare predictions with the truth; R2 is NaN where the truth does not vary.

    >>> score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    Score(r2=0.5, rmse=0.5773502691896257)
    """
    error = np.average((actual - predicted) ** 2, weights=weights)
    spread = np.average((actual - np.average(actual, weights=weights)) ** 2, weights=weights)
    return Score(float(1 - error / spread) if spread > 0 else float("nan"), float(np.sqrt(error)))


def verdict(
    actual: np.ndarray, kernel: np.ndarray, ridge: np.ndarray, mean: float, weights: np.ndarray | None = None
) -> str:
    """Which model to prefer, in words."""
    names = ("kernel ridge", "ridge regression", "mean")
    errors = RunningErrors(names, float(np.average(actual, weights=weights)))
    values = (kernel, ridge, np.full_like(actual, mean))
    errors.add(actual, dict(zip(names, values, strict=True)), weights)
    return errors.verdict()


class RunningErrors:
    """Errors of several predictions, the first of them ours, added up over rows that come in parts."""

    def __init__(self, names: tuple[str, ...], center: float) -> None:
        self.names, self.center = names, center
        self.rows, self.weight, self.sum, self.squares = 0, 0.0, 0.0, 0.0
        self.errors = dict.fromkeys(names, 0.0)
        self.drops = {name: np.zeros(4) for name in names[1:]}

    def add(self, actual: np.ndarray, predicted: dict[str, np.ndarray], weights: np.ndarray | None) -> None:
        """Add rows."""
        w = np.ones(len(actual)) if weights is None else weights
        centred = actual - self.center
        self.rows += int(np.count_nonzero(w))
        self.weight += float(w.sum())
        self.sum += float(w @ centred)
        self.squares += float(w @ centred**2)
        errors = {name: (actual - predicted[name]) ** 2 for name in self.names}
        for name in self.names:
            self.errors[name] += float(w @ errors[name])
        for name, total in self.drops.items():
            drop = errors[name] - errors[self.names[0]]
            total += [w @ drop, w**2 @ drop**2, w**2 @ drop, (w**2).sum()]

    def scores(self) -> dict[str, Score]:
        """R2 and RMSE of each."""
        spread = self.squares / self.weight - (self.sum / self.weight) ** 2
        mean = {name: error / self.weight for name, error in self.errors.items()}
        return {
            name: Score(1 - error / spread if spread > 0 else float("nan"), error**0.5) for name, error in mean.items()
        }

    def gain(self, name: str) -> float:
        """The mean drop in squared error from another prediction to ours, in standard deviations of that mean."""
        first, squares, crossed, counts = self.drops[name]
        mean = first / self.weight
        variance = squares - 2 * mean * crossed + mean**2 * counts
        if variance <= 1e-15 * squares:
            return float(np.sign(mean)) * np.inf if mean else 0.0
        return float(mean * self.weight / np.sqrt(variance))

    def verdict(self) -> str:
        """Which of kernel ridge, ridge regression and the mean to prefer, in words."""
        rmse = [found.rmse for found in self.scores().values()]
        return conclusion(self.gain("mean"), self.gain("ridge regression"), rmse[0], rmse[1], self.rows)


def conclusion(over_mean: float, over_ridge: float, ours: float, theirs: float, n_rows: int) -> str:
    """The verdict from the gains over the mean and over ridge regression, and both errors."""
    change = f"{abs(1 - ours / theirs):.0%}" if theirs > 0 else "much"
    if over_ridge < -CLEAR:
        return f"Ridge regression wins: the error of kernel ridge is {change} larger. A linear model does better here."
    if over_mean < CLEAR:
        return (
            "Kernel ridge is not clearly better than the mean of the training target: "
            "these features say little about it, or there are too few rows."
        )
    if over_ridge > CLEAR:
        return (
            f"Kernel ridge wins: its error is {change} below that of ridge regression, so the relation is not linear."
        )
    leader = "kernel ridge" if ours < theirs else "ridge regression"
    return (
        f"No clear winner: {leader} has the smaller error, but by less than {n_rows:,} test rows can tell. "
        "A linear model does about as well here."
    )
