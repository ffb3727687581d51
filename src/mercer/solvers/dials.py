"""The numbers of this package that somebody chose: what each is, and where it was measured if it was.

They stand together so that one can see how many there are. What users may want to change is a field of a solver.
"""

from __future__ import annotations

import torch

# backward_error

PROBES = 32
"""Columns of the random sketch: the norm is within a factor 2 but once in a million."""

UNSOLVED = 1e-2
"""A residual above this, relative to b, is told even where rounding explains it: predictions are off by as much."""

# cholesky

CHOLESKY_TOLERANCE = 1e-10
"""The largest backward error of a solution that counts as converged."""

JITTERED_TOLERANCE = 1e-6
"""Of |r| / |b|, where jitter could hide that there is no solution."""

CHOLESKY_GOOD_ENOUGH = 1e-13
"""A backward error above this is worth a step of refinement."""

CHOLESKY_REFINEMENTS = 2
"""Steps of refinement at most."""

# choose

MANY_ALPHAS = 12
"""An eigendecomposition costs about as much as this many Cholesky factorisations."""

MOST_ROWS = {"cpu": 100_000, "cuda": 1_000_000}
"""Rows up to which conjugate gradients solve the full system; each iteration evaluates the square of it."""

MANY_LANDMARKS = 4096
"""Landmarks above which iterations are cheaper than normal equations."""

MATRIX_SHARE = 0.45
"""Of a memory budget, for these matrices; the rest is for kernel values at some rows and what is made of them."""

# class_curvature

PAIR_ROWS = 16
"""Rows for each feature whose curvature stands for that of all rows between two classes."""

ESTIMATED = 4.0
"""The curvature is known from so many rows within this factor."""

# conjugate_gradients

CHECK_EVERY = 10
"""Iterations between checks of the true residual."""

CHECK_ACCURATELY_EVERY, GAIN = 100, 1e-2
"""Iterations between checks by an operator in float64, which cost more and have to wait for this gain."""

STRIKES = 3
"""Checks without progress, at residuals of the size of rounding errors, that end a column."""

CG_ROUNDING = 10
"""Times the rounding error: a residual below this may not fall any more."""

CG_DIVERGED = 1e8
"""A residual that has grown to so many times the right-hand side is given up."""

# dual

FIRST, LAST, FASTER = 0.01, 1e-9, 0.4
"""The width of the first smoothing and the smallest, in units of the mean of k(x, x), and how fast it shrinks."""

SLOPE, STEPS = 1e-3, 10
"""The first answer has slopes up to this, in units of the targets, and takes at most this many steps per row."""

CLOSE, FLATTER = 3.0, 0.25
"""Where its gap is above the tolerance by no more than this, it goes on to this share of the slopes."""

FEWEST_STEPS, SMALLEST_SLOPE = 1000, 1e-6
"""It takes more where there are few rows, and slopes below this are rounding."""

INNER = 1e-9
"""The residual of the smooth problems: a looser one keeps the rounds from converging."""

WIDTH = 0.3
"""The first smoothing rounds a kink over so much, in units of the spread of the kinks, at most."""

WARM = 0.01
"""Of that the least width around an answer to begin with; it is wider where the gap is larger."""

PATIENCE = 5
"""Rounds without a smaller duality gap that end the search."""

# decompose

SCIPY_EIGH = range(200, 12_000)
"""Sizes at which scipy decomposes where torch's MKL is slow: on an AMD Zen 5, one thread, in ms, scipy and torch
2.1 and 2.7 at 200, 33 and 41 at 500, 221 and 291 at 1,000, 2,547 and 3,346 at 2,000. Far above, scipy's LAPACK crashed.
"""

FEW_FACTORED = 120
"""Rows, and columns, up to which a factor and what it solves are scipy's: a call of torch takes as long as a matrix of
50 rows. On an AMD EPYC (Zen 5), 30 and 100 rows: a factor 4 and 18 microseconds against 5 and 33, a solution 1 and 4
against 5 and 7. From 128 rows on OpenBLAS wakes its threads; for inverses it does so always.
"""

SCIPY_CHOLESKY = range(1_500, 12_000)
"""Sizes at which scipy factorises there: 48 and 63 ms at 2,000, 365 and 474 at 4,000. Small ones wake its threads."""

# descent

DESCENT_MEMORY = 20
"""Steps whose bends are known to the next one."""

DESCENT_LOOKS, DESCENT_STEEP = 20, 0.9
"""Lengths of a step that are tried before the descent ends, and the share of the slope that may be left along it: a
longer step is tried where more is."""

# early_stopping

MOST_HELD_OUT = 5000
"""Rows held out at most: more say nothing new."""

WORTHWHILE = 1e-3
"""The least relative gain on rows held out that counts as progress."""

# eigenpro

SUBSAMPLE = {"cpu": 2000, "cuda": 8000}
"""Rows of the subsample whose eigenvectors precondition, by device."""

EIGENPAIRS = 150
"""Eigenpairs of the preconditioner."""

ROWS_PER_PAIR = 10
"""Rows of the subsample for each eigenpair at least: fewer make the pairs noise."""

LARGEST_BATCH = {"cpu": 1024, "cuda": 8192}
"""Rows of a batch at most, by device."""

FEWEST_BATCHES = 10
"""Batches of an epoch at least."""

RETRIES = 5
"""Times that a step found too long is halved."""

EIGENPRO_DIVERGED = 2.0
"""Times the error of the function that is zero."""

WATCHED_SHARE, FEWEST_WATCHED = 0.1, 1000
"""The share of training rows whose error is watched, and the fewest."""

HELD_OUT_SHARE = 0.1
"""The share of rows held out, where there is no ridge."""

CORE_MATRICES = 6
"""Of the size of the subsample squared, that its eigenvectors take while they are found."""

# eigh

EIGH_TOLERANCE = 1e-10
"""The largest backward error of a solution that counts as converged."""

EIGH_ROUNDING = 10
"""Times the precision of the entries: a larger backward error is not theirs."""

INCONSISTENT = 1e-8
"""Share of b outside the range of A above which least squares is worth a word."""

ROW_BLOCK = 1024
"""Rows of the eigenvectors that are squared at a time."""

# error_bound

ALLOWED = 1e-3
"""A fit that may be further off than this, as a share of the spread of the targets, is not called converged."""

ROWS = 1024
"""Rows whose moments are added up at a time."""

CONSTANT = 1e-7
"""Targets that spread by less than this share of their size are constant: sums of squares know no more."""

ENTRIES = 2.0
"""Rounding errors that a kernel value has, in units of the precision of its dtype."""

SKETCHED = 2.0
"""Residuals known from a sketch are within this factor of the truth."""

SPANNED = 4.0
"""Functions span those of all rows where what they leave out is less than so many times what rounding leaves out."""

# factor

FIRST_JITTER = {torch.float64: 1e-10, torch.float32: 1e-6}
"""The first jitter that is tried, a share of each row's own diagonal entry."""

LARGEST_JITTER = 1e-4
"""The last jitter that is tried."""

LARGEST_EXPLAINED = 3000
"""Rows up to which a failure is explained by the smallest eigenvalue."""

INVERSE_BLOCK = {"cpu": 256, "cuda": 4096}
"""Columns of the inverse that are made at a time, by device."""

PANEL = 4096
"""Columns that a GPU factorises at a time."""

# falkon

WITHIN_REACH = 10
"""Float32 products are not tried alone where tol is less than this many of their rounding errors."""
LEFT_BY_ROUNDING = 8
"""The residual at which iterations with float32 products stay, in errors of one such product: measured were 8.2."""

SMALL = 0.1
"""The error of float32 products, in the basis, up to which steps taken with them lead to the solution."""

LEAST_SAMPLE, MOST_SAMPLE = 5, 10
"""Rows per landmark of the preconditioner: with fewer than the first, iterations multiply and rounding errors count for
more; with more than the last, little is gained."""

# falkon_basis

FALKON_ROUNDING = 10
"""The least distance, squared, of a landmark to the span of others, where k(z, z) = 1, in rounding errors."""

SINGULAR = 1e-2
"""K_mm is close to singular where the trace of its inverse times that distance is more than this."""

JITTER, LARGEST_FIRST, FALKON_JITTER = 1e-6, 1e-2, 1e-4
"""The first jitter where products are float32: the smallest, the largest; and how far it may be raised."""

FEW_ALPHAS = 4
"""Distinct alphas that have an m x m factor each; more of them share an eigendecomposition."""

POWER_STEPS = 3
"""Products that the norm of an error is found with."""

# few_span

MATRICES = 6
"""m x m matrices that are alive while a step is found or the basis is turned."""

ROW_PARTS = 3
"""Copies of the kernel values at some rows: as they are, in the basis, and weighted."""

FEW_SPAN_STEPS = 200
"""Iterations for the components on landmarks at most."""

FEW_SPAN_NEAR = 1e-2
"""The relative residual that such systems are solved to, in the norm of the problem: each step leaves its square."""

FEW_SPAN_GAIN, FEW_SPAN_DESCENT = 1e-7, 30
"""The relative gain of a step that ends the descent before Newton's method, and its steps with one preconditioner."""

CACHED_ROWS = 2048
"""Rows of features on landmarks that are multiplied at a time."""

FEW_SPAN_SYSTEM = 4096
"""Components on landmarks, over all classes, up to which that preconditioner is a factor."""

FEW_SPAN_ROUNDED, FEW_SPAN_JITTER = 1e-14, 1e-8
"""Jitter of a Newton system, relative to its largest entry, beside which the sums in it are rounded."""

# full_span

DIRECT_ROWS = 3000
"""Rows of a Newton system up to which it is factorised; larger ones are solved by conjugate gradients."""

FULL_SPAN_RANK = 4
"""The preconditioner has this many times sqrt(n) columns."""

FEW_ROWS = 200
"""Up to here the systems of several classes are factorised at once, with more only where iterations were many."""

MANY_STEPS = 1 / 16
"""Iterations per row that take as long as factors for all classes."""

MOST_NUMBERS = 2**27
"""Numbers in such factors, at most."""

NEARLY_ALL = 0.9
"""Of the rows: a product with a matrix in float32 that uses no more of them is added up in float64."""

FULL_SPAN_PART_ROWS = 64
"""Rows of a Newton system that are gathered at a time."""

JOINT_MATRICES = 6
"""Matrices that are alive while they are made, besides one for each class."""

ROUGH = 1e-2
"""The largest relative residual of a step from them; where rounding leaves more, iterations do it."""

# flow

FLOW_TIMES = 100
"""Times that are tried."""

FLOW_FIRST, FLOW_LAST = 0.01, 10.0
"""2 t / W times the largest eigenvalue at the first time, and times the smallest that counts at the last."""

FLOW_SMALLEST = 1e-8
"""The smallest eigenvalue that times are tried for, and the least share of free rows for cross-validation."""

FLOW_HELD_OUT_FROM = 50
"""Rows from which some are held out to choose the time; fewer tell too little."""

# gradient_descent

LANCZOS_STEPS = 30
"""Steps that estimate the largest eigenvalue."""

LANCZOS_ROUNDING = 100
"""Times the precision of products: a direction below this is noise, not orthogonal to the others."""

# joint_inverse

LEAST = 1e-10
"""Of the largest curvature: smaller ones are raised to it, since they are divided by."""

# lanczos

ARRIVED = 1e-12
"""A relative residual at which a column has nothing left to tell."""

# landmarks

POOL = 30
"""Rows per landmark among which "pivoted" and "leverage" choose; fewer where memory is short."""

POOL_MATRICES = 3
"""float64 numbers that they take at their peak, for each landmark and each of these rows."""

LOOKED_AT = 3
"""Rows that show whether a kernel has white noise."""

# leverage

LEVERAGE_STRIP = 1024
"""Columns that are multiplied at a time, which saves memory."""

LEVERAGE_ROUNDING = 1e-13
"""Error of a float64 eigendecomposition, relative to the largest eigenvalue: scores of a smaller ridge are noise."""

# minimise

COARSE = 1e-4
"""Accuracy of the first, cheap minimum with a low-rank copy of the Gram matrix."""

REFINEMENTS = 3
"""Rounds of further Newton steps, each of which has to halve what rounding left of the excess of the objective."""

# mixed_precision

MIXED_GOOD_ENOUGH = 1e-14
"""A backward error that refinement does not lower any further."""

MIXED_REFINEMENTS = 30
"""Steps of refinement in float64 at most."""

MIXED_JITTER = 1e-3
"""The last jitter that a factorisation in float32 tries."""

PARTS = 4
"""Of the rows that may be asked for at a time: the factor takes most of the memory."""

# newton

NEWTON_ROUNDING = 1e-13
"""Relative changes of the objective below this are rounding."""

FORCING = (1e-3, 1e-9)
"""The largest and smallest relative residual that inner systems are solved to."""

SLOW = 0.1
"""A step that promises more than this share of what the one before did was too rough: the next ones take more care."""

# newton_system

NEWTON_ITERATIONS = 500
"""Iterations for one Newton step at most."""

NEWTON_PART_ROWS = 2048
"""Rows of the factor that are weighted at a time: memory that stays in the cache."""

# nystrom

NYSTROM_TOLERANCE = 1e-8
"""Of the backward error: normal equations keep half of the digits of float64."""

# objective

BISECTIONS = 100
"""Halvings that end at the rounding of float64."""

SAME = 1e-14
"""Intercepts and slopes this close, relative to their scale, are equal up to rounding."""

NEXT = 1e-9
"""A loss that does not change over this share of the reach of intercepts has more than one best intercept."""

BLOCKS = 2**14
"""Second derivatives of a joint loss that are decomposed at a time: a GPU takes half a megabyte for each."""

# orthonormal

WELL_CONDITIONED = 1e4
"""Condition of K_mm up to which sums of kernel values are as good as sums in an orthonormal basis."""

# passes

PASSES_LINEAR = 1e-6
"""A search whose last step does not square the error goes on to this share of the tolerance."""

PASSES_MOST = 100
"""Steps of a search over rows that are read in parts at most, and of one round for losses with kinks."""

PASSES_FIRST = 0.1
"""The width of the first smoothing of kinks, in units of the mean of k(x, x)."""

PASSES_NARROWER = 0.3
"""How fast it shrinks. Of .1, .2 and .3 after widths of .03 and .1 (hinge, quantile and epsilon-insensitive losses, two
kernels, 3,000 rows) this takes the fewest passes, 46 to 86."""

# pcg

SMALLEST_RANK = 200
"""Columns of the preconditioner at least."""

PCG_RANK = 12
"""Times sqrt(n): a factor of that rank costs as much as a few dozen products, for n r^2 to n^2."""

REFINABLE = 1e-2
"""A residual above this says that float32 has no digits left to refine with."""

COLUMN_ARRAYS = 14
"""Of the length of a column, alive in an iteration."""

PCG_TARGET_ARRAYS = 4
"""Of the shape of the right-hand sides, alive in a fit."""

LEAST_SHARE = 4
"""One of so many parts of the budget is for the columns, whatever the preconditioner takes."""

FACTOR_SHARE = 0.75
"""Of the budget, for a factor and the columns that are being made."""

BEING_MADE = 2
"""Blocks of such columns: rows of the matrix, and what they are made of."""

ENOUGH = 0.1
"""A factor that leaves this share of alpha in the trace cannot be improved upon."""

# pivoted_cholesky

NOISE = 16
"""Entries of A - F F^T below this many rounding errors of their row's diagonal count as zero."""

LARGEST_BLOCK = 128
"""Pivots that are drawn together at most."""

PIVOTED_NUMBERS = {"cpu": 2**18, "cuda": 2**25}
"""Of new columns at a time."""

# preconditioners

STEEP = 1e10
"""Largest eigenvalue over the scale of D from which Woodbury's difference leaves too much rounding error."""

SKETCH_BLOCK = 128
"""Columns of a sketch that are multiplied at a time."""

SOLVED_NUMBERS = 2**26
"""Numbers of the factor that are solved for at a time."""

CORE_NUMBERS = 2**20
"""Numbers of the factor that are added to the core at a time."""

# row_blocks

BLOCK_ROWS = {"cpu": 2**16, "cuda": 2**21}
"""Rows of a block, by device: a GPU needs more of them to be kept busy."""

PART_SHARE = 10
"""One of so many parts of a memory budget holds kernel values, which may be there three times, weighted and in
another basis; another one the products with all targets."""

ROW_BLOCKS_TARGET_ARRAYS = 4
"""Numbers for each row and target while a block is multiplied."""

LIBRARIES = 2**26
"""Memory that numerical libraries take when they are first used."""

# sampled_curvature

SAMPLED_ACCURACY = 1e-6
"""The relative residual of systems on a sample. They are no nearer to those on all rows than 1e-2, but what rounding
changes in them shows in the answer."""

# scales

FLATTEST = 1e-4
"""Of the largest mean curvature: the least that coordinates are scaled by."""

# semidefinite

SEMIDEFINITE_SINGLE = 1e-5
"""What eigenvalues may be below zero by, relative to the entries, where these were made in float32."""

HUGE = 1e6
"""Kernel values above it are a matter of units."""

# smo

SMALLEST = 1e-12
"""Curvatures below this are taken as this."""

# spread_blocks

SECONDS = 2.0
"""Seconds that a task of a cluster should take: starting one takes some milliseconds."""

SPEED = {"cpu": 1e10, "cuda": 2e12}
"""What a task should take, and the operations per second of a core or a GPU by which its rows are reckoned."""

KERNEL_VALUE = 40
"""Operations of a kernel value or a feature besides those with the columns of X."""

# symmetric

SYMMETRIC_STRIP = 256
"""Columns that are multiplied at a time: narrower strips waste less, wider ones multiply faster."""

# top_eigenpairs

EXTRA = 8
"""Columns of a block besides the vectors wanted: they speed up the last of these."""

BASIS_BLOCKS = 10
"""Blocks after which the basis is cut back to the best vectors found."""

EIGENPAIRS_ROUNDED = 4.0
"""Residuals have no more than so many times sqrt(n) rounding errors of the largest number."""

FEW_VECTORS = 32
"""Vectors up to which a matrix in memory is multiplied with one at a time."""

MOST_STEPS = 300
"""Products with one vector after which blocks take over."""

CHECKED_STEPS, CHECKED_TOLERANCE = 8, 1e-2
"""Steps at least, and the relative residual, that say how large the largest eigenvalue is that was not found."""

COPIED = 1e-10
"""Of the largest eigenvalue: what counts as equal, so that it does not matter which of two vectors is taken."""

DENSE_ROWS = 400
"""Rows up to which all eigenpairs take no longer than some."""

DENSE_SHARE = 8
"""Up to so many rows, or when more than one in eight vectors is wanted, the whole matrix is decomposed."""

# whitening

WHITENING_ROUNDING = 3.0
"""Eigenvalues of K_mm up to this many times the rounding error of the largest are noise. Those above matter, however
small: their functions are small at the landmarks and large elsewhere."""

WHITENING_SINGLE = 3e-9
"""Divided by m, what stands for the rounding error where kernel values at the rows are float32: what is then left out
would magnify their rounding more than ten thousand times."""


# loss_sums.py

STEP_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.005, 0.001)
"""Parts of a step at which one pass finds the objective, for losses with kinks."""
