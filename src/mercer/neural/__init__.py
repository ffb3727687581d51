"""Finite networks beside their kernels: empirical tangent kernels, linearised networks, training dynamics."""

from mercer.neural.flow import GradientFlow, gradient_flow
from mercer.neural.last_layer import last_hidden, last_layer_regression
from mercer.neural.layer_kernel import LayerKernel
from mercer.neural.layers import Activation, AveragePool, Conv, Dense, Flatten, Residual
from mercer.neural.lazy import LazyTraining, lazy_training
from mercer.neural.linearized import Linearized, linearize
from mercer.neural.monte_carlo import MonteCarloNNGP
from mercer.neural.tangent import EmpiricalNTK, empirical_ntk, ntk_product
from mercer.neural.two_layer import TwoLayerTraining, two_layer

__all__ = [
    "Activation",
    "AveragePool",
    "Conv",
    "Dense",
    "EmpiricalNTK",
    "Flatten",
    "GradientFlow",
    "LayerKernel",
    "LazyTraining",
    "Linearized",
    "MonteCarloNNGP",
    "Residual",
    "TwoLayerTraining",
    "empirical_ntk",
    "gradient_flow",
    "last_hidden",
    "last_layer_regression",
    "lazy_training",
    "linearize",
    "ntk_product",
    "two_layer",
]
