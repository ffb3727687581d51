"""A kernel of strings: how many short substrings they share."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(
    names={"spectrum": {}},
    examples=[{"k": 2}, {"k": 3, "normalised": False}],
)
class Spectrum(Kernel):
    r"""The spectrum kernel of strings: the inner product of their counts of substrings of length k,

    .. math:: k(s, t) = \frac{c(s) \cdot c(t)}{|c(s)|\,|c(t)|},

    without the denominator when `normalised` is False. A string shorter than k has no features and the value 0
    with every string, itself included.

    References: Leslie, Eskin and Noble, *The spectrum kernel: a string kernel for SVM protein classification*, 2002.

    >>> Spectrum(k=2)(["kernel", "kernels", "banana"]).round(3)
    array([[1.   , 0.913, 0.   ],
           [0.913, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    k: int = parameter(3, integer=True, tunable=False)
    normalised: bool = True
    domain = "objects"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.normalised, bool):
            raise InputTypeError(f"Spectrum(normalised={self.normalised!r}): normalised must be True or False.")

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, self._diag)

    def _gram(self, pair: DensePair) -> Tensor:
        vocabulary: dict[str, int] = {}
        left = [self._counts(s) for s in _strings(pair.x, "X")]
        right = left if pair.z is None else [self._counts(s) for s in _strings(pair.z, "Z")]
        for counts in (*left, *right):
            for word in counts:
                vocabulary.setdefault(word, len(vocabulary))
        shared = (_matrix(left, vocabulary) @ _matrix(right, vocabulary).T).toarray()
        if self.normalised:
            norms = np.sqrt(np.outer(_squared_norms(left), _squared_norms(right)))
            shared = np.divide(shared, norms, out=np.zeros_like(shared), where=norms > 0)
        return torch.from_numpy(shared)

    def _diag(self, points: Points) -> Tensor:
        norms = torch.from_numpy(_squared_norms([self._counts(s) for s in _strings(points, "X")]))
        return (norms > 0).to(torch.float64) if self.normalised else norms

    def _counts(self, string: str) -> Counter[str]:
        return Counter(string[i : i + self.k] for i in range(len(string) - self.k + 1))

    @property
    def properties(self) -> Properties:
        return Properties(stationary=False, bounded=self.normalised, is_normalised=False)


def _strings(points: Points, name: str) -> list[str]:
    if points.is_tensor:
        raise InputTypeError(f"Spectrum takes strings, but {name} is a table of numbers.")
    for i, value in enumerate(points.values):
        if not isinstance(value, str):
            raise InputTypeError(f"Spectrum takes strings, but {name}[{i}] is {value!r} ({type(value).__name__}).")
    result: list[str] = points.values
    return result


def _matrix(counts: list[Counter[str]], vocabulary: dict[str, int]) -> scipy.sparse.csr_array:
    """One row of counts per string, stored sparsely."""
    data = np.array([c for row in counts for c in row.values()], dtype=np.float64)
    indices = np.array([vocabulary[word] for row in counts for word in row], dtype=np.int64)
    starts = np.cumsum([0, *map(len, counts)])
    return scipy.sparse.csr_array((data, indices, starts), shape=(len(counts), max(1, len(vocabulary))))


def _squared_norms(counts: list[Counter[str]]) -> np.ndarray:
    return np.array([sum(c * c for c in row.values()) for row in counts], dtype=np.float64)
