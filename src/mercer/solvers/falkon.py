"""Falkon: Nyström regression on many landmarks by preconditioned conjugate gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError
from mercer.core.results import Solution
from mercer.core.seeding import generator_from
from mercer.data.checkpoint import Checkpoint
from mercer.solvers import conjugate_gradients as cg
from mercer.solvers.centring import Means
from mercer.solvers.dials import FALKON_ROUNDING, LEAST_SAMPLE, LEFT_BY_ROUNDING, MOST_SAMPLE, SMALL, WITHIN_REACH
from mercer.solvers.error_bound import Functions, Moments, far_words, landmark_bound, too_far
from mercer.solvers.falkon_basis import FalkonBasis, Rows
from mercer.solvers.pcg import how_it_ended
from mercer.solvers.registry import register
from mercer.solvers.row_blocks import Block, CentredBlock, total
from mercer.solvers.system import check_alpha, check_count, check_tol, near_one
from mercer.solvers.traits import Traits
from mercer.solvers.whitening import landmark_diagonal

Work = Callable[..., dict[str, Tensor]]
"""A sum over rows, which `total` can have done elsewhere."""


@register("falkon")
@dataclass(frozen=True)
class Falkon:
    r"""Solve the Nyström system on m landmarks,

    .. math:: (K_{nm}^T W K_{nm} + \alpha K_{mm})\, c = K_{nm}^T W y,

    by conjugate gradients in the basis in which the preconditioner is the identity,

    .. math:: c = E A^{-T} \beta, \qquad E^T K_{mm} E = I, \qquad
              A A^T = \tfrac{1}{s} \textstyle\sum_i w_i\; E^T K_{sm}^T K_{sm} E + \alpha I,

    with s rows drawn at random, and the landmarks where these are rows; the classical choice is the landmarks alone.
    K_nm is never stored: each iteration reads all rows once, block by block, and adds up in float64. The residual is
    measured in the basis of beta, where the matrix is close to the identity and the residual to the error at the rows.
    Takes two m x m matrices while it iterates, and one more for each further alpha up to four; more alphas share one.

    E is L^-T with L L^T = K_mm. Landmarks of a smooth kernel can be so close to dependent that their coefficients are
    huge and cancel: those that others span to rounding are left out, and the reason says so.

    With float32 rows the rounding of the products is measured on the sample. Where they can reach `tol`, all are
    float32, with a jitter on K_mm that is taken out of the penalty again. Else true residuals are computed in float64,
    and where float32 does not even give a direction, all products are.

    Parameters
    ----------
    tol : float
        Largest relative residual.
    max_iter : int
        Largest number of iterations.
    sample : int or None
        Rows per landmark that the preconditioner is built from; None takes as many as are worth their time, see
        `sample_rows`. 0 takes the landmarks, which is cheaper and needs more iterations the smaller alpha is. Blocks
        that have no ``sample(count, generator)`` do that too.
    seed : int
        Of the sample.
    among_rows : bool
        Whether the landmarks are some of the rows. They then stand for themselves in the preconditioner, and the sample
        for the others: with a narrow kernel a landmark may be the only row that is close to it.
    refine : bool
        With float32 rows, take float64 products where `tol` needs them.
    warm_start : Tensor or None
        A first guess of c, of shape (m, t).
    shift : Tensor or None
        Where functions have an intercept, numbers (t,) near the means of the targets, which are subtracted for the sake
        of float32 products; the solution does not depend on them. None for no intercept.
    callback : callable or None
        Called with the iteration and the largest relative residual; an interrupt ends the solve with the best iterate
        so far.
    checkpoint : Checkpoint or None
        Keeps the state of the iterations in a file; a solve that finds it goes on from there.

    References
    ----------
    Rudi, Carratino and Rosasco, *FALKON: an optimal large scale kernel method*, 2017; Meanti, Carratino,
    Rosasco and Rudi, *Kernel methods through the roof*, 2020.

    Examples
    --------
    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.solvers.row_blocks import RowBlocks
    >>> X = Points(torch.linspace(0, 3, 50).unsqueeze(1).double())
    >>> Z, y = X.take(slice(0, 50, 10)), X.values.sin()
    >>> solution = Falkon().solve(RowBlocks(Gaussian(), X, Z, y), Gaussian()(Z.values), alpha=1e-3)
    >>> solution.converged, solution.value.shape
    (True, torch.Size([5, 1]))
    """

    traits: ClassVar[Traits] = Traits("landmarks", matrices=6, iterates=True, zero_alpha=False, path=False)

    tol: float = 1e-6
    max_iter: int = 100
    sample: int | None = None
    seed: int = 0
    among_rows: bool = False
    refine: bool = True
    warm_start: Tensor | None = field(default=None, repr=False, compare=False)
    shift: Tensor | None = field(default=None, repr=False, compare=False)
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)
    checkpoint: Checkpoint | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_tol("Falkon", self.tol)
        check_count("Falkon", "max_iter", self.max_iter)
        if self.sample is not None and self.sample < 0:
            raise InputError(f"Falkon(sample={self.sample}): must be at least 0.")

    def solve(self, blocks: Iterable[Block], K_mm: Any, alpha: float | Tensor) -> Solution:
        """Coefficients c (m, t) from blocks of rows that can be read again and again; one alpha or one per target."""
        started = time.perf_counter()
        first = total(blocks, _first_pass, self.shift)
        weight, dtype = float(first["weight"]), first["precision"].dtype
        if weight <= 0:
            raise InputError("All sample weights are zero: there are no rows to learn from.")
        check_finite(first["cross"], "The sum of kernel values times targets")
        centre = Centre.of(first, self.shift)
        cross = centre.cross
        alphas = check_alpha(alpha, cross.shape[1]).expand(cross.shape[1]).to(cross.device)
        if not bool((alphas > 0).all()):
            raise InputError(f"alpha={float(alphas.min()):g}: Falkon needs alpha > 0.")
        start = None if self.warm_start is None else self.warm_start.to(cross)
        if start is not None and start.shape != cross.shape:
            raise InputError(f"warm_start has shape {tuple(start.shape)}; expected {tuple(cross.shape)}.")
        n, m = int(first["rows"]), len(cross)
        rows = self._sample(blocks, m, n)
        sampled = rows is not None and len(rows.targets) < n
        typical = (float(first["roots"]) / n) ** 2
        own = m * typical / weight if self.among_rows and sampled else 0.0
        way = self._way(rows, K_mm, weight, alphas, own, dtype, cross)
        if way.products is _accurate_image or way.missed is _accurate_missed:
            centre = Centre.of(first | total(blocks, _accurate_cross, self.shift), self.shift)
            cross = centre.cross
        cross, scale = near_one(cross)
        basis, everything = way.basis, torch.arange(cross.shape[1], device=cross.device)
        rhs = basis.project(cross, everything)

        def product(beta: Tensor, columns: Tensor) -> Tensor:
            return basis.product(
                beta, columns, alphas, lambda c: centre.image(total(blocks, way.products, c)["image"], c)
            )

        def judge_by(work: Work) -> cg.Map:
            def missed(c: Tensor, columns: Tensor) -> Tensor:
                scaled = c * scale[columns]
                found = total(blocks, work, scaled, columns, self.shift)["missed"].to(c)
                return centre.missed(found, scaled, columns) / scale[columns]

            return lambda beta, columns: rhs[:, columns] - basis.residual(beta, columns, alphas, missed)

        found = cg.conjugate_gradients(
            product,
            rhs,
            lambda R, _: R.clone(),
            tol=self.tol,
            max_iter=self.max_iter,
            precision=way.precision,
            accurate=None if way.missed is None else judge_by(way.missed),
            start=None if start is None else basis.coordinates(start / scale, K_mm, everything),
            callback=self.callback,
            checkpoint=self.checkpoint,
        )
        residual = float(found.residual.max())
        u = basis.functions(found.value, everything) * scale
        value = basis.coefficients(u)
        moments = centre.moments(n, first, basis.E)
        values = torch.finfo(torch.float64 if way.missed is not None else dtype).eps
        jitter = 0.0 if basis.added is None else float(basis.added.max())
        functions = Functions(basis.E, landmark_diagonal(K_mm, cross), values, FALKON_ROUNDING * cg.EPS, jitter)
        unseen = way.precision if way.missed is None else 0.0
        missed = (found.residual + unseen) * rhs.norm(dim=0) * scale * (jitter / alphas).sqrt().clamp(min=1.0)
        explained = (value * cross * scale).sum(0)
        bound = landmark_bound(moments, functions, u, alphas, basis.squares, missed, explained)
        far = too_far(bound, self.tol)
        return Solution(
            solver="falkon",
            converged=residual <= self.tol and not far,
            residual=residual,
            iterations=found.iterations,
            seconds=time.perf_counter() - started,
            jitter=basis.jitter,
            reason="; ".join(filter(None, [self._account(found, way, dtype), far_words(bound) if far else ""])),
            error_bound=bound,
            value=value,
            intercept=centre.constant(value, self.shift),
        )

    def _way(
        self,
        rows: Rows | None,
        K_mm: Any,
        weight: float,
        alphas: Tensor,
        own: float,
        dtype: torch.dtype,
        like: Tensor,
    ) -> Way:
        """The basis and products that can bring the residual to `tol`; `own` is the landmarks' share in `weight`."""
        given = weight, alphas, like, own, self.shift is not None
        if dtype == torch.float64:
            return Way(FalkonBasis.orthonormal(K_mm, rows, *given), _image, _missed)
        single = torch.finfo(dtype).eps
        accurate = rows.accurate() if rows is not None and self.refine else None
        if rows is None or accurate is None:
            return Way(FalkonBasis.jittered(K_mm, rows, *given), _image, precision=single)
        if self.tol >= WITHIN_REACH * single:
            basis = FalkonBasis.jittered(K_mm, rows, *given)
            error = basis.residual_error(rows, accurate, weight)
            if LEFT_BY_ROUNDING * error <= self.tol:
                return Way(basis, _image, precision=max(single, error))
            del basis
        basis = FalkonBasis.orthonormal(K_mm, accurate, *given)
        if basis.disturbance(rows, accurate, weight) <= SMALL:
            return Way(basis, _image, _accurate_missed, single, "residuals are from float64 products")
        note = "products are float64: the rounding of float32 is too large beside alpha"
        return Way(basis, _accurate_image, _accurate_missed, note=note)

    def _account(self, found: cg.Iterates, way: Way, dtype: torch.dtype) -> str:
        """How it ended, in words. A negative curvature of a sum of squares is rounding."""
        fate = torch.where(found.fate == cg.INDEFINITE, cg.STAGNATED, found.fate)
        kind, (m, rank) = str(dtype).removeprefix("torch."), way.basis.E.shape
        judged_by = kind if way.missed is None else "float64"
        words = [how_it_ended(replace(found, fate=fate), self.max_iter, judged_by), way.note]
        if rank < m:
            words.append(f"{rank} of {m} landmarks are independent to rounding")
        return "; ".join(filter(None, words))

    def _sample(self, blocks: Any, m: int, n: int) -> Rows | None:
        if self.sample == 0 or not hasattr(blocks, "sample"):
            return None
        count = sample_rows(n, m) if self.sample is None else self.sample * m
        rows: Block = blocks.sample(count, generator_from(self.seed))
        if not rows.weight > 0:
            return None
        return rows if self.shift is None else CentredBlock(rows)


def sample_rows(n: int, m: int) -> int:
    """Rows, of n, that the preconditioner of m landmarks is built from: 70 sqrt(n), but 5 to 10 per landmark.

    With s rows per landmark it takes some 3 s m^3 multiplications, and some 5 + 80 / s iterations follow, each of 2 n m
    kernel values at the price of 90 multiplications: the sum is least at s m = 70 sqrt(n). Where that is more than half
    of the rows, all are taken, which leaves nothing to iterate.

    >>> sample_rows(1_000_000, 2_000), sample_rows(1_000_000, 10_000), sample_rows(1_000_000, 30_000)
    (20000, 70000, 150000)
    >>> sample_rows(10_000, 1_000)
    10000
    """
    count = min(max(70 * math.isqrt(n), LEAST_SAMPLE * m), MOST_SAMPLE * m)
    return n if count > n // 2 else count


@dataclass(frozen=True, eq=False)
class Way:
    """How to iterate: the basis, the products of each step, their rounding error, and what true residuals come from.

    Without `missed` they come from the same products.
    """

    basis: FalkonBasis
    products: Work
    missed: Work | None = None
    precision: float = cg.EPS
    note: str = ""


@dataclass(frozen=True, eq=False)
class Centre:
    """Sums over rows as they are, or with an intercept those of what is less its mean; `cross` is K_nm^T W y."""

    means: Means | None
    cross: Tensor

    @classmethod
    def of(cls, first: dict[str, Tensor], shift: Tensor | None) -> Centre:
        """From the sums of the first pass, with or without an intercept."""
        sums, weight = first["cross"], float(first["weight"])
        if shift is None:
            return cls(None, sums)
        means = Means(sums[:, -1] / weight, first["targets"][0].to(sums) / weight, weight)
        return cls(means, means.cross(sums[:, :-1]))

    def image(self, image: Tensor, c: Tensor) -> Tensor:
        return image if self.means is None else self.means.image(image, c)

    def missed(self, missed: Tensor, c: Tensor, columns: Tensor) -> Tensor:
        return missed if self.means is None else self.means.missed(missed, c, columns)

    def constant(self, c: Tensor, shift: Tensor | None) -> Tensor | None:
        return None if self.means is None or shift is None else shift.to(c) + self.means.constant(c)

    def moments(self, rows: int, first: dict[str, Tensor], E: Tensor) -> Moments:
        """Those of targets and of functions with the coefficients E, which are orthonormal."""
        sums, trace, means = first["targets"].to(self.cross), float(first["trace"]), self.means
        if means is None:
            return Moments(rows, float(first["weight"]), sums[0], sums[1], trace)
        second = (sums[1] - means.weight * means.targets.square()).clamp(min=0.0)
        lost = means.weight * float((E.T @ means.features).square().sum())
        return Moments(rows, means.weight, torch.zeros_like(second), second, max(0.0, trace - lost) if trace else 0.0)


def _shifted(blocks: Iterable[Block], shift: Tensor | None) -> Iterable[Block]:
    """Blocks with targets less these numbers."""
    if shift is None:
        return blocks
    return (block._replace(targets=block.targets - shift.to(block.targets)) for block in blocks)


def _cross(block: Block, intercept: bool) -> Tensor:
    """K^T W y in float64, with an intercept K^T W [y, 1]."""
    if not intercept:
        return block.cross()
    return block._replace(targets=torch.cat([block.targets, torch.ones_like(block.targets[:, :1])], dim=1)).cross()


def _first_pass(blocks: Iterable[Block], shift: Tensor | None = None) -> dict[str, Tensor]:
    """Rows with weight, sums of weights, roots, w k(x, x), targets and K_nm^T W y, a zero as precise as products.

    With a shift, K_nm^T W (y - shift) with a last column for K_nm^T w.
    """
    rows, weight, roots, trace, cross, targets, dtype = 0, 0.0, 0.0, 0.0, None, None, torch.float64
    for block in _shifted(blocks, shift):
        dtype = block.kernel.dtype
        weights = torch.ones(len(block.targets), dtype=torch.float64) if block.weights is None else block.weights
        if not bool((weights >= 0).all()):
            raise InputError("Weights must be >= 0.")
        part, more = _cross(block, shift is not None), Moments.of(block.targets.to(torch.float64), block.weights)
        rows += int((weights > 0).sum())
        weight += float(weights.sum())
        roots += float(weights.sqrt().sum())
        trace += block.trace()
        cross = part if cross is None else cross + part
        sums = torch.stack([more.first, more.second])
        targets = sums if targets is None else targets + sums
    if cross is None or targets is None:
        raise InputError("All sample weights are zero: there are no rows to learn from.")
    return {
        "rows": torch.tensor(rows),
        "weight": torch.tensor(weight, dtype=torch.float64),
        "roots": torch.tensor(roots, dtype=torch.float64),
        "trace": torch.tensor(trace, dtype=torch.float64),
        "targets": targets,
        "cross": cross,
        "precision": torch.zeros((), dtype=dtype),
    }


def _image(blocks: Iterable[Block], c: Tensor) -> dict[str, Tensor]:
    """K_nm^T W K_nm c."""
    return {"image": sum((block.gram(c) for block in blocks), torch.zeros_like(c))}


def _missed(blocks: Iterable[Block], c: Tensor, columns: Tensor, shift: Tensor | None = None) -> dict[str, Tensor]:
    """K_nm^T W (y - K_nm c)."""
    shifted = _shifted(blocks, shift)
    return {"missed": sum((block.missed(c, columns) for block in shifted), torch.zeros_like(c))}


def _accurate_image(blocks: Iterable[Block], c: Tensor) -> dict[str, Tensor]:
    """K_nm^T W K_nm c with float64 products."""
    return _image(map(_in_float64, blocks), c)


def _accurate_missed(
    blocks: Iterable[Block], c: Tensor, columns: Tensor, shift: Tensor | None = None
) -> dict[str, Tensor]:
    """K_nm^T W (y - K_nm c) with float64 products."""
    return _missed(map(_in_float64, blocks), c, columns, shift)


def _accurate_cross(blocks: Iterable[Block], shift: Tensor | None = None) -> dict[str, Tensor]:
    """K_nm^T W y with float64 products."""
    return {"cross": _first_pass(map(_in_float64, blocks), shift)["cross"]}


def _in_float64(block: Block) -> Block:
    accurate = block.accurate()
    if accurate is None:
        raise InputError(f"A block of rows has {block.kernel!r}, which has no float64 products, but other blocks have.")
    return accurate
