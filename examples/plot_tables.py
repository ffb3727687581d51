"""
Tables as they are
==================

Rents of flats, from a table with numbers, a city, a date and gaps. ``mercer.tabular`` takes it as it is, and its
report says what became of each column.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, tabular

rng = np.random.default_rng(0)
n = 400
city = rng.choice(["Oslo", "Rome", "Bonn", "Graz"], n, p=[0.4, 0.3, 0.25, 0.05])
size, listed = rng.uniform(30, 120, n).round(1), rng.integers(0, 730, n)
base = {"Oslo": 18.0, "Rome": 14.0, "Bonn": 11.0, "Graz": 9.0}
rent = size**0.9 * np.array([base[c] for c in city]) + 60 * np.sin(2 * np.pi * listed / 365) + rng.normal(0, 40, n)
flats = {
    "flat_id": np.array([f"flat-{i}" for i in range(n)]),
    "size": np.where(rng.random(n) < 0.1, np.nan, size),
    "city": np.where(rng.random(n) < 0.05, "", city),
    "balcony": rng.random(n) < 0.4,
    "listed": np.datetime64("2023-01-01") + listed,
}
train = {name: column[:300] for name, column in flats.items()}
test = {name: column[300:] for name, column in flats.items()}

model = tabular(KernelRidge("matern52", alpha="auto", tune=True)).fit(train, rent[:300])
model.report()

# %%
# The city counts as much in distances as one column of numbers, gaps are states of their own, and the date gave the
# time elapsed, the time of year and the day of the week. The id is left out. On flats that the model has not seen:

print(f"R2 {model.score(test, rent[300:]):.2f}")

# %%
# What the model makes of one flat over the year, in each city. ``balcony`` had no gaps in training: one lies at the
# centre.

days = np.arange(365)
fig, ax = plt.subplots(figsize=(6.5, 4))
for name in ("Oslo", "Rome", "Bonn", "Graz"):
    year = {
        "flat_id": np.array([""] * 365),
        "size": np.full(365, 70.0),
        "city": np.array([name] * 365),
        "balcony": np.full(365, np.nan),
        "listed": np.datetime64("2024-01-01") + days,
    }
    ax.plot(year["listed"], model.predict(year), label=name)
ax.set_ylabel("Rent of 70 square metres")
ax.legend(ncols=4, frameon=False, loc="upper center")
ax.set_ylim(top=ax.get_ylim()[1] * 1.1)
fig.autofmt_xdate()
