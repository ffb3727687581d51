"""Lazy products K(X, Z) v on the CPU against scikit-learn's dense kernels, and their peak memory.

Beside each row stand the kernel values a second and what limits them: the powers of two and the matrix product alone,
by the same threads.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from benchmarks import Row, compare
from benchmarks.processor_costs import operation_rate, product_rate
from mercer.kernels import Gaussian, Kernel, Laplace, Matern
from mercer.operators import gram

N, M, ONE_SAMPLE = 20_000, 2_000, 8_000
SYMMETRIC = 1.6
"""A product with the matrix of one sample is to run so many times as fast as another."""

Peer = Callable[..., np.ndarray]
JOBS = {
    ("Gaussian", "float32"): {3: 14.0, 10: 11.0, 32: 7.0, 90: 4.5},
    ("Laplace", "float32"): {10: 7.0},
    ("Matern 3/2", "float32"): {10: 8.0},
    ("Gaussian", "float64"): {3: 6.0, 10: 6.0},
    ("Laplace", "float64"): {10: 3.0},
    ("Matern 3/2", "float64"): {10: 3.5},
}
"""Kernels, precision, features and the ratio that is asked for."""

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


def run() -> Iterator[Row]:
    for (name, dtype), targets in JOBS.items():
        for d, target in targets.items():
            yield _product(name, dtype, d, target, one_sample=False)
    for name, d in (("Gaussian", 3), ("Gaussian", 10), ("Laplace", 10), ("Matern 3/2", 10)):
        yield _product(name, "float32", d, SYMMETRIC * JOBS[name, "float32"][d], one_sample=True)
    yield _product("Gaussian", "float64", 10, SYMMETRIC * JOBS["Gaussian", "float64"][10], one_sample=True)
    yield _laplace_l1()
    yield _dense_torch()
    yield from _optional_peers()
    if Path("/proc/self/status").exists():
        yield _peak_memory()


def _data(d: int, n: int = N, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    X, Z = (rng.standard_normal((size, d)).astype(dtype) for size in (n, M))
    return X, Z, rng.random(M).astype(dtype)


def _product(name: str, dtype: str, d: int, target: float, *, one_sample: bool) -> Row:
    X, Z, v = _data(d, ONE_SAMPLE if one_sample else N, dtype)
    kernel, peer, theirs = _kernels(name, d)
    samples = (X,) if one_sample else (X, Z)
    v = np.resize(v, len(samples[-1]))
    shape = f"one sample of {len(X):,}" if one_sample else f"{len(X):,} x {len(Z):,}"
    return compare(
        f"gram @ v, {name}, d={d}, {dtype}, {shape}",
        f"{peer} @ v",
        lambda: gram(kernel, *samples) @ v,
        lambda: theirs(*samples) @ v,
        target=target,
        rounds=2,
        pairs=len(X) * len(v),
        limits=_limits(d, dtype),
    )


def _kernels(name: str, d: int) -> tuple[Kernel, str, Peer]:
    """Ours, the name of scikit-learn's, and scikit-learn's."""
    if name == "Gaussian":
        return Gaussian.from_gamma(1.0 / d), "rbf_kernel", rbf_kernel
    nu = 0.5 if name == "Laplace" else 1.5
    ours = Laplace(3.0) if name == "Laplace" else Matern(1.5, 3.0)
    return ours, f"gp.kernels.Matern(nu={nu})", SklearnMatern(3.0, nu=nu)


def _limits(d: int, dtype: str) -> str:
    kind, threads = getattr(torch, dtype), torch.get_num_threads()
    return f"exp2 alone {operation_rate('exp2', kind, threads):.1f}, product alone {product_rate(d, kind, threads):.1f}"


def _laplace_l1() -> Row:
    X, Z, v = _data(10)
    kernel = Laplace(10.0, metric="l1")
    return compare(
        "gram @ v, Laplace L1, d=10",
        "laplacian_kernel(X, Z) @ v",
        lambda: gram(kernel, X, Z) @ v,
        lambda: laplacian_kernel(X, Z, gamma=0.1) @ v,
        rounds=2,
        repeats=2,
        pairs=len(X) * len(Z),
        limits=_limits(10, "float32"),
    )


def _dense_torch() -> Row:
    X, Z, v = _data(10)
    x, z, u = map(torch.from_numpy, (X, Z, v))
    return compare(
        "gram @ v, Gaussian, d=10",
        "dense torch, exp(-cdist(x, z)^2 / d) @ v",
        lambda: gram(Gaussian.from_gamma(0.1), X, Z) @ v,
        lambda: torch.cdist(x, z).square_().mul_(-0.1).exp_() @ u,
        pairs=len(X) * len(Z),
        limits=_limits(10, "float32"),
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
    place = {"pairs": len(X) * len(Z), "limits": _limits(10, "float32")}
    return [compare("gram @ v, Gaussian, d=10", name, ours, theirs, **place) for name, theirs in peers.items()]


def _peak_memory() -> Row:
    """Peak of the whole process, interpreter and libraries included, against the budget of the product alone."""
    output = subprocess.run([sys.executable, "-c", MEMORY_JOB], capture_output=True, text=True, check=True).stdout
    return Row("peak memory, 200,000 x 20,000, d=10", "budget of 1 GiB", float(output), 1024.0, unit="MiB", target=1.0)
