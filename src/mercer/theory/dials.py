"""Numbers that somebody chose in `mercer.theory`: what each is, and where it was measured if it was."""

from __future__ import annotations

# arguments.py

MOST_ROWS = 10**18
"""Numbers of rows at most: whole numbers in float64 and int64 alike."""

LARGEST_TARGET = 1e70
"""Fourth powers of targets, which spreads of squared errors have, are numbers up to here."""

LARGEST_VALUE = 1e150
"""Squares of kernel values and of deviations of noise are numbers up to here."""


# forecaster.py

FEWEST_ROWS = 64
"""Below, subsets have fewer than eight rows."""
FEWEST_BELIEVED, FARTHEST = 150, 8
"""Forecasts from fewer rows, or of more times as many, are not believed."""
MOST_DUPLICATES, SMALLEST_RIDGE = 0.02, 1.5
"""Of the share of rows that repeat others, and of the best kappa beside that of alpha = 0, for the spectrum to tell."""
LARGEST_GAP, LARGEST_ERROR = 0.4, 0.25
"""Of |log GCV / LOO|, and of the error of the logarithm of a change, times the root of the doublings."""
SHARE_OF_CHANGE, SHARE_ALONE = 0.2, 0.4
"""Of the logarithm of a forecast change, how much is doubted where there are two readings, and where there is one."""
PER_DOUBLING = 0.5
"""Error of the logarithm for each doubling, times the root of the rows."""
WIDTH, NOISE = 1.1, 1.5
"""By how much these errors, and that of leave-one-out, are wider than normal ones. All constants were fixed on the
first sets of benchmarks/forecasts.py; the others judge them."""


# power_law.py

REPEATS = 4
"""Subsets of each size that a learning curve is found from."""


# samples_needed.py

NEEDED_STEPS = 400
"""Multiples of the rows at hand that are tried."""
DRAWN = (1, 2, 4, 8, 16)
"""How many times the rows at hand a picture shows."""


# spectral_forecast.py

WINDOW = 8.0
"""Values of kappa up to this many times the best are fitted: below the best, rows say too little."""
FORECAST_STEPS = 200
"""Values of kappa, from the best at the rows at hand to that of more, over which the least error is taken."""


# sphere.py

TERMS = 2000
"""Taylor coefficients that are summed."""
NODES = 2000
"""Points of the quadrature."""


# staircase.py

MORE_DEGREES = 12
"""Degrees above those of the target that have eigenvalues of their own; the others act as a ridge."""
TEST_POINTS = 1000
"""Points at which an error is estimated."""
