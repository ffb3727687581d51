"""Fits with any loss: settings, plan, solution, fit, and what is said of it."""

from mercer.estimators.by_loss.kernel_classifier import KernelClassifier
from mercer.estimators.by_loss.kernel_regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
