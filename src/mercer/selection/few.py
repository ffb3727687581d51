"""The best alpha of a fit on few functions, landmarks or features: one more pass over the rows gives the whole path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.selection.alpha import AlphaPath, best_alpha, check_path, entries_at_once, get_criterion
from mercer.solvers.nystrom import NystromSpectrum
from mercer.solvers.row_blocks import Block, total


def select_alpha_of_few(
    spectrum: NystromSpectrum,
    blocks: Iterable[Block],
    alphas: Any = None,
    criterion: str = "loo",
    memory_budget: Any = None,
) -> AlphaPath:
    r"""Choose alpha for each target of a Nyström fit, by its exact leave-one-out error or by its GCV error.

    In the basis E that makes both matrices of the normal equations diagonal, with b_i = E^T k_i,

    .. math:: f(x_i) = b_i^T (\mu + \alpha)^{-1} E^T h, \qquad h_i = w_i\, b_i^T (\mu + \alpha)^{-1} b_i, \qquad
              e_i = \frac{y_i - f(x_i)}{1 - h_i / m_i}, \quad m_i = \max(w_i, 1),

    so that one product for each row serves every alpha. With an intercept, b_i and y_i are less their means
    and h_i has the share of the row in the weight on top. The landmarks stay when a row is left out. As many rows are
    done together as a quarter of `memory_budget` has room for; half of what is free by default.

    References: Golub, Heath and Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge
    Parameter*, 1979.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers.nystrom import NystromSums
    >>> from mercer.solvers.row_blocks import RowBlocks
    >>> X = Points(torch.linspace(0, 6, 50).double().unsqueeze(1))
    >>> Z = X.take(slice(0, 50, 5))
    >>> blocks = RowBlocks(Gaussian(), X, Z, X.values.sin())
    >>> spectrum = NystromSums.of(blocks).prepare(Gaussian()(Z.values))
    >>> select_alpha_of_few(spectrum, blocks, [1e-6, 1e-3, 1.0]).alpha
    tensor([1.0000e-06], dtype=torch.float64)
    """
    get_criterion(criterion)
    values = spectrum.values.abs()
    path = check_path(alphas, float(values.max()) if len(values) else 0.0).to(values)
    inverse = spectrum.inverse_values(path)
    weighted = (inverse.unsqueeze(2) * (spectrum.basis.T @ spectrum.equations.cross).unsqueeze(1)).flatten(1)
    centre = _Centre.of(spectrum)
    sums = total(blocks, _errors_along, spectrum.basis, inverse, weighted, *centre, memory_budget)
    if criterion == "gcv":
        errors = sums["count"] * sums["plain"] / sums["free"].clamp(min=1e-12 * sums["count"]).square().unsqueeze(1)
    else:
        errors = sums["squares"] / sums["weight"]
    mean_square, mean = sums["size"] / sums["weight"], sums["sum"] / sums["weight"]
    constant = (mean_square - mean.square()).clamp(min=0.0)
    return replace(best_alpha(path, errors, mean_square, criterion), constant=constant)


class _Centre(NamedTuple):
    """What rows of functions and targets are less, and the leverage of an intercept over the weight of a row."""

    functions: Tensor
    targets: Tensor
    leverage: float

    @classmethod
    def of(cls, spectrum: NystromSpectrum) -> _Centre:
        means, basis = spectrum.equations.means, spectrum.basis
        if means is None:
            return cls(basis.new_zeros(basis.shape[1]), basis.new_zeros(spectrum.sums.cross.shape[1]), 0.0)
        if not means.weight > 0:
            raise InputError("All sample weights are zero: there are no rows to learn from.")
        return cls(basis.T @ means.features, means.targets, 1.0 / means.weight)


def _errors_along(
    blocks: Iterable[Block],
    basis: Tensor,
    inverse: Tensor,
    weighted: Tensor,
    mean: Tensor,
    target: Tensor,
    constant: float,
    memory_budget: Any = None,
) -> dict[str, Tensor]:
    """Sums over rows that give the errors along a path of k alphas: weighted is (r, k t), inverse is (r, k).

    Functions are less their `mean`, targets less `target`, and an intercept has the leverage `constant` of unit weight.
    """
    k = inverse.shape[1]
    t = weighted.shape[1] // k
    squares, plain, free, size, summed = (weighted.new_zeros(shape) for shape in ((k, t), (k, t), (k,), (t,), (t,)))
    weight, count = 0.0, 0.0
    rows = entries_at_once(memory_budget, basis.device) // max(1, k * t)
    for block in blocks:
        for K, y, w in block.parts(rows):
            B = (K.to(basis) @ basis).sub_(mean)
            del K
            y = y.to(basis) - target
            w = torch.ones_like(y[:, 0]) if w is None else w.to(basis)
            residual = y.unsqueeze(1) - (B @ weighted).reshape(len(B), k, t)
            leverage = w.unsqueeze(1) * (B.square_() @ inverse + constant)
            del B  # makes room for the next rows
            share = w.clamp(min=1.0)
            left_out = residual / (1.0 - leverage / share.unsqueeze(1)).clamp(min=1e-15).unsqueeze(2)
            squares += torch.einsum("i,ikt->kt", w, left_out.square())
            plain += torch.einsum("i,ikt->kt", w, residual.square())
            weight, size, summed = weight + float(w.sum()), size + w @ y.square(), summed + w @ y
            count, free = count + float(share.sum()), free + (share.unsqueeze(1) - leverage).sum(0)
    counts = {"weight": weighted.new_tensor(weight), "count": weighted.new_tensor(count)}
    return {"squares": squares, "plain": plain, "free": free, "size": size, "sum": summed, **counts}


def loo_predictions_of_few(
    spectrum: NystromSpectrum, blocks: Iterable[Block], alpha: float | Tensor, memory_budget: Any = None
) -> Tensor:
    """What each row is predicted to be by the fit to the others, (n, t); the landmarks stay. One alpha or one each."""
    t = spectrum.sums.cross.shape[1]
    alphas = torch.as_tensor(alpha, dtype=torch.float64).reshape(-1).expand(t).to(spectrum.values)
    inverse = spectrum.inverse_values(alphas)
    coef = inverse * (spectrum.basis.T @ spectrum.equations.cross)
    centre, found = _Centre.of(spectrum), []
    rows = entries_at_once(memory_budget, coef.device) // max(1, t)
    for block in blocks:
        for K, y, w in block.parts(rows):
            K, y = K.to(coef), y.to(coef)
            w = torch.ones_like(y[:, :1]) if w is None else w.to(coef).unsqueeze(1)
            B = (K @ spectrum.basis).sub_(centre.functions)
            del K
            residual = y - centre.targets - B @ coef
            leverage = w * (B.square_() @ inverse + centre.leverage)
            del B  # makes room for the next rows
            kept = (1.0 - leverage / w.clamp(min=1.0)).clamp(min=1e-15)
            found.append(y - residual / kept)
    return torch.cat(found)
