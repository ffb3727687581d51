"""The scikit-learn estimators: validate, build the operator, call a solver, keep an RKHS function."""

from mercer.estimators.kernel_ridge import KernelRidge

__all__ = ["KernelRidge"]
