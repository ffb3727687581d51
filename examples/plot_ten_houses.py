"""
Ten houses, six interpolants
============================

Ten houses, their size and their price. With ``alpha=0`` kernel regression finds the smoothest function, as
the kernel measures it, through all ten prices. Every kernel and every width does it; what differs is what
happens between.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Gaussian, Laplace

square_feet = np.array([850.0, 1100, 1250, 1400, 1600, 1750, 1900, 2200, 2600, 3100]).reshape(-1, 1)
price = np.array([155.0, 199, 245, 219, 312, 279, 308, 405, 324, 480])

# %%
# All six interpolate. The norm of the function is the price of doing so.

widths = (400.0, 100.0, 10.0)
models = {(k, w): KernelRidge(k(w), alpha=0.0).fit(square_feet, price) for k in (Gaussian, Laplace) for w in widths}
for model in models.values():
    error = np.abs(model.predict(square_feet) - price).max()
    print(f"{model.kernel_!r:<42} largest error {error:.0e}, norm {model.function_.norm():6.0f}")

# %%
# A wide Gaussian is so smooth that it has to swing to reach every price. A narrow kernel of either kind knows
# nothing between the houses: its function is a spike at each house and near zero elsewhere. The Laplace
# kernel is the calmer one, close to straight lines from house to house.

grid = np.linspace(700, 3250, 1021).reshape(-1, 1)
fig, axes = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained", sharex=True, sharey=True)
for ax, ((kernel, width), model) in zip(axes.flat, models.items(), strict=True):
    ax.plot(grid, model.predict(grid), color="#0072B2", linewidth=1.4)
    ax.scatter(square_feet, price, color="black", s=22, zorder=3)
    ax.set_title(f"{kernel.__name__}, length scale {width:.0f}", fontsize=11)
axes[0, 0].set_ylim(-60, 640)
fig.supxlabel("Square feet", fontsize=11)
fig.supylabel("Price in thousand dollars", fontsize=11)
plt.show()
