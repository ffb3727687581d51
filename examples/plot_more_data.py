"""
Should I collect more data?
===========================

Rows cost money. Before paying for more of them, ask the model what they would bring: ``learning_curve()`` forecasts its
error with up to four times as many rows, from the rows at hand alone, and says where it does not know.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from mercer import KernelRidge
from mercer.kernels import Gaussian

# %%
# Three hundred rows of five features that matter. The noise has a standard deviation of 1, which nobody tells the
# model. We have more rows in the drawer, to check the forecast afterwards.

X_all, y_all = make_friedman1(3200, n_features=5, noise=1.0, random_state=0)
X, y = X_all[:300], y_all[:300]
model = KernelRidge(Gaussian("median"), alpha="loo").fit(X, y)

# %%
# The forecast. A forecast is believed where two readings of the data agree that have little in common: the spectrum of
# the kernel matrix, and fits to smaller and smaller parts of the rows.

curve = model.learning_curve(factors=[1, 1.4, 2, 2.8, 4])
curve

# %%
# How many rows would an error of 1.1 take? And one of 0.5?

for target in (1.1, 0.5):
    needed = model.samples_needed(target)
    rows = "no answer" if needed.rows is None else f"{needed.rows} rows"
    print(f"error {target}: {rows} ({needed.reason})")

# %%
# Open the drawer: fit 300 to 1,200 rows and test them on others. The forecast saw the first 300 alone.

X_test, y_test = X_all[1200:], y_all[1200:]
alphas = np.geomspace(1e-3, 10, 12)
truth = []
for n in curve.rows:
    larger = KernelRidge(model.kernel_, alpha="loo", alphas=alphas).fit(X_all[:n], y_all[:n])
    truth.append(np.sqrt(np.mean((larger.predict(X_test) - y_test) ** 2)))

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
curve.plot(ax=ax)
ax.plot(curve.rows, truth, "x", color="#D55E00", markersize=8, markeredgewidth=2, label="what came true")
ax.set_title("Should I collect more data?", loc="left")
ax.legend(fontsize=9, frameon=False)
plt.show()

# %%
# More rows of this kind would not pay: most of what is left is noise. Better columns, or better measurements, would.
# For classes, ``KernelClassifier`` has the same two methods; its error is the Brier score. And where the error falls
# fast, or rows are few or repeat each other, the forecast says that it should not be relied on: believe that too.
