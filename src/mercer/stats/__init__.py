"""Statistics with kernels: distributions as functions, tests with exact levels, thinning and drift."""

from mercer.stats.characteristic import characteristic_function
from mercer.stats.columns import ColumnDifference
from mercer.stats.distances import kolmogorov, total_variation, wasserstein
from mercer.stats.embedding import MeanEmbedding
from mercer.stats.hsic import hsic
from mercer.stats.mmd import mmd
from mercer.stats.results import KernelFinding, TestResult
from mercer.stats.two_sample import TwoSampleResult, two_sample_test

__all__ = [
    "ColumnDifference",
    "KernelFinding",
    "MeanEmbedding",
    "TestResult",
    "TwoSampleResult",
    "characteristic_function",
    "hsic",
    "kolmogorov",
    "mmd",
    "total_variation",
    "two_sample_test",
    "wasserstein",
]
