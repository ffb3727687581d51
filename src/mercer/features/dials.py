"""The numbers of this package that somebody chose: what each is, and where it was measured if it was."""

from __future__ import annotations

# accuracy

STRIP_NUMBERS = 2**22
"""Kernel values that are compared at a time."""

# network

NETWORK_CACHE_NUMBERS = 2**17
"""Features that are made at a time, which the caches hold."""

# pre_image

TINY = 1e-10
"""The share of the sizes of its terms below which a sum is rounding."""

# principal

ZERO = 1e-12
"""Eigenvalues up to this share of the largest count as zero."""

PART_NUMBERS = 2**22
"""Projections that are made at a time."""

FEW_MATRICES, ALL_MATRICES = 2.5, 7
"""Matrices of n x n numbers that are stored for a few directions, and for all of them."""

# recursive

STEP_RIDGE = 1e-3
"""The ridge, for a kernel of size one, of the regressions whose gradients are averaged: small, as they have to show
directions and not to predict."""

# taylor

TAYLOR_CACHE_NUMBERS = 2**17
"""Features that are made at a time, which the caches hold."""
