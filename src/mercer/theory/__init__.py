"""Theory that runs: spectra, the expected risk of kernel ridge regression, and forecasts of its learning curve."""

from mercer.theory.accuracy import EquivalentsAccuracy, equivalents_accuracy
from mercer.theory.degrees import DegreeParts, DegreeProjection, degree_parts, project_degree
from mercer.theory.design import ExactRisk, exact_risk
from mercer.theory.diagnostics import Diagnostics, diagnostics
from mercer.theory.dimension import degree_reached, dimension_lower_bound, effective_dimension
from mercer.theory.equivalents import KRRRisk, effective_regularisation, krr_risk
from mercer.theory.forecaster import Forecaster, forecasters
from mercer.theory.harmonics import sphere_harmonics_dimension
from mercer.theory.learning_curve import LearningCurve, curve_of, learning_curve
from mercer.theory.power_law import PowerLaw
from mercer.theory.power_series import taylor_coefficients
from mercer.theory.rates import Rate, RowsByDimension, curse_of_dimensionality, minimax_rate
from mercer.theory.ridge_path import Eigen, RidgePath
from mercer.theory.samples_needed import SamplesNeeded, samples_needed
from mercer.theory.sequence import SequenceModel, sequence_model
from mercer.theory.spectral_forecast import SpectralForecast
from mercer.theory.sphere import SphereSpectrum, sphere_spectrum
from mercer.theory.staircase import SphereExperiment, multiple_descent, staircase
from mercer.theory.universality import Universality, universality

__all__ = [
    "DegreeParts",
    "DegreeProjection",
    "Diagnostics",
    "Eigen",
    "EquivalentsAccuracy",
    "ExactRisk",
    "Forecaster",
    "KRRRisk",
    "LearningCurve",
    "PowerLaw",
    "Rate",
    "RidgePath",
    "RowsByDimension",
    "SamplesNeeded",
    "SequenceModel",
    "SpectralForecast",
    "SphereExperiment",
    "SphereSpectrum",
    "Universality",
    "curse_of_dimensionality",
    "curve_of",
    "degree_parts",
    "degree_reached",
    "diagnostics",
    "dimension_lower_bound",
    "effective_dimension",
    "effective_regularisation",
    "equivalents_accuracy",
    "exact_risk",
    "forecasters",
    "krr_risk",
    "learning_curve",
    "minimax_rate",
    "multiple_descent",
    "project_degree",
    "samples_needed",
    "sequence_model",
    "sphere_harmonics_dimension",
    "sphere_spectrum",
    "staircase",
    "taylor_coefficients",
    "universality",
]
