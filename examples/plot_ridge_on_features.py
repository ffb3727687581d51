r"""
Ridge on features is kernel ridge
=================================

There are two ways to fit a linear function of features :math:`\varphi(x)`. Ridge regression finds one weight
per feature, kernel ridge regression one coefficient per row, with the kernel :math:`k(x, z) = \varphi(x)
\cdot \varphi(z)`. They are two views of one function.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from mercer import KernelRidge
from mercer.kernels import FeatureMap, Polynomial

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(-1, 1, size=(30, 1)), axis=0)
y = np.sin(4 * X[:, 0]) + rng.normal(scale=0.2, size=30)
alpha = 0.1

# %%
# Take the monomials up to degree 5 as features and fit both ways.


def monomials(rows):
    """1, x, x^2, ..., x^5 of each row."""
    return np.asarray(rows) ** np.arange(6)


primal = Ridge(alpha=alpha, fit_intercept=False).fit(monomials(X), y)
dual = KernelRidge(FeatureMap(monomials), alpha=alpha).fit(X, y)

grid = np.linspace(-1.1, 1.1, 300).reshape(-1, 1)
difference = np.abs(primal.predict(monomials(grid)) - dual.predict(grid)).max()
print(f"{len(primal.coef_)} weights or {len(dual.dual_coef_)} coefficients: predictions differ by {difference:.0e}")

# %%
# The weights are hidden in the coefficients, :math:`w = \sum_i c_i\, \varphi(x_i)`, and the squared norm of
# the function is the squared length of the weights.

weights = monomials(X).T @ dual.dual_coef_
print("ridge       ", primal.coef_.round(4))
print("kernel ridge", weights.round(4))
print(f"|w| = {np.linalg.norm(primal.coef_):.6f}, |f| = {dual.function_.norm():.6f}")

# %%
# Nobody has to write the features down. The polynomial kernel :math:`(x z + 1)^5` has the same monomials,
# times the square roots of the binomial coefficients. In 100 dimensions that would be more than 90 million
# features; the kernel costs one inner product.

scaled = np.sqrt([1, 5, 10, 10, 5, 1])
by_kernel = KernelRidge(Polynomial(degree=5), alpha=alpha).fit(X, y)
by_features = Ridge(alpha=alpha, fit_intercept=False).fit(scaled * monomials(X), y)
difference = np.abs(by_kernel.predict(grid) - by_features.predict(scaled * monomials(grid))).max()
print(f"polynomial kernel and its features differ by {difference:.0e}")

# %%
# Left: the function, once from each view. Right: the two representations of it.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=(1.5, 1, 1.3))
left.scatter(X, y, color="black", s=16, label="data", zorder=3)
left.plot(grid, primal.predict(monomials(grid)), color="#0072B2", linewidth=5, alpha=0.5, label="ridge on features")
left.plot(grid, dual.predict(grid), color="#D55E00", linewidth=1.5, linestyle="dashed", label="kernel ridge")
left.set(title="One function", xlabel="x")
left.legend()
middle.bar(range(6), primal.coef_, color="#0072B2", alpha=0.6)
middle.plot(range(6), weights, "o", color="#D55E00")
middle.axhline(0, color="black", linewidth=0.8)
middle.set(title="6 weights", xlabel="power of x")
right.stem(X[:, 0], dual.dual_coef_, linefmt="#D55E00", markerfmt="o", basefmt="black")
right.set(title="30 coefficients", xlabel="x")
plt.show()
