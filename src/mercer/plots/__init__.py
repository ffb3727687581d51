"""Pictures of regressions: plain arrays in, matplotlib axes out.

Every function draws on the axes it is given, or on a new figure of pyplot, which notebooks and `plt.show()` show and
`plt.savefig` saves. It returns what it drew on and changes no global setting.
"""

from mercer.plots.alpha import alpha_path
from mercer.plots.classification import decision_regions, reliability
from mercer.plots.components import components_1d
from mercer.plots.coordinates import coordinates
from mercer.plots.degrees import degree_part, degree_spectrum
from mercer.plots.function import fit_1d
from mercer.plots.gaussian_process import feature_relevance, interval_coverage, process_1d
from mercer.plots.learning_curve import learning_curve_plot
from mercer.plots.matrix import gram_matrix
from mercer.plots.probabilities import probability_map
from mercer.plots.regression import predicted_against_actual, residuals
from mercer.plots.risk import risk_curve, risk_draws, risk_parts
from mercer.plots.spectrum import spectrum
from mercer.plots.summary import regression_summary
from mercer.plots.surface import surface

__all__ = [
    "alpha_path",
    "components_1d",
    "coordinates",
    "decision_regions",
    "degree_part",
    "degree_spectrum",
    "feature_relevance",
    "fit_1d",
    "gram_matrix",
    "interval_coverage",
    "learning_curve_plot",
    "predicted_against_actual",
    "probability_map",
    "process_1d",
    "regression_summary",
    "reliability",
    "residuals",
    "risk_curve",
    "risk_draws",
    "risk_parts",
    "spectrum",
    "surface",
]
