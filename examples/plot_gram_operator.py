"""
Gram matrices that are never stored
===================================

``gram(kernel, X, Z)`` is a matrix that multiplies without existing: products are computed tile by tile within
a memory budget, and near-duplicate points come out right.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import gram
from mercer.core.errors import MemoryBudgetError
from mercer.kernels import Gaussian, Laplace

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 5)).astype(np.float32)
Z = rng.normal(size=(1_000, 5)).astype(np.float32)

# %%
# Making the operator costs nothing. What it prints includes how products will be computed.

K = gram(Gaussian(length_scale=2.0), X, Z, memory_budget="64MiB")
print(K)

# %%
# It multiplies from both sides, and gives rows and, for one sample, its diagonal.

v = rng.normal(size=1_000).astype(np.float32)
print((K @ v).shape, (K.T @ (K @ v)).shape, K.rows([0, 7]).shape)

# %%
# The matrix itself would take 80 MB, more than the budget. Asked for it, the operator says so before it
# starts, and what would fit.

try:
    K.dense()
except MemoryBudgetError as error:
    print(error)

# %%
# Now to accuracy. The usual way to distances is :math:`|x|^2 + |z|^2 - 2 x \cdot z`. In float32 it has lost
# all digits when two points are close to each other and far from zero: the difference of large numbers is
# mostly rounding error. Take pairs of points at a known small distance, far from the origin.

pairs = 200
distances = np.logspace(-4, 0, pairs)
start = 100.0 + rng.normal(size=(pairs, 5))
direction = rng.normal(size=(pairs, 5))
direction /= np.linalg.norm(direction, axis=1, keepdims=True)
A = start.astype(np.float32)
B = (start + distances[:, None] * direction).astype(np.float32)
true_distance = np.linalg.norm(A.astype(np.float64) - B, axis=1)
exact = np.exp(-true_distance)

squares = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
naive = np.exp(-np.sqrt(np.maximum(squares, 0)))
ours = gram(Laplace(), A, B)
print(ours.notes)
errors = {
    "plain formula": np.abs(np.diag(naive) - exact),
    "mercer": np.abs(np.diag(ours.dense()) - exact),
}
for name, error in errors.items():
    print(f"{name:<14} largest error of the Laplace kernel {error.max():.0e}")

# %%
# Both are float32. The plain formula cannot see that two points are close; the operator can.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (name, error), colour in zip(errors.items(), ("#D55E00", "#0072B2"), strict=True):
    ax.loglog(true_distance, np.maximum(error, 1e-9), ".", color=colour, label=name)
ax.axhline(np.finfo(np.float32).eps, color="#6B6B6B", linewidth=1, linestyle="dashed")
ax.text(distances[0], 1.4e-7, "precision of float32", color="#6B6B6B", fontsize=9)
ax.set(xlabel="Distance of two points", ylabel="Error of the kernel", title="Laplace kernel, 100 away from the origin")
ax.legend()
plt.show()
