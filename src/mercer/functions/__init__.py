"""Functions in the reproducing kernel Hilbert space of a kernel."""

from mercer.functions.function import RKHSFunction, inner

__all__ = ["RKHSFunction", "inner"]
