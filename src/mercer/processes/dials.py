"""The numbers of this package that somebody chose: what each is, and where it was measured if it was."""

from __future__ import annotations

# averages

NARROW = 1.0
"""Below this deviation a sigmoid is averaged along the normal density, above it along the logistic one."""

SPACING = 1 / 3
"""Of the trapezoidal rule."""

POINTS = 1024
"""Points of the sequence for several classes; each is used with both signs."""

LARGEST_BATCH = {"cpu": 2**17, "cuda": 2**23}
"""Points that are averaged at a time, over all rows: on a CPU what its caches hold."""

# calibration

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Levels at which intervals are compared with what they hold."""

JUDGED = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Levels of the intervals that decide whether a process is believed."""

TOO_FAR = 0.4
"""By so large a part of the promised share inside or outside, whichever is less, intervals may be wrong."""

ERRORS, FEWEST_ROWS = 4.0, 20
"""Standard errors beyond which a share is not chance, and rows that it takes to say so."""

ROUNDING = 1e-9
"""What rounding may add to a count of rows."""

NEGATIVE_VARIANCE = 1e-10
"""How negative, of the prior variance and for each row, an eigenvalue of a posterior covariance is by rounding."""

# choose_mean

ROWS = 1000
"""That decide, which an exact evidence handles in no time."""

MEAN_NEARBY = 1e-5
"""The relative change of the evidence at which an ascent ends."""

# copies

SELDOM = 0.1
"""Rows with equal X differ in Y less often than this share of what rows with other X do: they are copies."""

# exact_posterior

REFINEMENTS = 3
"""Steps of refinement at most, where the factor has jitter."""

ALONE = 1e-10
"""Share of a row in its own weight below which it alone decides a coefficient of the mean."""

SHOWN = 5
"""Rows of leave-one-out that are printed."""

EXACT_POSTERIOR_TOLERANCE = 1e-6
"""Largest relative residual of weights that are called found."""

# hyperparameters

FACTOR_REACH = 1e5
"""How far a factor of the kernel may move from its start, up and down."""

# iterative_evidence

GRADIENT_PROBES = 8
"""Random probes for the gradient of the log determinant."""

TRAINING_TOLERANCE = 1e-2
"""The largest relative residual of solves while hyperparameters are learned."""

# iterative_posterior

PREDICTION_TOLERANCE = 1e-4
"""The largest relative residual of the solve that predictions come from."""

HOPELESS = 1e-2
"""A relative residual above this says that products are too coarse for the system."""

COLUMNS = 64
"""Right-hand sides that share a product, at most."""

SEARCHED = 12
"""Arrays of the size of the right-hand sides while these are solved: themselves and scaled, the best iterate, x, r, the
r before, p, z and A p of the search, p scaled for the product, and two that are added."""

SOLVER_SHARE = 0.5
"""Of the memory budget, for the solver; the rest is for the right-hand sides."""

# laplace

LAPLACE_TOLERANCE = 1e-12
"""Of the mode: how far its weights may be from the slopes of the labels, which are between -1 and 1."""

ROUGH_TOLERANCE = 1e-6
"""What is enough where rounding allows no better."""

LAPLACE_STEPS = 100
"""Newton steps to the mode at most."""

MOST_HALVINGS = 30
"""Halvings of one Newton step at most."""

# laplace_posterior

AVERAGED_ROWS = 1024
"""Points whose probabilities are averaged at a time."""

# maximise

FEW_ROWS = 500
"""Rows on which starts are screened."""

EVALUATIONS = 2
"""Of the likelihood, at most, for each iteration."""

SMALLEST_GAIN = 1e-7
"""Of the log likelihood, relative, in one iteration."""

SCREENING_GAIN = 1e-6
"""The same on few rows."""

FIRST_STEPS = 5
"""Iterations from a start near the end that are made at least."""

STOPPED = 99
"""What SciPy calls the status of an ascent that the callback ended."""

MARGIN = 3.0
"""By which the end of a random start must be more likely, in nats: a Bayes factor of twenty."""

FAILED = 1e25
"""Stands for minus the likelihood where that cannot be computed, and nothing is known to compare with."""

WALL = 10.0
"""Times the size of the best value: how much worse a point counts that cannot be computed, once there is one that can.
From a much larger number a line search would conclude that no step at all is short enough.
"""

# means

NEGLIGIBLE = 1e-12
"""Eigenvalues of the scaled normal equations below this share of the largest stand for no direction at all, and
deviations of a column below this share of its values for a constant.
"""

# methods

TILES = 16
"""Tiles that the gradient of a kernel holds at a time, for a formula of usual length."""

EVALUATION = 3 * 2**19
"""Numbers in the tiles in which a Gram matrix is evaluated."""

# pathwise

FEATURE_TILE = 2**27
"""Bytes of features that are held at a time."""

# posterior

COPIES = 4
"""Matrices of the shape of k(X, D) that are alive while a tile is explained."""

CROSS_TILE = 2**28
"""Bytes of the rows of k(X, D) that are held at a time, where the budget allows more."""

GPU_TILE = 16
"""Times as much on a GPU."""

LEAST_ROWS = 32
"""Points of a tile, where their own rows fit: with fewer, triangular systems are solved column by column."""

# prior_functions

MOST_FACTORS = 64
"""Features of a product kernel that are multiplied out at most."""

FEWEST_WAVES = 512
"""Features of a product: at most so many of the one side, at least so many of the random ones of the other."""

# probed_evidence

VALUE_PROBES = 64
"""Random probes for the value of the log determinant."""

# sparse

SPARSE_LANDMARKS = 500
"""Landmarks of the sparse method where none are asked for."""

# sparse_evidence

BLOCK_NUMBERS = {"cpu": 2**20, "cuda": 2**26}
"""Numbers of k(Z, X) that are held at a time."""

INDEPENDENT = 1e-12
"""An inducing point whose value the others decide but for this share of its variance says nothing new."""

# stages

STAGES = {"cpu": (1500,), "cuda": (2500, 10_000)}
"""Rows of further stages, which an exact evidence handles in no time."""

WORTHWHILE = 2
"""A stage is for data of more than this many times its rows."""

STAGES_NEARBY = 1e-4
"""The relative change of the evidence at which a stage ends."""

NEIGHBOURS = 3
"""Rows that come with each random row of a stage: those nearest to it. Random rows alone are too far apart to tell
noise from a function that varies fast.
"""

FIRST_STEP = 0.1
"""Of a stage that starts where another ended: the largest change of a log in its first step."""

SEEN_NUMBERS = 2**26
"""Kernel values between seeds and rows that are looked at together."""

LEAST_NOISE = 1e-4
"""Of the first start: what a stage begins with at least, since few rows can be explained with hardly any noise."""

LONGEST = 4.0
"""Times the median: the longest length scale of a feature that a stage begins with. Few rows make features look
irrelevant that are not, and at a very long length scale there is no gradient that would tell.
"""

# start

NOISE_SHARE = 0.1
"""Of the variance of the targets, at the start."""

SMALLEST_NOISE, LARGEST_NOISE = 1e-6, 10.0
"""Of the variance of the targets, while it is learned."""

ROWS_PER_FEATURE = 4
"""With fewer rows than this for each feature, all features share the length scale (in units of their deviations)."""

LARGEST = 1e140
"""Data beyond this or below its inverse have no variance in float64."""

# unit_noise

SOLVE_STEPS = 400
"""Iterations of one solve at most."""
