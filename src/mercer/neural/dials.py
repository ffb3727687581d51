"""Numbers that somebody chose in `mercer.neural`: what each is, and where it was measured if it was."""

from __future__ import annotations

# covariances.py

TINY = 1e-150
"""The least deviation, which covariances are divided by, and the least sine, whose derivative is finite."""


# flow.py

NULL = 1e-12
"""Eigenvalues below this share of the largest are directions that never train, where time is infinite."""


# layer_kernel.py

COPIES = 16
"""Tensors of the size of all covariances of a tile that are alive at a time, and the share of the budget they take."""
CACHED = 100_000
"""Covariances of a sheet on a CPU: more stay in the caches no longer, and fewer are more calls. With pooling of 14 x 14
images 26,000 take 1.3 times as long, 52,000 and 208,000 1.05 times (Zen 4, busy; on a Zen 5 26,000 and 52,000 were as
fast as each other)."""
WIDE = 64
"""Images in the last dimension of a sheet, if so many fit: half as many take 1.3 times as long (Zen 5)."""


# modules.py

ROUNDING = 1e-4
"""Relative difference of outputs that the size of a batch may make, in float32."""


# tangent.py

LARGEST_SHARE = 8
"""Jacobians of some rows take at most this part of the memory budget: two of them, their gradients and copies."""
ROWS_AT_ONCE = 512
"""Rows of a product, whose activations are in memory together."""
