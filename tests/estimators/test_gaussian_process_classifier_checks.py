"""scikit-learn's own law for estimators, for Gaussian process classification."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import GaussianProcessClassifier
from mercer.kernels import Gaussian

ESTIMATORS = [
    GaussianProcessClassifier(n_restarts=0, max_iter=5),
    GaussianProcessClassifier(4.0 * Gaussian(1.0), tune=False),
]


@parametrize_with_checks(ESTIMATORS)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
