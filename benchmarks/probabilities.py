"""Log-loss of probabilities for rows held out, against scikit-learn's SVC(probability=True) with the same kernel.

    python -m benchmarks.probabilities

Twenty random halves of each set; C = 1 and the hinge for both, and the logistic loss with the alpha it chooses. Halves
differ more than models do, so the last columns are the means of differences on the same half.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelClassifier
from mercer.kernels import Gaussian

SPLITS = 20


def samples() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    loaders = {"breast cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}
    found = {name: load(return_X_y=True) for name, load in loaders.items()}
    return {**found, "moons, much noise": make_moons(600, noise=0.4, random_state=0)}


def models(gamma: float) -> dict[str, object]:
    kernel = Gaussian.from_gamma(gamma)
    return {
        "SVC": SVC(gamma=gamma, probability=True, random_state=0),
        "hinge, C = 1": KernelClassifier(kernel, loss="hinge", alpha=0.5, fit_intercept=True),
        "logistic, auto": KernelClassifier(kernel, alpha="auto", fit_intercept=True),
    }


def table() -> str:
    names = list(models(1.0))
    names += [f"{name} - SVC" for name in names[1:]]
    lines = ["| data | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for name, (X, y) in samples().items():
        halves = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(X, y)
        losses = np.array(
            [
                [
                    log_loss(y[new], make_pipeline(StandardScaler(), model).fit(X[old], y[old]).predict_proba(X[new]))
                    for model in models(1.0 / X.shape[1]).values()
                ]
                for old, new in halves
            ]
        )
        columns = np.hstack([losses, losses[:, 1:] - losses[:, :1]])
        means, errors = columns.mean(0), columns.std(0, ddof=1) / SPLITS**0.5
        cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)  # of SVC's `probability`
    print(table())
