"""Symmetric matrices of numpy, by the guarded functions of the solvers."""

from __future__ import annotations

import numpy as np
import torch

from mercer.solvers import decompose
from mercer.solvers.factor import factorise

MATRIX = "A Gram matrix"


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues in rising order and eigenvectors.

    >>> eigh(np.diag([2.0, 1.0]))[0]
    array([1., 2.])
    """
    values, vectors = decompose.eigh(torch.tensor(matrix), MATRIX)
    return values.numpy(), vectors.numpy()


def solve(matrix: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The inverse of a positive definite matrix times B of shape (n,) or (n, k).

    >>> solve(np.diag([2.0, 4.0]), np.ones(2))
    array([0.5 , 0.25])
    """
    factor = factorise(lambda: torch.tensor(matrix), what=MATRIX, advice="use a larger alpha")
    return factor.solve(torch.from_numpy(np.asarray(B, dtype=np.float64)).reshape(len(B), -1)).numpy().reshape(B.shape)
