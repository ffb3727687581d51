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
    RandomFourierFeatures("laplace", 15, method="offset"),
    RandomFourierFeatures("matern32", 20, method="orthogonal"),
    RandomFourierFeatures("gaussian", 20, method="qmc"),
    NystromFeatures(n_components=10),
    NystromFeatures("laplace", 10, landmarks="pivoted"),
    NystromFeatures("matern32", 10, landmarks="leverage"),
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
