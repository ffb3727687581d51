"""scikit-learn's own law for estimators, for the classifiers and regressors of every loss."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelClassifier, KernelRegressor

ESTIMATORS = [
    KernelClassifier(),
    KernelClassifier("gaussian", loss="hinge", alpha=0.1, fit_intercept=True, tol=1e-9, max_iter=100),
    KernelClassifier("gaussian", loss="squared_hinge", alpha=0.5, class_weight="balanced"),
    KernelClassifier("matern32", loss="squared_hinge", alpha="auto"),
    KernelClassifier("matern32", loss="squared", alpha="auto"),
    KernelClassifier("gaussian", alpha=0.5, fit_intercept=True, solver="nystrom", n_landmarks=30, tol=1e-13),
    KernelRegressor("gaussian", loss="huber", alpha=0.3),
    KernelRegressor("gaussian", loss="quantile", alpha=0.1, fit_intercept=True, tol=1e-9),
    KernelRegressor("gaussian", loss="epsilon_insensitive", alpha=0.1, tol=1e-9),
]


@parametrize_with_checks(ESTIMATORS)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
