"""Kernel methods from ten points to a billion: a PyTorch core with the scikit-learn API."""

from mercer import kernels
from mercer.cli.model import TableModel as _TableModel  # noqa: F401 - so that load() knows the models of the command
from mercer.estimators import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    TaylorFeatures,
)
from mercer.files.persistence import load
from mercer.functions import RKHSFunction
from mercer.operators import gram

__version__ = "0.2.0"
__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "KernelRidge",
    "MercerDecomposition",
    "NystromFeatures",
    "RKHSFunction",
    "RandomFourierFeatures",
    "RandomNetworkFeatures",
    "TaylorFeatures",
    "__version__",
    "gram",
    "kernels",
    "load",
]
