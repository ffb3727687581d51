"""Kernel ridge regression: settings, plan, solution, fit, and what is said of it."""

from mercer.estimators.ridge.kernel_ridge import KernelRidge

__all__ = ["KernelRidge"]
