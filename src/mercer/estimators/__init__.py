"""The scikit-learn estimators: validate, build the operator, call a solver, keep an RKHS function."""

from mercer.estimators.by_loss import KernelClassifier, KernelRegressor
from mercer.estimators.gaussian import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.mercer_decomposition import MercerDecomposition
from mercer.estimators.nystrom_features import NystromFeatures
from mercer.estimators.random_fourier_features import RandomFourierFeatures
from mercer.estimators.random_network_features import RandomNetworkFeatures
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.taylor_features import TaylorFeatures

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "KernelRidge",
    "MercerDecomposition",
    "NystromFeatures",
    "RandomFourierFeatures",
    "RandomNetworkFeatures",
    "TaylorFeatures",
]
