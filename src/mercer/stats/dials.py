"""Numbers that somebody chose in `mercer.stats`: what each is, and where it was measured if it was."""

from __future__ import annotations

import torch

# base_formula.py

LARGEST_WEIGHT = 1e150
"""Of a squared difference; its square occurs in the formula."""


# centred_grams.py

RANK_SHARE = 20
"""Factors are worth their products while the product of two ranks stays below so many times the number of rows. With
20, 200 rows and 1,000 orders take 0.56 s, with 10 they took 1.27; 400 and 1,000 rows as long."""
LEFT_OUT = 1e-8
"""The share of the trace that factors may leave out: HSIC is right to as many digits."""
FEW_ROWS = 64
"""Up to so many rows eigenvectors give a factor of any kernel at once."""
PART_NUMBERS = 2**22
"""Numbers of the permuted factors or matrices that are in memory together."""


# change.py

MOST_BLOCKS = 1024
"""Longer series are cut into so many blocks, or twice as many, whose mean features are what is looked at."""

KEPT_ROWS = 2000
"""Rows that the width of kernels is taken from, at most."""


# combining.py

LEAST_SKEWNESS = 0.05
"""Below it a distribution is taken to be as good as normal."""
ROUNDED = 1e-10
"""Joint statistics closer than this are equal."""


# compression.py

OVERSAMPLING = 2
"""Compress keeps 2^g times the root of the rows before the last halvings."""


# conditional.py

PERMUTED_AT_ONCE = 8
"""Resamples whose regressions are one product."""
SUSPECT = 0.01
"""Below this p-value errors are said to depend on Z still."""


# dependence_plot.py

MOST_DEPENDENCES = 15
"""Columns of a picture of dependences, the largest first."""


# differences_plot.py

MOST_DIFFERENCES = 15
"""Columns of a picture of differences, the largest first."""


# distances.py

EXACT_DISTANCES = 2000
"""Rows up to which the exact transport is found in a few seconds."""


# estimates.py

PAIRS_EACH = 10
"""Pairs for each row that an incomplete statistic takes unless told otherwise."""


# families.py

WIDTHS = 10
"""Widths of each of the two shapes of kernels."""


# goodness_of_fit.py

PARAMETRIC_RESAMPLES = 500
"""Samples of a fitted distribution, each of which is fitted again, unless told otherwise."""


# hsic.py

MOST_LABELS = 20
"""Integers of more values are numbers, such as ages."""


# independence.py

EXPONENT = 2.0
"""How much the kernels that say most count, with statistics in standard deviations over permutations."""
EXACT_INDEPENDENCE = 250
"""Up to so many rows everything is float64, so that equal statistics are equal to the last digits."""
COLUMN_RESAMPLES = 500
"""Permutations for each single column."""


# orders.py

ORDERS_AT_ONCE = 256
"""Orders that are drawn together."""


# pair_sums.py

TILE_NUMBERS = 2**20
"""Numbers of a tile of one kernel: several of them and their products with V stay in the caches."""
LEAST_ROWS = 16
"""Rows of a tile at least."""
LEAST_TILES = 8
"""Tiles that the rows are cut into at least: of 1, 2, 4, 8 and 16 the fastest for 1000 rows and 2000 columns."""
TILES = 6
"""Tiles that are in memory together: distances, a kernel, and what is made on the way."""
EXACT_ROWS = 500
"""Up to so many rows everything is float64, so that equal statistics are equal to the last digits. Above, bounded
kernels are multiplied in float32: 1.1 s instead of 1.7 for 500 + 500 rows, 20 kernels and 2,000 permutations, and 0.4 s
where the rows of pairs change sides."""


# regress_out.py

REGRESSED_WIDTHS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0)
"""Widths of the kernels on Z that are tried, in median distances; each with every ridge."""
WIDTHS_OF_LEAVES = (1 / 4, 1.0, 4.0)
"""Widths within the leaves of trees."""
TREES, LEAVES = 10, 8
"""Trees of two thirds of the rows each, and their leaves. Without them jumps of X and of Y at the same Z, of 7 times
the noise, are taken for dependence in half of all samples of 200 rows."""

MOST_FEATURES, REGRESSED_LEFT_OUT = 50, 1e-3
"""Features of a side, and the share of the trace that they may leave out."""


# rowwise.py

ROWS_AT_ONCE = 2**20
"""Numbers of rows that are paired at a time."""


# run_length.py

MEMORIES = (10.0, 50.0, 250.0)
"""Rows that count in the three running means; at most a quarter of the reference each."""
WATCHED_FEATURES = 256
"""Random features that a stream is watched with."""
STREAMS = 128
"""Simulated streams. The expected run length is known to a tenth."""
LEAST_STEPS = 2000
"""Rows of each simulated stream, at least."""
LONGEST = 200_000
"""The largest expected number of rows to a false alarm that can be asked for."""


# sides.py

SIDE_WIDTHS = 5
"""Widths of the default kernels of each side, from an eighth of the median distance (or half of what only one in twenty
falls below) to twice the median. Of four ranges tried on perturbed uniform pairs, this one finds most."""


# stein_greedy.py

GREEDY_AT_ONCE = 2**14
"""Rows whose values are made together, so that they stay in the caches."""


# stein_kernel.py

NEAR = 1e-20
"""Added to squared distances under a root, whose slopes are finite but not written for coincident points."""


# streamed.py

STREAMED_FEATURES = 256
"""Random features for statistics of row sources."""
KEPT = 2000
"""Rows of each source that are drawn: for the width, for the witness of "cross", and for the result to look at."""


# thinning.py

MANY_ROWS, REFINED_ROWS = 20_000, 1024
"""Above the first number rows are compressed to the second, at least, before they are thinned."""
MOST = 1000
"""Points that thinning to a target takes at most, unless m says otherwise."""


# two_sample.py

SHARPNESS = 10.0
"""How much the kernels that say most count, with statistics as normal scores. On twelve designs (shifts, scales,
tails, clusters, waves, perturbed uniform; 60 samples of each) powers are .39, .42, .42 and .43 with 1, 4, 10 and 30.
Statistics over the root of the mean squared kernel have .42, too, but find only half of the shifts of the mean that one
kernel of median width finds."""
SLOWER = 4.0
"""How much more slowly the signs of a Markov bootstrap change than rows of a chain forget each other. With 2 a true
density was rejected in 14 of 120 chains of 400 rows with correlation 0.5, with 3 or 4 in 8, with 6 in 4; a shift of
0.22 was found in 56, 53 (with 4) and 49 of 60."""
ROUNDING = {torch.float64: 1e-13, torch.float32: 5e-6}
"""Statistics closer than this share of the size of the kernel count as equal; in float32 also divided by n."""

# samples

ROOM_FOR_SQUARES = 1e3
"""How far from the largest and the smallest square of a type the numbers of a sample are."""
