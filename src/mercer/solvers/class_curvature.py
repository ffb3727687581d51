"""The curvature that several classes have on few features, from few rows for each pair of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

import torch
from torch import Tensor

from mercer.losses.smooth import Multinomial, softmax
from mercer.solvers.dials import CACHED_ROWS, PAIR_ROWS
from mercer.solvers.drawing import draw_in_order
from mercer.solvers.objective import Objective, Terms
from mercer.solvers.symmetric import add_gram

Parts = Callable[[], Iterable[tuple[slice, Tensor]]]
"""Features of the rows in parts, each with its places."""


def of_classes(objective: Objective) -> bool:
    """Whether the curvature of an objective is the one below."""
    return isinstance(objective.loss, Multinomial)


def class_curvature(terms: Terms, spectrum: Tensor, parts: Parts) -> Tensor:
    r"""An estimate of the second derivative of a multinomial objective in r coefficients for each of t classes,

    .. math:: 2 \alpha + \sum_i w_i\, \varphi_i \varphi_i^T \otimes (\mathrm{diag}(p_i) - p_i p_i^T)
        = 2 \alpha + \sum_{k < l} \Big( \sum_i w_i p_{ik} p_{il}\, \varphi_i \varphi_i^T \Big)
        \otimes (e_k - e_l) (e_k - e_l)^T,

    of shape (r t, r t), where the features have orthogonal columns with squared norms `spectrum`; an intercept is the
    last coefficient. For each pair of classes rows are drawn in proportion to their weight times the leverage of their
    features. So a class of few rows is known as well as one of many, and a feature of few rows, too: the estimate is
    within a factor for any data. A constant added to all intercepts, which changes nothing, has some curvature here.

    Reference: Cohen, Lee, Musco, Musco, Peng and Sidford, *Uniform sampling for matrix approximation*, 2015.

    >>> from mercer.losses import Multinomial
    >>> from mercer.solvers.objective import Objective
    >>> problem = Objective(Multinomial(), torch.tensor([0.0, 1.0]).double(), 0.05, outputs=2)
    >>> phi = torch.eye(2).double()
    >>> class_curvature(problem.at(torch.zeros(2, 2).double()), torch.ones(2).double(), lambda: [(slice(0, 2), phi)])
    tensor([[ 0.3500, -0.2500,  0.0000,  0.0000],
            [-0.2500,  0.3500,  0.0000,  0.0000],
            [ 0.0000,  0.0000,  0.3500, -0.2500],
            [ 0.0000,  0.0000, -0.2500,  0.3500]], dtype=torch.float64)
    """
    objective, (p, _) = terms.objective, softmax(terms.f)
    (n, t), r = p.shape, len(spectrum) + objective.intercept
    reciprocal = 1.0 / (spectrum + 8 * objective.alpha)
    squares = [some.square() @ reciprocal.to(some) for _, part in parts() for some in part.split(CACHED_ROWS)]
    leverage = (torch.cat(squares).to(p) + objective.intercept / n) * torch.as_tensor(objective.w).to(p).reshape(-1)
    pairs = list(combinations(range(t), 2))
    drawn = [_drawn(p[:, k] * p[:, other], leverage, objective.w, PAIR_ROWS * r) for k, other in pairs]
    grams = p.new_zeros(len(pairs), r, r)
    for place, features in _bordered(parts(), objective.intercept):
        ends = torch.tensor([place.start, place.stop], device=p.device)
        for gram, (places, own) in zip(grams, drawn, strict=True):
            first, last = torch.searchsorted(places, ends).tolist()
            some = features[places[first:last] - place.start]
            add_gram(gram, (some * own[first:last].sqrt().unsqueeze(1).to(some)).to(p))
    total = p.new_zeros(r, t, r, t)
    for gram, (k, other) in zip(grams, pairs, strict=True):
        total[:, k, :, k] += gram
        total[:, other, :, other] += gram
        total[:, k, :, other] -= gram
        total[:, other, :, k] -= gram
    if objective.intercept:
        total[-1, :, -1, :] += float(total[-1, :, -1, :].diagonal().mean())
    matrix = total.view(r * t, r * t)
    matrix.diagonal()[: len(spectrum) * t].add_(2 * objective.alpha)
    return matrix


def _drawn(couple: Tensor, leverage: Tensor, weights: Tensor | float, count: int) -> tuple[Tensor, Tensor]:
    """Places of rows and the weights with which they stand for all."""
    places, share = draw_in_order(couple * leverage, count)
    return places, (couple * weights if isinstance(weights, float) else couple * weights[:, 0])[places] / share


def _bordered(parts: Iterable[tuple[slice, Tensor]], intercept: bool) -> Iterator[tuple[slice, Tensor]]:
    """The features with the constant as one more where there is an intercept."""
    for place, part in parts:
        yield place, torch.cat([part, torch.ones_like(part[:, :1])], dim=1) if intercept else part
