"""
Probabilities with uncertainty away from the data
=================================================

A Gaussian process classifier averages over all functions that fit the labels. Close to the data it is as sure as other
classifiers; far away it says that it does not know.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mercer import GaussianProcessClassifier
from mercer.plots import reliability

# %%
# Two moons. Lines show where the second class has a probability of 10, 25, 50, 75 and 90%; the map fades to white where
# both are equally likely.

X, y = make_moons(150, noise=0.2, random_state=0)
moons = GaussianProcessClassifier(n_restarts=0).fit(X, y)
moons.report()

# %%
# Three classes have a function each, found together. For two features of the iris data:

flowers = load_iris(as_frame=True)
petals = flowers.data[["petal length (cm)", "petal width (cm)"]]
names = flowers.target_names[flowers.target]
iris = GaussianProcessClassifier(n_restarts=0).fit(petals, names)
print(iris.predict_proba(petals.iloc[[0, 60]]).round(2))

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained")
moons.plot(ax=left)
left.set_title("Two moons")
iris.plot(ax=right)
_ = right.set_title("Iris")

# %%
# The function behind the first map: its mean, and how much it is known.

for place in ([0.0, 0.9], [0.5, 0.25], [4.0, 4.0]):
    mean, variance = moons.latent_mean_and_variance([place])
    p = moons.predict_proba([place])[0, 1]
    print(f"at {place}: function {mean[0]:5.2f} +- {np.sqrt(variance[0]):.2f}, probability {p:.2f}")

# %%
# Are probabilities honest? Of moons with more noise, half of the rows are kept back.

X, y = make_moons(600, noise=0.35, random_state=1)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
noisy = GaussianProcessClassifier(n_restarts=0).fit(X, y)
p = noisy.predict_proba(X_new)
print(f"accuracy {noisy.score(X_new, y_new):.2f}, log loss {log_loss(y_new, p):.2f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained")
noisy.plot(X_new, y_new, ax=left)
left.set_title("Rows kept back")
_ = reliability(y_new, p, noisy.classes_, ax=right)
