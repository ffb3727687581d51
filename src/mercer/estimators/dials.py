"""Numbers that somebody chose in `mercer.estimators`: what each is, and where it was measured if it was."""

from __future__ import annotations

# by_loss/classifier_plot.py

REGIONS_SIDE = 150
"""Places along each side of a map of decisions."""


# by_loss/fit.py

ZERO = 1e-9
"""Coefficients below this share of the largest are none."""


# by_loss/quantiles.py

CROSSED = 1e-9
"""Quantiles cross where one is below the last by more than this, in units of the targets."""


# by_loss/report.py

MOST_CLASSES = 10
"""Classes that are named."""
MOST_JUDGED, FEWEST_LEFT = 1500, 400
"""Rows that a report leaves out where it has to find that out; of many classes fewer, but no less than these."""


# by_loss/solving.py

FEWEST_PATH_ROWS = 200
PATH_ROWS, FEW_PATH_ROWS = 2000, 20_000
"""Different rows on which alphas are compared: at least, and at most with coefficients of rows and of landmarks."""
ROUGH_TOL = 1e-4
"""The tolerance of fits to folds that compare alphas in whole decades."""


# by_loss/tuned.py

COMPARED_ROWS = 1000
"""Different rows on which kernels are compared by the loss itself, at most."""
REACH = 3.0
"""Median distances to the median beyond which targets are moved in, where the loss is not squared."""


# common/account.py

MOST_LEFT_OUT, SOME_ROWS = 4000, 2000
"""Rows that a report leaves out one by one where it has to find that out, and how many it draws from more."""
LOOKED_AT = 200
"""Rows whose kernel values are looked at."""
DISCRETE = 0.2
"""A table in which every column has fewer values than this share of the rows repeats rows by chance."""
SAME = 1e-4
"""One minus a squared correlation at which a column is the target in other units."""


# common/alpha_sample.py

ALPHA_ROWS = 2000
"""Distinct rows that a path of alphas is found on. The mean squared error of fits with the alpha of so many rows was
.04% above the least of the path in the median of nine sets and 1.6% at worst; 8.8% with alpha scaled by the rows."""


# common/concerns.py

NO_BETTER = 0.01
"""A skill below this share of what the constant leaves is none."""
CLEARLY, CLEARLY_LABELS, CHANCE = 0.02, 0.1, 2.0
"""A linear model is better where its R2 is higher by so much, or its share of the log loss, and by so many standard
errors."""
UNITS = 1000.0
"""Spreads of columns that differ by more make one length scale for all meaningless."""
FAR = 3.0
"""Deviations of y that its mean is from zero where an intercept is missing."""
FALLING = 0.002
"""The share of what the constant leaves by which the error falls from the last alpha but one to the last."""
ALIKE, NOTHING = 1e-6, 1e-6
"""Kernel values that differ by less are alike; those below are zero."""
GOOD = 0.5
"""The skill from which the values of a kernel are no concern."""
WORSE = 0.1
"""By how much R2 of forecasts may be below that at rows left out."""
NEARLY, LITTLE = 0.97, 0.3
"""The share of the variance of y from which one column gives it away, where no other explains more than the second."""

FEW_ROWS = 5
COPIES = 0.02
"""The share of the rows that copies may be."""


# common/forecast.py

MOST_SCORED = 5000
"""Rows left out that a fit to a part of the rows is scored on."""


# common/linear.py

MOST_ENTRIES = 2_000_000
"""Rows times columns of a table for which the linear model is fitted."""
LINEAR_FOLDS, STEPS = 5, 200
"""Folds of the linear classifier, and steps of its fit."""


# common/refits.py

FOLDS = 5
"""Parts that rows are left out in."""
BLOCKS, FORECAST = 10, 5
"""Blocks that ordered rows are cut into, and how many of them are forecast from all rows before."""


# common/scores.py

HUGE = 1e100
"""Numbers above it have sums of squares that are none."""


# gaussian/labels_plan.py

LARGEST_VARIANCE = 100.0
"""Of a latent function while it is learned: a deviation of ten is odds of 20,000 to one. Laplace's evidence can grow
without end where classes are separable, and averages over such functions know nothing."""


# gaussian/labels_plot.py

LABELS_SIDE = 80
"""Places along each side of a map of probabilities."""


# gaussian/labels_report.py

MOST_LABELS, FEWEST_LABELS, FEWEST_JUDGED = 1000, 300, 10
"""Rows that a report leaves out, of many classes fewer, but no less than these; and rows from which it does so."""
TOO_WIDE = 1e3
"""Mean variance of latent functions for which Laplace's approximation hardly learns from labels."""


# gaussian/learned.py

IRRELEVANT = 1e-2
"""A feature whose deviation / length scale is below this share of the largest one hardly matters."""


# gaussian/report.py

LESS_LIKELY = 0.5
"""By so much the log likelihood of a row is lower on average than where it was learned before that is a concern."""
SHOWN_LEVEL = 0.95
"""The level of the intervals that are spoken of."""


# rfm/fit.py

SEARCHED = 2000
"""Rows on which the kernel, the kind of M, the rounds and the ridge are chosen."""
LARGEST_HELD = 5000
HELD_OUT = 0.1
"""Of more rows than are searched, the share, and the most, that are held out to find the error at the full size."""
MATRICES = 6
"""Matrices as large as the kernel's that a round has at a time."""
CONSTANT = 1e-14
"""Share of a target's size below which its deviation is rounding."""


# rfm/regressor.py

SAMPLED = 20_000
"""Rows of a source that a machine learns features from at most."""


# rfm/report.py

SHOWN = 5
"""Columns that a report names, the most important first."""
CLEAR_GAIN = 0.98
"""Share of the error of the first round below which learning features has helped."""


# rfm/search.py

ROUGH_RIDGES = (1e-3, 3e-2)
"""Ridges of the first look at all candidates, for a kernel of size one."""
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Ridges that are compared, for a kernel of size one."""
BY_COLUMNS = 64
"""Of more columns, kernels of the l1 distance are not compared with others: each column takes n^2 numbers a round."""
FIRST_FOLDS, FINALISTS = 2, 2
"""Candidates are compared on some folds, the best of them on all."""


# rfm/settings.py

FACTORS = (0.5, 1.0, 2.0)
"""Length scales of a kernel given by its name, in medians of the distance."""


# ridge/few.py

N_FEATURES = 1000
FEATURE_MATRICES = 7
"""p x p float64 matrices at the peak of a fit on p features."""
CENTRED_ON = 2**14
"""Rows whose mean the features of a kernel are less, where there is an intercept."""
SHOWN_ROWS, MOST_EXACT = 1000, 1500
"""Rows that a fit keeps for its report, and coefficients up to which that leaves rows out exactly."""
FREE_SHARE = 0.5
"""The least share of the rows that coefficients leave free where errors are corrected for their number."""


# ridge/full.py

EVALUATED_ONCE = 2**22
"""Bytes up to which iterations keep the Gram matrix: as large as one of the tiles that their products work on."""


# ridge/intervals.py

ENTRIES = 2**22
"""Label weights that are held at a time."""


# ridge/plan.py

HOLD_OUT_FROM = 50
"""Rows from which a descent holds some out to know when to stop."""


# ridge/settings.py

TOL = 1e-6
"""The tolerance of iterations where none is given."""


# tabular/encoder.py

MAX_LEVELS = 50
"""Levels of a category that have a column of their own, unless told otherwise."""
RARE = 10
RARE_SHARE = 0.02
"""Levels with fewer rows are rare, in small tables those with less than this share of them."""

MOST_LEVELS = 10**6
MOST_ROWS = 10**12
"""What `max_levels` and `rare` may ask for."""

FEWEST = 20
"""Rows from which a column of different values is taken for an id."""
SPREAD_ROWS = 2000
"""Rows, at most, that the spread of a column is taken from."""


# tabular/report.py

MOST = 40
"""Columns that are described."""


# tabular/treatments.py

LEAST_VARIANCE = 0.05
"""Of the state of a category: rarer states are no further from the others than one of this variance."""


# common/parameters.py, gaussian/learned_state.py

SMALLEST_VARIANCE = 1e-300
"""Variances and scales that are not zero are at least this: they are divided by."""

# common/samples.py

SMALLEST_WEIGHT = 1e-290
"""What the largest weight is at least: below, products with kernel values have lost digits, or are zero."""

# common/parameters.py

MOST_RESTARTS = 10_000
"""Random starts of learning at most: each is followed on some hundred rows, a few milliseconds at least."""

# transformers/taylor_features.py

MOST_FEATURES = 10**6
"""Taylor features at most."""


# by_loss/streamed.py

BEGUN_TOL = 1e-4
"""The tolerance of the fit to a sample, where passes over all rows begin."""
FEW_KINKED = 4000
"""Rows of a sample on which folds compare alphas of losses with kinks."""


# common/parts.py

FEWEST_SAMPLED = 20_000
"""Rows of a source that medians and tuning see at least."""
