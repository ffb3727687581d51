"""Gaussian processes for numbers and for labels: settings, plan, fit, and what is said of it."""

from mercer.estimators.gaussian.classifier import GaussianProcessClassifier
from mercer.estimators.gaussian.regressor import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
