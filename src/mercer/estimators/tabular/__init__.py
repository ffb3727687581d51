"""Estimators on tables as they are: numbers, categories, text, dates and gaps."""

from mercer.estimators.tabular.estimator import TabularEstimator, tabular

__all__ = ["TabularEstimator", "tabular"]
