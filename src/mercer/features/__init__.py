"""Explicit feature maps phi with phi(x).phi(z) close to a kernel; random Fourier features are in `mercer.solvers`."""

from mercer.features.accuracy import ApproximationError, FeatureMapping, approximation_error
from mercer.features.network import NetworkMap
from mercer.features.nystrom import NystromMap
from mercer.features.principal import KernelProjection, PrincipalSubspace, principal_subspace
from mercer.features.taylor import TaylorMap

__all__ = [
    "ApproximationError",
    "FeatureMapping",
    "KernelProjection",
    "NetworkMap",
    "NystromMap",
    "PrincipalSubspace",
    "TaylorMap",
    "approximation_error",
    "principal_subspace",
]
