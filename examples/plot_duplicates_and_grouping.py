r"""
Duplicated rows and the grouping effect
=======================================

What happens when a row is in the data twice? With the penalty :math:`\|f\|^2 = c^\top K c` of kernel ridge
regression only the sum of the two coefficients matters, and two equal rows are one row of weight two. The
plain penalty :math:`|c|^2` has no such property.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, RKHSFunction
from mercer.kernels import Gaussian, Linear

# %%
# Take two equal points and a third one orthogonal to them. The norm sees the first two coefficients only
# through their sum: it is :math:`(c_1 + c_2)^2 + c_3^2`.

points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
for c in ([0.5, 0.5, 2.0], [3.0, -2.0, 2.0], [1.0, 0.0, 2.0]):
    f = RKHSFunction(Linear(), points, c)
    print(f"c = {c}: squared norm {f.norm() ** 2:.1f}, f(1, 1) = {f([[1.0, 1.0]])[0]:.1f}, |c|^2 = {np.dot(c, c):.2f}")

# %%
# So duplicating a row is the same as giving it weight two, and the two copies share its coefficient equally.

rng = np.random.default_rng(4)
X = np.sort(rng.uniform(0, 6, size=(9, 1)), axis=0)
y = np.sin(X[:, 0]) + rng.normal(scale=0.3, size=9)
row = 2
X_twice, y_twice = np.r_[X, X[[row]]], np.r_[y, y[row]]
weight = np.where(np.arange(9) == row, 2.0, 1.0)

kernel = Gaussian(length_scale=0.5)
once = KernelRidge(kernel, alpha=1.0).fit(X, y)
twice = KernelRidge(kernel, alpha=1.0).fit(X_twice, y_twice)
weighted = KernelRidge(kernel, alpha=1.0).fit(X, y, sample_weight=weight)
print(f"coefficients of the copies: {twice.dual_coef_[row]:.4f} + {twice.dual_coef_[-1]:.4f}")
print(f"coefficient of weight two:  {weighted.dual_coef_[row]:.4f}")

# %%
# The plain penalty solves another problem, :math:`\min_c \sum_i w_i (f(x_i) - y_i)^2 + \alpha |c|^2`.


def plain_penalty(rows, targets, weights):
    """The coefficients that minimise the weighted squares plus their own squared length."""
    K = kernel(rows)
    return np.linalg.solve(K @ (weights[:, None] * K) + np.eye(len(K)), K @ (weights * targets))


grid = np.linspace(-0.5, 6.5, 400).reshape(-1, 1)
plain = {
    "once": kernel(grid, X) @ plain_penalty(X, y, np.ones(9)),
    "twice": kernel(grid, X_twice) @ plain_penalty(X_twice, y_twice, np.ones(10)),
    "weight two": kernel(grid, X) @ plain_penalty(X, y, weight),
}
ours = {"once": once.predict(grid), "twice": twice.predict(grid), "weight two": weighted.predict(grid)}
for name, curves in (("penalty on f", ours), ("penalty on c", plain)):
    print(f"{name}: twice and weight two differ by {np.abs(curves['twice'] - curves['weight two']).max():.0e}")

# %%
# On the left, lines of equal penalty: straight for the norm of f, circles for the plain one. In the middle
# the curves "twice" and "weight two" are one curve. On the right they are two.

fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
c1, c2 = np.meshgrid(np.linspace(-2, 2, 101), np.linspace(-2, 2, 101))
axes[0].contour(c1, c2, (c1 + c2) ** 2, levels=[0.25, 1, 2.25, 4, 6.25], colors="#0072B2", linewidths=1.5)
axes[0].contour(c1, c2, c1**2 + c2**2, levels=[0.25, 1, 2.25], colors="#D55E00", linestyles="dotted", linewidths=1.5)
axes[0].plot([], [], color="#0072B2", label=r"$\|f\|^2$")
axes[0].plot([], [], color="#D55E00", linestyle="dotted", label=r"$|c|^2$")
axes[0].set(xlabel="$c_1$", ylabel="$c_2$", title="Equal penalty for two equal points", aspect="equal")
for ax, title, curves in ((axes[1], r"Penalty $\|f\|^2$", ours), (axes[2], "Penalty $|c|^2$", plain)):
    ax.plot(grid, curves["once"], color="#999999", linewidth=1.3, label="row once")
    ax.plot(grid, curves["twice"], color="#0072B2", linewidth=3.5, alpha=0.6, label="row twice")
    ax.plot(grid, curves["weight two"], color="#D55E00", linewidth=1.5, linestyle="dashed", label="weight two")
    ax.scatter(X, y, color="black", s=16, zorder=3)
    ax.scatter(X[row], y[row], s=90, facecolors="none", edgecolors="black", zorder=3)
    ax.set(title=title, xlabel="x", ylim=(-1.6, 1.4))
for ax in axes:
    ax.legend(fontsize=9, loc="lower left")
plt.show()
