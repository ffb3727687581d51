"""Newton steps over few functions: kernels at landmarks, with rows that are read block by block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.blocks import rows_at_once
from mercer.core.memory import give_back, resolve_budget
from mercer.solvers.conjugate_gradients import Map, conjugate_gradients
from mercer.solvers.decompose import eigh_in_place
from mercer.solvers.dials import (
    CACHED_ROWS,
    ENTRIES,
    FEW_SPAN_JITTER,
    FEW_SPAN_NEAR,
    FEW_SPAN_ROUNDED,
    FEW_SPAN_ROWS,
    FEW_SPAN_SLOW,
    FEW_SPAN_STEPS,
    FEW_SPAN_SYSTEM,
    MATRICES,
    PART_SHARE,
    ROW_PARTS,
)
from mercer.solvers.excess import excess_of_functions
from mercer.solvers.factor import factorise, solve_factored
from mercer.solvers.objective import DiagonalRoot, Objective, Root, Step, Terms
from mercer.solvers.row_blocks import Block
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
    rough: tuple[Any, Any] = (None, None)

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
        return kept + (f"; {self.m} of {len(self.basis)} landmarks are independent to rounding" if lost else "")

    def coarse(self) -> None:
        return None

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
        found = c.new_empty(self.n, c.shape[1])
        turned = c.T.contiguous()  # as rows on the left, over parts that the caches hold: twice as fast
        for part, features in self.parts():
            for own, some in zip(found[part].split(CACHED_ROWS), features.split(CACHED_ROWS), strict=True):
                own.copy_((turned @ some.T).T)
        return found

    def predictions(self, c: Tensor) -> Tensor:
        self.passes += 1
        coef = self.coefficients(c)
        return torch.cat([K.to(coef) @ coef for block in self.blocks for K, _, _ in block.parts()])

    def excess(self, objective: Objective, c: Tensor, f: Tensor) -> Tensor:
        terms = objective.at(f)
        uphill = self.gather(terms.gradient) + 2 * objective.alpha * c
        left_out = ENTRIES * self.rounding * float(self.spectrum.sum()) if self.m < len(self.basis) else 0.0
        return excess_of_functions(terms, uphill, float(self.spectrum.max()) if self.m else 0.0, left_out)

    def gather(self, V: Tensor) -> Tensor:
        """E^T K_nm^T V."""
        total, turned = V.new_zeros(V.shape[1], self.m), V.T.contiguous()
        for part, features in self.parts():
            for own, some in zip(turned[:, part].split(CACHED_ROWS, 1), features.split(CACHED_ROWS), strict=True):
                total += own @ some
        return total.T.contiguous()

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
        gradient, root = touching.gradient, touching.root
        uphill = self.gather(gradient) + 2 * objective.alpha * c
        if isinstance(root, DiagonalRoot):
            d, b = self._separate(objective, root.s.square(), uphill, gradient)
        else:
            d, b = self.joint_step(objective, root, uphill, gradient, tol, terms.f if at is None else at)
        return Step(d, self.values(d) + b, b, exact=isinstance(root, DiagonalRoot))

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

    def joint_step(
        self, objective: Objective, root: Root, uphill: Tensor, gradient: Tensor, tol: float, f: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The step of predictions that a joint loss couples, by conjugate gradients."""
        shift = 2 * objective.alpha
        r, t = uphill.shape
        border = 1 if objective.intercept else 0

        def product(V: Tensor, _: Tensor) -> Tensor:
            u = V.reshape(r + border, t)
            f = self.values(u[:r])
            bent = root.apply(root.transposed(f + u[r:].sum(0)))
            image = self.gather(bent) + shift * u[:r]
            return torch.cat([image, bent.sum(0, keepdim=True)[:border]]).reshape(-1, 1)

        right = -torch.cat([uphill, gradient.sum(0, keepdim=True)[:border]]).reshape(-1, 1)
        by_rows = 0 < (r + border) * t <= FEW_SPAN_SYSTEM and 8 * ((r + border) * t) ** 2 <= self.spare / 4
        if not by_rows:
            self.rough = None, self._inverse_by_scale(root, shift, border)
        elif tol > FEW_SPAN_NEAR or self.rough[0] != (objective.alpha, border, t):
            self.rough = (objective.alpha, border, t), self._inverse_by_some_rows(objective, f, border)
        found = conjugate_gradients(product, right, self.rough[1], tol=tol, max_iter=FEW_SPAN_STEPS)
        if found.iterations > -FEW_SPAN_SLOW * math.log10(tol):
            self.rough = None, None  # the curvature has become another
        step = found.value.reshape(r + border, t)
        return step[:r], step[r:].sum(0)

    def _inverse_by_scale(self, root: Root, shift: float, border: int) -> Map:
        """The inverse of the diagonal that the system has if all rows have the mean curvature."""
        mean = root.scale.square().mean(0)
        last = (mean * self.n).clamp(min=1e-300).expand(border, len(mean))
        diagonal = torch.cat([mean * self.spectrum.unsqueeze(1) + shift, last]).reshape(-1, 1)
        return lambda R, _: R / diagonal

    def _inverse_by_some_rows(self, objective: Objective, f: Tensor, border: int) -> Map:
        """The inverse of the system that some rows give, which is close to that of all."""
        t, features = f.shape[1], self._some_rows
        index = torch.arange(0, self.n, self._stride, device=f.device)
        bends = objective.loss.hessian(objective.targets[index], f[index])
        if objective.weights is not None:
            bends = bends * objective.weights[index, None, None]
        bends = bends * (self.n / len(index))
        if border:
            features = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
        width = features.shape[1]
        system = features.new_empty(width, t, width, t)
        for k in range(t):
            for other in range(k, t):
                bend = bends[:, k, other, None]
                block = features.new_zeros(width, width)
                for sign in (1.0, -1.0):
                    if bool((sign * bend > 0).any()):
                        block += sign * add_gram(
                            torch.zeros_like(block), features * (sign * bend).clamp(min=0.0).sqrt()
                        )
                system[:, k, :, other], system[:, other, :, k] = block, block
        matrix = system.view(t * width, -1)
        matrix.diagonal()[: t * self.m].add_(2 * objective.alpha)
        matrix.diagonal().mul_(1.0 + FEW_SPAN_JITTER)  # a constant added to all classes changes nothing
        L = factor_with_jitter(matrix, objective.alpha)
        return lambda R, _: solve_factored(L, R)

    @property
    def _stride(self) -> int:
        return max(1, self.n // (FEW_SPAN_ROWS * self.m + 1))

    @cached_property
    def _some_rows(self) -> Tensor:
        """Rows of K_nm E that are evenly spread."""
        step = self._stride
        return torch.cat([features[-part.start % step :: step] for part, features in self.parts()])


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
