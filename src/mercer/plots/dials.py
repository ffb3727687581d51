"""Numbers that somebody chose in `mercer.plots`: what each is, and where it was measured if it was."""

from __future__ import annotations

# canvas.py

LABEL, SMALL = 10, 9
"""Font sizes in points."""
MANY_POINTS = 20_000
"""Above this a scatter plot is drawn as counts in hexagons."""

TICK_LETTERS = 34
"""Letters of tick labels that have room along an axis."""


# features.py

SHOWN = 20
"""Columns that are drawn with a bar each."""


# gaussian_process.py

MOST_BARS = 30
"""Features beyond this are left out of a picture of relevances, the least relevant first."""


# places.py

SIDE = 80
"""Places along each side of a map."""


# probabilities.py

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Probabilities of the lines that are drawn."""
