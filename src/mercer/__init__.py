"""Kernel methods from ten points to a billion: a PyTorch core with the scikit-learn API.

Names are imported when they are first used, so that the `mercer` command and `import mercer` start at once. Estimators
are here as soon as their package lists them.
"""

import re
from ast import literal_eval
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_ROOMS = ("engines", "kernels", "losses", "neural", "rows", "stats", "testing", "theory")
_HOMES = {
    "RKHSFunction": "mercer.functions",
    "gram": "mercer.operators",
    "load": "mercer.loading",
    "project": "mercer.features.project",
    "tabular": "mercer.estimators.tabular",
}

__all__ = [
    "RKHSFunction",
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


def _listed(package: str) -> list[str]:
    """The names that a package lists as public, read without importing it."""
    text = (Path(__file__).parent / package / "__init__.py").read_text(encoding="utf-8")
    names: list[str] = literal_eval(re.findall(r"^__all__[^=]*= (\[.*?\])", text, re.DOTALL | re.MULTILINE)[0])
    return names


if TYPE_CHECKING:
    from mercer import engines, estimators, kernels, losses, neural, rows, stats, testing, theory
    from mercer.estimators import *  # noqa: F403 - all that their lists name
    from mercer.estimators import transformers
    from mercer.estimators.tabular import tabular
    from mercer.estimators.transformers import *  # noqa: F403
    from mercer.features.project import project
    from mercer.functions import RKHSFunction
    from mercer.loading import load
    from mercer.operators import gram

    __all__ += estimators.__all__
    __all__ += transformers.__all__
else:
    _ESTIMATORS = [*_listed("estimators"), *_listed("estimators/transformers")]
    _HOMES |= dict.fromkeys(_ESTIMATORS, "mercer.estimators")
    __all__ += _ESTIMATORS


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
