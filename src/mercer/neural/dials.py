"""Numbers that somebody chose in `mercer.neural`: what each is, and where it was measured if it was."""

from __future__ import annotations

# flow.py

NULL = 1e-12
"""Eigenvalues below this share of the largest are directions that never train, where time is infinite."""


# layer_kernel.py

COPIES = 16
"""Tensors of the size of all covariances of a tile that are alive at a time, and the share of the budget they take."""
CACHED = 80_000
"""Covariances of a tile on a CPU, whose tensors then stay in the caches: a third of the time of large tiles (Zen 5)."""


# modules.py

ROUNDING = 1e-4
"""Relative difference of outputs that the size of a batch may make, in float32."""


# tangent.py

LARGEST_SHARE = 8
"""Jacobians of some rows take at most this part of the memory budget: two of them, their gradients and copies."""
ROWS_AT_ONCE = 512
"""Rows of a product, whose activations are in memory together."""
