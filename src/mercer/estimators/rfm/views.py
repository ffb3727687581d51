"""Rows of a source as a lens shows them."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from mercer.data.rows import Part, RowSource
from mercer.data.rows.source import Chunk
from mercer.data.rows.views import View
from mercer.features.lens import Lens


class LensRows(View):
    """Features through a lens, without names, and targets less a shift."""

    def __init__(self, source: RowSource, lens: Lens, shift: Tensor | None = None) -> None:
        super().__init__(source)
        self.lens, self.shift, self.names = lens, shift, None

    def changed(self, chunk: Chunk, part: Part) -> Chunk:
        targets = chunk.targets if chunk.targets is None or self.shift is None else chunk.targets - self.shift
        return Chunk(self.lens.rows(chunk.X).to(chunk.X.dtype), targets, chunk.weights)

    def identity(self) -> dict[str, Any]:
        numbers = torch.cat([part.flatten() for part in (self.lens.centre, self.lens.spread, self.lens.root)])
        return self.source.identity() | {"lens": hashlib.sha256(numbers.numpy().tobytes()).hexdigest()}
