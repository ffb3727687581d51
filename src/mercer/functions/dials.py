"""Numbers that somebody chose in `mercer.functions`: what each is, and where it was measured if it was."""

from __future__ import annotations

# fourier.py

CACHE_NUMBERS = 2**18
"""Numbers of a tile of features: as many as caches hold."""
SINGLE_REACH = 100.0
"""Largest phase, in radians, that is computed in float32."""


# function.py

ROUNDING = 1e-6
"""Share of its largest possible size by which a squared norm may be negative through rounding alone."""


# products.py

GRADIENT_TILE = 2**27
"""Bytes of kernel values differentiated at once; the graph holds several such tiles."""


# sums.py

ROUNDED = 1e-5
"""Share of a value's size that the rounding of float32 may take before it is found again in float64."""
