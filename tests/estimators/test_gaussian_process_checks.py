"""scikit-learn's own law for estimators, for Gaussian processes."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import GaussianProcessRegressor
from mercer.kernels import Gaussian

ESTIMATORS = [
    GaussianProcessRegressor(n_restarts=0),
    GaussianProcessRegressor(Gaussian(1.0), mean="zero", noise=0.1, tune=False),
]


@parametrize_with_checks(ESTIMATORS)
def test_every_scikit_learn_check_passes(estimator, check):
    check(estimator)
