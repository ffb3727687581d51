"""Numbers that somebody chose in `mercer.data`: what each is, and where it was measured if it was."""

from __future__ import annotations

# checkpoint.py

SECONDS = 10.0
"""Time between two checkpoints; what an interruption costs at most."""


# engines/dask.py

POLL = 1.0
"""Seconds between two looks at the cluster while it works."""
LONGEST_CALL = 15.0
"""Seconds in which a scheduler that is there answers a first call."""
MOST_DEATHS = 20
"""Times that work may be taken up again after its workers died, without anything getting done in between."""


# engines/engine.py

BUNCH = 16
"""Results that are merged where they are; what is merged here, after each other, are bunches of so many."""


# engines/sample.py

SAMPLED_AT_ONCE = 2**25
"""Numbers of a group of rows: what a worker may have to hold."""


# rows/parquet.py

PAGES = 2**22
"""Memory that the pages of a column take while they are decoded."""
MOST_LABELS = 10_000
"""Different texts beyond which a target is none of labels."""
BUFFER = 2**18
"""Bytes of each column that are read from a file at a time, rather than a whole row group."""


# rows/source.py

ROWS_AT_ONCE = 65_536
NUMBERS_AT_ONCE = 2**23
"""The most rows, and the most numbers, of a part unless told otherwise: they do not depend on the memory that is free,
so that the same data give the same sums everywhere."""


# engines/labels.py

MOST_KINDS = 10_000
"""Different numbers beyond which targets are no labels."""
