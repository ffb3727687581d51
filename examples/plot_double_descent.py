"""
Bias, variance and double descent in ten lines
==============================================

The error of a fit has two parts. *Bias*: what the model would get wrong if labels had no noise, because it has seen too
little. *Variance*: what the noise of the labels adds. One formula gives both for kernel ridge regression, from the
eigenvalues of the kernel, the target and the number of rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.theory import krr_risk

# %%
# A kernel with 100 features, a target that has a little of each, and noisy labels.

spectrum, target = np.ones(100), np.full(100, 0.1)
n = np.unique(np.geomspace(10, 1000, 150).round())
bare = krr_risk(spectrum, target, n, alpha=0.03, noise=0.1)
ridged = krr_risk(spectrum, target, n, alpha=20.0, noise=0.1)

# %%
# Is the formula right? Draw rows, fit and test, twenty times at each of some numbers of rows.


def simulated(n, alpha, rng):
    Phi = rng.normal(size=(n, 100))
    labels = Phi @ target + rng.normal(scale=0.1**0.5, size=n)
    dual = np.linalg.solve((Phi * spectrum) @ Phi.T + alpha * np.eye(n), labels)
    return np.sum((spectrum * (Phi.T @ dual) - target) ** 2) + 0.1


rng = np.random.default_rng(0)
sizes = [15, 30, 60, 80, 100, 125, 200, 400]
tests = [[np.mean([simulated(m, a, rng) for _ in range(20)]) for m in sizes] for a in (0.03, 20.0)]

# %%
# Left, almost no ridge: near 100 rows, as many as there are features, the model can just fit every label, noise
# included, and has no freedom left to do it gently. The variance peaks, and **more rows make the model worse**, until
# they make it better again. Right, a ridge: it adds a little bias and takes the peak away. With a good ridge, more rows
# help.

fig, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, found, points, title in zip(panels, (bare, ridged), tests, ("Almost no ridge", "A ridge of 20"), strict=True):
    ax.plot(n, found.test, color="#222222", linewidth=2, label="test error")
    ax.plot(n, found.bias, color="#0072B2", label="bias")
    ax.plot(n, found.variance, color="#D55E00", label="variance")
    ax.plot(sizes, points, "o", color="#222222", markersize=4, label="simulated")
    ax.axvline(100, color="#6B6B6B", linewidth=1, linestyle=":")
    ax.set(xscale="log", yscale="log", ylim=(1e-3, 30), xlabel="Rows", title=title)
panels[0].set_ylabel("Mean squared error")
panels[0].legend(frameon=False)
plt.show()
