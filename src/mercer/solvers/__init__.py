"""Solvers of (A + alpha I) X = B, one per file, each giving back a `Solution`."""

from mercer.core.results import Solution, SolverReport
from mercer.solvers.cholesky import Cholesky, CholeskyFactor
from mercer.solvers.choose import choose, memory_needed
from mercer.solvers.eigh import Eigh, Spectrum
from mercer.solvers.pcg import PCG
from mercer.solvers.ridge import SOLVERS, get_solver, ridge_solve
from mercer.solvers.system import Solver, System

__all__ = [
    "PCG",
    "SOLVERS",
    "Cholesky",
    "CholeskyFactor",
    "Eigh",
    "Solution",
    "Solver",
    "SolverReport",
    "Spectrum",
    "System",
    "choose",
    "get_solver",
    "memory_needed",
    "ridge_solve",
]
