"""Choosing alpha and kernel parameters: leave-one-out, generalised cross-validation, and tuning by their gradient."""

from mercer.selection.alpha import AlphaPath, default_alphas, select_alpha
from mercer.selection.approximate_loo import approximate_loo
from mercer.selection.gcv import gcv_error
from mercer.selection.loo import loo_error, loo_predictions, loo_residuals
from mercer.selection.loss_alpha import select_loss_alpha
from mercer.selection.tuning import Tuned, tune_kernel

__all__ = [
    "AlphaPath",
    "Tuned",
    "approximate_loo",
    "default_alphas",
    "gcv_error",
    "loo_error",
    "loo_predictions",
    "loo_residuals",
    "select_alpha",
    "select_loss_alpha",
    "tune_kernel",
]
