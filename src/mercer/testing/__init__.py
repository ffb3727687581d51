"""Public laws for kernels, operators and solvers, for those who write their own."""

from mercer.testing.kernels import check_kernel
from mercer.testing.operators import check_operator
from mercer.testing.programs import run_program
from mercer.testing.solvers import check_solver

__all__ = ["check_kernel", "check_operator", "check_solver", "run_program"]
