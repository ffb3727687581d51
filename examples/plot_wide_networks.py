"""
Width to infinity
=================

The tangent kernel of a random network depends on its weights. The wider the network, the less: it approaches the kernel
`NTK`, and for convolutional networks that of `LayerKernel`, like one over the root of the width.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from mercer.kernels import NTK
from mercer.neural import Activation, AveragePool, Conv, Dense, Flatten, LayerKernel, empirical_ntk

rng = np.random.default_rng(0)
rows = torch.from_numpy(rng.normal(size=(8, 6)))
images = torch.from_numpy(rng.normal(size=(6, 16)))

# %%
# Weights are standard normal numbers, divided by the root of the number of inputs in the layer itself, so that each
# layer trains at the same speed at any width.


class Layer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.scale = inner.double(), (2.0 / inner.weight[0].numel()) ** 0.5
        nn.init.normal_(inner.weight)

    def forward(self, x):
        return self.scale * self.inner(x)


def connected(width):
    sizes = (6, width), (width, width), (width, 1)
    first, second, last = (Layer(nn.Linear(a, b, bias=False)) for a, b in sizes)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)


def convolutional(width):
    filters = Layer(nn.Conv2d(1, width, 3, padding=1, bias=False))
    last = Layer(nn.Linear(4 * width, 1, bias=False))
    return nn.Sequential(filters, nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), last)


layers = [Conv(3, b_var=0.0), Activation("relu"), AveragePool(2), Flatten(), Dense(b_var=0.0)]
cases = {
    "two hidden layers": (connected, rows, None, NTK(depth=2, b_var=0.0)),
    "convolution and pooling": (convolutional, images, (1, 4, 4), LayerKernel(layers, shape=(1, 4, 4))),
}

# %%
# The relative distance of the two matrices, with five networks for each width.

torch.manual_seed(0)
widths = [8, 16, 32, 64, 128, 256]
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, (make, X, shape, kernel) in cases.items():
    limit = kernel(X)
    errors = []
    for width in widths:
        found = [empirical_ntk(make(width), X, shape=shape) for _ in range(5)]
        errors.append(np.mean([float((H - limit).norm() / limit.norm()) for H in found]))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    ax.loglog(widths, errors, "o-", label=f"{name}: slope {slope:.2f}")
ax.loglog(widths, 1.5 / np.sqrt(widths), "--", color="0.5", label="one over the root of the width")
ax.set(xlabel="Width", ylabel="Relative distance", title="Tangent kernels of random networks and their limit")
ax.legend()
plt.show()
