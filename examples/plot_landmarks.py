"""
How many landmarks? Rows that stand for all others
==================================================

A fit to all rows has a coefficient for each of them. A Nyström fit has one for each of a few *landmarks*, and a fit
on random features one for each of a few cosines. Both read the rows once, keep none of them, and get closer to the
full fit the more terms they have.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import Gaussian

# %%
# Two thousand rows in a disc, most of them near its centre, and a function that waves everywhere.

rng = np.random.default_rng(0)
angle, radius = rng.uniform(0, 2 * np.pi, 4000), rng.exponential(0.8, 4000).clip(max=4)
X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
y = np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]) + rng.normal(scale=0.1, size=4000)
X, X_test, y, y_test = X[:2000], X[2000:], y[:2000], y[2000:]


def error(model):
    return np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))


kernel = Gaussian(0.7)
full = error(KernelRidge(kernel, alpha=0.1).fit(X, y))
print(f"all 2,000 rows: test error {full:.3f} (the noise is 0.1)")

# %%
# Landmarks can be drawn uniformly, by the pivots of a randomly pivoted Cholesky factor, which cover the data, or by
# leverage scores, which favour rows that no others can stand in for.

counts = [10, 20, 40, 80, 160, 320]
ways = {
    "uniform": {"solver": "nystrom", "landmarks": "uniform"},
    "pivoted": {"solver": "nystrom", "landmarks": "pivoted"},
    "leverage": {"solver": "nystrom", "landmarks": "leverage"},
    "random features": {"solver": "random_features"},
}
errors = {name: [] for name in ways}
for name, options in ways.items():
    size = "n_features" if name == "random features" else "n_landmarks"
    for count in counts:
        draws = [KernelRidge(kernel, alpha=0.1, random_state=seed, **options, **{size: count}) for seed in range(3)]
        errors[name].append(np.mean([error(model.fit(X, y)) for model in draws]))

# %%
# On the right, eighty landmarks of two kinds. Uniform ones crowd where the rows do; pivots spread out, and eighty of
# them come as close to the full fit as 320 uniform ones.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "s-", "^-", "x--"), strict=True):
    left.loglog(counts, values, style, label=name, markersize=5)
left.axhline(full, color="0.5", linewidth=1)
left.annotate("all rows", (10, full), xytext=(0, 3), textcoords="offset points", color="0.4")
left.set(xlabel="Landmarks or features", ylabel="Test error", title="Error of the approximation", xticks=counts)
left.set_xticklabels(counts)
left.minorticks_off()
left.set_yticks([0.1, 0.2, 0.5], ["0.1", "0.2", "0.5"])
left.legend()
right.plot(*X.T, ".", color="0.85", markersize=3, zorder=0)
for way, colour in (("uniform", "#D55E00"), ("pivoted", "#0072B2")):
    chosen = KernelRidge(kernel, alpha=0.1, solver="nystrom", landmarks=way, n_landmarks=80).fit(X, y)
    right.plot(*chosen.X_fit_.T, "o", color=colour, markersize=4, label=way)
right.set(title="Eighty landmarks", aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
right.legend(loc="upper left")
plt.show()

# %%
# Rows may come in parts: sums over rows are all that a Nyström fit needs, so the order does not matter and nothing is
# approximated twice.

parts = KernelRidge(kernel, alpha=0.1, solver="nystrom", landmarks=chosen.X_fit_)
for part in np.array_split(rng.permutation(2000), 5):
    parts.partial_fit(X[part], y[part])
difference = np.abs(parts.predict(X_test) - chosen.predict(X_test)).max()
print(f"{parts.solver_report_.solver} in five parts: {difference:.0e} from one fit")

# %%
parts.report()
