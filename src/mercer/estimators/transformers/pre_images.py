"""The way back from coordinates to points: a regression, whose answers fixed-point steps improve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.given import Alpha
from mercer.estimators.ridge import KernelRidge
from mercer.features import KernelProjection
from mercer.kernels import Gaussian, Kernel, as_kernel
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import AUTO, MEDIAN


@dataclass(frozen=True)
class Inverse:
    """A regression from coordinates to inputs less their mean."""

    regression: KernelRidge
    mean: Tensor

    @classmethod
    def learned(cls, projection: KernelProjection, kernel: KernelLike, alpha: Alpha, **options: Any) -> Inverse:
        """The regression on the points of a projection."""
        inputs = projection.points.values.to(torch.float64)
        mean = inputs.mean(0)
        regression = KernelRidge(of_coordinates(kernel), alpha=alpha, fit_intercept=False, **options)
        return cls(regression.fit(projection(projection.points).to(inputs), inputs - mean), mean)

    def __call__(self, Y: Tensor) -> Tensor:
        """Points whose coordinates are near the rows of Y."""
        return torch.as_tensor(self.regression.predict(Y.to(self.mean))) + self.mean


def of_coordinates(kernel: KernelLike) -> Kernel:
    """A kernel on coordinates, which share one unit: "auto" is "median"."""
    given = as_kernel(kernel)
    return given.replace(**{path: MEDIAN for path, value in given.get_params().items() if value == AUTO})


def check_pre_image(how: str, kernel: Kernel) -> None:
    """Raise an error where points cannot be found from coordinates in this way."""
    if how == "fixed_point" and not isinstance(kernel, Gaussian):
        raise InputError(f"pre_image='fixed_point' is for a Gaussian kernel, not {kernel!r}; use 'ridge'.")


def check_coordinates(Y: Tensor, projection: KernelProjection) -> None:
    """Raise an error where rows of Y cannot be coordinates, or where there are no points to find."""
    if not projection.points.is_tensor or projection.kernel.domain == "matrix":
        raise InputError("inverse_transform gives rows of a table, but the model was not fitted to one.")
    if Y.shape[1] != projection.n_features:
        raise InputError(f"X has {Y.shape[1]} columns but there are {projection.n_features} components.")
