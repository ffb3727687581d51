"""
Quantiles, and regression with outliers
=======================================

The squared loss finds the mean. Other losses find other things: the quantile loss finds the value below which a
given share of the targets lies, and the Huber loss finds a mean that wild targets hardly move.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRegressor
from mercer.kernels import Gaussian

# %%
# A wave whose noise grows to the right. Five quantiles are fitted one by one; their predictions are put in order
# at every point, so that they never cross.

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, size=(300, 1)), axis=0)
y = np.sin(X[:, 0]) + (0.05 + 0.12 * X[:, 0]) * rng.normal(size=300)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
bands = KernelRegressor(Gaussian(1.5), loss="quantile", quantiles=levels, alpha=0.05, fit_intercept=True).fit(X, y)
below = (y[:, None] <= bands.predict(X)).mean(axis=0)
for level, share in zip(levels, below, strict=True):
    print(f"level {level:.2f}: {share:.0%} of the targets lie below")

# %%
# The report counts the training rows at which the quantiles had to be put in order.

bands.report()

# %%
# Now every twentieth target is wrong. The squared loss follows, the Huber loss does not.

wrong = y.copy()
wrong[::20] = 6.0
squared = KernelRegressor(Gaussian(1.5), alpha=0.05).fit(X, wrong)
huber = KernelRegressor(Gaussian(1.5), loss="huber", alpha=0.05).fit(X, wrong)
for name, model in (("squared", squared), ("huber", huber)):
    error = np.sqrt(np.mean((model.predict(X) - np.sin(X[:, 0])) ** 2))
    print(f"{name:<8} distance from the truth {error:.3f}")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
bands.plot(ax=left)
left.set_title("Five quantiles")
right.scatter(X, wrong, s=8, color="#222222")
right.plot(X, squared.predict(X), color="#D55E00", label="squared loss")
right.plot(X, huber.predict(X), color="#0072B2", label="Huber loss")
right.plot(X, np.sin(X), color="#6B6B6B", linestyle="--", label="truth")
right.set(xlabel="x", ylabel="y", title="Regression with outliers")
right.legend()
plt.show()
