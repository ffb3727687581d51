"""
A first model
=============

Fit a kernel ridge regression, read its report, and see which training rows are behind a prediction. The data
are 442 diabetes patients with ten measurements each; the target is how far the disease has come one year
later.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from mercer import KernelRidge
from mercer.kernels import Laplace

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

# %%
# The Laplace kernel with the median distance of the rows as its width is a robust first choice. Adding one to
# a kernel adds the constants to its functions, which gives the model an intercept. ``alpha="loo"`` chooses
# the ridge by the leave-one-out error.

model = KernelRidge(Laplace("median") + 1.0, alpha="loo").fit(X, y)
model.report()

# %%
# The test rows had no part in any of this.

print(f"R2 on {len(y_test)} test rows: {model.score(X_test, y_test):.3f}")

# %%
# The leave-one-out error of every alpha comes from one eigendecomposition; no model is fitted twice. The
# predictions behind it are there too.

left_out = y - model.loo_predictions_
print(f"root mean square of the leave-one-out errors: {(left_out**2).mean() ** 0.5:.1f}")

# %%
# A prediction is a weighted sum of training labels. ``influential`` names the rows that weigh most.

influence = model.influential(X_test[:1], k=8)
print(influence)

# %%
# For that patient the neighbours with the largest weights are shown on the right, with their labels.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
model.plot(X_test, y_test, ax=left)
model.alpha_path_.plot(ax=middle)
middle.set_title("How alpha was chosen", loc="left", fontsize=11)
right.barh(range(8), influence.weights[0], color="#0072B2")
right.set_yticks(range(8), [f"{label:.0f}" for label in influence.labels[0]])
right.invert_yaxis()
right.spines[["top", "right"]].set_visible(False)
right.set(xlabel="Label weight", ylabel="Progression of the training patient")
right.set_title("Who is behind one prediction", loc="left", fontsize=11)
plt.show()
