"""
Carbon dioxide on Mauna Loa: a kernel from parts
================================================

A line with a trend that bends it, a season that slowly changes its shape, irregularities of some months and noise: one
kernel made of parts, with all of its parameters from the data. The last ten years are kept back and forecast.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from mercer import GaussianProcessRegressor
from mercer.kernels import Gaussian, Periodic, RationalQuadratic

# %%
# Monthly means of the concentration in parts per million, 1958 to 2001.

weekly = sm.datasets.co2.load_pandas().data["co2"]
monthly = weekly.resample("MS").mean().dropna()
years = (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy().reshape(-1, 1)
ppm = monthly.to_numpy()
past = years[:, 0] < 1992
print(f"{past.sum()} months to learn from, {(~past).sum()} to forecast")

# %%
# Lengths are in years and variances in squared parts per million. The numbers are where learning starts. The period is
# known and fixed, the shape of the irregularities stays in a range; all else is learned from the marginal likelihood.

trend = 5.0**2 * Gaussian(20.0)
season = 3.0**2 * Gaussian(100.0) * Periodic(length_scale=1.5, period=1.0)
irregular = 0.5**2 * RationalQuadratic(alpha=0.5, length_scale=0.5)
ranges = {"period": "fixed", "alpha": (0.1, 10.0)}
model = GaussianProcessRegressor(
    trend + season + irregular, mean="linear", n_restarts=0, max_iter=200, bounds=ranges, random_state=0
)
model.fit(years[past], ppm[past])
model.report()

# %%
# How good is the forecast of ten years? From the second half of 1992 it is too high: the growth slowed down for some
# years after the eruption of Pinatubo, and nothing before says so. Intervals are about what the model can know.

mean, std = model.predict(years[~past], return_std=True)
error = ppm[~past] - mean
inside = np.mean(np.abs(error) < 1.96 * std)
print(f"root mean square error {np.sqrt(np.mean(error**2)):.2f} ppm, predicted deviation {std[0]:.2f} to {std[-1]:.2f}")
print(f"{inside:.0%} of the months lie in their 95% intervals")

# %%
# The curve, its forecast until 2010, and the season of 1988 to 1995 from near.

grid = np.linspace(1958, 2010, 1250).reshape(-1, 1)
mean, std = model.predict(grid, return_std=True)
fig, axes = plt.subplots(2, 1, figsize=(8.5, 7), layout="constrained")
for ax, (first, last) in zip(axes, ((1958, 2010), (1988, 1996)), strict=True):
    some = (grid[:, 0] >= first) & (grid[:, 0] <= last)
    ax.fill_between(
        grid[some, 0],
        (mean - 2 * std)[some],
        (mean + 2 * std)[some],
        color="#0072B2",
        alpha=0.2,
        linewidth=0,
        label="two deviations",
    )
    ax.plot(grid[some, 0], mean[some], color="#0072B2", linewidth=1, label="mean")
    for rows, colour, words in ((past, "#222222", "learned from"), (~past, "#D55E00", "kept back")):
        shown = rows & (years[:, 0] >= first) & (years[:, 0] <= last)
        ax.scatter(years[shown], ppm[shown], s=5 if ax is axes[0] else 14, color=colour, label=words, zorder=3)
    ax.set(xlim=(first, last), ylabel="CO2 in ppm")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
axes[0].set_title("Mauna Loa, forecast from 1992")
_ = axes[1].set_xlabel("year")
