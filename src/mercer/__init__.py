"""Kernel methods from ten points to a billion: a PyTorch core with the scikit-learn API.

Names are imported when they are first used, so that the `mercer` command and `import mercer` start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer import engines, kernels, losses, neural, rows, stats, testing, theory
    from mercer.estimators.by_loss import KernelClassifier, KernelRegressor
    from mercer.estimators.gaussian import GaussianProcessClassifier, GaussianProcessRegressor
    from mercer.estimators.rfm import RFMClassifier, RFMRegressor
    from mercer.estimators.ridge import KernelRidge
    from mercer.estimators.tabular import TabularEstimator, tabular
    from mercer.estimators.transformers import (
        KernelPCA,
        MercerDecomposition,
        NystromFeatures,
        RandomFourierFeatures,
        RandomNetworkFeatures,
        TaylorFeatures,
    )
    from mercer.features.project import project
    from mercer.functions import RKHSFunction
    from mercer.loading import load
    from mercer.operators import gram

__version__ = "0.2.0"

_HOMES = {
    "GaussianProcessClassifier": "mercer.estimators.gaussian",
    "GaussianProcessRegressor": "mercer.estimators.gaussian",
    "KernelClassifier": "mercer.estimators.by_loss",
    "KernelPCA": "mercer.estimators.transformers",
    "KernelRegressor": "mercer.estimators.by_loss",
    "KernelRidge": "mercer.estimators.ridge",
    "MercerDecomposition": "mercer.estimators.transformers",
    "NystromFeatures": "mercer.estimators.transformers",
    "RFMClassifier": "mercer.estimators.rfm",
    "RFMRegressor": "mercer.estimators.rfm",
    "RKHSFunction": "mercer.functions",
    "RandomFourierFeatures": "mercer.estimators.transformers",
    "RandomNetworkFeatures": "mercer.estimators.transformers",
    "TabularEstimator": "mercer.estimators.tabular",
    "TaylorFeatures": "mercer.estimators.transformers",
    "gram": "mercer.operators",
    "load": "mercer.loading",
    "project": "mercer.features.project",
    "tabular": "mercer.estimators.tabular",
}
_ROOMS = ("engines", "kernels", "losses", "neural", "rows", "stats", "testing", "theory")

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "KernelRidge",
    "MercerDecomposition",
    "NystromFeatures",
    "RFMClassifier",
    "RFMRegressor",
    "RKHSFunction",
    "RandomFourierFeatures",
    "RandomNetworkFeatures",
    "TabularEstimator",
    "TaylorFeatures",
    "__version__",
    "engines",
    "gram",
    "kernels",
    "load",
    "losses",
    "neural",
    "project",
    "rows",
    "stats",
    "tabular",
    "testing",
    "theory",
]


def __getattr__(name: str) -> Any:
    """The public name, imported on its first use."""
    if name in _ROOMS:
        return import_module(f"mercer.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
