"""Two samples on their way into the fused loops.

The precision of each distance and inner product is decided here, before any product, from the number of columns and
from R2 = max |(x - mean) / length_scale|^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.symbols import Program, Statistic
from mercer.kernels.pair import as_scale, row_values, vectors
from mercer.operators.backends.fused.dials import (
    DEEP_RADIUS,
    FAST_RADIUS,
    FEW_FEATURES,
    LARGEST_FACTOR,
    LARGEST_SPLIT,
    NEAR,
    RESIDENT_TOGETHER,
    ROUNDED_LOSS,
    SPLIT_TRUNCATION,
    TINY_SQUARE,
    TRUNCATION,
)
from mercer.operators.backends.fused.inner import inner_scales
from mercer.operators.backends.fused.layout import Layout, layout
from mercer.operators.backends.fused.operands import Operands
from mercer.operators.backends.fused.packing import Scaling, norms, pack
from mercer.operators.backends.fused.probe import truncation_harms, warped
from mercer.operators.backends.fused.profile import profile
from mercer.operators.backends.fused.source import Ends, Featurewise, Input, Products
from mercer.operators.backends.fused.tiles import interpreted, pad_of

GAUSSIAN_UNIT = 0.5 / math.log(2.0)
"""The factor of a Gaussian's squared distance; steeper exponents count as a shorter length scale."""


Pair = tuple[Tensor, Tensor]


def samples_of(program: Program, x: Points, z: Points) -> Samples:
    """Both samples for a reduced program."""
    found = Samples(x, z, pad_of(chunked=False)).read(program)
    too_wide = len(found.parts) > 1 and found.width > RESIDENT_TOGETHER
    if not too_wide and all(item.layout.resident for item, *_ in found.parts):
        return found
    return Samples(x, z, pad_of(chunked=True), chunked=too_wide).read(program)


@dataclass
class Samples:
    """Both samples, decided on input by input; `operands` are packed when first asked for and kept.

    They are padded to multiples of `pad` rows; `chunked` reads all features in chunks, however few.
    """

    x: Points
    z: Points
    pad: int
    chunked: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device = vectors(self.x).device
        self.rows = tuple(max(1, -(-len(points) // self.pad)) * self.pad for points in (self.x, self.z))
        self.parts: list[tuple[Products, Scaling, Pair, tuple[Pair, Pair]]] = []
        self.lines: tuple[list[Tensor], list[Tensor]] = ([], [])
        self.width = 0
        self.weights: Pair | None = None

    def read(self, program: Program) -> Samples:
        """Decide on every input of the program."""
        self.program = program
        self.text = profile(program)
        self.constants = list(self.text.constants) or [0.0]
        self.inputs = tuple(self.input(i, s, i in program.exact) for i, s in enumerate(program.inputs))
        features = sum(4 * len(scaling.scale) for _, scaling, _, _ in self.parts)
        lines = 4 * max(sum(map(len, lines)) for lines in self.lines)
        self.row_bytes = 2 * self.width + lines + features + 16 * len(self.parts)
        return self

    @property
    def bytes(self) -> int:
        """Memory of the packed data, and of what is needed to pack them: squared norms, copies of features."""
        return sum(self.rows) * self.row_bytes

    @cached_property
    def operands(self) -> Operands:
        """What the loops read; the samples themselves are let go."""
        A, B, P, Q = self._packed(0), self._packed(1), self._stacked(0), self._stacked(1)
        self.parts, self.lines = [], ([], [])
        C = torch.tensor(self.constants, dtype=torch.float32, device=self.device)
        return Operands(A, B, P, Q, C, self.text, self.inputs, self.weights)

    def input(self, i: int, statistic: Statistic, exact: bool) -> Input:
        """Choose how the loops get a statistic in the units of the text; `exact` ones matter near zero."""
        unit = self.text.units[i]
        match statistic.kind:
            case "left" | "right":
                return self._ends(statistic, unit)
            case "inner":
                return self._inner(statistic, unit)
            case "l1_distance":
                return self._differences(statistic, unit, "l1")
        return self._squared_distance(i, statistic, exact)

    def _squared_distance(self, i: int, statistic: Statistic, exact: bool) -> Input:
        unit = self.text.units[i]
        samples = self._features(statistic)
        d = samples[0].shape[1]
        length = as_scale(statistic.length_scale, samples[1][:1].double())
        scale = torch.as_tensor(math.sqrt(unit) / length, dtype=torch.float64, device=self.device).expand(d)
        mean = samples[1].mean(0, dtype=torch.float64)
        scaling = Scaling(mean, scale.contiguous(), -2.0)
        squares = self._norms(scaling, samples)
        largest = _largest(squares)
        is_exponent = (i, 1.0) in self.text.exponents
        radius = largest / (min(unit, GAUSSIAN_UNIT) if is_exponent else unit)
        tiny = exact and largest < TINY_SQUARE * d
        far = not radius <= DEEP_RADIUS  # also where rows overflow and nothing can be compared
        if far or tiny or (exact and d <= FEW_FEATURES):
            if far or radius > FAST_RADIUS or tiny:
                self.notes.append(f"direct differences, since R2 = {radius:.3g}")
            return self._differences(statistic, unit, "l2")
        precision, guarded = "fast", exact
        if radius > FAST_RADIUS:
            precision = "deep"
            self.notes.append(f"three-term products, since R2 = {radius:.3g}")
        elif truncation_harms(self.program, i, self.x, self.z):
            precision = "split" if layout(d, "fast").resident else "rounded"
            self.notes.append(f"sums with more care ({precision}), since points cluster in {d:,} columns")
        elif exact and self.text.only_rooted(i) and layout(d, "split").products <= LARGEST_SPLIT:
            precision, guarded = "split", False
        if precision in ("split", "deep"):
            gain = self._split_gain(d) if precision == "split" else 1.0
            scaling = replace(scaling, step=_grid(largest), scale=scaling.scale * math.sqrt(gain))
            squares = self._norms(scaling, samples, third=precision == "deep")
        elif precision == "fast" and self.text.lines == (f"v0 = exp2_of_minus(q{i}, POLY)",):
            precision = "bare"
            self.weights = torch.exp2(-squares[0][0]), torch.exp2(-squares[1][0])
        item = self._products(precision, scaling, samples, squares)
        item = replace(item, reach=4.0 * largest)
        if not guarded and item.layout.resident:
            return item
        self.constants.append(NEAR["deep" if precision == "deep" else "fast"] * largest)
        near = len(self.constants) - 1
        if precision == "bare":
            left, right = (self._keep(side, squares[side][0].float().unsqueeze(0)) for side in (0, 1))
            item = replace(item, norms=(left, right))
        return replace(item, exact=self._differences(statistic, unit, "l2"), near=near)

    def _split_gain(self, d: int) -> float:
        """What brings back the mean loss of the sum after its exact part."""
        split = layout(d, "split", chunked=self.chunked)
        if interpreted() or len(split.passes) == 1:
            return 1.0
        return 1.0 + SPLIT_TRUNCATION * sum(split.shared(a, b) for a, b in split.passes[1]) / 16

    def _inner(self, statistic: Statistic, unit: float) -> Input:
        """x.z of rows that are scaled alike, without norms; `factor` brings the sum back to the units of the text."""
        x, z = self._features(statistic)
        scales = inner_scales(x, z)
        if scales.note:
            self.notes.append(scales.note)
        factor = min(unit / (scales.left * scales.right), LARGEST_FACTOR)
        if scales.precision == "featurewise":
            return self._featurewise((x * scales.left, z * scales.right), torch.tensor([factor]), "inner")
        centre = torch.zeros(x.shape[1], dtype=torch.float64, device=self.device)
        step = 0.0 if scales.precision == "bare" else _grid(scales.longest**2)
        scaling = Scaling(centre, centre + scales.left, 1.0, gain=scales.right / scales.left, step=step)
        left, right = (torch.zeros(count, dtype=torch.float64, device=self.device) for count in self.rows)
        item = self._products(scales.precision, scaling, (x, z), ((left, left), (right, right)))
        self.constants.append(factor)
        return replace(item, factor=len(self.constants) - 1)

    def _products(self, precision: str, scaling: Scaling, samples: Pair, squares: tuple[Pair, Pair]) -> Products:
        item = Products(layout(samples[0].shape[1], precision, chunked=self.chunked), self.width)
        self.width += item.layout.width
        if precision in ("fast", "bare", "rounded") and not interpreted():
            scaling = replace(scaling, gain=scaling.gain * _what_truncation_takes(item.layout, self.device))
        self.parts.append((item, scaling, samples, squares))
        return item

    def _differences(self, statistic: Statistic, unit: float, metric: str) -> Featurewise:
        samples = self._features(statistic)
        power = 1 if metric == "l1" else 2
        length = as_scale(statistic.length_scale, samples[1][:1].double())
        weights = unit * torch.as_tensor(length, dtype=torch.float64, device="cpu").flatten() ** -power
        return self._featurewise(samples, weights, metric)

    def _featurewise(self, samples: Pair, weights: Tensor, metric: str) -> Featurewise:
        left, right = (self._keep(side, _repeat_last(samples[side], self.rows[side]).T) for side in (0, 1))
        first = len(self.constants)
        self.constants += weights.tolist()
        return Featurewise(samples[0].shape[1], left, right, first, len(weights) == 1, metric)

    def _ends(self, statistic: Statistic, unit: float) -> Ends:
        side = 0 if statistic.kind == "left" else 1
        points = warped(statistic, (self.x, self.z)[side])
        assert statistic.function is not None
        values = (row_values(statistic.function, points).double() * unit).float()
        return Ends(statistic.kind, self._keep(side, _repeat_last(values, self.rows[side]).unsqueeze(0)))

    def _keep(self, side: int, lines: Tensor) -> int:
        start = sum(map(len, self.lines[side]))
        self.lines[side].append(lines)
        return start

    def _features(self, statistic: Statistic) -> Pair:
        a, b = (vectors(warped(statistic, points)).detach() for points in (self.x, self.z))
        return a.float().contiguous(), (-b if statistic.kind == "squared_sum" else b).float().contiguous()

    def _norms(self, scaling: Scaling, samples: Pair, *, third: bool = False) -> tuple[Pair, Pair]:
        left, right = (norms(scaling, samples[i], self.rows[i], third=third) for i in (0, 1))
        return left, right

    def _packed(self, side: int) -> Tensor:
        """The packed columns of one sample."""
        out = torch.empty(self.rows[side], max(self.width, 1), dtype=torch.float16, device=self.device)
        for item, scaling, samples, squares in self.parts:
            pack(item.layout, scaling, samples[side], squares[side], side, out, item.start)
        return out

    def _stacked(self, side: int) -> Tensor:
        """The features and end values of one sample, one line each."""
        if not self.lines[side]:
            return torch.zeros(1, self.rows[side], device=self.device)
        return torch.cat(self.lines[side]).contiguous()


@lru_cache(maxsize=256)
def _what_truncation_takes(grid: Layout, device: torch.device) -> float | Tensor:
    """The factor that brings it back on average: a feature read in chunks is in all partial sums that follow."""
    if grid.rounded:
        return 1.0 + ROUNDED_LOSS
    if grid.resident:
        return 1.0 + TRUNCATION * grid.products / 32
    return 1.0 + TRUNCATION * torch.tensor(grid.sums_after, dtype=torch.float64, device=device)


def _repeat_last(rows: Tensor, count: int) -> Tensor:
    """Padded to `count` rows with copies of the last one."""
    return rows if len(rows) == count else torch.cat([rows, rows[-1:].expand(count - len(rows), *rows.shape[1:])])


def _grid(largest: float) -> float:
    """A step so coarse that sums of products of its multiples, rows of at most this squared norm, are exact."""
    return 2.0 ** max(-14, math.ceil(math.log2(math.sqrt(largest) / 2040.0)) if largest else -14)


def _largest(squares: tuple[Pair, Pair]) -> float:
    return float(torch.stack([s.max() for s, _ in squares]).max())
