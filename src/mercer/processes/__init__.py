"""Gaussian processes: priors over functions, their evidence and their posteriors."""

from mercer.processes.evidence import Evidence, ExactEvidence
from mercer.processes.exact_posterior import ExactPosterior, LeaveOneOut
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.maximise import Maximum, maximise
from mercer.processes.means import as_mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Posterior
from mercer.processes.priors import Gamma, LogNormal

__all__ = [
    "Evidence",
    "ExactEvidence",
    "ExactPosterior",
    "Gamma",
    "Hyperparameters",
    "LeaveOneOut",
    "LogNormal",
    "Maximum",
    "Observations",
    "Posterior",
    "as_mean",
    "maximise",
]
