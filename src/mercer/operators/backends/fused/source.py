"""From a formula and the layout of its inputs to the text of ROWS, COLS and TILE, and on to Triton functions."""

from __future__ import annotations

import hashlib
import linecache
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from mercer.operators.backends.fused.dials import (
    CHUNK,
    FEATURES_IN_A_SUM,
    LARGEST_DISTANCE,
    MANY_FEATURES,
    RESIDENT_FEATURES,
)
from mercer.operators.backends.fused.grammar import HEADER, checked
from mercer.operators.backends.fused.layout import Layout, pieces
from mercer.operators.backends.fused.profile import Profile

TERMS = {"l1": "tl.abs({x} - {z})", "l2": "({x} - {z}) * ({x} - {z})", "inner": "{x} * {z}"}
"""What a feature adds, by metric."""


@dataclass(frozen=True)
class Featurewise:
    """An input summed over features one by one, in float32: rows `left`... of P and `right`... of Q.

    Weights are constants from `weight` on, or one for all features when `shared`; `metric` is a key of `TERMS`.
    """

    features: int
    left: int
    right: int
    weight: int
    shared: bool
    metric: str

    def swapped(self) -> Featurewise:
        return replace(self, left=self.right, right=self.left)


@dataclass(frozen=True)
class Products:
    """An input that is a sum of matrix products of packed columns, from column `start` of the operands.

    `reach` bounds its values. A tile with a value below constant `near` has to be taken again, from the differences
    `exact`; where the sum lacks the squared norms, `norms` are the rows of P and Q that complete it for this test.
    The sum is multiplied by constant `factor`, if any.
    """

    layout: Layout
    start: int
    reach: float = math.inf
    exact: Featurewise | None = None
    near: int = 0
    norms: tuple[int, int] | None = None
    factor: int | None = None

    def swapped(self) -> Products:
        if self.exact is None:
            return self
        return replace(self, exact=self.exact.swapped(), norms=self.norms and self.norms[::-1])


@dataclass(frozen=True)
class Ends:
    """An input that is a function of x alone ("left") or z alone: row `start` of P or Q."""

    side: str
    start: int

    def swapped(self) -> Ends:
        return Ends("right" if self.side == "left" else "left", self.start)


Input = Products | Featurewise | Ends


class _Text:
    """Collects the lines of the functions; what ROWS and COLS find reaches TILE in tuples, `here` and `there`."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: dict[str, str] = {}
        self.cols: dict[str, str] = {}
        self.tile: list[str] = []
        self.near: list[str] = []

    def hand(self, name: str, text: str) -> None:
        """Computed once for a block of rows."""
        self.rows.setdefault(name, text)

    def meet(self, name: str, text: str) -> None:
        """Computed once for a block of columns."""
        self.cols.setdefault(name, text)

    def constant(self, index: int) -> str:
        self.hand(f"c{index}", f"tl.load(C + {index})")
        return f"c{index}"

    def products(self, items: dict[str, Products]) -> None:
        for q, item in items.items():
            if item.layout.resident:
                self._resident(q, item)
        self._chunked({q: item for q, item in items.items() if not item.layout.resident})
        for q, item in items.items():
            if item.factor is not None:
                self.tile.append(f"{q} = {self.constant(item.factor)} * {q}")
            if item.exact is not None:
                self.near.append(f"(tl.min({self._distance(q, item)}) < {self.constant(item.near)})")

    def _distance(self, q: str, item: Products) -> str:
        """The squared distance, from a sum that may lack the squared norms."""
        if item.norms is None:
            return q
        left, right = item.norms
        self.hand(f"{q}_left", f"tl.load(p_rows + {left} * n)")
        self.meet(f"{q}_right", f"tl.load(q_cols + {right} * m)")
        return f"{q} + ({q}_left[:, None] + {q}_right[None, :])"

    def _resident(self, q: str, item: Products) -> None:
        grid, more = item.layout, ""
        for a, b in (pair for pairs in grid.passes for pair in pairs):
            for at, size in pieces(grid.shared(a, b)):
                left, right = item.start + grid.start(a) + at, item.start + grid.start(b) + at
                x, z = f"a{left}_{size}", f"b{right}_{size}"
                self.hand(x, f"tl.load(a_rows + {left} + tl.arange(0, {size})[None, :])")
                self.meet(z, f"tl.load(b_cols + {right} + tl.arange(0, {size})[:, None])")
                self.tile.append(f"{q} = tl.dot({x}, {z}{more})")
                more = f", {q}"

    def _chunked(self, items: dict[str, Products]) -> None:
        """One loop over the features for all wide inputs, which have the same width."""
        if not items:
            return
        loads: list[str] = []
        dots: list[str] = []
        sums = {q: [f"{q}_{i}" for i in range(len(item.layout.passes))] for q, item in items.items()}
        for q, item in items.items():
            grid = item.layout
            for i in range(len(grid.blocks)):
                place = f"{item.start + grid.start(i)} + at + tl.arange(0, {CHUNK})"
                loads.append(f"    {q}a{i} = tl.load(a_rows + ({place})[None, :])")
                loads.append(f"    {q}b{i} = tl.load(b_cols + ({place})[:, None])")
            for name, pairs in zip(sums[q], grid.passes, strict=True):
                dots += self._added_up(q, name, pairs, rounded=grid.rounded)
        (width,) = {item.layout.blocks[0].width for item in items.values()}
        self.tile += [f"{name} = tl.zeros((BM, BN), tl.float32)" for names in sums.values() for name in names]
        self.tile.append(f"for at in tl.range(0, {width}, {CHUNK}, num_stages=INNER):")
        self.tile += loads + dots
        self.tile += [f"{q} = {' + '.join(names)}" for q, names in sums.items()]

    @staticmethod
    def _added_up(q: str, name: str, pairs: tuple[tuple[int, int], ...], *, rounded: bool) -> list[str]:
        """Products of a chunk; `rounded` adds them up apart, since sums on the tensor cores truncate."""
        part = f"{q}_part" if rounded else name
        dots = [f"    {part} = tl.dot({q}a{a}, {q}b{b}, {part})" for a, b in pairs]
        return [f"    {part} = tl.zeros((BM, BN), tl.float32)", *dots, f"    {name} += {part}"] if rounded else dots

    def featurewise(self, q: str, item: Featurewise) -> None:
        weight = self.constant(item.weight) if item.shared else "1.0"
        total = f"{weight} * {q}"
        lines = [f"{q} = tl.zeros((BM, BN), tl.float32)"]
        if item.features <= RESIDENT_FEATURES:
            for i in range(item.features):
                x, z = f"x{item.left + i}", f"z{item.right + i}"
                self.hand(x, f"tl.load(p_rows + {item.left + i} * n)")
                self.meet(z, f"tl.load(q_cols + {item.right + i} * m)")
                own = "" if item.shared else f"{self.constant(item.weight + i)} * "
                lines.append(f"{q} += {own}({TERMS[item.metric].format(x=f'{x}[:, None]', z=f'{z}[None, :]')})")
        elif item.features <= MANY_FEATURES or item.metric == "inner":
            lines += [f"for f in tl.range(0, {item.features}, num_stages=1):", *_feature(item, q)]
        else:
            lines += _many_features(item, q)
            total = f"tl.fma({weight}, {q}, {weight} * lost)"
        if item.metric != "inner":
            total = f"tl.minimum({total}, {LARGEST_DISTANCE})"
        self.tile += [*lines, f"{q} = {total}"]

    def ends(self, q: str, item: Ends) -> None:
        if item.side == "left":
            self.hand(q, f"tl.load(p_rows + {item.start} * n)[:, None]")
        else:
            self.meet(q, f"tl.load(q_cols + {item.start} * m)[None, :]")

    def text(self) -> str:
        used = set(re.findall(r"\w+", " ".join(self.tile)))
        unpacked = [
            f"{name} = {side}[{i}]"
            for side, found in (("here", self.rows), ("there", self.cols))
            for i, name in enumerate(found)
            if name in used
        ]
        rows, cols = ([f"{name} = {text}" for name, text in found.items()] for found in (self.rows, self.cols))
        return f"""{HEADER}

@triton.jit
def rows(A, P, C, row, n, BM: tl.constexpr):
    a_rows = A + row * {self.width} + tl.arange(0, BM)[:, None] * {self.width}
    p_rows = P + row + tl.arange(0, BM)
{_body(rows)}
    return {_tuple(self.rows)}


@triton.jit
def cols(B, Q, col, m, BN: tl.constexpr):
    b_cols = B + col * {self.width} + tl.arange(0, BN)[None, :] * {self.width}
    q_cols = Q + col + tl.arange(0, BN)
{_body(cols)}
    return {_tuple(self.cols)}


@triton.jit
def tile(
    A, B, P, Q, C, here, there, w, row, col, n, m,
    BM: tl.constexpr, BN: tl.constexpr, INNER: tl.constexpr, POLY: tl.constexpr,
):
    a_rows = A + row * {self.width} + tl.arange(0, BM)[:, None] * {self.width}
    b_cols = B + col * {self.width} + tl.arange(0, BN)[None, :] * {self.width}
    p_rows = P + row + tl.arange(0, BM)
    q_cols = Q + col + tl.arange(0, BN)
{_body([*unpacked, *self.tile])}
"""


def _feature(item: Featurewise, total: str, f: str = "f") -> list[str]:
    """The body of a loop that adds feature f."""
    weight = "" if item.shared else f"tl.load(C + {item.weight} + {f}) * "
    return [
        f"    x = tl.load(p_rows + ({item.left} + {f}) * n)[:, None]",
        f"    z = tl.load(q_cols + ({item.right} + {f}) * m)[None, :]",
        f"    {total} += {weight}({TERMS[item.metric].format(x='x', z='z')})",
    ]


def _many_features(item: Featurewise, q: str) -> list[str]:
    """Some features at a time; `lost` is what rounding took from the sums of these (Dekker, 1971)."""
    whole = item.features // FEATURES_IN_A_SUM * FEATURES_IN_A_SUM
    added = [f"more = {q} + part", f"lost += part - (more - {q})", f"{q} = more"]
    lines = [
        "lost = tl.zeros((BM, BN), tl.float32)",
        f"for first in tl.range(0, {whole}, {FEATURES_IN_A_SUM}, num_stages=1):",
        "    part = tl.zeros((BM, BN), tl.float32)",
        f"    for next in tl.static_range({FEATURES_IN_A_SUM}):",
        *(f"    {line}" for line in _feature(item, "part", "first + next")),
        *(f"    {line}" for line in added),
    ]
    if whole < item.features:
        lines += [
            "part = tl.zeros((BM, BN), tl.float32)",
            f"for f in tl.range({whole}, {item.features}, num_stages=1):",
            *_feature(item, "part"),
            *added,
        ]
    return lines


def _body(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _tuple(names: Iterable[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


def source(text: Profile, inputs: tuple[Input, ...], width: int) -> str:
    """The text of a module with the functions `rows`, `cols` and `tile`, for operands of `width` packed columns."""
    out = _Text(width)
    for i in range(max(1, len(text.constants))):
        out.constant(i)
    out.products({f"q{i}": item for i, item in enumerate(inputs) if isinstance(item, Products)})
    for i, item in enumerate(inputs):
        match item:
            case Featurewise():
                out.featurewise(f"q{i}", item)
            case Ends():
                out.ends(f"q{i}", item)
    near = " | ".join(out.near) or "tl.full((), 0, tl.int1)"
    out.tile += [*text.lines, f"return tl.broadcast_to({text.weighted}, (BM, BN)), {near}"]
    return out.text()


@lru_cache(maxsize=256)
def functions(text: str) -> dict[str, Callable[..., Any]]:
    """The Triton functions of a text by name; Triton reads the text again, so it is kept where Python looks."""
    name = f"<mercer fused {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module: dict[str, Any] = {"__name__": "mercer.operators.backends.fused.generated"}
    exec(compile(checked(text), name, "exec"), module)
    return {"ROWS": module["rows"], "COLS": module["cols"], "TILE": module["tile"]}
