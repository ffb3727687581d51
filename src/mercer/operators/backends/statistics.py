"""The inputs of a program on a tile: distances and inner products as one matrix product of folded rows.

With rows centred and scaled, |a - b|^2 = [-2a, |a|^2, 1] . [b, 1, |b|^2]: appending two columns to each sample makes
one product give the statistic, and a constant factor goes into the scale.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import RLock
from typing import TypeVar

import torch
from torch import Tensor

from mercer.core.arrays import Points, quiet_pieces
from mercer.core.threads import side_by_side
from mercer.formula.plans import Plan
from mercer.formula.symbols import Program, Statistic
from mercer.kernels.dials import FOLD_RADIUS, MEND_RADIUS, NEAR, ROOM
from mercer.kernels.distances import l1_distances
from mercer.kernels.pair import as_scale, check_scaled, row_values, vectors
from mercer.operators.backends.products import product, quick, quick_product
from mercer.operators.dials import CHUNK_CELLS, FEW_NUMBERS, FIRST_ROWS, PAIRS_BYTES

_one_at_a_time = RLock()
"""Functions of users may not be made for several threads."""

R = TypeVar("R")
Place = slice | Tensor
Places = tuple[Tensor, Tensor]


class TileInput(ABC):
    """A statistic of all pairs of two blocks of rows, from operands prepared once for each sample.

    `width` is the number of columns of an operand and `dtype` its precision; `at_same` is the value where both rows
    are the same row of one sample, None where the general formula gives it.
    """

    at_same: float | None = None
    note = ""
    width = 1
    temporary_bytes = 0
    quick = False
    """Whether matrix products are oneDNN's."""
    farthest = math.nan
    """The value of a pair that is as far apart as any of the samples may be, where that is known."""

    def __init__(self, statistic: Statistic, dtype: torch.dtype) -> None:
        self.statistic = statistic
        self.dtype = dtype

    def rows(self, points: Points, place: Place) -> Tensor:
        """What warps make of some rows; that they are numbers was seen when the formula was traced."""
        if not self.statistic.warps:
            plain: Tensor = points.values[place]
            return plain
        with _one_at_a_time:
            some = points.take(place)
            for warp in self.statistic.warps:
                some = warp(some)
        warped: Tensor = some.values
        return warped

    @abstractmethod
    def left(self, points: Points, place: Place) -> Tensor:
        """The operand of some rows of x."""

    @abstractmethod
    def right(self, points: Points, place: Place) -> Tensor:
        """The operand of some rows of z."""

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        """The statistic, in `out` or in memory of its own; `right` has a column for each row of z.

        `wide` is a float64 tile to work in where `dtype` is wider than `out`; `same` are the places where both rows are
        the same row of one sample.
        """
        raise NotImplementedError(f"{type(self).__name__} is a vector")

    def _product(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None) -> Tensor:
        if self.quick:
            return quick_product(left, right)
        return product(left, right, out if wide is None or self.dtype == out.dtype else wide)

    def set_same(self, tile: Tensor, same: Places | None) -> None:
        if same is not None and self.at_same is not None:
            tile[same] = self.at_same


class EndValues(TileInput):
    """A function of x alone or of z alone."""

    def left(self, points: Points, place: Place) -> Tensor:
        assert self.statistic.function is not None
        with _one_at_a_time:
            return row_values(self.statistic.function, Points(self.rows(points, place))).unsqueeze(1)

    right = left


class Same(TileInput):
    """One where x and z are the same row, else zero."""

    at_same = 1.0
    width = 0

    def left(self, points: Points, place: Place) -> Tensor:
        rows = vectors(points)[place]
        return rows.new_empty(len(rows), 0)

    right = left

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        out.zero_()
        self.set_same(out, same)
        return out


class Inner(TileInput):
    """The inner product, times a constant factor."""

    def __init__(self, statistic: Statistic, dtype: torch.dtype, x: Points, z: Points, factor: float) -> None:
        super().__init__(statistic, dtype)
        rows = self.rows(x, _spread(x, 2))
        self.dtype = torch.promote_types(dtype, rows.dtype)  # a warp may ask for more precision
        self.width = rows.shape[1]
        self.factor = factor
        self.quick = quick(self.dtype, rows.device, self.width, len(x.values) * len(z.values))
        self.note = f"product in {dtype_name(self.dtype)}"

    def left(self, points: Points, place: Place) -> Tensor:
        rows = self.right(points, place)
        return rows if self.factor == 1.0 else rows * self.factor

    def right(self, points: Points, place: Place) -> Tensor:
        return self.rows(points, place).to(self.dtype)

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        tile = self._product(left, right, out, wide)
        return tile if tile.dtype == out.dtype else out.copy_(tile)


class L1Distance(TileInput):
    """Sum over columns of |x - z| / length_scale, from differences of the data as they are.

    With one length scale per column the rows are scaled before, in float64, which keeps the differences exact.
    """

    at_same = 0.0
    note = "L1 distances"

    def __init__(self, statistic: Statistic, dtype: torch.dtype, sample: Points) -> None:
        super().__init__(statistic, dtype)
        rows = self.rows(sample, _spread(sample, 2))
        scale = as_scale(statistic.length_scale, rows.to(torch.float64))
        self.column_scale = scale if isinstance(scale, Tensor) else None
        self.scale = 1.0 if isinstance(scale, Tensor) else 1.0 / scale
        self.width = rows.shape[1]
        self.dtype = dtype if self.column_scale is None else torch.float64
        self.temporary_bytes = self.dtype.itemsize

    def left(self, points: Points, place: Place) -> Tensor:
        rows = self.rows(points, place)
        if self.column_scale is None:
            return rows
        scaled = rows / self.column_scale
        check_scaled(bool(scaled.isfinite().all()), self.statistic.length_scale, scaled.dtype)
        return scaled

    right = left

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        out.copy_(l1_distances(left, right.T).mul_(self.scale))
        self.set_same(out, same)
        return out


class SquaredDistance(TileInput):
    """|(x - z) / length_scale|^2 times a constant factor, by folding rows that are centred and scaled.

    The squared radius R2 of the scaled data decides: float32 up to `FOLD_RADIUS`, above it the product is done in
    float64. `exact` takes near-coincident pairs again from differences, `nonnegative` removes
    rounding of distances below zero, which is above zero where the factor is negative. `rooted` says that only the root
    is used.
    """

    at_same: float | None = 0.0

    def __init__(
        self,
        statistic: Statistic,
        dtype: torch.dtype,
        x: Points,
        z: Points,
        factor: float,
        *,
        exact: bool,
        nonnegative: bool,
        rooted: bool = False,
    ) -> None:
        super().__init__(statistic, dtype)
        samples = (x,) if x is z else (x, z)
        some = [part for sample in samples for part in quiet_pieces(self.rows(sample, _spread(sample)))]
        centre = self._mean(some)
        self.centre = centre.to(some[0].dtype)
        self.scale = math.sqrt(abs(factor)) / as_scale(statistic.length_scale, centre.unsqueeze(0))
        self.sign = math.copysign(1.0, factor)
        self.nonnegative = nonnegative
        self.n_columns = some[0].shape[1]
        self.width = self.n_columns + 2
        largest = max(self._radius(sample) for sample in samples)
        if not largest <= MEND_RADIUS * abs(factor):  # a row far out must not move the centre of the others
            self.centre = self._median(some).to(torch.float64)
            largest = max(self._radius(sample) for sample in samples)
            check_scaled(largest == largest, statistic.length_scale, torch.float64)
        radius = largest / abs(factor)
        self.note = f"squared distances by matrix product, {dtype_name(dtype)}"
        self.scale_fits = float(torch.as_tensor(self.scale).max()) <= torch.finfo(dtype).max
        if dtype == torch.float32 and (radius > FOLD_RADIUS or not self.scale_fits):
            self.dtype = torch.float64
            self.note = f"float64 product: R2 = {radius:.4g} > {FOLD_RADIUS:g}"
        self.quick = quick(self.dtype, centre.device, self.width, len(x.values) * len(z.values))
        self.exact = (exact and nonnegative) or radius > MEND_RADIUS
        self.rooted, self.far = rooted, min(largest, FOLD_RADIUS * abs(factor))
        self.near = NEAR[self.dtype] * largest
        self.farthest = self.sign * 4.0 * largest
        most = ROOM * torch.finfo(dtype).max
        self.most = most if largest > most / 4 else None
        self.temporary_bytes = 6 + 2 * self.dtype.itemsize if self.exact else 0

    def left(self, points: Points, place: Place) -> Tensor:
        operand, norms = self._folded(points, place, -2.0 * self.sign)
        operand[:, self.n_columns], operand[:, self.n_columns + 1] = norms.mul_(0.25), 1.0
        return operand

    def right(self, points: Points, place: Place) -> Tensor:
        operand, norms = self._folded(points, place)
        operand[:, self.n_columns], operand[:, self.n_columns + 1] = 1.0, norms
        return operand

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        tile = self._product(left, right, out, wide)
        if self.exact:
            self._mend(left, right, tile, same)
        elif self.nonnegative and self.sign > 0:
            tile.clamp_(min=0.0)
        elif self.nonnegative:
            tile.clamp_(max=0.0)
        if self.most is not None:
            tile.clamp_(-self.most, self.most)
        self.set_same(tile, same)
        return tile if tile.dtype == out.dtype else out.copy_(tile)

    def _mean(self, parts: list[Tensor]) -> Tensor:
        sums = [part.contiguous().sum(0, dtype=torch.float64) for part in parts]  # in one order, however rows lie
        total = torch.stack(sums).sum(0)
        return total / max(1, sum(len(part) for part in parts))

    def _median(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts).median(0).values

    def _mend(self, left: Tensor, right: Tensor, tile: Tensor, same: Places | None) -> None:
        """Take the pairs that nearly coincide again from differences; they are looked for row by row."""
        a, b = left[:, : self.n_columns], right[: self.n_columns]
        if self.near == math.inf:
            self._from_differences(a, b, tile)
            return
        if same is not None and self.at_same is not None:
            tile[same] = self.sign * math.inf
        smallest = tile.amin(1) if self.sign > 0 else tile.amax(1).neg_()
        limit = self._limit(left[:, self.n_columns].abs())
        found = smallest <= limit
        if not found.any():
            return
        rows = found.nonzero()[:, 0]
        near = tile[rows].mul_(self.sign) <= limit[rows].unsqueeze(1)
        if 4 * int(near.count_nonzero()) > tile.numel():
            self._from_differences(a, b, tile)
            return
        places = near.nonzero()
        chunk = max(1, PAIRS_BYTES // (self.n_columns * tile.element_size()))
        for place in places.split(chunk):
            i, j = rows[place[:, 0]], place[:, 1]
            difference = a[i].mul_(-0.5 * self.sign).sub_(b[:, j].T)
            tile[i, j] = difference.square_().sum(1).mul_(self.sign)

    def _limit(self, lengths: Tensor) -> Tensor:
        """The squared distance up to which pairs are taken again, for rows by their squared lengths.

        Rounding is of the order of the squared length, so that this share of it keeps the relative error. Where only
        the root is needed, all rows may have the error of the root that the longest ones have.
        """
        limit = lengths * NEAR[self.dtype]
        return limit.mul_((lengths / self.far).clamp_(max=1.0)) if self.rooted else limit

    def _from_differences(self, a: Tensor, b: Tensor, tile: Tensor) -> None:
        plain = (a * (-0.5 * self.sign)).nan_to_num_(nan=0.0)
        tile.copy_(torch.cdist(plain, b.T, compute_mode="donot_use_mm_for_euclid_dist").square_().mul_(self.sign))

    def _folded(self, points: Points, place: Place, factor: float = 1.0) -> tuple[Tensor, Tensor]:
        """The scaled rows times a factor, followed by two empty columns, and their squared norms, summed in float64.

        A common shift before the scaling keeps large offsets exact.
        """
        rows = self.rows(points, place).to(self.dtype)
        operand = rows.new_empty(len(rows), self.width)
        scaled = torch.sub(rows, self.centre.to(self.dtype), out=operand[:, : self.n_columns])
        scaled.mul_(self.scale.to(self.dtype) * factor if isinstance(self.scale, Tensor) else self.scale * factor)
        return operand, torch.linalg.vector_norm(scaled, dim=1, dtype=torch.float64).square_().mul_(self.sign)

    def _radius(self, points: Points) -> float:
        """The largest squared norm of the scaled rows."""

        def largest(place: slice) -> float:
            return float(self._norms(self.rows(points, place)).amax().square())

        return max(_of_chunks(largest, points, self.n_columns), default=0.0)

    def _norms(self, rows: Tensor) -> Tensor:
        result: Tensor = torch.linalg.vector_norm((rows - self.centre).mul_(self.scale), dim=1)
        return result


class SquaredSum(SquaredDistance):
    """|x + z|^2 times a constant factor: the squared distance of x and -z, with no shift of both."""

    at_same = None

    def right(self, points: Points, place: Place) -> Tensor:
        operand = super().right(points, place)
        operand[:, : self.n_columns].neg_()
        return operand

    def _mean(self, parts: list[Tensor]) -> Tensor:
        return parts[0].new_zeros(parts[0].shape[1], dtype=torch.float64)

    def _median(self, parts: list[Tensor]) -> Tensor:
        return parts[0].new_zeros(parts[0].shape[1])


class LineDistance(TileInput):
    """The squared distance of points on a line times a factor, from differences of the data as they are."""

    at_same = 0.0
    note = "differences of one column"

    def __init__(self, statistic: Statistic, dtype: torch.dtype, folded: SquaredDistance) -> None:
        super().__init__(statistic, dtype)
        self.scale, self.sign, self.most = float(folded.scale), folded.sign, folded.most
        self.farthest = folded.farthest

    def left(self, points: Points, place: Place) -> Tensor:
        return self.rows(points, place)

    right = left

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        torch.sub(left, right, out=out)
        out.mul_(self.scale).square_()
        if self.most is not None:
            out.clamp_(max=self.most)
        if self.sign < 0:
            out.neg_()
        self.set_same(out, same)
        return out


def dtype_name(dtype: torch.dtype) -> str:
    """The dtype without the name of torch."""
    return str(dtype).removeprefix("torch.")


def tile_inputs(program: Program, plan: Plan, x: Points, z: Points, dtype: torch.dtype) -> list[TileInput]:
    """One `TileInput` for each input of the program; `z is x` for one sample."""
    return [_tile_input(program, plan, i, x, z, dtype) for i in range(len(program.inputs))]


def _tile_input(program: Program, plan: Plan, i: int, x: Points, z: Points, dtype: torch.dtype) -> TileInput:
    statistic, factor = program.inputs[i], plan.factors.get(i, 1.0)
    if statistic.kind == "squared_distance":
        flags = {"exact": i in program.exact, "nonnegative": i in plan.nonnegative, "rooted": i in plan.rooted}
        folded = SquaredDistance(statistic, dtype, x, z, factor, **flags)
        if folded.n_columns == 1 and folded.scale_fits and (folded.exact or folded.dtype != dtype):
            return LineDistance(statistic, dtype, folded)
        return folded
    if statistic.kind == "squared_sum":
        rooted = i in plan.rooted
        return SquaredSum(statistic, dtype, x, z, factor, exact=True, nonnegative=True, rooted=rooted)
    if statistic.kind == "l1_distance":
        return L1Distance(statistic, dtype, x)
    if statistic.kind == "inner":
        return Inner(statistic, dtype, x, z, factor)
    return Same(statistic, dtype) if statistic.kind == "same" else EndValues(statistic, dtype)


def operand_of_all(build: Callable[[Points, Place], Tensor], points: Points) -> Tensor:
    """The operand of all rows, built some rows at a time."""
    n, first = len(points.values), build(points, slice(0, FIRST_ROWS))
    if len(first) == n:
        return first
    operand = first.new_empty(n, first.shape[1])

    def fill(place: slice) -> None:
        operand[place] = build(points, place)

    _of_chunks(fill, points, first.shape[1])
    return operand


def _of_chunks(work: Callable[[slice], R], points: Points, n_columns: int) -> list[R]:
    """What work gives for the rows in order, a cache-sized block at a time; many rows by several threads."""
    n, step = len(points.values), max(1, CHUNK_CELLS // max(1, n_columns))
    places = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    on_cpu = points.is_tensor and points.values.device.type == "cpu"
    if not on_cpu or n * n_columns < FEW_NUMBERS:
        return [work(place) for place in places]
    return side_by_side(places, lambda: work, torch.get_num_threads())


def _spread(points: Points, rows: int = 1024) -> slice:
    """About `rows` rows spread over the sample."""
    return slice(None, None, max(1, len(points.values) // rows))
