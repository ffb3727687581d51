"""
Functions as vectors
====================

A kernel comes with a space of functions, its reproducing kernel Hilbert space. They add, scale, have lengths
and angles like vectors. ``RKHSFunction`` is such a function, and every fitted model has one.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, RKHSFunction
from mercer.kernels import Gaussian

# %%
# A function is given by centres and coefficients: a bump of the kernel at each centre.

kernel = Gaussian(length_scale=1.0)
f = RKHSFunction(kernel, [[-2.0], [0.0], [1.5]], [1.0, -0.8, 0.5])
g = RKHSFunction(kernel, [[-1.0], [2.0]], [0.7, 0.9])
h = f + 0.5 * g
print(h)

# %%
# Lengths, angles and distances come from the kernel. The triangle inequality and the rule of the
# parallelogram hold, as in the plane.

print(f"|f| = {f.norm():.4f}, |g| = {g.norm():.4f}, <f, g> = {f.inner(g):.4f}, |f - g| = {f.distance(g):.4f}")
sides = 2 * (f.norm() ** 2 + g.norm() ** 2)
diagonals = (f + g).norm() ** 2 + (f - g).norm() ** 2
print(f"parallelogram: {sides:.6f} = {diagonals:.6f}")

# %%
# To evaluate a function is to take an inner product with a bump: f(x) = <f, k(x, .)>.

bump = RKHSFunction(kernel, [[0.7]], [1.0])
print(f"f(0.7) = {f([[0.7]])[0]:.6f}, <f, k(0.7, .)> = {f.inner(bump):.6f}")

# %%
# Therefore two functions that are close in norm are close at every point: ``bound`` says how close.

x = np.linspace(-5, 5, 400).reshape(-1, 1)
gap = np.abs(f(x) - h(x))
print(f"largest difference of f and h: {gap.max():.4f}, bound: {f.bound(x, h).max():.4f}")

# %%
# Functions of several variables have gradients. Here the function is a fitted model: thirty noisy heights of
# a landscape.

rng = np.random.default_rng(2)
places = rng.uniform(-2, 2, size=(30, 2))
heights = np.sin(1.5 * places[:, 0]) + 0.5 * places[:, 1] ** 2 + rng.normal(scale=0.05, size=30)
landscape = KernelRidge(Gaussian("median"), alpha=1e-2).fit(places, heights).function_
print(landscape)
print("steepest ascent at the origin:", landscape.gradient([[0.0, 0.0]])[0].round(2))

# %%
# Left: a sum of functions. Middle: the bound around f holds every function as close to f as h is. Right: the
# landscape and its gradients.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for function, colour, name in ((f, "#0072B2", "f"), (g, "#D55E00", "g"), (h, "black", "f + g / 2")):
    left.plot(x, function(x), color=colour, label=name)
    if function is not h:
        left.plot(function.X, function(function.X), "o", color=colour, markersize=5)
left.set(title="A sum of functions", xlabel="x")
left.legend()
reach = f.bound(x, h)
middle.fill_between(
    x[:, 0], f(x) - reach, f(x) + reach, color="#0072B2", alpha=0.15, linewidth=0, label="bound around f"
)
middle.plot(x, f(x), color="#0072B2", label="f")
middle.plot(x, h(x), color="black", label="f + g / 2")
middle.set(title="Close in norm, close everywhere", xlabel="x")
middle.legend(loc="lower right", fontsize=9)
side = np.linspace(-2, 2, 61)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
right.contourf(side, side, landscape(plane).reshape(61, 61), levels=14, cmap="cividis")
some = np.stack(np.meshgrid(side[5::10], side[5::10]), axis=-1).reshape(-1, 2)
right.quiver(*some.T, *landscape.gradient(some).T, color="white", width=0.005)
right.scatter(*places.T, s=10, color="black")
right.set(title="A landscape and its gradients", aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
plt.show()
