"""Numbers that somebody chose in `mercer.operators`: what each is, and where it was measured if it was."""

from __future__ import annotations

import torch

# backends/cuts.py

STEP = 32
"""Rows and columns of tiles are multiples of it."""
SAME_SETS = 2048
"""Rows that lie a multiple of so many bytes apart compete for the same few places of a cache: matrix products into such
a tile take up to four times as long."""
TRIANGLE_BLOCKS, LEAST_WIDTH = 4, 48
"""Into how many blocks of columns a triangular factor is cut, and how wide they are at least: fewer keep no core busy.
Widths are multiples of 24, the columns that a CPU's product takes at a time."""


# backends/products.py

MOST_QUICK, LEAST_QUICK = 256, 2**17
"""Columns of operands up to which oneDNN is as exact as MKL (at 784 its error is 8.9e-7 against 4.3e-7), and cells of
a matrix from which on it is quicker: each call costs it ten microseconds."""


# backends/statistics.py

CHUNK_CELLS = 2**15
"""Numbers folded at a time: torch wakes none of its threads for them, and copies stay in the caches."""
FIRST_ROWS = 2**8
"""Rows folded to see what they become; the operand of no more is ready then."""
PAIRS_BYTES = 2**18
"""Memory for the differences of near pairs that are taken at a time."""
FEW_NUMBERS = 2**18
"""Numbers of a sample that one thread folds as quickly as several."""


# backends/sums.py

TILES_AT_ONCE = 4
"""Products that are added up in the precision of the tiles, which is quicker and loses nothing that shows."""
FEW_COLUMNS = {torch.float32: 8, torch.float64: 3}
"""Columns up to which a product is several times as fast where its own columns lie in one piece."""


# backends/tiles.py

GPU_BYTES = 2**27
"""Bytes of a tile on a GPU."""
LEAST_BYTES = 2**14
"""Bytes of a tile at least."""
LEFT_STRIPS = 16
"""Strips of rows whose operands are made together, at most."""
MIRRORED = 64
"""Rows that are mirrored at a time: a third of the time of 500 at once."""
THREADED_CELLS = 2**18
"""Cells of a matrix from which on threads are worth their meeting."""
LEAST_PARTS = 4
"""Parts of a product for each thread, so that all are busy to the end."""
SQUARES = 16
"""Into how many blocks of rows, and of columns, a symmetric matrix is cut at most. They do not depend on the number of
threads, and neither do the sums."""
MOST_MIRRORED = 32
"""Columns of V up to which tiles of a symmetric matrix are used twice: with more, the products take the time."""
FOLDING_BYTES = 2**21
"""What preparing the operands of all columns takes besides them."""


# backends/traced.py

BESSEL_BYTES = 72
"""Temporaries of the Bessel function, for each cell."""


# base.py

PART_NUMBERS = 2**24
"""Numbers of dense rows that are stored at a time."""


# placement.py

FORMULA_NUMBERS = 2**16
"""Kernel values up to which a formula is evaluated as it stands: 1.3 to 8 times as fast, at 2^17 slower for some."""
FORMULA_BYTES = 8 * 8 * FORMULA_NUMBERS
"""What that may take: some arrays of so many numbers."""
LEAST_SHARE = 32
"""One of so many parts of a budget is for products, whatever else is held."""


# pull_back.py

TILE_NUMBERS = {"cpu": 2**17, "cuda": 2**25}
"""Cells of the tiles in which gradients are taken: on a CPU what its caches hold."""
LEAST_NUMBERS = 2**8
"""Cells of a tile at least."""
TILES_ALIVE = 24
"""Tiles of float64 numbers that a formula and its gradient hold at once, measured over the kernels that there are."""
