r"""
A kernel of your own
====================

A kernel is a class with one method, its formula. From that one formula the library makes Gram matrices,
gradients, lazy products and tuning. The example is the hyperbolic secant, :math:`k(x, z) = 1 / \cosh(\|x -
z\| / \ell)`: smooth like the Gaussian at zero, slow like the Laplace kernel far away.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, gram
from mercer.kernels import Gaussian, Kernel, Laplace
from mercer.kernels.maths import exp
from mercer.kernels.parameters import length_scale
from mercer.testing import check_kernel

# %%
# Five lines. ``length_scale`` accepts a number, one number per column, or ``"median"``, and checks them;
# ``pair`` knows distances and inner products.


@dataclass(frozen=True, eq=False, repr=False)
class Secant(Kernel):
    length_scale: float = length_scale()

    def of(self, pair):
        e = exp(-pair.distance(self.length_scale))
        return 2.0 * e / (1.0 + e * e)


Secant(length_scale=2.0)([[0.0], [1.0], [4.0]]).round(3)

# %%
# ``check_kernel`` tests the laws every kernel keeps: symmetry, positive semi-definiteness, derivatives
# against finite differences, float32 against float64, and more. It is silent when all hold.

check_kernel(Secant(length_scale=0.7))
check_kernel(Secant(length_scale=(0.5, 2.0, 1.0)) + 0.5 * Gaussian())

# %%
# Not every formula is a kernel. This one looks harmless but is not positive semi-definite, which shows on
# points that are close to each other. Pass points like yours.


@dataclass(frozen=True, eq=False, repr=False)
class TooFlat(Kernel):
    length_scale: float = length_scale()

    def of(self, pair):
        return exp(-(pair.squared_distance(self.length_scale) ** 2))


try:
    check_kernel(TooFlat(), np.linspace(0, 3, 21).reshape(-1, 1))
except AssertionError as error:
    print(error)

# %%
# The new kernel works everywhere: in algebra, in lazy products, in tuned models.

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, size=(60, 1)), axis=0)
y = np.sin(X[:, 0]) * np.exp(-0.1 * X[:, 0]) + rng.normal(scale=0.1, size=60)
print(gram(Secant(), X))
model = KernelRidge(Secant("median"), alpha="loo", tune=True).fit(X, y)
model.report()

# %%
# The three profiles, and the fit.

r = np.linspace(0, 5, 200).reshape(-1, 1)
grid = np.linspace(-0.5, 10.5, 400).reshape(-1, 1)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for kernel, colour in ((Gaussian(), "#009E73"), (Secant(), "#0072B2"), (Laplace(), "#D55E00")):
    left.plot(r, kernel(r, [[0.0]]), color=colour, label=type(kernel).__name__)
left.set(xlabel="distance / length scale", ylabel="k", title="Profiles")
left.legend()
right.scatter(X, y, color="black", s=14)
right.plot(grid, model.predict(grid), color="#0072B2")
right.set(xlabel="x", title="A model with the new kernel")
plt.show()
