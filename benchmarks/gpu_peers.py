"""Products of other libraries on a GPU, as their users would write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.kernels import Gaussian, Kernel, Laplace, Matern

Product = Callable[[], object]
Peer = Callable[[Kernel, Tensor, Tensor, Tensor], Product | None]
"""From kernel, x, z and V to a function that multiplies, None for kernels that the library has no name for."""


def gpytorch() -> Peer | None:
    """``kernel(x, z) @ V``, evaluated lazily with the library's own defaults."""
    try:
        from gpytorch import kernels
    except ImportError:
        return None

    def peer(kernel: Kernel, x: Tensor, z: Tensor, V: Tensor) -> Product | None:
        match kernel:
            case Gaussian(length_scale=1.0):
                theirs = kernels.RBFKernel()
            case Laplace(length_scale=1.0, metric="l2"):
                theirs = kernels.MaternKernel(nu=0.5)
            case Matern(nu=1.5, length_scale=1.0):
                theirs = kernels.MaternKernel(nu=1.5)
            case _:
                return None
        theirs.lengthscale = 1.0
        theirs = theirs.cuda()

        def product() -> Any:
            with torch.no_grad():
                return theirs(x, z) @ V

        return product

    return peer


def pykeops() -> Peer | None:
    """A symbolic reduction over ``LazyTensor``."""
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return None

    def peer(kernel: Kernel, x: Tensor, z: Tensor, V: Tensor) -> Product | None:
        squared = LazyTensor(x[:, None, :]).sqdist(LazyTensor(z[None, :, :]))
        match kernel:
            case Gaussian(length_scale=1.0):
                matrix = (-0.5 * squared).exp()
            case Laplace(length_scale=1.0, metric="l2"):
                matrix = (-squared.sqrt()).exp()
            case Matern(nu=1.5, length_scale=1.0):
                u = (3.0 * squared).sqrt()
                matrix = (1.0 + u) * (-u).exp()
            case _:
                return None
        columns = V.reshape(len(V), -1)
        return lambda: matrix @ columns

    return peer


PEERS: dict[str, Callable[[], Peer | None]] = {"GPyTorch": gpytorch, "pykeops": pykeops}
