"""
Kernel PCA: circles come apart, digits come clean
=================================================

Principal component analysis looks for straight directions of large variance. Kernel PCA looks for them among the
functions of a kernel, and so finds structure that no straight line shows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA
from mercer.kernels import Gaussian, Linear

# %%
# Two concentric circles
# ----------------------
# Rings of radius 1 and 3. With a linear kernel, kernel PCA is ordinary PCA and only turns the picture. With a Gaussian
# kernel the first coordinate alone tells the rings apart.

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, size=300)
radius = np.repeat([1.0, 3.0], 150) + rng.normal(scale=0.15, size=300)
X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
ring = np.repeat(["inner ring", "outer ring"], 150)

linear = KernelPCA(2, Linear()).fit(X)
gaussian = KernelPCA(2, Gaussian(2**0.5)).fit(X)
print(gaussian.report())
first = gaussian.transform(X)[:, 0]
low, high = sorted((first[ring == "inner ring"], first[ring == "outer ring"]), key=np.mean)
print(f"the rings overlap on the first coordinate: {low.max() > high.min()}")

fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for kind, colour in (("inner ring", "#0072B2"), ("outer ring", "#D55E00")):
    axes[0].scatter(*X[ring == kind].T, s=12, color=colour)
axes[0].set(title="the data", aspect="equal")
linear.plot(X, ring, ax=axes[1]).set_title("linear kernel")
gaussian.plot(X, ring, ax=axes[2]).set_title("Gaussian kernel")

# %%
# The first coordinate is a function of the plane
# -----------------------------------------------
# New points have coordinates too. Drawn over the plane, the first one is high inside, low on the outer ring, and falls
# to one value far away, where there are no data.

grid = np.linspace(-4.5, 4.5, 121)
plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.9), layout="constrained", sharey=True)
for s, ax in enumerate(axes):
    values = gaussian.transform(plane)[:, s].reshape(121, 121)
    reach = np.abs(values).max()
    ax.pcolormesh(grid, grid, values, cmap="PuOr_r", vmin=-reach, vmax=reach, rasterized=True)
    ax.scatter(*X.T, s=4, color="black", alpha=0.5)
    ax.set(title=f"coordinate {s + 1}", aspect="equal", xticks=[-3, 0, 3], yticks=[-3, 0, 3])

# %%
# Denoising by pre-images
# -----------------------
# ``inverse_transform`` goes back from coordinates to inputs. Noise spreads over all directions, handwriting over a few:
# projecting noisy digits onto 30 components and coming back takes half of the noise off, more than PCA with as many.
# The components were found on other, clean digits.

digits = load_digits()
pictures, labels = digits.data / 16.0, digits.target
noisy = pictures + rng.normal(scale=0.35, size=pictures.shape)
train, test = slice(0, 1200), slice(1200, None)

model = KernelPCA(30, "gaussian", pre_image="fixed_point").fit(pictures[train])
pca = PCA(30).fit(pictures[train])
cleaned = {
    "original": pictures[test],
    "noisy": noisy[test],
    "PCA": pca.inverse_transform(pca.transform(noisy[test])),
    "kernel PCA": model.inverse_transform(model.transform(noisy[test])),
}
for name, images in cleaned.items():
    print(f"{name:<11} error {np.sqrt(np.mean((images - pictures[test]) ** 2)):.2f}")

shown = [np.flatnonzero(labels[test] == k)[0] for k in range(10)]
fig, axes = plt.subplots(4, 10, figsize=(10, 4.3), layout="constrained")
for row, (name, images) in zip(axes, cleaned.items(), strict=True):
    for ax, image in zip(row, images[shown], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
plt.show()
