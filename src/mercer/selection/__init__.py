"""Choosing alpha and kernel parameters: leave-one-out, generalised cross-validation, and tuning by their gradient."""

from mercer.selection.alpha import AlphaPath, default_alphas, select_alpha
from mercer.selection.gcv import gcv_error
from mercer.selection.loo import loo_error, loo_predictions, loo_residuals
from mercer.selection.tuning import Tuned, tune_kernel

__all__ = [
    "AlphaPath",
    "Tuned",
    "default_alphas",
    "gcv_error",
    "loo_error",
    "loo_predictions",
    "loo_residuals",
    "select_alpha",
    "tune_kernel",
]
