"""The numbers of this package that somebody chose: what each is, and where it was measured if it was."""

from __future__ import annotations

import torch

# distances

FOLD_RADIUS = 25.0
"""Largest squared radius of centred, scaled data for which a float32 product keeps 2e-6."""

NEAR = {torch.float32: 1e-3, torch.float64: 1e-6}
"""Squared distances below this share of the squared radius are taken again from differences."""

MEND_RADIUS = 1e4
"""Above this squared radius a float64 product is not trusted for near pairs of any kernel."""

ROOM = 1e-8
"""Share of the largest number that squared distances may have: it leaves room for formulas that go on with them."""

DIFFERENCES, FEATURES_AT_ONCE = 2**24, 8
"""Differences that are stored at a time on a GPU for L1 distances, and the features they are of."""

# hermite

TERMS = 32
"""Coefficients of an activation that are found."""

NODES = 160
"""Nodes of the quadrature that finds them."""

MISSING = 1e-2
"""Share of E phi^2 that the terms may leave out before a kernel is refused."""

# median

MAX_ROWS = 2000
"""Rows whose distances give a length scale at most; others are not drawn."""

NEVER_COUNTS = 1e10
"""Times its value: the length scale of a constant column. New values as far away hardly change the kernel."""

LARGEST = 1e300
"""The largest length scale, which leaves room for its square in quotients."""

# objects

SYMMETRIC = 1e-6
"""Largest difference of mirrored entries, relative to the largest: matrices may have been made in float32."""

# overflow

CHECKED_ROWS = 2**12
"""Rows whose kernel values are looked at together."""

# serialize

MAX_DEPTH = 150
"""How deep kernels may be nested in a model file."""

MAX_ENTRIES = 100_000
"""Entries of a list in a model file at most."""

SERIALIZE_SMALLEST = 1e-300
"""The smallest number of a model file that is not zero."""

# shown

MANY = 6
"""More numbers than this are shown by their range."""

# spectral

SPECTRAL_SMALLEST = 1e-300
"""Draws are kept above it, so that logarithms and quotients are numbers."""

LARGEST_LOG = 690.0
"""The largest logarithm whose exponential is a number, with room for products."""

LARGEST_RATE = 1e15
"""Bounds that keep every frequency finite; beyond them a cosine is noise at any distance a float can hold."""

SOBOL_STEP = 2.0**-30
"""Points of a Sobol sequence are multiples of it."""

# spread

MOST_GAPS = 3.0
"""Times the typical gap: the largest spread. Of normal, uniform and binary columns the deviation is 1.05, .99 and .71
times the typical gap, so that only far outliers are cut."""

NORMAL_GAP = 0.9538725524
"""The median gap of a normal sample of deviation one: the third quartile times the root of two."""

BISECTIONS = 48
"""Halvings that end at the rounding of float64."""

SAME = 1e-12
"""Values closer than this share of the range of their column are equal."""

ROUNDING = 1e-10
"""What rounding may add to a share of pairs."""

EMPTY = 1e-30
"""What two bins of a histogram hold together below which both count as empty."""

EXPLICIT_LOOKED_AT = 2
"""Rows that the features of a kernel are counted on."""

MOST_COUNTED = 2000
"""Features up to which the dimension of their space is counted."""
