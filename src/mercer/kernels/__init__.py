"""Kernels and their algebra: frozen objects that add, multiply, print and evaluate."""

from mercer.kernels.algebra import FunctionScaled, Power, Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.constant import Constant, WhiteNoise
from mercer.kernels.inner import AllSubsets, Linear, Polynomial
from mercer.kernels.matern import Matern
from mercer.kernels.properties import Properties
from mercer.kernels.stationary import ExponentialPower, Gaussian, InverseMultiquadric, Laplace, RationalQuadratic
