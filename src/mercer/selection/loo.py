"""Leave-one-out residuals of kernel ridge regression, all from one factorisation."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.selection.dials import TINY_NULL_DIAGONAL
from mercer.selection.weights import along_rows, positive_weights
from mercer.solvers import CholeskyFactor, Spectrum
from mercer.solvers.centring import centred
from mercer.solvers.eigh import Inverse


def loo_residuals(
    x: Tensor,
    inverse_diag: Tensor,
    alpha: float | Tensor,
    weights: Tensor | None = None,
    *,
    null_part: Tensor | None = None,
    null_diag: Tensor | None = None,
) -> Tensor:
    r"""Residuals e_i = y_i - f^{(-i)}(x_i), where f^{(-i)} is fitted with one unit of the weight of row i removed.

    With S = diag(sqrt w), A = S K S, G = (A + alpha I)^-1, x = G S y, the residual r and the leverage h of row i are

    .. math:: r_i = \frac{\alpha x_i}{\sqrt{w_i}}, \quad h_i = 1 - \alpha G_{ii}, \quad
        e_i = \frac{r_i}{1 - h_i / m_i} = \frac{m_i}{\sqrt{w_i}} \frac{\alpha x_i}{m_i - 1 + \alpha G_{ii}},
        \qquad m_i = \max(w_i, 1).

    A weight below one is removed as a whole, and integer weights equal repeated rows. Without weights e_i = x_i / G_ii.
    At alpha = 0 this is the limit: alpha x becomes `null_part` = P S y and alpha G_ii becomes `null_diag` = P_ii, P the
    projector onto the null space of A; where both vanish, e_i = x_i / (sqrt(w_i) G_ii) with the pseudo-inverse G.

    Parameters
    ----------
    x : Tensor
        Rows first: (n,), (n, t), or with an axis of alphas (n, k, t).
    inverse_diag : Tensor
        Diagonal of G, (n,) or with further axes like `x`.
    alpha : float or Tensor
        A number, or a tensor that broadcasts against the axes of `x` after the first.
    weights : Tensor or None
        (n,), or None for one each.
    null_part, null_diag : Tensor or None
        Like `x` and `inverse_diag`, for alpha = 0 and a singular A.

    References
    ----------
    Golub, Heath and Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge
    Parameter*, 1979; Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, eq. 5.12.

    Examples
    --------
    >>> K, y = torch.eye(2).double(), torch.tensor([1.0, 3.0]).double()
    >>> loo_residuals(y / 2, torch.ones(2).double() / 2, alpha=1.0)
    tensor([1., 3.], dtype=torch.float64)
    """
    return _residuals(x, inverse_diag, alpha, along_rows(positive_weights(weights, x), x), null_part, null_diag)


def _residuals(
    x: Tensor,
    inverse_diag: Tensor,
    alpha: float | Tensor,
    w: Tensor,
    null_part: Tensor | None,
    null_diag: Tensor | None,
) -> Tensor:
    diagonal = along_rows(inverse_diag, x)
    alphas = torch.as_tensor(alpha, dtype=x.dtype, device=x.device)
    extra = (w - 1.0).clamp(min=0.0)  # weight that stays when one unit is removed
    top, bottom = alphas * x, extra + alphas * diagonal
    if bool((alphas == 0).any()):
        at_zero = alphas == 0
        if null_part is not None and null_diag is not None:
            top = torch.where(at_zero, along_rows(null_part, x), top)
            bottom = torch.where(at_zero, extra + along_rows(null_diag, x), bottom)
        in_range = at_zero & (bottom <= TINY_NULL_DIAGONAL)
        top, bottom = torch.where(in_range, x, top), torch.where(in_range, diagonal, bottom)
    return (extra + 1.0) / w.sqrt() * top / bottom


def loo_error(residuals: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""The weighted mean of squared leave-one-out residuals, sum_i w_i e_i^2 / sum_i w_i, over the first axis.

    >>> loo_error(torch.tensor([1.0, 3.0]).double(), torch.tensor([3.0, 1.0]))
    tensor(3., dtype=torch.float64)
    """
    return _mean_square(residuals, along_rows(positive_weights(weights, residuals), residuals))


def loo_criterion(
    x: Tensor,
    inverse_diag: Tensor,
    alpha: Tensor,
    weights: Tensor,
    null_part: Tensor | None = None,
    null_diag: Tensor | None = None,
) -> Tensor:
    """`loo_error` of `loo_residuals` for weights that are checked."""
    w = along_rows(weights, x)
    return _mean_square(_residuals(x, inverse_diag, alpha, w, null_part, null_diag), w)


def _mean_square(residuals: Tensor, w: Tensor) -> Tensor:
    return (w * residuals.square()).sum(0) / w.sum()


def loo_predictions(
    prepared: Spectrum | Inverse | CholeskyFactor,
    Y: Tensor,
    weights: Tensor | None = None,
    alpha: float | Tensor | None = None,
) -> Tensor:
    """What each row is predicted to be by the fit to the others, in the shape of Y, (n,) or (n, t).

    `prepared` decomposes A = S K S with S = diag(sqrt weights); Y are the plain targets. `alpha` is one number or one
    per target; a `CholeskyFactor` and an `Inverse` have their own. Where A is centred, the fits have an intercept.

    >>> from mercer.solvers import Eigh
    >>> from mercer.testing.solvers import MatrixSystem
    >>> K = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    >>> loo_predictions(Eigh().prepare(MatrixSystem(K)), torch.tensor([2.0, 4.0]), alpha=0.0).round(decimals=6)
    tensor([2., 1.], dtype=torch.float64)
    """
    if isinstance(prepared, Spectrum):
        prepared = prepared.inverse(0.0 if alpha is None else alpha)
    given = Y.to(prepared.L if isinstance(prepared, CholeskyFactor) else prepared.values).reshape(len(Y), -1)
    y = centred(given, weights, wanted=prepared.lift is not None)[1]
    w = positive_weights(weights, y).unsqueeze(1)
    b = w.sqrt() * y
    if isinstance(prepared, CholeskyFactor):
        residuals = _residuals(prepared.solve(b).value, prepared.inverse_diag(), prepared.alpha, w, None, None)
    else:
        spectrum = prepared.spectrum
        null = (spectrum.null_part(b), spectrum.null_diag()) if prepared.cut else (None, None)
        residuals = _residuals(prepared.times(b), prepared.diag, prepared.alpha, w, *null)
    return (given - residuals).reshape(Y.shape)
