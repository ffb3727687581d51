"""The curvature of an objective on a sample of the rows, which stands for that on all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.solvers.dials import SAMPLED_ACCURACY
from mercer.solvers.few_span import FewSpan
from mercer.solvers.objective import Known, Objective, Terms


@dataclass(frozen=True, eq=False)
class SampledCurvature:
    r"""The inverse of :math:`2 \alpha + A^* H A`, bordered by the intercepts, for rows whose weights stand for all.

    With separate predictions there is a factor for each column; those of a joint loss are solved by iterations on the
    sample, whose kernel values stay in memory where they fit.
    """

    span: FewSpan | None
    objective: Objective
    terms: Terms
    factors: list[tuple[Tensor, Tensor, Tensor]]

    @classmethod
    def at(cls, span: FewSpan, objective: Objective, found: Known | Any) -> SampledCurvature:
        """The curvature at a function that is known by its values at the sample."""
        terms = objective.at(found.fitted)
        if objective.loss.joint:
            return cls(span, objective, terms, [])
        h = terms.root.scale.square()
        factors = []
        for k in range(h.shape[1]):
            tilt = span.gather(h[:, k : k + 1])
            factors.append((span.hessian_factor(h[:, k], objective.alpha), tilt, h[:, k].sum()))
        return cls(None, objective, terms, factors)

    def solve(self, uphill: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """The change of coefficients and intercepts that takes this gradient away."""
        if self.span is not None:
            step, shift = self.span.joint_step(self.terms, uphill, slope, SAMPLED_ACCURACY)
            return -step, -shift
        step, shift = torch.zeros_like(uphill), torch.zeros_like(slope)
        for k, (L, tilt, total) in enumerate(self.factors):
            if not self.objective.intercept:
                step[:, k : k + 1] = torch.cholesky_solve(uphill[:, k : k + 1], L)
                continue
            plain, bent = torch.cholesky_solve(torch.cat([uphill[:, k : k + 1], tilt], dim=1), L).split(1, dim=1)
            curvature = float(total - (tilt * bent).sum())
            if curvature > 1e-13 * float(total):
                shift[k] = (slope[k] - (tilt * plain).sum()) / curvature
            step[:, k : k + 1] = plain - bent * shift[k]
        return step, shift
