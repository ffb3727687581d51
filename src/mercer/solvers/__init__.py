"""Solvers of (A + alpha I) X = B and of its approximations, one per file, each giving back a `Solution`."""

from mercer.core.results import Solution, SolverReport
from mercer.functions.fourier import FourierFeatures
from mercer.solvers.cholesky import Cholesky, CholeskyFactor
from mercer.solvers.choose import choose, choose_for_loss, memory_needed
from mercer.solvers.dual import Dual
from mercer.solvers.eigenpro import EigenPro
from mercer.solvers.eigensolvers import DenseEigen, Krylov
from mercer.solvers.eigh import Eigh, Spectrum
from mercer.solvers.falkon import Falkon
from mercer.solvers.few_span import FewSpan
from mercer.solvers.flow import Flow, StoppingTime
from mercer.solvers.full_span import FullSpan
from mercer.solvers.gradient_descent import GradientDescent
from mercer.solvers.landmarks import Landmarks, choose_landmarks
from mercer.solvers.minimise import minimise
from mercer.solvers.mixed_precision import MixedCholesky
from mercer.solvers.newton import Minimum, Newton
from mercer.solvers.newton_solvers import DenseNewton, NystromNewton, PCGNewton
from mercer.solvers.nystrom import Nystrom, NystromSums
from mercer.solvers.objective import Objective
from mercer.solvers.pcg import PCG
from mercer.solvers.primal import Primal
from mercer.solvers.random_features import RandomFeatures
from mercer.solvers.registry import register
from mercer.solvers.ridge import full_solvers, get_solver, ridge_solve
from mercer.solvers.row_blocks import Block, RowBlocks
from mercer.solvers.system import Solver, System
from mercer.solvers.top_eigenpairs import Eigenpairs, top_eigenpairs

SOLVERS = full_solvers()
"""The solvers of the full system by name."""

__all__ = [
    "PCG",
    "SOLVERS",
    "Block",
    "Cholesky",
    "CholeskyFactor",
    "DenseEigen",
    "DenseNewton",
    "Dual",
    "EigenPro",
    "Eigenpairs",
    "Eigh",
    "Falkon",
    "FewSpan",
    "Flow",
    "FourierFeatures",
    "FullSpan",
    "GradientDescent",
    "Krylov",
    "Landmarks",
    "Minimum",
    "MixedCholesky",
    "Newton",
    "Nystrom",
    "NystromNewton",
    "NystromSums",
    "Objective",
    "PCGNewton",
    "Primal",
    "RandomFeatures",
    "RowBlocks",
    "Solution",
    "Solver",
    "SolverReport",
    "Spectrum",
    "StoppingTime",
    "System",
    "choose",
    "choose_for_loss",
    "choose_landmarks",
    "get_solver",
    "memory_needed",
    "minimise",
    "register",
    "ridge_solve",
    "top_eigenpairs",
]
