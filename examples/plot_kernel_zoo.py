"""
A look at the kernels
=====================

A kernel says which points are alike. This page draws eight of them, adds and multiplies some, and prints what
the library knows about each.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import (
    Brownian,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

# %%
# A kernel is a small frozen object. Called on rows it gives the Gram matrix.

kernel = Gaussian(length_scale=0.5)
kernel([[0.0], [0.5], [1.0]]).round(3)

# %%
# Sums, products, powers and positive multiples of kernels are kernels. They print as the algebra they are,
# and that text evaluates back to an equal kernel.

seasonal = 2.0 * Gaussian(length_scale=3.0) * Periodic(period=0.5) + 0.1 * Linear()
print(seasonal)
assert eval(repr(seasonal)) == seasonal

# %%
# Known properties are attributes. A question mark means not known: the library does not guess.

zoo = {
    "Gaussian": Gaussian(0.3),
    "Matern 5/2": Matern(2.5, 0.3),
    "Laplace": Laplace(0.3),
    "rational quadratic": RationalQuadratic(0.1, alpha=0.5),
    "periodic": Periodic(1.0, period=0.5),
    "Brownian": Brownian(),
    "polynomial": Polynomial(degree=3),
    "Gaussian * periodic": Gaussian(0.5) * Periodic(1.0, period=0.3),
}
facts = ["stationary", "characteristic", "universal", "bounded", "smoothness"]
words = {True: "yes", False: "no", None: "?"}
print(" " * 20 + "".join(f"{fact:>15}" for fact in facts))
for name, k in zoo.items():
    print(f"{name:<20}" + "".join(f"{words.get(v, v):>15}" for v in (getattr(k, fact) for fact in facts)))

# %%
# Each kernel below is shown twice: its Gram matrix on the points of [0, 2], and three random functions of
# which it is the covariance. The smoother the kernel is at zero distance, the smoother its functions.

x = np.linspace(0.0, 2.0, 201).reshape(-1, 1)
rng = np.random.default_rng(3)
fig, axes = plt.subplots(4, 4, figsize=(10, 9.5), layout="constrained")
for i, (name, k) in enumerate(zoo.items()):
    top, below = axes[2 * (i // 4), i % 4], axes[2 * (i // 4) + 1, i % 4]
    K = k(x)
    top.imshow(K, cmap="cividis", vmin=0.0, extent=(0, 2, 2, 0))
    top.set_title(name, fontsize=11)
    top.set(xticks=[], yticks=[])
    root = np.linalg.cholesky(K + 1e-9 * K.max() * np.eye(len(x)))
    below.plot(x, root @ rng.normal(size=(len(x), 3)), linewidth=1.3)
    below.set(xlim=(0, 2), yticks=[])
plt.show()
