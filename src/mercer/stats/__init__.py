"""Statistics with kernels: distributions as functions, tests with exact levels, thinning and drift."""

from mercer.stats.change import ChangePoints, change_points
from mercer.stats.characteristic import characteristic_function
from mercer.stats.columns import ColumnDifference
from mercer.stats.conditional import ConditionalIndependenceResult, conditional_independence_test
from mercer.stats.control import ControlFunctional, control_functional
from mercer.stats.discrete_stein import DiscreteSteinKernel
from mercer.stats.distances import kolmogorov, total_variation, wasserstein
from mercer.stats.drift import DriftDetector, DriftResult, DriftStatus
from mercer.stats.embedding import MeanEmbedding
from mercer.stats.goodness_of_fit import GoodnessOfFitResult, goodness_of_fit_test
from mercer.stats.hsic import hsic
from mercer.stats.independence import ColumnDependence, IndependenceResult, independence_test
from mercer.stats.ksd import ksd
from mercer.stats.mmd import mmd
from mercer.stats.results import KernelFinding, TestResult
from mercer.stats.stein_kernel import SteinKernel
from mercer.stats.thinning import KernelHerding, KernelThinning, SteinThinning
from mercer.stats.two_sample import TwoSampleResult, two_sample_test

__all__ = [
    "ChangePoints",
    "ColumnDependence",
    "ColumnDifference",
    "ConditionalIndependenceResult",
    "ControlFunctional",
    "DiscreteSteinKernel",
    "DriftDetector",
    "DriftResult",
    "DriftStatus",
    "GoodnessOfFitResult",
    "IndependenceResult",
    "KernelFinding",
    "KernelHerding",
    "KernelThinning",
    "MeanEmbedding",
    "SteinKernel",
    "SteinThinning",
    "TestResult",
    "TwoSampleResult",
    "change_points",
    "characteristic_function",
    "conditional_independence_test",
    "control_functional",
    "goodness_of_fit_test",
    "hsic",
    "independence_test",
    "kolmogorov",
    "ksd",
    "mmd",
    "total_variation",
    "two_sample_test",
    "wasserstein",
]
