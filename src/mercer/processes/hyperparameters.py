"""The numbers that a marginal likelihood is maximised over: logs of kernel parameters and of the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Kernel
from mercer.processes.dials import FACTOR_REACH

NOISE = "noise"
"""What the variance of the noise is called among the paths of kernel parameters."""

REACH = {"": (1e-3, 1e3), "length_scale": (1e-3, 1e5), "factor": (1 / FACTOR_REACH, FACTOR_REACH)}
"""Multiples of its start between which a parameter of that name may move, "" for all others.

Of a feature that does not matter, or along which the function is a line, the length scale goes far up.
"""

Prior = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    r"""A kernel at its start, the noise and the box they may move in; theta holds the logs of all that may.

    theta is the logs of the kernel's tunable parameters, in the order of ``kernel.tunable()``, and, where the noise is
    learned, last the log of its variance. Everything is in the units of the data.

    Attributes
    ----------
    kernel : Kernel, str or callable
        The kernel at its start.
    noise : float
        Variance of the noise that all rows share: its start when it is learned, else its value.
    learn_noise : bool
        Whether it is part of theta.
    bounds : array
        Logs of the least and the greatest value of each entry, (p, 2).
    priors : Mapping[str, Prior]
        Log densities by path, of the parameters themselves.
    tied : frozenset[str]
        Paths whose entries keep their ratios; in theta one entry stands for all, the log of their geometric mean.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> found = Hyperparameters.of(2.0 * Gaussian(length_scale=(1.0, 3.0)), noise=0.1, learn_noise=True)
    >>> found.labels
    ('kernel__length_scale[0]', 'kernel__length_scale[1]', 'factor', 'noise')
    >>> found.kernel_at(found.start + np.log(2.0)), round(found.noise_at(found.start), 4)
    (4.0 * Gaussian(length_scale=(2.0, 6.0)), 0.1)
    """

    kernel: Kernel
    noise: float
    learn_noise: bool
    bounds: np.ndarray
    priors: Mapping[str, Prior] = field(default_factory=dict)
    tied: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        noise: float,
        learn_noise: bool,
        *,
        noise_bounds: tuple[float, float] | None = None,
        bounds: Mapping[str, Any] | None = None,
        priors: Mapping[str, Prior] | None = None,
        tied: frozenset[str] = frozenset(),
    ) -> Hyperparameters:
        """With bounds around the start; those given by path, or by the last word of it, go first.

        The value of a given bound is (least, greatest), or "fixed".
        """
        starts = {path: _entries(value, path in tied) for path, value in kernel.tunable().items()}
        boxes = {}
        for path, values in starts.items():
            boxes[path] = np.outer(values, REACH.get(path.split("__")[-1], REACH[""]))
        if learn_noise:
            boxes[NOISE] = np.array([np.multiply(noise, REACH[""]) if noise_bounds is None else noise_bounds])
        starts[NOISE] = np.array([noise])
        for name, given in (bounds or {}).items():
            for path in matching(name, boxes, "bounds"):
                boxes[path] = _box(name, given, starts[path])
        box = np.log(np.concatenate([*boxes.values(), np.empty((0, 2))]))
        named = {path: prior for name, prior in (priors or {}).items() for path in matching(name, boxes, "priors")}
        for path, prior in named.items():
            if not callable(prior):
                raise InputTypeError(f"priors[{path!r}]={prior!r}: give a log density, such as LogNormal(1.0, 0.5).")
        return cls(kernel, float(noise), learn_noise, box, named, tied)

    @property
    def start(self) -> np.ndarray:
        """theta at the start, moved into the bounds."""
        values = [entries for _, entries in self._starts.values()]
        if self.learn_noise:
            values.append(np.array([self.noise]))
        theta = np.log(np.concatenate(values)) if values else np.empty(0)
        return np.clip(theta, self.bounds[:, 0], self.bounds[:, 1])

    @cached_property
    def _starts(self) -> dict[str, tuple[Any, np.ndarray]]:
        """The parameters of the kernel by path, and the numbers that stand for them in theta, before the log."""
        return {path: (value, _entries(value, path in self.tied)) for path, value in self.kernel.tunable().items()}

    @property
    def open(self) -> bool:
        """Whether the bounds leave anything to learn."""
        return bool((self.bounds[:, 0] < self.bounds[:, 1]).any())

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each entry of theta."""
        names = []
        for path, value in self.kernel.tunable().items():
            names += [path] if np.ndim(value) == 0 or path in self.tied else [f"{path}[{i}]" for i in range(len(value))]
        return (*names, NOISE) if self.learn_noise else tuple(names)

    def mask(self, name: str) -> np.ndarray:
        """Whether each entry belongs to a parameter of that name."""
        return np.array([label.split("[")[0].split("__")[-1] == name for label in self.labels], dtype=bool)

    def split(self, theta: np.ndarray) -> dict[str, Any]:
        """The parameters exp(theta) of the kernel by path, as floats and tuples."""
        values, place, parts = np.exp(theta), 0, {}
        for path, (start, entries) in self._starts.items():
            size = len(entries)
            part = values[place : place + size]
            if path in self.tied:
                part = np.asarray(start) * (part / entries)
            parts[path] = float(part[0]) if np.ndim(start) == 0 else tuple(part.tolist())
            place += size
        return parts

    def kernel_at(self, theta: np.ndarray) -> Kernel:
        """The kernel with parameters exp(theta)."""
        return self.kernel.replace(**self.split(theta))

    def noise_at(self, theta: np.ndarray) -> float:
        """The variance of the noise that all rows share."""
        return float(np.exp(theta[-1])) if self.learn_noise else self.noise

    def starting_at(self, theta: np.ndarray) -> Hyperparameters:
        """The same box with another start."""
        return replace(self, kernel=self.kernel_at(theta), noise=self.noise_at(theta))

    def leaves_at(self, theta: np.ndarray, device: torch.device | str = "cpu") -> dict[str, Tensor]:
        """The kernel's parameters by path as tensors that gather gradients: ``kernel.replace(**leaves)``."""
        return {
            path: torch.tensor(value, dtype=torch.float64, device=device, requires_grad=True)
            for path, value in self.split(theta).items()
        }

    def move(self, leaves: Mapping[str, Tensor], theta: np.ndarray) -> None:
        """Give tensors that `leaves_at` made the values of another theta, and no gradient."""
        with torch.no_grad():
            for path, value in self.split(theta).items():
                leaves[path].copy_(torch.as_tensor(value, dtype=torch.float64))
                leaves[path].grad = None

    def gradient(self, leaves: Mapping[str, Tensor], noise_slope: float, theta: np.ndarray) -> np.ndarray:
        """The derivative in theta, from gradients gathered in `leaves` and the derivative in the noise."""
        parts = []
        for path, leaf in leaves.items():
            slope = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad * leaf.detach()
            parts.append((slope.sum() if path in self.tied else slope).reshape(-1).cpu().numpy())
        if self.learn_noise:
            parts.append(np.array([noise_slope * self.noise_at(theta)]))
        return np.concatenate(parts) if parts else np.empty(0)

    def joined(self, by_log: Mapping[str, np.ndarray], noise_slope: float, theta: np.ndarray) -> np.ndarray:
        """The derivative in theta, from those by the logs of all entries of the parameters and that in the noise."""
        parts = []
        for path, (_, entries) in self._starts.items():
            slope = by_log[path]
            parts.append(slope if len(slope) == len(entries) else slope.sum(keepdims=True))
        if self.learn_noise:
            parts.append(np.array([noise_slope * self.noise_at(theta)]))
        return np.concatenate(parts) if parts else np.empty(0)

    def log_prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The log density of the parameters (not of their logs), and its derivative in theta."""
        if not self.priors:
            return 0.0, np.zeros_like(theta)
        logs = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        labels = self.labels
        total = logs.sum() * 0.0
        for path, prior in self.priors.items():
            here = [i for i, label in enumerate(labels) if label.split("[")[0] == path]
            total = total + _log_density(path, prior, logs[here].exp())
        (slope,) = torch.autograd.grad(total, logs)
        return float(total.detach()), slope.numpy()

    def at_bounds(self, theta: np.ndarray, tolerance: float = 1e-3) -> dict[str, str]:
        """The entries at an end of their range, and which: "lower" or "upper"; fixed ones are not named."""
        found = {}
        for label, value, (low, high) in zip(self.labels, theta, self.bounds, strict=True):
            if high - low <= tolerance:
                continue
            if value <= low + tolerance:
                found[label] = "lower"
            elif value >= high - tolerance:
                found[label] = "upper"
        return found


def matching(name: str, paths: Mapping[str, Any], argument: str) -> list[str]:
    """The paths that a name stands for: itself, or all that end in it."""
    found = [path for path in paths if path == name or path.endswith(f"__{name}")]
    if not found:
        known = ", ".join(map(repr, paths)) or "none"
        raise InputError(f"{argument}: there is no parameter {name!r} to learn; there are {known}.")
    return found


def _log_density(path: str, prior: Prior, values: torch.Tensor) -> torch.Tensor:
    given = prior(values)
    try:
        density = torch.as_tensor(given, dtype=torch.float64).sum()
    except (TypeError, ValueError, RuntimeError):
        raise InputTypeError(f"priors[{path!r}] returned {given!r}; a log density is a number or a tensor.") from None
    if bool(density.isnan()):
        raise InputError(f"priors[{path!r}] is NaN at {values.tolist()}; a log density is a number, or minus infinity.")
    return density


def _box(name: str, given: Any, start: np.ndarray) -> np.ndarray:
    if isinstance(given, str) and given == "fixed":
        return np.stack([start, start], axis=1)
    try:
        box = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        box = np.empty(0)
    if box.shape == (2,):
        box = np.tile(box, (len(start), 1))
    if box.shape != (len(start), 2) or not (box[:, 0] > 0).all() or not (box[:, 0] <= box[:, 1]).all():
        raise InputError(f'bounds[{name!r}]={given!r}: give (least, greatest) with 0 < least <= greatest, or "fixed".')
    if not np.isfinite(box).all():
        raise InputError(f"bounds[{name!r}]={given!r}: must be finite.")
    return box


def _entries(value: Any, tied: bool) -> np.ndarray:
    """The numbers that stand for a parameter in theta, before the log."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return np.exp(np.log(values).mean(keepdims=True)) if tied else values
