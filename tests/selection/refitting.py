"""Leave-one-out by refitting, in plain numpy: the reference of the selection tests."""

from __future__ import annotations

import numpy as np


def ridge_fit(K, y, w, alpha):
    """Coefficients c of the weighted ridge problem: (K + alpha W^-1) c = y; at alpha = 0 the least-norm solution."""
    s = np.sqrt(w)
    A = s[:, None] * K * s
    if alpha > 0:
        return s * np.linalg.solve(A + alpha * np.eye(len(y)), s * y)
    return s * (np.linalg.pinv(A, rcond=1e-11, hermitian=True) @ (s * y))


def loo_by_refitting(K, y, w, alpha):
    """Residual of each row under the fit with one unit of its weight removed (or the row, when it has no more)."""
    residuals = np.empty(len(y))
    for i in range(len(y)):
        left = w.copy()
        left[i] = max(left[i] - 1.0, 0.0)
        kept = left > 1e-12
        c = ridge_fit(K[np.ix_(kept, kept)], y[kept], left[kept], alpha)
        residuals[i] = y[i] - K[i, kept] @ c
    return residuals
