"""Numbers that somebody chose in `mercer.losses`: what each is, and where it was measured if it was."""

from __future__ import annotations

# loss.py

ROWS_ALONE = 5
"""Rows whose loss is computed without the others too, at most, to see whether it depends on them."""
ALIKE = 1e-9
"""Two computations of one loss differ by no more, relative to its size or one."""
