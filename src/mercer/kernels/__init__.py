"""Kernels and their algebra: frozen objects that add, multiply, print and evaluate."""

from mercer.kernels.algebra import FunctionScaled, Power, Product, Scaled, Sum
from mercer.kernels.arc_cosine import ArcCosine
from mercer.kernels.base import Kernel
from mercer.kernels.brownian import Brownian
from mercer.kernels.categorical import Categorical
from mercer.kernels.chi_squared import ChiSquared
from mercer.kernels.constant import Constant, WhiteNoise
from mercer.kernels.cosine import Cosine
from mercer.kernels.inner import AllSubsets, Linear, Polynomial
from mercer.kernels.matern import Matern
from mercer.kernels.median import resolve
from mercer.kernels.names import as_kernel, kernel_from_name
from mercer.kernels.nngp import NNGP
from mercer.kernels.ntk import NTK
from mercer.kernels.objects import Callable, Precomputed
from mercer.kernels.periodic import Periodic
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register
from mercer.kernels.serialize import from_dict, to_dict
from mercer.kernels.spectrum import Spectrum
from mercer.kernels.stationary import ExponentialPower, Gaussian, InverseMultiquadric, Laplace, RationalQuadratic
from mercer.kernels.warps import FeatureMap, Subspace
from mercer.kernels.wide_layer import WideLayer

__all__ = [
    "NNGP",
    "NTK",
    "AllSubsets",
    "ArcCosine",
    "Brownian",
    "Callable",
    "Categorical",
    "ChiSquared",
    "Constant",
    "Cosine",
    "ExponentialPower",
    "FeatureMap",
    "FunctionScaled",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Properties",
    "RationalQuadratic",
    "Scaled",
    "Spectrum",
    "Subspace",
    "Sum",
    "WhiteNoise",
    "WideLayer",
    "as_kernel",
    "from_dict",
    "kernel_from_name",
    "register",
    "resolve",
    "to_dict",
]
