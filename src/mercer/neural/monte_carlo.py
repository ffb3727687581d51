"""The covariance of random networks of any shape, from many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mercer.core.arrays import Points
from mercer.core.errors import InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair, vectors
from mercer.kernels.properties import Properties
from mercer.neural.arguments import check
from mercer.neural.modules import outputs_of_rows, refusals
from mercer.neural.tangent import shaped


@dataclass(frozen=True, eq=False, repr=False)
class MonteCarloNNGP(Kernel):
    r"""The mean product of the outputs of random networks, for modules of any shape,

    .. math:: k(x, z) = \frac{1}{M t} \sum_{m = 1}^M \sum_{j = 1}^t f_{m, j}(x)\, f_{m, j}(z),

    over M modules with t outputs each. It is positive semi-definite of rank M t at most, and off by the order of
    :math:`1 / \sqrt{M t}`; `LayerKernel` and `NNGP` are limits in closed form.

    Parameters
    ----------
    make_module : callable
        Makes a module with new random weights, by the random numbers of torch.
    n_modules : int
        M.
    shape : tuple of int or None
        What rows are reshaped to, for modules of images.
    seed : int
        The same modules are made at every evaluation.

    References
    ----------
    Novak et al., *Bayesian deep convolutional networks with many channels are Gaussian processes*, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = MonteCarloNNGP(lambda: torch.nn.Linear(2, 50, bias=False), n_modules=40)
    >>> float(abs(kernel([[1.0, 0.0], [0.0, 1.0]]) - np.eye(2) / 6).max()) < 0.03  # weights have variance 1 / 6
    True
    """

    make_module: Any
    n_modules: int = 100
    shape: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.make_module, nn.Module) or not callable(self.make_module):
            raise InputTypeError("MonteCarloNNGP: give a function that makes a module, not a module.")
        check(n_modules=self.n_modules, seed=self.seed, shape=self.shape)
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, lambda points: self._outputs(points).square().sum(1))

    @property
    def properties(self) -> Properties:
        return Properties()

    def _gram(self, pair: DensePair) -> Tensor:
        left = self._outputs(pair.x)
        return left @ (left if pair.z is None or pair.one_sample else self._outputs(pair.z)).T

    def _outputs(self, points: Points) -> Tensor:
        """The outputs of all networks side by side, (n, M t), divided by the root of their number."""
        x, found = shaped(vectors(points), self.shape), []
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for k in range(self.n_modules):
                torch.manual_seed(self.seed + k)
                module = self.make_module()
                if not isinstance(module, nn.Module):
                    raise InputTypeError(f"make_module() made {type(module).__name__}: it must make a torch.nn.Module.")
                with refusals(x):
                    value = module.to(x).eval()(x)
                found.append(outputs_of_rows(value, x))
        outputs = torch.cat(found, 1)
        return outputs / outputs.shape[1] ** 0.5
