"""The scikit-learn estimators: validate, build the operator, call a solver, keep an RKHS function."""

from mercer.estimators import transformers
from mercer.estimators.by_loss import KernelClassifier, KernelRegressor
from mercer.estimators.gaussian import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.estimators.rfm import RFMClassifier, RFMRegressor
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.tabular import TabularEstimator
from mercer.estimators.transformers import *  # noqa: F403 - all that its list names

__all__: list[str] = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelRegressor",
    "KernelRidge",
    "RFMClassifier",
    "RFMRegressor",
    "TabularEstimator",
]
__all__ += transformers.__all__
