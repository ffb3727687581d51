"""scikit-learn's own law for transformers, for every feature map and for kernel PCA."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    KernelPCA,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    TaylorFeatures,
)

TRANSFORMERS = [
    RandomFourierFeatures(),
    RandomFourierFeatures(15, "laplace", method="offset"),
    RandomFourierFeatures(20, "matern32", method="orthogonal"),
    RandomFourierFeatures(20, "gaussian", method="qmc"),
    NystromFeatures(n_components=10),
    NystromFeatures(10, "laplace", landmarks="pivoted"),
    NystromFeatures(10, "matern32", landmarks="leverage"),
    TaylorFeatures(degree=2),
    RandomNetworkFeatures(20),
    RandomNetworkFeatures(20, "erf"),
    MercerDecomposition(n_components=5),
    KernelPCA(),
    KernelPCA(2, "laplace"),
    KernelPCA(3, "linear", center=False),
    KernelPCA(2, n_landmarks=10),
    KernelPCA(2, solver="krylov"),
]


@parametrize_with_checks(TRANSFORMERS)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
