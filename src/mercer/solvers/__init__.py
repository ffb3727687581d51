"""Solvers of (A + alpha I) X = B and of its approximations, one per file, each giving back a `Solution`."""

from mercer.core.results import Solution, SolverReport
from mercer.solvers.cholesky import Cholesky, CholeskyFactor
from mercer.solvers.choose import choose, memory_needed
from mercer.solvers.eigenpro import EigenPro
from mercer.solvers.eigh import Eigh, Spectrum
from mercer.solvers.falkon import Falkon
from mercer.solvers.gradient_descent import GradientDescent
from mercer.solvers.landmarks import Landmarks, choose_landmarks
from mercer.solvers.mixed_precision import MixedCholesky
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.pcg import PCG
from mercer.solvers.random_features import FourierFeatures
from mercer.solvers.ridge import SOLVERS, get_solver, ridge_solve
from mercer.solvers.row_blocks import Block, RowBlocks
from mercer.solvers.system import Solver, System

__all__ = [
    "PCG",
    "SOLVERS",
    "Block",
    "Cholesky",
    "CholeskyFactor",
    "EigenPro",
    "Eigh",
    "Falkon",
    "FourierFeatures",
    "GradientDescent",
    "Landmarks",
    "MixedCholesky",
    "NystromSums",
    "RowBlocks",
    "Solution",
    "Solver",
    "SolverReport",
    "Spectrum",
    "System",
    "choose",
    "choose_landmarks",
    "get_solver",
    "memory_needed",
    "ridge_solve",
]
