"""The data of two samples as the fused loops read them: packed columns, features, end values and constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.operators.backends.fused.dials import LARGEST_EXPONENT, RESIDENT_FEATURES
from mercer.operators.backends.fused.layout import Layout
from mercer.operators.backends.fused.profile import Profile
from mercer.operators.backends.fused.source import Featurewise, Input, Products, functions, source
from mercer.operators.backends.fused.tiles import Tile


@dataclass(frozen=True)
class Operands:
    """What a launch needs besides V: columns A and B, float32 rows P and Q, constants C, and how to read them.

    `weights` are factors of rows and of columns.
    """

    A: Tensor
    B: Tensor
    P: Tensor
    Q: Tensor
    C: Tensor
    text: Profile
    inputs: tuple[Input, ...]
    weights: tuple[Tensor, Tensor] | None = None

    @cached_property
    def flags(self) -> dict[tuple[int, int, str], Flags]:
        """Which tiles have nearly coincident points, by tile size and kind of product, as far as known."""
        return {}

    @cached_property
    def tiles(self) -> dict[tuple[int, bool], Tile]:
        """The tiles chosen so far, by the number of columns of V and whether mirrored."""
        return {}

    @cached_property
    def transposed(self) -> Operands:
        """The operands of the transposed Gram matrix."""
        inputs = tuple(item.swapped() for item in self.inputs)
        weights = self.weights and self.weights[::-1]
        return replace(self, A=self.B, B=self.A, P=self.Q, Q=self.P, inputs=inputs, weights=weights)

    def with_rows(self, rows: Tensor) -> Operands:
        """The operands of some rows and all columns."""
        weights = self.weights and (self.weights[0][rows], self.weights[1])
        return replace(self, A=self.A[rows], P=self.P[:, rows], weights=weights)

    def taken(self, rows: Tensor, columns: Tensor) -> Operands:
        """The operands of some rows and columns."""
        return self.with_rows(rows).transposed.with_rows(columns).transposed

    @cached_property
    def exact(self) -> Operands | None:
        """The same with differences in place of products that may meet nearly coincident points, None without any."""
        inputs = tuple(getattr(item, "exact", None) or item for item in self.inputs)
        return None if inputs == self.inputs else replace(self, inputs=inputs, weights=None)

    @cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The Triton functions written for these inputs."""
        return functions(source(self.text, self.inputs, self.A.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Padded rows and columns."""
        return self.P.shape[1], self.Q.shape[1]

    @property
    def small_exponents(self) -> bool:
        """Whether every power of two that the polynomial may compute is within its range."""
        inputs = [(self.inputs[i], power) for i, power in self.text.exponents]
        return all(isinstance(x, Products) and x.reach**power <= LARGEST_EXPONENT for x, power in inputs)

    @property
    def layouts(self) -> list[Layout]:
        """Of the inputs that are matrix products."""
        return [item.layout for item in self.inputs if isinstance(item, Products)]

    @property
    def looped(self) -> bool:
        """Whether a tile adds up features in a loop."""
        return any(isinstance(item, Featurewise) and item.features > RESIDENT_FEATURES for item in self.inputs)


class Flags:
    """A mark for each tile, written by the first product: `any` is known after it."""

    def __init__(self, data: Operands, size: Tile) -> None:
        n, m = data.shape
        self.size = size
        self.tiles = torch.zeros(n // size.BM * (m // size.BN), dtype=torch.int8, device=data.P.device)

    @cached_property
    def any(self) -> bool:
        return bool(self.tiles.any())
