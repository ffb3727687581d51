"""
Spectral bias and early stopping
================================

Gradient flow learns the modes of a kernel one after the other, those of large eigenvalues first. These are the slow
waves, and noise is learned last: whoever stops in time has the signal without it.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Matern
from mercer.solvers import Flow

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 1, 150)).reshape(-1, 1)
grid = np.linspace(0, 1, 400).reshape(-1, 1)
waves = {1: 1.0, 4: 0.7, 12: 0.5}


def signal(x):
    return sum(size * np.sin(2 * np.pi * k * x.ravel()) for k, size in waves.items())


y = signal(X) + 0.5 * rng.normal(size=150)
kernel = Matern(1.5, 0.1)

# %%
# One fit has the functions of all times. Each is compared with the waves of the signal by least squares.

model = KernelRidge(kernel, solver=Flow(stop="gcv")).fit(X, y)
times = np.logspace(-1, 6, 60)
functions = model.predict(grid, t=times.tolist())
basis = np.column_stack([np.sin(2 * np.pi * k * grid.ravel()) for k in waves])
sizes = np.linalg.lstsq(basis, functions.T, rcond=None)[0]
errors = np.sqrt(np.mean((functions - signal(grid)) ** 2, axis=1))

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (k, size), learned in zip(waves.items(), sizes, strict=True):
    left.semilogx(times, learned / size, label=f"{k} wave{'s' * (k > 1)}")
left.set(xlabel="Time", ylabel="Share that is learned", title="Slow waves first")
left.legend()
right.semilogx(times, errors, label="distance to the signal")
right.axvline(model.t_, linestyle="--", color="#D55E00", label="cross-validation stops here")
right.set(xlabel="Time", ylabel="Root mean squared error", title="Noise last")
right.legend()
plt.show()

# %%
# Rows held out stop at much the same time. Stopping acts like a ridge, whose size the report tells.

held_out = KernelRidge(kernel, solver="flow", random_state=0).fit(X, y)
for name, fit in (("cross-validation", model), ("rows held out", held_out)):
    error = np.sqrt(np.mean((fit.predict(grid) - signal(grid)) ** 2))
    print(f"{name:17s} t = {fit.t_:6.0f}, like a ridge of {fit.equivalent_alpha_:.3f}, distance {error:.3f}")
ridge = KernelRidge(kernel, alpha="gcv").fit(X, y)
error = np.sqrt(np.mean((ridge.predict(grid) - signal(grid)) ** 2))
print(f"ridge by the same word: alpha = {ridge.alpha_:.3f}, distance {error:.3f}")
