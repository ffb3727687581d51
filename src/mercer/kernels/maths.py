"""The functions to write kernel formulas with: on tensors they compute, on symbols they record."""

from mercer.formula.maths import exp, matern, minimum, power, sqrt

__all__ = ["exp", "matern", "minimum", "power", "sqrt"]
