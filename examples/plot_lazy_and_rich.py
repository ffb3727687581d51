"""
Lazy and rich
=============

A wide network in the usual scaling hardly moves while it trains, and is a kernel machine. In the mean-field scaling its
first layer turns to the directions that the target depends on. A kernel machine can learn these, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge, RFMRegressor
from mercer.neural import two_layer

rng = np.random.default_rng(0)
X, X_test = rng.normal(size=(400, 20)), rng.normal(size=(1000, 20))
U = np.linalg.qr(rng.normal(size=(20, 2)))[0]


def target(X):
    first, second = (X @ U).T
    return np.tanh(2 * first) + 0.5 * first * second


y, y_test = target(X), target(X_test)

# %%
# Both networks start with the same weights. A tenth of each, on average, lies in the plane of U, two of 20 directions.

result = two_layer(X, y, U, width=128, test=(X_test, y_test))
for scaling, moment in result.last.items():
    print(f"{scaling:10s}  in the plane {moment.alignment:.2f}, test error {moment.test_error:.2f}")

# %%
# Kernel ridge regression cannot adapt either. Recursive feature machines learn a matrix M for the distances from the
# gradients of the fit, whose largest eigenvectors are again the directions of U.

ridge = KernelRidge("gaussian", alpha="loo").fit(X, y)
machine = RFMRegressor("gaussian", random_state=0).fit(X, y)
values, vectors = np.linalg.eigh(machine.agop_)
share = np.linalg.norm(vectors[:, -2:].T @ U) ** 2 / 2
print(f"kernel ridge      test error {1 - ridge.score(X_test, y_test):.2f}")
print(f"feature machine   test error {1 - machine.score(X_test, y_test):.2f}, in the plane {share:.2f}")

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
result.plot(ax)
plt.show()
