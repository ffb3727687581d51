"""Functions in the reproducing kernel Hilbert space of a kernel."""

from mercer.rkhs.function import RKHSFunction, inner

__all__ = ["RKHSFunction", "inner"]
