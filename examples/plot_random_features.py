"""
Explicit features instead of a kernel matrix
============================================

A kernel is an inner product of features. Some kernels have features that can be written down, in the mean, in the
limit or near some landmarks, and a linear model on p features costs n p^2 instead of n^3.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from mercer import KernelRidge, NystromFeatures, RandomFourierFeatures, TaylorFeatures
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
kernel = Gaussian(2.0)

# %%
# How close are they?
# -------------------
# ``approximation_error`` compares the inner products of features with the kernel. Random cosines have an error like
# :math:`1/\sqrt p`. Frequencies in orthogonal directions, or from a Sobol sequence, do better for the same p; features
# from landmarks follow the data and do best where the spectrum of the kernel decays as fast as it does here.

sizes = [8, 16, 32, 64, 128, 256, 512]
seeds = range(20)


def error(make, p):
    """Root mean square error of p features, averaged over draws."""
    return np.sqrt(np.mean([make(p, s).fit(X).approximation_error(X).rms ** 2 for s in seeds]))


variants = {
    "cosines with offset": lambda p, s: RandomFourierFeatures(p, kernel, method="offset", random_state=s),
    "pairs of cosine and sine": lambda p, s: RandomFourierFeatures(p, kernel, random_state=s),
    "orthogonal": lambda p, s: RandomFourierFeatures(p, kernel, method="orthogonal", random_state=s),
    "quasi-Monte Carlo": lambda p, s: RandomFourierFeatures(p, kernel, method="qmc", random_state=s),
    "Nyström, uniform": lambda p, s: NystromFeatures(p, kernel, random_state=s),
    "Nyström, pivoted": lambda p, s: NystromFeatures(p, kernel, landmarks="pivoted", random_state=s),
}
errors = {name: [error(make, p) for p in sizes if p <= 128 or "Nys" not in name] for name, make in variants.items()}
taylor = [TaylorFeatures(degree, kernel).fit(X) for degree in range(1, 10)]
for name in variants:
    print(f"{name:<26} error at p = 64: {errors[name][sizes.index(64)]:.1e}")

# %%
# Taylor features are not random: monomials up to a degree, whose number grows fast with the columns of X.

colours = ["#999999", "#222222", "#E69F00", "#D55E00", "#56B4E9", "#0072B2"]
fig, ax = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
for (name, values), colour in zip(errors.items(), colours, strict=True):
    ax.loglog(sizes[: len(values)], values, marker="o", markersize=4, color=colour, label=name)
counts = [features.features_.n_features for features in taylor]
ax.loglog(
    counts, [features.approximation_error(X).rms for features in taylor], marker="s", markersize=4, color="#009E73",
    label="Taylor, degree 1 to 9",
)  # fmt: skip
ax.loglog(sizes, 0.45 / np.sqrt(sizes), linestyle="--", linewidth=1, color="black", label=r"$1/\sqrt{p}$")
ax.set(xlabel="number of features p", ylabel="root mean square error of the kernel", ylim=(1e-8, 1))
ax.legend(fontsize=9, loc="lower left")

# %%
# A regression on them
# --------------------
# Ridge regression on the features approaches kernel ridge regression. The features are transformers: they work in
# pipelines and searches.

y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=200)
X_new = rng.normal(size=(500, 3))
exact = KernelRidge(kernel, alpha=0.1).fit(X, y).predict(X_new)
for p in (20, 80, 320):
    model = make_pipeline(
        RandomFourierFeatures(p, kernel, method="orthogonal"), Ridge(alpha=0.1, fit_intercept=False)
    ).fit(X, y)
    print(f"p = {p:<4} distance from kernel ridge regression: {np.abs(model.predict(X_new) - exact).mean():.3f}")
plt.show()
