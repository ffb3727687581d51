"""Labels of a source as codes, or as signs, with the weights of their classes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.rows.source import Chunk, Part, RowSource
from mercer.data.rows.views import View


class CodedRows(View):
    """The rows of a source whose targets are the places of labels among sorted `values`; classes weigh `by_class`.

    With `signs` targets are -1 and 1 instead: one column for two classes, else one for each.

    >>> from mercer.data.rows.arrays import ArrayRows
    >>> source = ArrayRows(np.zeros((3, 1)), np.array([7.0, 3.0, 7.0]))
    >>> next(iter(CodedRows(source, torch.tensor([3.0, 7.0]).double()))).targets[:, 0]
    tensor([1., 0., 1.], dtype=torch.float64)
    """

    def __init__(
        self, source: RowSource, values: Tensor, by_class: Tensor | None = None, *, signs: bool = False
    ) -> None:
        super().__init__(source)
        self.values, self.by_class, self.signs = values, by_class, signs
        if signs:
            self.n_targets, self.one_target = (1 if len(values) == 2 else len(values)), len(values) == 2

    def changed(self, chunk: Chunk, part: Part) -> Chunk:
        assert chunk.targets is not None
        labels = chunk.targets[:, 0].contiguous()
        codes = torch.searchsorted(self.values, labels).clamp(max=len(self.values) - 1)
        unknown = (self.values[codes] != labels).nonzero()
        if len(unknown):
            row = int(unknown[0, 0])
            raise InputError(
                f"y has the label {float(labels[row]):g} in row {part.start + row} of {self.place(part)}, which was "
                "not there when labels were counted: rows must stay as they are until a fit has ended."
            )
        weights = chunk.weights
        if self.by_class is not None:
            weights = self.by_class[codes] * (1.0 if weights is None else weights)
        targets = signs_of(codes, len(self.values)) if self.signs else codes.double().unsqueeze(1)
        return Chunk(chunk.X, targets, weights)

    def identity(self) -> dict[str, Any]:
        numbers = [self.values.numpy(), *([] if self.by_class is None else [self.by_class.numpy()])]
        digest = hashlib.sha256(np.concatenate(numbers).tobytes()).hexdigest()
        return self.source.identity() | {"labels": [digest, self.signs]}


def signs_of(codes: Tensor, t: int) -> Tensor:
    """Labels -1 and 1: one column for two classes, else one for each."""
    wanted = torch.arange(1, 2) if t == 2 else torch.arange(t)
    return torch.where(codes.unsqueeze(1) == wanted.to(codes), 1.0, -1.0).to(torch.float64)
