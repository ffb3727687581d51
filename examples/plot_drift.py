"""
Has my data drifted?
====================

A model was fitted last year. Do the rows that come in now still look like those it has learned from? `DriftDetector`
judges batches at an exact level, watches single rows, and names the columns that moved.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mercer.stats import DriftDetector, change_points

# %%
# Batches
# -------
# Four sensors. In the third week a filter clogs: pressure rises, and flow becomes unsteady.

rng = np.random.default_rng(0)
names = ["pressure", "flow", "heat", "noise"]


def week(clogged=0.0, n=150):
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=names)
    X["heat"] += 0.5 * X["pressure"]
    X["pressure"] += 0.6 * clogged
    X["flow"] *= 1 + 0.8 * clogged
    return X


detector = DriftDetector(expected_run_length=2000, random_state=0).fit(week(n=1000))
for number, clogged in enumerate([0.0, 0.0, 1.0, 1.0], 1):
    result = detector.test(week(clogged))
    print(f"week {number}: {result}")

# %%
# Single rows
# -----------
# Rows are taken in one by one, in memory that does not grow. Without drift an alarm comes after 2,000 rows on average.

path, alarm = [], None
for number in range(6):
    for row in np.array_split(week(float(number >= 4), 100), 100):
        status = detector.update(row)
        path.append(status.statistic)
print(status)
print(detector.report())

# %%
# Looking back
# ------------
# `change_points` finds when the distribution changed, in a table of any length.

history = pd.concat([week(n=800), week(1.0, 500), week(n=700)], ignore_index=True)
found = change_points(history, random_state=0)
print(found)
print([found.columns(i)[0].name for i in range(len(found.points))])

fig, axes = plt.subplots(1, 3, figsize=(14, 3.8), layout="constrained")
result.plot(ax=axes[0]).set_title("week 4", loc="left", fontsize=10)
axes[1].plot(path, color="#0072B2", linewidth=1)
axes[1].axhline(status.threshold, color="#D55E00", linewidth=1)
axes[1].axvline(400, color="#6B6B6B", linewidth=1, linestyle="--")
axes[1].set(xlabel="Row", ylabel="Statistic")
axes[1].set_title("alarm above the line; drift begins at row 400", loc="left", fontsize=10)
found.plot(ax=axes[2], column=1)
