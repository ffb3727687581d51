"""Numbers that somebody chose in `mercer.selection`: what each is, and where it was measured if it was."""

from __future__ import annotations

# alpha.py

SAME_ERROR = 1e-6
"""Errors this close, relative to the smallest, are taken as equal."""
ZERO_ERROR = 1e-20
"""And so are errors below this share of the mean square of the target."""
ENTRIES_AT_ONCE = 2**24
"""Numbers of predictions along a path that are held at a time."""
ARRAYS_ALIVE, SHARE = 6, 4
"""Arrays over rows, alphas and targets that live at once, and which part of a memory budget is for them all."""


# approximate_loo.py

SMOOTHING = 1e-3
"""The width to which kinks are smoothed, in units of the mean of k(x, x)."""
PART_ROWS = 512
"""Rows whose kernel values with all others are held at a time."""
FLAT = 1e-8
"""Curvatures below this share of the largest are left out of the system."""


# calibration.py

STEPS = 100
"""Newton steps at most."""
EDGE = 4e-6
"""The least log odds: so much that also in float32 one class is more likely."""


# joint_influence.py

MOST_UNKNOWNS = 4000
"""Coefficients of all classes on landmarks whose joint Hessian is stored and inverted."""


# left_out.py

LEFT_OUT_ROUNDING = 1e-9
"""Rounding of sums of weights, in units of a row."""


# loo.py

TINY_NULL_DIAGONAL = 2.0**-26
"""A projector's diagonal below this is rounding."""


# loss_alpha.py

LOSS_FOLDS = 5
"""Folds where leave-one-out is too dear."""
MOST_MULTIPLICATIONS = 3e10
"""n^3 t up to which approximate leave-one-out is cheaper than folds."""
JOINT_MATRICES = 6
"""Matrices that leave-one-out of a joint loss holds, besides three for each class."""
RISES = 3
"""Alphas in a row with a larger error that end the path."""


# objective.py

FAILED = 50.0
"""The value where the error cannot be computed: worse than any log error that can."""
SMALLEST_ERROR = 1e-30
"""Relative errors below this are zero, as for targets that are all zero."""
SMALLEST_RIDGE = 1e-12
"""Alphas below this share of the trace of A are lost to rounding; a fixed smaller one is replaced by it."""


# spectral_path.py

ZERO = 1e-12
"""Eigenvalues below this share of the largest are rounding."""
PATH_ROUNDING = 1e-15
PATH_MATRICES = 3
"""Arrays of the size of the features that are alive at once while they are made, and fewer later."""
PATH_SYSTEM = 600
"""Squared unknowns for each row up to which a factor of the curvature of several classes costs less than the some
thirty evaluations of the objective that it saves."""
SQUARED_ROWS = 256
"""Of which squares are made at a time."""
SMALL_FEATURES = 2**18
"""Numbers of features up to which float64 products cost no more time than float32 ones."""
NEWTON_UNKNOWNS, HALVINGS, LAST_STEP = 250, 40, 1e-7
"""Unknowns up to which Newton's method is quicker than L-BFGS, how often a step of it is halved, and the share of the
objective that the last one promises."""
MOST_STEPS, SMALLEST_STEP = 5000, {"small": 1e-14, "rough": 1e-7, "last": 1e-8}
"""Of the descent for one alpha, and the share of the objective that the step promises at which it ends: with float64
products, with float32 ones, and with these at the alpha that is chosen. With 1e-8 everywhere 1,500 rows of car and
statlog-image took a third more products, for errors at rows left out that are the same to three digits."""


# tuning.py

MOST_ROWS = 1000
"""Rows that are learned from, at most: an evaluation takes the cube of their number."""
JUDGED_FROM = 6
"""Distinct rows: fewer leave too little to judge a tuned kernel by."""


# deciding.py

FEW_ROWS = 500
"""Rows of the first descents, at most."""
TUNING_FOLDS = 3
"""Parts of a small sample, each judged by fits to the others."""
CLEAR = 1.0
"""Standard errors by which a candidate must beat those that have fewer parameters."""


# search.py

FACTORS = (1.0, 1 / 3, 3.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3)
"""Multiples of the given length scales that are tried before the descent, in this order."""
SCREENED_ROWS = 200
"""For the screening."""
DESCENTS = 3
"""From the best of the screened starts."""
SMALL_RIDGE = 0.01
"""Of the mean of k(x, x): the ridge from which many length scales start, so that each of them has a slope. On
pumadyn32nm, 28 of whose 32 columns are noise, descents from where one factor ended found nothing."""
DISTANCE_PENALTY = 0.01
"""In log error, for each place in FACTORS: extreme starts only when they pay."""
SMALLEST_GAIN = 1e-4
"""Of the log error, in one iteration."""
EVALUATIONS = 3
"""Of the error, at most, for each iteration."""
