"""Lazy products K(X, Z) v on the CPU against scikit-learn's dense kernels, and their peak memory."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from benchmarks import Row, compare
from mercer.kernels import Gaussian, Laplace, Matern
from mercer.operators import gram

N, M = 20_000, 2_000
TARGETS = {3: 12.0, 10: 10.0, 90: 6.0}

MEMORY_JOB = """
import re
from pathlib import Path
import numpy as np
from mercer.operators import gram
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.standard_normal((200_000, 10)).astype(np.float32)
Z = rng.standard_normal((20_000, 10)).astype(np.float32)
gram(Gaussian(3.0), X, Z, memory_budget="1GiB") @ np.ones(20_000, dtype=np.float32)
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def run() -> list[Row]:
    rows = [_gaussian(d, target) for d, target in TARGETS.items()]
    rows += [_laplace_l2(), _matern(), _laplace_l1(), _dense_torch(), *_optional_peers()]
    return [*rows, _peak_memory()] if Path("/proc/self/status").exists() else rows


def _data(d: int, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    X, Z = (rng.standard_normal((size, d)).astype(np.float32) for size in (n, M))
    return X, Z, rng.random(M, dtype=np.float32)


def _gaussian(d: int, target: float) -> Row:
    X, Z, v = _data(d)
    kernel = Gaussian.from_gamma(1.0 / d)
    return compare(
        f"gram @ v, Gaussian, d={d}",
        "rbf_kernel(X, Z) @ v",
        lambda: gram(kernel, X, Z) @ v,
        lambda: rbf_kernel(X, Z) @ v,
        target=target,
    )


def _laplace_l2() -> Row:
    X, Z, v = _data(10)
    ours, theirs = Laplace(3.0), SklearnMatern(3.0, nu=0.5)
    return compare(
        "gram @ v, Laplace, d=10",
        "gp.kernels.Matern(nu=0.5) @ v",
        lambda: gram(ours, X, Z) @ v,
        lambda: theirs(X, Z) @ v,
    )


def _matern() -> Row:
    X, Z, v = _data(10)
    ours, theirs = Matern(1.5, 3.0), SklearnMatern(3.0, nu=1.5)
    return compare(
        "gram @ v, Matern 3/2, d=10",
        "gp.kernels.Matern(nu=1.5) @ v",
        lambda: gram(ours, X, Z) @ v,
        lambda: theirs(X, Z) @ v,
    )


def _laplace_l1() -> Row:
    X, Z, v = _data(10)
    kernel = Laplace(10.0, metric="l1")
    return compare(
        "gram @ v, Laplace L1, d=10",
        "laplacian_kernel(X, Z) @ v",
        lambda: gram(kernel, X, Z) @ v,
        lambda: laplacian_kernel(X, Z, gamma=0.1) @ v,
        repeats=2,
    )


def _dense_torch() -> Row:
    X, Z, v = _data(10)
    x, z, u = map(torch.from_numpy, (X, Z, v))
    return compare(
        "gram @ v, Gaussian, d=10",
        "dense torch, exp(-cdist(x, z)^2 / d) @ v",
        lambda: gram(Gaussian.from_gamma(0.1), X, Z) @ v,
        lambda: torch.cdist(x, z).square_().mul_(-0.1).exp_() @ u,
    )


def _optional_peers() -> list[Row]:
    """The same against GPyTorch and KeOps, where they are installed."""
    X, Z, v = _data(10)
    x, z, u = map(torch.from_numpy, (X, Z, v))
    kernel, peers = Gaussian.from_gamma(0.1), {}
    if find_spec("gpytorch") is not None:
        import gpytorch

        rbf = gpytorch.kernels.RBFKernel()
        rbf.lengthscale = 5**0.5
        peers["GPyTorch, RBFKernel()(x, z) @ v"] = lambda: (rbf(x, z) @ u.unsqueeze(1)).detach()
    if find_spec("pykeops") is not None:
        from pykeops.torch import LazyTensor

        a, b = LazyTensor(x[:, None, :]), LazyTensor(z[None, :, :])
        lazy = (-0.1 * ((a - b) ** 2).sum(-1)).exp()
        peers["KeOps, LazyTensor @ v"] = lambda: lazy @ u.unsqueeze(1)
    ours = lambda: gram(kernel, X, Z) @ v  # noqa: E731
    return [compare("gram @ v, Gaussian, d=10", name, ours, theirs) for name, theirs in peers.items()]


def _peak_memory() -> Row:
    """Peak of the whole process, interpreter and libraries included, against the budget of the product alone."""
    output = subprocess.run([sys.executable, "-c", MEMORY_JOB], capture_output=True, text=True, check=True).stdout
    return Row("peak memory, 200,000 x 20,000, d=10", "budget of 1 GiB", float(output), 1024.0, unit="MiB", target=1.0)
