"""Numbers that somebody chose for fused products: what each is, and where it was measured if it was."""

from __future__ import annotations

# inner.py

LARGEST_NORM = 4096.0
"""Rows are scaled by a power of two so that none is longer, well inside the range of fp16."""
LEAST_SQUARE = 0.003
"""Mean square of a short row's features in these units that two fp16 terms hold to float32 accuracy."""
NUMBERS_AT_ONCE = 2**24
"""Numbers that are float64 at a time while lengths are measured."""
LOOKED_AT = 10_000
"""Rows among which a short one is looked for."""


# launch.py

MOST_COLUMNS = 128
"""Right-hand sides that share one evaluation of the kernel."""
MIRRORED_COLUMNS = 2
"""Right-hand sides of a symmetric matrix that are quicker one by one, with each tile used twice, than together; just
one where many features are read in chunks."""
SPAN = 16384
"""Most columns that one float32 sum runs over; longer sums are finished in float64."""
ADDED = 1024
"""Numbers that one program adds up over the spans."""
PROGRAMS = 132 * 16
"""Programs that fill the chip well."""


# layout.py

CONCATENATED_COLUMNS = 64
"""Up to here the terms lie side by side in one block and take one product; wider ones are stored once and reused."""
RESIDENT_COLUMNS = 256
"""Up to here a row tile stays on chip while all columns pass by; wider ones are read in chunks of the features."""
RESIDENT_TOGETHER = 384
"""The same for all statistics of one formula together."""
CHUNK = 64
"""Columns in such a chunk."""
LARGEST_PRODUCT = 128
"""Columns in one product of the tensor cores at most."""


# operands.py

LARGEST_EXPONENT = 120.0
"""Above it powers of two leave the range in which the polynomial computes them."""


# probe.py

FEW_PRODUCTS = 200
"""Columns of products up to which truncation is no matter."""
STEADY_TRUNCATION = 0.2 * 2.0**-25
"""Relative loss of a sum per product of 16 columns, beyond the mean that is corrected, for points of one cluster:
measured.
"""
LARGEST_LOSS = 1.2e-6
"""Error by truncation above which sums are taken with more care; the estimate may be a third too small."""
PROBED_ROWS = 2048
"""Rows of each sample that are looked at."""


# profile.py

SMALLEST_UNIT = 0.01
"""Factors below this, or above its inverse, stay out of the data, which are packed in half precision."""
LARGE_POWER = 2.0
"""Above it a real power magnifies the error of the hardware's logarithm (2^-22) and the rounding of 1 + x."""


# samples.py

FAST_RADIUS = 25.0
"""Largest R2 at which one sum of half-precision products keeps 2e-6."""
DEEP_RADIUS = 1e4
"""Largest R2 at which exact leading products and a sum of the rest keep 2e-6."""

NEAR = {"fast": 1e-4, "deep": 1e-6}
"""Share of the squared radius below which squared distances are taken again from differences."""
LARGEST_SPLIT = 64
"""Columns up to which exact leading products cost less than looking for near points."""
TINY_SQUARE = 1e-6
"""Largest squared norm, for each feature, below which fp16 lacks the digits of small distances."""
FEW_FEATURES = 2
"""Up to here, for kernels not smooth at zero, nearly every tile has near points: all distances are differences."""
TRUNCATION = 0.72 * 2.0**-25
"""Mean relative loss of a partial sum of 16 columns on the tensor cores, which truncate; measured."""
SPLIT_TRUNCATION = 2.0**-25
"""The same, measured, for sums that begin with an exact part, which have their full size from the start."""
ROUNDED_LOSS = 1.5e-7
"""Mean relative loss of sums that are rounded after each chunk, measured."""
LARGEST_FACTOR = 3e38
"""What inner products are multiplied by at most: finite in float32, so that zero stays zero."""


# source.py

RESIDENT_FEATURES = 8
"""Up to here the features of a row tile stay in registers for direct differences."""
FEATURES_IN_A_SUM, MANY_FEATURES = 8, 32
"""Distances over many features are added up so many at a time, and what rounding takes from the sum is kept apart: a
float32 sum of hundreds of numbers would be wrong in the sixth digit.
"""
LARGEST_DISTANCE = 3e30
"""Distances of points far out end here, so that formulas that go on with them stay finite; sums that overflowed too,
since `tl.minimum` prefers a number to NaN."""


# support.py

CAPABILITY = 9
"""Of GPUs that the loops are made for and were checked on: what tensor cores truncate, and tiles, differ elsewhere."""
MOST_STATISTICS = 3
"""Distances and inner products that a tile has registers for."""
MOST_END_VALUES = 16
"""Functions of x alone, and of z alone."""


# tiles.py

PAD, CHUNKED_PAD, INTERPRETED_PAD = 128, 256, 64
"""Samples are padded to a multiple of this, which every tile size divides: where all features of a tile are on the
chip, where they are read in chunks, and in Triton's interpreter.
"""
SHARED_MEMORY = 220 * 1024
"""Bytes of shared memory that a program may fill."""
