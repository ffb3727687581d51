"""
A first Gaussian process
========================

A Gaussian process is a distribution over functions. Before any data it is the prior; given data it is the posterior,
which knows how sure it is at every point.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianProcessRegressor
from mercer.kernels import Matern

# %%
# A wave seen at 25 places, with noise, and with a gap in the middle.

rng = np.random.default_rng(0)
X = np.sort(np.concatenate([rng.uniform(0, 4, 15), rng.uniform(6, 10, 10)])).reshape(-1, 1)
y = np.sin(X[:, 0]) + 0.15 * rng.normal(size=25)
grid = np.linspace(-1, 11, 300).reshape(-1, 1)

# %%
# Functions drawn before any data, and after. `fit` has found the variance, the length scale and the noise that make the
# data most likely. The band is where new observations are expected; the functions themselves have no noise.

prior = GaussianProcessRegressor(1.0 * Matern(2.5, 1.5), mean="zero")
model = GaussianProcessRegressor().fit(X, y)
fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8), sharey=True, layout="constrained")
left.plot(grid, prior.sample_functions(6)(grid).T, color="#D55E00", linewidth=0.9)
left.set(title="Prior", xlabel="x", ylabel="y")
left.spines[["top", "right"]].set_visible(False)
model.plot(ax=right)
_ = right.set_title("Posterior")

# %%
# The report says what was learned, in the units of the data.

model.report()

# %%
# Deviations are of observations, noise included, or of the function alone.

for place in (2.0, 5.0, 30.0):
    mean, std = model.predict([[place]], return_std=True)
    latent = model.predict([[place]], return_std=True, latent=True)[1]
    print(f"x = {place:4.1f}: mean {mean[0]:5.2f}, observations +- {std[0]:.2f}, function +- {latent[0]:.2f}")

# %%
# Drawn functions are known everywhere and cost little to evaluate, so that any question about the function can be put
# to each of them: what is its least value in the gap?

functions = model.sample_functions(500)
gap = np.linspace(4, 6, 101).reshape(-1, 1)
least = functions(gap).min(axis=1)
print(f"least value in the gap {np.mean(least):.2f} +- {np.std(least):.2f}, the truth is {np.sin(gap).min():.2f}")

# %%
# How many held-out values lie inside the intervals? And which of four features matter?
# Only the first two are used here; the relevance is the deviation of a feature divided by its length scale.

Z = rng.normal(size=(400, 4))
t = np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 1] + 0.2 * rng.normal(size=400)
several = GaussianProcessRegressor(n_restarts=0).fit(Z[:150], t[:150])
calibration = several.calibration(Z[150:], t[150:])
print(calibration)

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
calibration.plot(ax=left)
several.plot(ax=right)
