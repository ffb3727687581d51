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
]


@parametrize_with_checks(ESTIMATORS)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
