"""What a Gaussian process regression will do and why: decided from settings and a sample before any learning."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.memory import budget_beside
from mercer.data.sample import Sample, Seen
from mercer.estimators.gaussian.noise import row_variances
from mercer.estimators.gaussian.settings import KERNELS, LearningSettings, ProcessSettings
from mercer.kernels.overflow import check_kernel_values
from mercer.operators.placement import Placement
from mercer.processes import Hyperparameters, Observations, as_mean
from mercer.processes.copies import rows_but_copies
from mercer.processes.dials import LARGEST_NOISE, NOISE_SHARE, SMALLEST_NOISE
from mercer.processes.means import Mean
from mercer.processes.methods import METHODS, Method, MethodOptions, choose_method
from mercer.processes.start import Scales, start_kernel

COPY = "a copy of the rows, which the model keeps,"


@dataclass(frozen=True, eq=False)
class LearningPlan:
    """Where learning starts and what it may move, whether there is any, and where dense matrices are made."""

    settings: LearningSettings
    hyper: Hyperparameters
    scales: Scales
    learns: bool
    place: Placement


@dataclass(frozen=True, eq=False)
class ProcessPlan(LearningPlan):
    """The same with the method and why it was chosen.

    Attributes
    ----------
    mean : Mean or None
        None where the data are to decide.
    target_scale : Tensor
        (t,), what each of several targets is divided by.
    taught : Tensor or None
        Places of the rows that hyperparameters are learned from, or None for all.
    """

    settings: ProcessSettings
    method: Method
    reason: str
    mean: Mean | None
    target_scale: Tensor
    taught: Tensor | None


def plan_process(settings: ProcessSettings, sample: Sample) -> ProcessPlan:
    """The plan for a sample."""
    n, seen = len(sample), sample.seen
    row_noise = None if settings.row_noise is None else row_variances(settings.row_noise, n)
    budget = budget_left(settings, sample)
    place, target_scale = place_of(settings, seen, budget), _target_scale(settings, sample.targets)
    data = observations(sample, target_scale, row_noise, place.device)
    all_rows = not settings.tune or (settings.n_learn or 0) >= n
    taught = None if all_rows else rows_but_copies(data)
    teaching = data if taught is None else data.take(taught)
    hyper, scales = _start(settings, teaching)
    learns = bool(settings.tune) and hyper.open and len(teaching) > 1
    by_data = isinstance(settings.mean, str) and settings.mean == "auto"
    mean = None if by_data else as_mean(settings.mean, teaching.X)
    n_taught = min(len(teaching), settings.n_learn or n) if learns else 0
    name, reason = choose_method(settings.method, n, n_taught, place)
    method = method_of(settings, name, seen, budget)
    return ProcessPlan(settings, hyper, scales, learns, place, method, f"{name}: {reason}", mean, target_scale, taught)


def other_starts(plan: ProcessPlan, data: Observations) -> list[ProcessPlan]:
    """The plan with each kernel in turn that may take the place of an open one."""
    settings = [replace(plan.settings, kernel=name) for name in KERNELS[1:]]
    return [replace(plan, hyper=_start(one, data)[0], settings=one) for one in settings]


def observations(sample: Sample, target_scale: Tensor, row_noise: Tensor | None, device: torch.device) -> Observations:
    """What a process sees of a sample: targets of one size, on a device."""
    rows = sample.rows
    if rows.is_tensor:
        rows = Points(rows.values.to(device), rows.names)
    return Observations(rows, (sample.targets / target_scale).to(device), row_noise, square=sample.square)


def budget_left(settings: LearningSettings, sample: Sample) -> int | str | None:
    """The memory budget beside the copy of the caller's rows that the model keeps."""
    left: int | str | None = budget_beside(settings.memory_budget, sample.rows.borrowed_bytes, COPY)
    return left


def method_of(settings: ProcessSettings, name: str, seen: Seen, budget: int | str | None) -> Method:
    """A method by its name; iterations use the precision of the data, unless one is given."""
    single = name != "exact" and seen.dtype == torch.float32
    place = place_of(settings, seen, budget, torch.float32 if single else torch.float64)
    return METHODS[name](place, MethodOptions(settings.seed, settings.n_landmarks))


def place_of(
    settings: LearningSettings, seen: Seen, budget: int | str | None, auto: torch.dtype = torch.float64
) -> Placement:
    """Where to compute: where the settings say, else where tensors are; in the precision `auto` unless one is given."""
    device = choose_device(settings.device, torch.empty(0, device=seen.device) if seen.torch_in else None)
    return Placement(device, auto if settings.dtype == "auto" else choose_dtype(settings.dtype), budget)


def _target_scale(settings: ProcessSettings, targets: Tensor) -> Tensor:
    """What each of several targets is divided by, so that one kernel serves all; of mean square one."""
    t = targets.shape[1]
    fitted = isinstance(settings.mean, str)
    if t == 1 or not (settings.standardize and settings.tune and fitted):
        return torch.ones(t, dtype=torch.float64)
    spread = targets.std(0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)
    return spread / spread.square().mean().sqrt()


def _start(settings: ProcessSettings, data: Observations) -> tuple[Hyperparameters, Scales]:
    """Kernel and noise at their start, in the units of the data, and the box they may move in."""
    scales = Scales.of(data.X, data.Y, data.square)
    columns = None if scales.X is None else len(scales.X)
    start = scales if settings.standardize else Scales.unit(columns)
    kernel, tied = start_kernel(settings.kernel, data.X, start, settings.seed, settings.tune)
    check_kernel_values(kernel, data.X)
    floor = SMALLEST_NOISE * scales.y
    hyper = Hyperparameters.of(
        kernel,
        NOISE_SHARE * start.y if settings.noise is None else settings.noise,
        learn_noise=settings.noise is None,
        noise_bounds=(floor, max(LARGEST_NOISE * scales.y, 10.0 * floor)),
        bounds=settings.bounds,
        priors=settings.priors,
        tied=tied,
    )
    return hyper, scales
