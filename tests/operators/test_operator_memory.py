"""Products stay within their memory budget, and say what would fit when they cannot."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.core.errors import InputError, MemoryBudgetError
from mercer.kernels import Gaussian, Laplace
from mercer.operators import gram

linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")

MEASURE = """
import re
import numpy as np
import torch
from mercer import gram
from mercer.kernels import Gaussian, Laplace, Matern

torch.set_num_threads(1)

def memory(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

def peak_of(job):
    job()  # what libraries allocate once is not the product's
    return min(one_peak(job) for _ in range(3))  # pages of files that come in by chance count too

def one_peak(job):
    open("/proc/self/clear_refs", "w").write("5")
    before = memory("VmRSS")
    job()
    return memory("VmHWM") - before

rng = np.random.default_rng(0)
"""


def run(script: str) -> list[float]:
    result = subprocess.run([sys.executable, "-c", MEASURE + script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [float(line) for line in result.stdout.split()]


@linux
def test_the_peak_of_a_product_is_below_its_budget() -> None:
    peaks = run("""
X = rng.standard_normal((4_000, 10)).astype(np.float32)
Z = rng.standard_normal((3_000, 10)).astype(np.float32)
V = rng.standard_normal((3_000, 3)).astype(np.float32)
for kernel in (Gaussian(3.0), Laplace(3.0), Matern(2.5, 0.2)):
    print(peak_of(lambda: gram(kernel, X, Z, memory_budget="8MiB") @ V))
    print(peak_of(lambda: gram(kernel, X, memory_budget="8MiB") @ X[:, 0]))
""")
    assert max(peaks) < 8 * 2**20, peaks  # the matrices would take 46 and 61 MiB


@linux
def test_the_peak_of_a_gradient_is_below_the_budget_of_its_product() -> None:
    peaks = run("""
X = torch.from_numpy(rng.standard_normal((4_000, 10))).requires_grad_()
v = torch.ones(4_000, dtype=torch.float64)
for kernel in (Gaussian(3.0), Laplace(3.0), Matern(2.5, 0.2)):
    scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    product = kernel.replace(length_scale=scale)
    print(peak_of(lambda: (gram(product, X, memory_budget="8MiB") @ v).sum().backward()))
""")
    assert max(peaks) < 8 * 2**20, peaks  # one matrix would take 122 MiB


@linux
@pytest.mark.slow
def test_a_product_of_200_000_by_20_000_stays_below_1_gib() -> None:
    (peak,) = run("""
X = rng.standard_normal((200_000, 10)).astype(np.float32)
Z = rng.standard_normal((20_000, 10)).astype(np.float32)
gram(Gaussian(3.0), X, Z, memory_budget="1GiB") @ np.ones(20_000, dtype=np.float32)
print(memory("VmHWM"))
""")
    assert peak < 2**30  # the whole process; the matrix would take 15 GiB


@pytest.mark.parametrize("budget", [2**18, 2**20, 2**22, 2**26])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace()], ids=repr)
def test_products_do_not_depend_on_the_budget(kernel: Gaussian | Laplace, budget: int) -> None:
    X = np.random.default_rng(0).normal(size=(700, 4))
    v = np.random.default_rng(1).normal(size=700)
    product = gram(kernel, X, memory_budget=budget) @ v
    assert np.abs(product - kernel(X) @ v).max() < 1e-12 * np.abs(kernel(X) @ v).max() * 10


def test_a_product_that_cannot_fit_says_how_many_columns_would() -> None:
    operator = gram(Gaussian(), np.zeros((1000, 2)), memory_budget="200 KiB")
    expected = r"1,000 x 1,000 Gram matrix with 500 columns.*200\.0 KiB.*at most (\d+) columns"
    with pytest.raises(MemoryBudgetError, match=expected) as error:
        operator @ np.ones((1000, 500))
    columns = int(re.search(expected, str(error.value))[1])  # type: ignore[index]
    operator @ np.ones((1000, columns))
    with pytest.raises(MemoryBudgetError, match="budget of at least"):
        gram(Gaussian(), np.zeros((1000, 2)), memory_budget=100) @ np.ones(1000)


def test_a_dense_matrix_that_cannot_fit_says_how_many_rows_would() -> None:
    operator = gram(Gaussian(), np.zeros((3000, 1)), memory_budget="1MB")
    with pytest.raises(MemoryBudgetError, match=r"dense 3,000 x 3,000.*68\.7 MiB.*41 rows would fit"):
        operator.dense()
    with pytest.raises(MemoryBudgetError, match="100 dense rows"):
        operator.rows(slice(0, 100))
    assert operator.rows(slice(0, 20)).shape == (20, 3000)


@pytest.mark.parametrize("budget", ["2 parsecs", -1, 0, "", float("nan")])
def test_a_budget_that_is_none_is_an_error(budget: object) -> None:
    with pytest.raises(InputError, match="memory_budget"):
        gram(Gaussian(), np.zeros((3, 1)), memory_budget=budget)
