"""Loading model files: every class that a file may hold is known here."""

from mercer import estimators  # noqa: F401 - each class registers itself
from mercer.cli import model  # noqa: F401
from mercer.files.persistence import load
from mercer.neural import layer_kernel  # noqa: F401
from mercer.stats import drift  # noqa: F401

__all__ = ["load"]
