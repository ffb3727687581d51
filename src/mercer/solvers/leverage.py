"""Rows drawn by approximate ridge leverage scores."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mercer.solvers.decompose import eigh
from mercer.solvers.dials import LEVERAGE_ROUNDING, LEVERAGE_STRIP
from mercer.solvers.drawing import draw_different
from mercer.solvers.products import Products
from mercer.solvers.system import System


def leverage_sample(A: System, m: int, generator: torch.Generator) -> Tensor:
    r"""Places of m different rows, drawn in proportion to approximate ridge leverage scores

    .. math:: \ell_i = \bigl(A (A + \lambda I)^{-1}\bigr)_{ii}
              \approx \tfrac{1}{\lambda} \bigl(a_{ii} - a_{iS} (A_{SS} + \lambda D)^{-1} a_{Si}\bigr).

    S is a sample of half of the rows, drawn in the same way from a sample of half of those, and so on; D holds the
    probabilities with which its rows were kept, and lambda is such that the scores add up to about m / log m.

    References: Musco and Musco, *Recursive sampling for the Nyström method*, 2017, algorithm 3.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> leverage_sample(MatrixSystem(torch.diag(torch.tensor([0.0, 0.0, 9.0]))), 1, torch.Generator().manual_seed(0))
    tensor([2])
    """
    products = Products.of(A)
    n = products.n
    order = torch.randperm(n, generator=generator).to(products.device)
    if n <= m:
        return order
    oversampling = math.log(max(m, 3))
    levels = math.ceil(math.log2(n / m))
    chosen = order[: math.ceil(n / 2**levels)]
    share = torch.ones(len(chosen), dtype=torch.float64, device=products.device)
    for level in reversed(range(levels)):
        members = order[: math.ceil(n / 2**level)]
        scores = _scores(products, members, chosen, share, math.ceil(m / (4 * oversampling)))
        probability = (oversampling * scores).clamp(1e-12, 1.0)
        picked = _uniform(len(members), generator, scores) < probability
        picked[scores.argmax()] = True
        chosen, share = members[picked], probability[picked]
    least = max(float(scores.max()) * 1e-12, torch.finfo(torch.float64).tiny)
    return order[draw_different(scores.clamp(min=least), m, generator)[0]]


def _scores(products: Products, members: Tensor, chosen: Tensor, share: Tensor, k: int) -> Tensor:
    """Approximate leverage scores of `members` from the rows `chosen`, which were kept with probabilities `share`."""
    root = share.rsqrt().unsqueeze(1)
    rows = products.rows(chosen)
    core = root * rows[:, chosen] * root.T
    values, vectors = eigh((core + core.T) / 2)
    values = values.clamp(min=0.0)
    tail = float(values[: max(0, len(values) - k)].sum()) / k
    ridge = max(tail, max(products.precision, LEVERAGE_ROUNDING) * float(values[-1]), torch.finfo(torch.float64).tiny)
    half = (root * vectors / (values + ridge).sqrt()).T
    explained = torch.cat([(half @ rows[:, part]).square().sum(0) for part in members.split(LEVERAGE_STRIP)])
    return ((products.diag[members] - explained) / ridge).clamp(0.0, 1.0)


def _uniform(count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    return torch.rand(count, generator=generator, dtype=torch.float64).to(like.device)
