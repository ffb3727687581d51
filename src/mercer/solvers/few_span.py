"""Newton steps over few functions: kernels at landmarks, with rows that are read block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.blocks import rows_at_once
from mercer.core.memory import give_back, resolve_budget
from mercer.solvers.class_curvature import class_curvature, of_classes
from mercer.solvers.conjugate_gradients import conjugate_gradients
from mercer.solvers.decompose import eigh_in_place
from mercer.solvers.descent import Tell, descended
from mercer.solvers.dials import (
    CACHED_ROWS,
    ENTRIES,
    ESTIMATED,
    FEW_SPAN_DESCENT,
    FEW_SPAN_GAIN,
    FEW_SPAN_JITTER,
    FEW_SPAN_NEAR,
    FEW_SPAN_ROUNDED,
    FEW_SPAN_STEPS,
    FEW_SPAN_SYSTEM,
    MATRICES,
    PAIR_ROWS,
    PART_SHARE,
    ROW_PARTS,
)
from mercer.solvers.excess import excess_of_functions
from mercer.solvers.factor import factorise
from mercer.solvers.objective import Known, Objective, Step, Terms
from mercer.solvers.row_blocks import Block
from mercer.solvers.scales import FactorScale, MeanScale, Scale, mean_curvature
from mercer.solvers.symmetric import add_gram
from mercer.solvers.whitening import landmark_matrix, rounding_of, whitening


@dataclass(eq=False)
class FewSpan:
    r"""Functions f = sum_j c_j k(z_j, .) on m landmarks, in a basis E with E^T K_mm E = I: c = E u, f(X) = K_nm E u.

    A Newton step solves the small system

    .. math:: (E^T K_{nm}^T H K_{nm} E + 2 \alpha I)\, d = -(E^T K_{nm}^T g + 2 \alpha u)

    with sums that take one pass over the rows, or by conjugate gradients with two passes each where a joint loss
    couples its predictions. Kernel values are kept between passes where they fit the memory budget beside these. E is
    turned such that E^T K_nm^T K_nm E is diagonal, with `spectrum` on it. `spare` bytes of the budget are left.
    `rough` is the preconditioner of the steps so far, and what it was made for.
    """

    blocks: Iterable[Block]
    basis: Tensor
    n: int
    weights: Tensor | None
    kept: list[Tensor] | None
    spectrum: Tensor
    rounding: float = 0.0
    spare: float = math.inf
    passes: int = 0
    rough: Rough | None = None
    descents: int = 0

    @classmethod
    def of(cls, blocks: Any, K_mm: Any, memory_budget: Any = None) -> FewSpan:
        """The span of landmarks with Gram matrix `K_mm`, over blocks that can be read again and again."""
        first = next(iter(blocks)).kernel
        matrix, precision = landmark_matrix(K_mm, torch.empty(first.shape[1], dtype=torch.float64, device=first.device))
        rounding = max(precision, rounding_of(first.dtype, len(matrix)))
        basis = whitening(matrix, rounding)
        n = sum(len(block.targets) for block in blocks)
        weights = [block.weights for block in blocks]
        all_weights = None if weights[0] is None else torch.cat([w for w in weights if w is not None])
        budget = resolve_budget(memory_budget, first.device)
        m = len(matrix)
        spare = (
            budget - 8 * MATRICES * m**2 - ROW_PARTS * min(8 * m * rows_at_once(m, first.device), budget / PART_SHARE)
        )
        give_back()
        span = cls(blocks, basis, n, all_weights, None, basis, rounding, spare)
        values, vectors = eigh_in_place(span.gram(torch.ones(n).to(basis)), "The kernel at the landmarks")
        span.spectrum, span.basis = values.clamp(min=0.0), basis @ vectors
        span.keep()
        return span

    def keep(self) -> None:
        """Keep the kernel values in the basis, where they fit."""
        if self.kept is None and 8 * self.n * self.m <= self.spare:
            self.kept = [features for _, features in self.parts()]
            self.spare -= 8 * self.n * self.m

    def let_go(self) -> None:
        """Make room for other things; `keep` evaluates the kernel once more."""
        if self.kept is not None:
            self.kept = None
            self.spare += 8 * self.n * self.m

    @property
    def m(self) -> int:
        return self.basis.shape[1]

    @property
    def device(self) -> torch.device:
        return self.basis.device

    @property
    def note(self) -> str:
        kept = "kernel values were kept" if self.kept is not None else f"{self.passes} passes over the rows"
        lost = len(self.basis) - self.m
        kept += f"; {self.descents} steps of L-BFGS first" if self.descents else ""
        return kept + (f"; {self.m} of {len(self.basis)} landmarks are independent to rounding" if lost else "")

    def coarse(self) -> None:
        return None

    def descended(self, objective: Objective, start: Any, tell: Tell | None = None) -> Known | None:
        """Where classes are joined, by L-BFGS with their curvature, which is made anew after some steps."""
        if not self._has_factor(objective):
            return None
        theta = self.basis.new_zeros(self.m + 1, objective.outputs)
        if start is not None:
            theta = torch.cat([start.value, start.intercept.unsqueeze(0)])
        steps, parts = FEW_SPAN_DESCENT, self._rounded()
        while steps == FEW_SPAN_DESCENT:
            scale = self._rough(objective.at(self.values(theta[:-1]) + theta[-1])).scale
            theta, steps = descended(
                objective,
                scale,
                lambda c: values_of(parts(), c, self.n),
                lambda V: gathered(parts(), V, self.m),
                theta,
                gain=FEW_SPAN_GAIN,
                most=FEW_SPAN_DESCENT,
                tell=tell,
            )
            self.rough, self.descents = None, self.descents + steps
        return Known(theta[:-1], theta[-1], self.values(theta[:-1]) + theta[-1])

    def _rounded(self) -> Callable[[], Parts]:
        """The parts in float32, where there is room for them."""
        if self.kept is None or 4 * self.n * self.m > self.spare:
            return self.parts
        rounded = [(place, part.float()) for place, part in self.parts()]
        return lambda: rounded

    def _has_factor(self, objective: Objective) -> bool:
        """Whether the curvature of all classes is small enough to be stored and factorised."""
        unknowns = (self.m + objective.intercept) * objective.outputs
        return of_classes(objective) and 0 < unknowns <= FEW_SPAN_SYSTEM and 8 * unknowns**2 <= self.spare / 4

    def coefficients(self, u: Tensor) -> Tensor:
        """The coefficients of the landmarks."""
        return self.basis @ u

    def parts(self) -> Iterator[tuple[slice, Tensor]]:
        """The rows of K_nm E, some at a time, with their places."""
        self.passes += 1
        start = 0
        for features in self.kept if self.kept is not None else self._read():
            yield slice(start, start + len(features)), features
            start += len(features)

    def _read(self) -> Iterator[Tensor]:
        for block in self.blocks:
            for K, _, _ in block.parts():
                yield K.to(self.basis) @ self.basis

    def values(self, c: Tensor) -> Tensor:
        return values_of(self.parts(), c, self.n)

    def predictions(self, c: Tensor) -> Tensor:
        self.passes += 1
        coef = self.coefficients(c)
        return torch.cat([K.to(coef) @ coef for block in self.blocks for K, _, _ in block.parts()])

    def excess(self, objective: Objective, c: Tensor, f: Tensor) -> Tensor:
        terms = objective.at(f)
        uphill = self.gather(terms.gradient) + 2 * objective.alpha * c
        if self._has_factor(objective):
            slope = torch.cat([uphill, terms.gradient.sum(0, keepdim=True)])
            return ESTIMATED * self._rough(terms).scale.half(slope).square().sum().reshape(1) / 2
        left_out = ENTRIES * self.rounding * float(self.spectrum.sum()) if self.m < len(self.basis) else 0.0
        return excess_of_functions(terms, uphill, float(self.spectrum.max()) if self.m else 0.0, left_out)

    def gather(self, V: Tensor) -> Tensor:
        """E^T K_nm^T V."""
        return gathered(self.parts(), V, self.m)

    def gram(self, h: Tensor) -> Tensor:
        """E^T K_nm^T diag(h) K_nm E."""
        total = h.new_zeros(self.m, self.m)
        for part, features in self.parts():
            used = h[part] > 0
            scaled = (features if bool(used.all()) else features[used]) * h[part][used].sqrt().unsqueeze(1)
            add_gram(total, scaled)
        return total

    def inner(self, c: Tensor, other: Tensor, other_values: Tensor) -> float:
        return float((c * other).sum())

    @property
    def mean_diag(self) -> float:
        """The mean squared norm of a row's evaluation."""
        return max(float(self.spectrum.sum()) / self.n, torch.finfo(torch.float64).tiny)

    def dual_variables(self, c: Tensor) -> None:
        """Dual variables belong to rows, coefficients to landmarks."""

    def from_dual(self, dual: Tensor, c: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The function found in the span."""
        return c, values

    def dual_square(self, dual: Tensor, values: Tensor) -> float:
        return float(self.gather(dual).square().sum())

    def newton(self, terms: Terms, c: Tensor, tol: float, at: Tensor | None = None) -> Step:
        objective, touching = terms.objective, terms.touching(at)
        joint, gradient = objective.loss.joint, touching.gradient
        uphill = self.gather(gradient) + 2 * objective.alpha * c
        if joint:
            d, b = self.joint_step(touching, uphill, gradient.sum(0), max(tol, FEW_SPAN_NEAR))
        else:
            d, b = self._separate(objective, touching.root.scale.square(), uphill, gradient)
        return Step(d, self.values(d) + b, b, exact=not joint)

    def _separate(self, objective: Objective, h: Tensor, uphill: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """The step of predictions that do not depend on each other."""
        d, b = torch.zeros_like(uphill), uphill.new_zeros(uphill.shape[1])
        shared = bool((h == h[:, :1]).all())
        for k in [slice(None)] if shared else [slice(k, k + 1) for k in range(h.shape[1])]:
            L = self.hessian_factor(h[:, k][:, 0], objective.alpha)
            right = -uphill[:, k]
            if not objective.intercept:
                d[:, k] = torch.cholesky_solve(right, L)
                continue
            first = h[:, k][:, :1]
            tilt = self.gather(first)
            both = torch.cholesky_solve(torch.cat([right, tilt], dim=1), L)
            plain, bent = both[:, :-1], both[:, -1:]
            curvature = float(first.sum() - (tilt * bent).sum())
            if curvature > 1e-13 * float(first.sum()):
                b[k] = (-gradient[:, k].sum(0) - (tilt * plain).sum(0)) / curvature
            d[:, k] = plain - bent * b[k]
        return d, b

    def hessian_factor(self, h: Tensor, alpha: float) -> Tensor:
        """L with L L^T = E^T K_nm^T diag(h) K_nm E + 2 alpha."""
        system = self.gram(h)
        system.diagonal().add_(2 * alpha)
        return factor_with_jitter(system, alpha)

    def joint_step(self, terms: Terms, uphill: Tensor, slope: Tensor, tol: float) -> tuple[Tensor, Tensor]:
        """The step of predictions that a joint loss couples, by conjugate gradients.

        In coordinates in which the curvature is near the identity: the square of `tol` is relative to the decrease
        that the step promises.
        """
        objective = terms.objective
        rough = self._rough(terms)

        def product(V: Tensor, _: Tensor) -> Tensor:
            theta = rough.scale.back(V[:, 0])
            bent = terms.curvature(self.values(theta[:-1]) + theta[-1])
            image = self.gather(bent) + 2 * objective.alpha * theta[:-1]
            return rough.scale.half(torch.cat([image, bent.sum(0, keepdim=True)])).unsqueeze(1)

        right = rough.scale.half(-torch.cat([uphill, slope.unsqueeze(0)])).unsqueeze(1)
        found = conjugate_gradients(product, right, lambda R, _: R.clone(), tol=tol, max_iter=FEW_SPAN_STEPS)
        self.rough = rough.after(found.iterations / -math.log10(tol))
        theta = rough.scale.back(found.value[:, 0])
        return theta[:-1], theta[-1]

    def _rough(self, terms: Terms) -> Rough:
        """The coordinates of the steps before, or where there are none for this objective, those of the curvature."""
        objective, t = terms.objective, terms.f.shape[1]
        made_for = (objective.alpha, objective.intercept, t)
        if self.rough is not None and self.rough.made_for == made_for:
            return self.rough
        if not self._has_factor(objective):
            weight = float(torch.as_tensor(objective.w).sum()) if objective.weights is not None else self.n
            scale = MeanScale.of(objective, self.spectrum, *mean_curvature(objective, terms.f), weight)
            return Rough(made_for, scale, math.inf)
        L = factor_with_jitter(class_curvature(terms, self.spectrum, self.parts), objective.alpha)
        return Rough(made_for, FactorScale(L, objective.intercept, t), PAIR_ROWS * (t - 1) * self.m**2 / (4 * self.n))


@dataclass(frozen=True, eq=False)
class Rough:
    """Coordinates in which the curvature is near the identity, what they were made for and what that cost.

    `cost` is in products with the curvature. `first` are the iterations for a digit that the first system needed.
    """

    made_for: Any
    scale: Scale
    cost: float
    first: float | None = None

    def after(self, iterations: float) -> Rough | None:
        """What is kept after a system of so many iterations for a digit; None where new coordinates cost less."""
        if self.first is None:
            return replace(self, first=iterations)
        return self if iterations - self.first <= self.cost else None


Parts = Iterable[tuple[slice, Tensor]]


def values_of(parts: Parts, c: Tensor, n: int) -> Tensor:
    """Features in parts, in any precision, times coefficients c (m, t): the values (n, t), stored column by column."""
    found = c.new_empty(c.shape[1], n)
    turned = c.T.contiguous()  # as rows on the left, over parts that the caches hold: twice as fast
    for part, features in parts:
        left = turned.to(features)
        for own, some in zip(found[:, part].split(CACHED_ROWS, 1), features.split(CACHED_ROWS), strict=True):
            own.copy_(left @ some.T)
    return found.T


def gathered(parts: Parts, V: Tensor, m: int) -> Tensor:
    """The transpose of such features times V (n, t)."""
    total, turned = V.new_zeros(V.shape[1], m), V.T.contiguous()
    for part, features in parts:
        left = turned[:, part].to(features)
        for own, some in zip(left.split(CACHED_ROWS, 1), features.split(CACHED_ROWS), strict=True):
            total += own @ some
    return total.T.contiguous()


def factor_with_jitter(system: Tensor, alpha: float) -> Tensor:
    """The Cholesky factor of a Newton system, of which the lower half is read; sums are rounded beside a tiny alpha."""
    check_finite(system, "A Newton system")
    return factorise(
        system.mT.contiguous().clone,
        system.diagonal().max() if len(system) else None,
        first=FEW_SPAN_ROUNDED,
        largest=FEW_SPAN_JITTER,
        what=f"A Newton system with alpha={alpha:g}",
        advice="use a larger alpha",
    ).L
