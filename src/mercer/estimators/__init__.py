"""The scikit-learn estimators: validate, build the operator, call a solver, keep an RKHS function."""

from mercer.estimators.by_loss import KernelClassifier, KernelRegressor
from mercer.estimators.gaussian import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.estimators.rfm import RFMClassifier, RFMRegressor
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.tabular import TabularEstimator
from mercer.estimators.transformers import (
    KernelPCA,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    TaylorFeatures,
)

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "KernelRidge",
    "MercerDecomposition",
    "NystromFeatures",
    "RFMClassifier",
    "RFMRegressor",
    "RandomFourierFeatures",
    "RandomNetworkFeatures",
    "TabularEstimator",
    "TaylorFeatures",
]
