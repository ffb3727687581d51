"""
Which features matter?
======================

Ten columns were measured, and nobody knows which of them the target depends on. A kernel with one length scale for
every column counts all of them alike. A recursive feature machine finds out while it learns.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mercer import KernelRidge, RFMRegressor

rng = np.random.default_rng(0)
names = ["speed", "load", "slope", "wind", "rain", "age", "hour", "day", "sensor_a", "sensor_b"]
X = pd.DataFrame(rng.normal(size=(800, 10)), columns=names)
y = X["speed"] * X["load"] + np.sin(2 * X["slope"]) + 0.2 * rng.normal(size=800)
train, test = slice(0, 400), slice(400, 800)

# %%
# Kernel ridge regression first: the four hundred rows are spread thin over ten columns.

ridge = KernelRidge("gaussian").fit(X[train], y[train])
print(f"kernel ridge     R2 {ridge.score(X[test], y[test]):.2f}")

# %%
# The machine fits, looks at how strongly its predictions change along each column, stretches the columns that matter,
# and fits again. What it is sure of it says itself: ``error_`` comes from rows that no part of the fit has seen.

machine = RFMRegressor("gaussian", random_state=0).fit(X[train], y[train])
print(f"feature machine  R2 {machine.score(X[test], y[test]):.2f}")
print(machine.report())

# %%
# Three columns are enough. The average products of gradients show them, too; here their diagonal told as much as all.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
machine.plot(left)
machine.plot_agop(right)
plt.show()
