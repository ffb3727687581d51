"""Prior densities of hyperparameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from mercer.core.errors import InputError


@dataclass(frozen=True)
class LogNormal:
    r"""The log-normal density, in which :math:`\log x` is normal around the log of the median,

    .. math:: p(x) = \frac{1}{x \sigma \sqrt{2\pi}} \exp\left(-\frac{(\log x - \log m)^2}{2\sigma^2}\right).

    >>> import torch
    >>> LogNormal(median=2.0, spread=0.5)(torch.tensor(2.0)).exp()
    tensor(0.3989)
    """

    median: float
    spread: float

    def __post_init__(self) -> None:
        _positive(self, "median", "spread")

    def __call__(self, x: Tensor) -> Tensor:
        """The log density."""
        z = (x.log() - math.log(self.median)) / self.spread
        return -0.5 * z.square() - x.log() - math.log(self.spread * math.sqrt(2.0 * math.pi))


@dataclass(frozen=True)
class Gamma:
    r"""The gamma density of mean shape / rate,

    .. math:: p(x) = \frac{r^s}{\Gamma(s)}\, x^{s-1} e^{-r x}.

    >>> import torch
    >>> Gamma(shape=1.0, rate=2.0)(torch.tensor(0.5)).exp()
    tensor(0.7358)
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        _positive(self, "shape", "rate")

    def __call__(self, x: Tensor) -> Tensor:
        """The log density."""
        s, r = self.shape, self.rate
        return s * math.log(r) - math.lgamma(s) + (s - 1.0) * x.log() - r * x


def _positive(prior: object, *names: str) -> None:
    for name in names:
        value = getattr(prior, name)
        if not (isinstance(value, int | float) and 0 < value < math.inf):
            raise InputError(f"{type(prior).__name__}({name}={value!r}): must be a number > 0.")


PRIORS: dict[str, type[LogNormal] | type[Gamma]] = {"LogNormal": LogNormal, "Gamma": Gamma}
"""Those that a model file may name."""
