"""
Is my sampler right?
====================

A Markov chain may miss a mode or move too little, and look fine. The kernel Stein discrepancy compares its draws with
the density it should have, which needs to be known up to a constant only.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from mercer.stats import goodness_of_fit_test, ksd

# %%
# The target is a banana: a normal distribution that is bent. `log_prob` is written with torch, and its gradient found.


def log_prob(x):
    return -0.5 * (x[:, 0] ** 2 + (x[:, 1] - x[:, 0] ** 2 + 1) ** 2 / 0.25)


def metropolis(step, n, temperature=1.0, seed=0):
    """Random walk; at another temperature its acceptance is wrong."""
    rng = np.random.default_rng(seed)
    x, value, draws = np.zeros(2), 0.0, np.empty((n, 2))
    value = float(log_prob(torch.tensor(x)[None]))
    for i in range(n):
        proposed = x + step * rng.normal(size=2)
        new = -0.5 * (proposed[0] ** 2 + (proposed[1] - proposed[0] ** 2 + 1) ** 2 / 0.25)
        if np.log(rng.random()) < (new - value) / temperature:
            x, value = proposed, new
        draws[i] = x
    return draws


right = metropolis(0.8, 20_000)[1000::20]
wrong = metropolis(0.8, 20_000, temperature=1.5)[1000::20]

# %%
# Draws of a chain depend on each other. With ``order=True`` the signs of the wild bootstrap change as slowly as the
# chain forgets, so that the level holds.

for name, draws in (("right", right), ("wrong acceptance", wrong)):
    result = goodness_of_fit_test(draws, log_prob=log_prob, order=True, random_state=0)
    print(f"{name}: KSD {ksd(draws, log_prob=log_prob):.3f}. {result}")
    print("  ", [(c.name, round(c.pvalue, 4)) for c in result.columns()])

# %%
# Which draws are off
# -------------------
# Rows that contribute most to the discrepancy lie where the chain has too much mass: too far out.

result = goodness_of_fit_test(wrong, log_prob=log_prob, order=True, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
drawn = axes[0].scatter(*wrong.T, c=result.witness(), s=10, cmap="viridis")
grid = np.stack(np.meshgrid(np.linspace(-3.5, 3.5, 80), np.linspace(-4, 9, 80)), -1)
density = np.exp(log_prob(torch.tensor(grid.reshape(-1, 2))).numpy()).reshape(80, 80)
axes[0].contour(grid[..., 0], grid[..., 1], density, levels=[0.05, 0.3, 0.8], colors="#D55E00", linewidths=1)
axes[0].set_title("draws and, in orange, the target", loc="left", fontsize=10)
fig.colorbar(drawn, ax=axes[0], label="share in the discrepancy")
result.plot(ax=axes[1])
