"""Pictures of regressions: plain arrays in, matplotlib axes out.

Every function draws on the axes it is given or makes a figure of its own, returns what it drew on, shows nothing and
changes no global setting.
"""

from mercer.plots.alpha import alpha_path
from mercer.plots.classification import decision_regions, reliability
from mercer.plots.coordinates import coordinates
from mercer.plots.function import fit_1d
from mercer.plots.matrix import gram_matrix
from mercer.plots.regression import predicted_against_actual, residuals
from mercer.plots.spectrum import spectrum
from mercer.plots.summary import regression_summary

__all__ = [
    "alpha_path",
    "coordinates",
    "decision_regions",
    "fit_1d",
    "gram_matrix",
    "predicted_against_actual",
    "regression_summary",
    "reliability",
    "residuals",
    "spectrum",
]
