"""
Concentric circles and one good feature
=======================================

No straight line separates a circle from a ring around it. One more feature, the distance from the centre,
makes it easy: that is the idea of a kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from mercer import KernelRidge
from mercer.kernels import FeatureMap, Gaussian, Linear

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, size=300)
radius = np.repeat([1.0, 3.0], 150) + rng.normal(scale=0.25, size=300)
X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
y = np.repeat([-1.0, 1.0], 150)

# %%
# ``FeatureMap`` turns any function of the rows into a kernel: the inner product of the features.


def with_radius(rows):
    """The two coordinates and the distance from the centre."""
    return torch.cat([rows, rows.norm(dim=1, keepdim=True)], dim=1)


kernels = {
    "linear": Linear(bias=1.0),
    "linear with the radius": FeatureMap(with_radius) + 1.0,
    "Gaussian": Gaussian("median"),
}

# %%
# A regression on the labels -1 and +1 classifies by its sign.

models = {name: KernelRidge(kernel, alpha=1e-2).fit(X, y) for name, kernel in kernels.items()}
for name, model in models.items():
    print(f"{name:<24} {np.mean(np.sign(model.predict(X)) == y):.0%} of the points on the right side")

# %%
# With the radius the border is the circle it should be. The Gaussian kernel needs no hint: its functions are
# rich enough to find the ring by themselves. Far from all data they fall back to zero, and there the border
# means nothing.

grid = np.linspace(-4.5, 4.5, 121)
plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    values = model.predict(plane).reshape(121, 121)
    ax.pcolormesh(grid, grid, np.tanh(values), cmap="PuOr_r", vmin=-2, vmax=2, rasterized=True)
    ax.contour(grid, grid, values, levels=[0.0], colors="black", linewidths=1.5)
    for label, colour in ((-1.0, "#5e3c99"), (1.0, "#b35806")):
        ax.scatter(*X[y == label].T, s=9, color=colour)
    ax.set(title=name, aspect="equal", xticks=[-3, 0, 3], yticks=[-3, 0, 3])
plt.show()
