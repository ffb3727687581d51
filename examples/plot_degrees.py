"""
High dimensions: what a kernel learns, degree by degree
=======================================================

With many features, a kernel does not learn a function all at once. It learns its linear part first, then its products
of two features, then those of three, and each degree takes about d times as many rows as the one before. This page
shows the law, the rows it costs, and why two kernels that look different learn alike.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import NTK, Gaussian, Laplace
from mercer.theory import curse_of_dimensionality, degree_reached, multiple_descent, sphere_spectrum, staircase

# %%
# How many rows would the worst function need, until the error has fallen to a tenth of that of one row? Functions with
# one derivative, and with four:

for derivatives in (1, 4):
    print(f"{derivatives} derivative(s)", curse_of_dimensionality(smoothness=derivatives), sep="\n")

# %%
# Nobody has so many rows; what is learned from data is not the worst function. Sixty thousand images of some thirty
# effective dimensions reach polynomials of this degree:

degree_reached(60_000, 30)

# %%
# The stairs. The target has a linear part, products of two features and products of three, all of norm 1. With n = d^l
# rows the parts up to degree l are learned, and no others. In 1,000 dimensions the stairs are steep; in 20 they are
# round, and can be simulated: fits to random points, with their standard errors, lie on the curve.

fig, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
staircase(Gaussian(), d=1000, powers=(0, 1, 1, 1)).plot(ax=panels[0])
found = staircase(Gaussian(), d=20, powers=(0, 1, 1, 1), simulate=[8, 20, 60, 180, 500], repeats=10)
found.plot(ax=panels[1])
plt.show()

# %%
# With noise and hardly any ridge, each stair becomes a peak: where there are as many rows as harmonics of a degree,
# n = B(d, l), the fit has just enough freedom for every label and spends it on the noise.

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
found = multiple_descent([1.0, 1.0, 1.0, 0.02], d=15, noise=1.0, simulate=[8, 15, 30, 60, 120, 200, 400], repeats=20)
found.plot(ax=ax)
plt.show()

# %%
# What decides how much of a degree is learned are the eigenvalues of the kernel. Those of the neural tangent kernel of
# a wide network and those of the Laplace kernel fall with the same power of the degree, k^-d: a wide network that
# stays near its start learns like one of the oldest kernels. The Gaussian's fall faster than any power.

d = 4
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
kernels = {"neural tangent kernel, three layers": NTK(depth=3), "Laplace": Laplace(2.0), "Gaussian": Gaussian(1.0)}
for marker, (name, kernel) in zip("os^", kernels.items(), strict=True):
    found = sphere_spectrum(kernel, d, 30)
    shown = (found.degrees > 0) & (found.accuracy < 0.1)
    ax.plot(found.degrees[shown], found.eigenvalues[shown] / found.eigenvalues[1], marker, linestyle="-", label=name)
k = np.arange(4, 31)
ax.plot(k, 3.0 * k ** -float(d), color="#6B6B6B", linestyle=":", label=f"$k^{{-{d}}}$")
ax.set(xscale="log", yscale="log", ylim=(1e-8, 2), xlabel="Degree k", ylabel="Eigenvalue, beside that of degree 1")
ax.legend(frameon=False)
plt.show()
