"""scikit-learn's own law for estimators, for every estimator and several settings."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelRidge

ESTIMATORS = [
    KernelRidge(),
    KernelRidge("gaussian", alpha=0.1, solver="eigh"),
    KernelRidge("matern52", alpha="loo"),
    KernelRidge("rbf", alpha="gcv"),
    KernelRidge("linear", alpha=0.0),
    KernelRidge("laplace", alpha=0.5, solver="pcg", tol=1e-10),
    KernelRidge("laplace", alpha="loo", tune=True),
    KernelRidge("laplace", alpha=0.1, solver="nystrom", n_landmarks=40),
    KernelRidge("gaussian", alpha=0.1, solver="falkon", n_landmarks=40, tol=1e-8),
    KernelRidge("gaussian", alpha=0.1, solver="random_features", n_features=60),
    KernelRidge("laplace", alpha=0.1, solver="eigenpro"),
    KernelRidge("laplace", alpha=0.1, solver="gd"),
    KernelRidge("laplace", solver="flow"),
]


BATCHES = "batches of rows are drawn at random, and repeated rows give other batches than weights"


def expected_to_fail(estimator):
    if estimator.solver != "eigenpro":
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": BATCHES,
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_to_fail)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
