"""
Thin a chain
============

Twenty well chosen draws can stand for thousands. Every hundredth draw is not a good choice: it keeps the burn-in and
the noise of the chain. Stein thinning looks at the density, kernel thinning at all draws.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Gaussian
from mercer.stats import KernelHerding, KernelThinning, SteinThinning, control_functional, ksd, mmd

# %%
# A chain with burn-in
# --------------------
# It starts far from its target, a normal distribution, and moves slowly.

rng = np.random.default_rng(0)
chain = np.empty((5000, 2))
chain[0] = [6.0, -5.0]
for t in range(1, len(chain)):
    chain[t] = 0.98 * chain[t - 1] + np.sqrt(1 - 0.98**2) * rng.normal(size=2)


def score(x):
    return -x


stein = SteinThinning(20).fit(chain, score)
print(f"KSD of 20 draws: {stein.discrepancy_:.3f} chosen by Stein thinning,")
for name, rows in (("every 250th draw", chain[::250]), ("all draws", chain)):
    print(f"{ksd(rows, score, kernel=stein.kernel_):.3f} {name}")

# %%
# No score needed
# ---------------
# Kernel thinning and herding choose rows that stand for all rows. With a target instead of a number they take as few as
# they need.

good = chain[1000:]
kernel = Gaussian(1.5)
thinned = KernelThinning(20, kernel, random_state=0).fit(good)
herded = KernelHerding(kernel=kernel, target=0.05).fit(good)
random = np.mean([mmd(good[rng.choice(len(good), 20, replace=False)], good, kernel) for _ in range(20)])
print(f"MMD of 20 rows from all: kernel thinning {thinned.discrepancy_:.4f}, random rows {random:.4f}")
print(f"herding reaches {herded.discrepancy_:.3f} with {len(herded.indices_)} rows")

# %%
# Better means
# ------------
# With a score, weights remove most of the variance of a mean: here of the sum of both coordinates, whose mean is 0.

rows = rng.normal(size=(200, 2))
found = control_functional(lambda x: x.sum(1), rows, score)
print(f"mean of 200 values {found.plain_mean:.4f}, by a control functional {found.mean:.6f}")

fig, axes = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
stein.plot(ax=axes[0]).set_title("Stein thinning leaves the burn-in out", loc="left", fontsize=10)
thinned.plot(ax=axes[1]).set_title("kernel thinning", loc="left", fontsize=10)
axes[2].plot(range(1, 21), stein.discrepancies_, "o-", color="#0072B2", markersize=4, label="Stein thinning")
sizes = [5, 10, 20]
plain = [np.mean([ksd(good[rng.choice(len(good), m)], score, kernel=stein.kernel_) for _ in range(20)]) for m in sizes]
axes[2].plot(sizes, plain, "s--", color="#6B6B6B", markersize=4, label="random rows, no burn-in")
axes[2].set(xlabel="Rows", ylabel="Kernel Stein discrepancy", xscale="log", yscale="log")
axes[2].legend(frameon=False)
