"""Scores, the gradients of log densities: given as functions or arrays, or found by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, check_finite
from mercer.core.errors import InputError, InputTypeError
from mercer.core.values import as_values
from mercer.kernels.algebra import need_function
from mercer.kernels.pair import function_name


@dataclass(frozen=True)
class LogProbScore:
    """The score of a log density, by autograd; constants in it do not matter.

    >>> LogProbScore(lambda x: -0.5 * x.square().sum(1))(torch.tensor([[2.0, 3.0]]))
    tensor([[-2., -3.]])
    """

    log_prob: Callable[..., Any]

    def __call__(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            rows = x.detach().clone().requires_grad_(True)
            try:
                values = self.log_prob(rows)
            except (RuntimeError, TypeError) as error:
                if "numpy" not in str(error):
                    raise
                raise InputTypeError(
                    f"{function_name(self.log_prob)} is written with numpy, which has no gradients: write it with "
                    "torch, or give a score."
                ) from None
            if not isinstance(values, Tensor) or values.numel() != len(rows):
                raise InputTypeError(
                    f"{function_name(self.log_prob)} must map (n, d) rows to a tensor of n numbers; for {len(rows)} "
                    f"rows it gave {tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__}."
                )
            if not values.requires_grad:
                raise InputTypeError(
                    f"{function_name(self.log_prob)} carries no gradient: write it with torch, or give a score."
                )
            return torch.autograd.grad(values.sum(), rows)[0]


def score_rows(score: Callable[..., Any], x: Tensor) -> Tensor:
    """The scores at some rows: the function may be written with torch or with numpy."""
    try:
        values = score(x)
    except TypeError:
        values = score(x.detach().cpu().numpy())
    try:
        found = torch.as_tensor(values).to(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputTypeError(f"{function_name(score)} must return an array, got {type(values).__name__}.") from None
    return _checked(found.detach(), x, function_name(score))


def scored_points(points: Points, score: Any, log_prob: Any) -> Points:
    """Rows [x | s] in float64, from a score (a function or an array) or from a log density: one of both.

    >>> scored_points(Points(torch.tensor([[2.0]])), lambda x: -x, None).values
    tensor([[ 2., -2.]], dtype=torch.float64)
    """
    if not points.is_tensor:
        raise InputTypeError("Scores are gradients: they need rows of numbers, not objects.")
    x = points.values.detach().double()
    return Points(torch.cat([x, _scores(x, score, log_prob)], 1))


def _scores(x: Tensor, score: Any, log_prob: Any) -> Tensor:
    if (score is None) == (log_prob is None):
        raise InputError("Give either score, the gradients of log p, or log_prob, a function of torch tensors.")
    if log_prob is not None:
        need_function(log_prob, "ksd", "log_prob")
        return _checked(LogProbScore(log_prob)(x), x, "The gradient of log_prob")
    if callable(score):
        return score_rows(score, x)
    given = as_values(score, "score")
    return _checked(given.to(x), x, "score")


def _checked(scores: Tensor, x: Tensor, name: str) -> Tensor:
    if scores.ndim == 1 and x.shape[1] == 1:
        scores = scores.unsqueeze(1)
    if scores.shape != x.shape:
        raise InputError(f"{name} has shape {tuple(scores.shape)} but the rows have shape {tuple(x.shape)}.")
    check_finite(scores, name, advice="the density must be positive and differentiable at every row.")
    return scores
