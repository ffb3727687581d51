"""Numbers that somebody chose in `mercer.cli`: what each is, and where it was measured if it was."""

from __future__ import annotations

# account.py

MOST_CLASSES = 12
"""Classes in a table that fits a terminal."""


# fitting.py

LEVEL = 0.9
"""Of the intervals that are checked on test rows."""
FEWEST_FOR_INTERVALS = 20
"""Test rows from which intervals are checked."""


# frame_model.py

MOST_MARKS = 1_000_000
"""Training rows that are remembered."""


# problem.py

SHOWN = 20
"""Columns listed in a message before the rest is counted."""
MIN_TRAIN, MIN_TEST = 5, 2
"""Rows at least to train with and to test with."""


# reading.py

SNIFFED = 50
"""Lines that decide on the delimiter."""


# scores.py

CLEAR = 2.0
"""A difference of mean squared errors counts from this many of its standard deviations."""


# sources.py

COPIES = 4
"""Times that a table is held in memory at the peak of a fit to all of it."""


# streamed.py

DRAWN = 2000
"""Test rows in the plot, about."""


# task.py

MANY_CLASSES = 50
"""Different texts beyond which a target is no class where most rows have one of their own."""
FEW_VALUES = 10
"""Different values up to which numbers can be classes."""
