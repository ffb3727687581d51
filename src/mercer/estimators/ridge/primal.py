"""What a fit in the features of the kernel says of its training rows."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.data.sample import spread
from mercer.estimators.ridge.few import sums_of_rows
from mercer.estimators.ridge.fit import RidgeFit
from mercer.functions.sums import FeatureSum
from mercer.selection.few import loo_predictions_of_few
from mercer.solvers.basis_blocks import blocks_of


def dual_coefficients(fit: RidgeFit) -> Tensor:
    r"""The coefficients of the same function as a sum of kernels at the rows, (n, t),

    .. math:: c = W (y - f) / \alpha, \qquad c = W \Phi (\Phi^T W \Phi)^+ \beta \quad \text{at } \alpha = 0.
    """
    sample = fit.all_rows("dual_coef_")
    assert isinstance(fit.function, FeatureSum)
    targets = sample.targets.to(torch.float64)
    weights = torch.ones(len(sample), dtype=torch.float64) if sample.weights is None else sample.weights
    alpha = torch.as_tensor(fit.alpha, dtype=torch.float64).reshape(-1).expand(targets.shape[1]).cpu()
    left = targets - fit.values(sample.rows).reshape(targets.shape).cpu().to(torch.float64)
    coef = left / torch.where(alpha > 0, alpha, 1.0)
    if bool((alpha == 0).any()):
        coef = torch.where(alpha > 0, coef, _of_interpolant(fit))
    return weights.unsqueeze(1) * coef


def _of_interpolant(fit: RidgeFit) -> Tensor:
    sample, sums = fit.all_rows("dual_coef_"), sums_of_rows(fit)
    spectrum = sums.spectrum()
    assert isinstance(fit.function, FeatureSum)
    inverse = spectrum.inverse_values(torch.zeros(1).to(spectrum.values))
    inner = spectrum.basis @ (inverse * (spectrum.basis.T @ fit.function.coef.to(spectrum.basis)))
    values, means = sums.basis.at(sample.rows, fit.plan.place).matmul(inner), spectrum.equations.means
    return (values if means is None else values - means.features @ inner).cpu()


def left_out_predictions(fit: RidgeFit) -> Tensor:
    """Leave-one-out predictions of the rows with weight, at their places, (n, t)."""
    sample = fit.all_rows("leave-one-out")
    data, places = sample.positive()
    sums, plan = sums_of_rows(fit), fit.plan
    blocks = blocks_of(sums.working, data, plan.place)
    found = loo_predictions_of_few(sums.spectrum(), blocks, fit.alpha, plan.place.memory_budget)
    return spread(found, places, len(sample))
