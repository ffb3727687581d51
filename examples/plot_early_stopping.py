"""
Stopping early is a ridge
=========================

Gradient descent from zero learns the directions of large eigenvalues first. Stopped after k steps of length eta it has
learned those above 1 / (eta k), much as a ridge of that size would: the number of steps takes the place of alpha.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelRidge
from mercer.kernels import Matern


def truth(x):
    return np.sin(12 * x) * np.exp(-2 * x)


rng = np.random.default_rng(2)
X = np.sort(rng.uniform(0, 1, 60)).reshape(-1, 1)
y = truth(X.ravel()) + rng.normal(scale=0.25, size=60)
grid = np.linspace(0, 1, 300).reshape(-1, 1)
kernel = Matern(1.5, 0.15)

# %%
# Every fit below starts at zero and takes a number of steps on the squared error of all rows. ``alpha`` is so small
# that it plays no part, and the warning that nothing has converged is the point.

warnings.simplefilter("ignore", ConvergenceWarning)
steps = np.unique(np.logspace(0, 3.3, 18).astype(int))
stopped, equivalent, ridge = [], [], []
for k in steps:
    model = KernelRidge(kernel, alpha=1e-9, solver="gd", max_iter=int(k)).fit(X, y)
    alpha = float(model.solver_report_.reason.split("about ")[1].split(";")[0].split(",")[0])
    equivalent.append(alpha)
    stopped.append(np.sqrt(np.mean((model.predict(grid) - truth(grid.ravel())) ** 2)))
    exact = KernelRidge(kernel, alpha=alpha).fit(X, y)
    ridge.append(np.sqrt(np.mean((exact.predict(grid) - truth(grid.ravel())) ** 2)))

# %%
# Too few steps underfit, too many follow the noise. A ridge of 1 / (eta k) traces nearly the same curve.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogx(steps, stopped, "o-", markersize=4, label="gradient descent, stopped")
left.semilogx(steps, ridge, "--", color="#D55E00", label="ridge of 1 / (eta k)")
left.set(xlabel="Steps k", ylabel="Distance to the truth", title="The number of steps is the regulariser")
left.legend()
best = int(steps[np.argmin(stopped)])
right.plot(X, y, ".", color="0.6")
right.plot(grid, truth(grid), color="0.3", linewidth=1, label="truth")
for k, colour in ((1, "#56B4E9"), (best, "#0072B2"), (int(steps[-1]), "#D55E00")):
    fit = KernelRidge(kernel, alpha=1e-9, solver="gd", max_iter=k).fit(X, y)
    right.plot(grid, fit.predict(grid), color=colour, label=f"{k:,} step{'s' * (k > 1)}")
right.set(xlabel="x", ylabel="y", title="Three of these fits")
right.legend()
plt.show()

# %%
# Nobody knows the truth in earnest. With ``alpha=0`` a tenth of the rows is held out and decides when to stop.

model = KernelRidge(kernel, alpha=0.0, solver="gd", max_iter=10_000).fit(X, y)
print(model.solver_report_)
