"""
Classification: borders and probabilities
=========================================

One kernel, several losses. The logistic loss asks for probabilities, the hinge loss for a border with a wide
margin. Both minimise the sum of losses plus alpha times the squared norm.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, make_circles, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mercer import KernelClassifier
from mercer.kernels import Gaussian
from mercer.plots import reliability

# %%
# Two moons and two circles, each with both losses. No straight line separates either.

samples = {
    "moons": make_moons(200, noise=0.25, random_state=0),
    "circles": make_circles(200, noise=0.12, factor=0.5, random_state=0),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
for row, (name, (X, y)) in zip(axes, samples.items(), strict=True):
    for ax, loss in zip(row, ("logistic", "hinge"), strict=True):
        model = KernelClassifier(Gaussian(0.5), loss=loss, alpha=0.1).fit(X, y)
        model.plot(ax=ax)
        ax.set_title(f"{name}, {loss} loss")

# %%
# The hinge loss keeps few rows: those on the wrong side of the margin or on it. Their number is in the report.

model.report()

# %%
# Real data, with alpha chosen by the loss at rows left out. Probabilities of the logistic loss are those of the
# model; those of the hinge come from a sigmoid that is fitted to decisions for rows left out.

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
scale = StandardScaler().fit(X)
X, X_new = scale.transform(X), scale.transform(X_new)

models = {loss: KernelClassifier("gaussian", loss=loss, alpha="auto").fit(X, y) for loss in ("logistic", "hinge")}
for loss, model in models.items():
    error = log_loss(y_new, model.predict_proba(X_new))
    print(f"{loss:<9} alpha {model.alpha_:.3g}, accuracy {model.score(X_new, y_new):.3f}, log loss {error:.3f}")

# %%
# How often is a tumour benign among those to which the model gave the probability p? On the diagonal a model
# is honest.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (loss, model) in zip(axes, models.items(), strict=True):
    reliability(y_new, model.predict_proba(X_new), model.classes_, bins=8, title=f"{loss} loss", ax=ax)
plt.show()
