"""Recursive feature machines: settings, search, fit, and what is said of it."""

from mercer.estimators.rfm.classifier import RFMClassifier
from mercer.estimators.rfm.regressor import RFMRegressor

__all__ = ["RFMClassifier", "RFMRegressor"]
