"""Transformers: feature maps and principal components, each a frozen map that an estimator chooses and keeps."""

from mercer.estimators.transformers.kernel_pca import KernelPCA
from mercer.estimators.transformers.mercer_decomposition import MercerDecomposition
from mercer.estimators.transformers.nystrom_features import NystromFeatures
from mercer.estimators.transformers.random_fourier_features import RandomFourierFeatures
from mercer.estimators.transformers.random_network_features import RandomNetworkFeatures
from mercer.estimators.transformers.taylor_features import TaylorFeatures

__all__: list[str] = [
    "KernelPCA",
    "MercerDecomposition",
    "NystromFeatures",
    "RandomFourierFeatures",
    "RandomNetworkFeatures",
    "TaylorFeatures",
]
