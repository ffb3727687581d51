"""
Which features matter? Tuning by leave-one-out
==============================================

A kernel with one length scale per feature can learn to ignore a feature: a length scale that grows makes it
flat in that direction. ``tune=True`` follows the gradient of the leave-one-out error to find them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Gaussian

# %%
# Ten features, of which the first three matter: a wave, a parabola and a straight line.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(400, 10))
y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.7 * X[:, 2] + rng.normal(scale=0.1, size=400)
X, X_test, y, y_test = X[:200], X[200:], y[:200], y[200:]

# %%
# Three models: the median width, one tuned width, and ten tuned widths. Alpha is chosen by leave-one-out in
# all three.

models = {
    "median width": KernelRidge(Gaussian("median"), alpha="loo"),
    "one width, tuned": KernelRidge(Gaussian("median"), alpha="loo", tune=True),
    "ten widths, tuned": KernelRidge(Gaussian(length_scale=(2.0,) * 10), alpha="loo", tune=True),
}
for name, model in models.items():
    model.fit(X, y)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    print(f"{name:<18} test error {error:.3f} (the noise is 0.1)")

# %%
# One width for all features cannot help, however well it is tuned. The report says how the tuning of ten
# went.

best = models["ten widths, tuned"]
best.report()

# %%
# Length scales of features that do not matter have grown out of sight. The third feature has a straight
# effect, for which a wide kernel is enough. Left: the inverses. Right: the error of each step, relative to
# the variance of the target.

relevance = 1 / np.array(best.kernel_.length_scale)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.bar(range(1, 11), relevance, color=["#0072B2"] * 3 + ["#BBBBBB"] * 7)
left.set(xlabel="Feature", ylabel="1 / length scale", title="What the kernel looks at", xticks=range(1, 11))
for name, colour in (("one width, tuned", "#D55E00"), ("ten widths, tuned", "#0072B2")):
    errors = [models[name].tuning_.start_error, *models[name].tuning_.history]
    right.semilogy(errors, "o-", color=colour, markersize=4, label=name)
right.set(xlim=(-1, 30), xlabel="Step", ylabel="Relative leave-one-out error", title="The descent")
right.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
right.minorticks_off()
right.legend()
plt.show()
