"""The Gaussian sequence model that kernel ridge regression is equivalent to, for simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.plots.canvas import vector
from mercer.plots.risk import risk_draws
from mercer.theory.arguments import check
from mercer.theory.equivalents import krr_risk


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """Draws of the equivalent model.

    Attributes
    ----------
    observed : array
        y_j, of shape (draws, spectrum).
    estimated : array
        Coefficients of the fitted function in the eigenfunctions, of the same shape.
    risks : array
        Squared error of each draw against the target.
    expected : float
        What `krr_risk` says of them.
    """

    observed: np.ndarray
    estimated: np.ndarray
    risks: np.ndarray
    expected: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the risks of the draws and the expected one; returns matplotlib axes."""
        return risk_draws(self.risks, self.expected, ax=ax)


def sequence_model(
    spectrum: Any,
    coefficients: Any,
    n: float,
    alpha: float = 0.0,
    noise: float = 0.0,
    *,
    draws: int = 100,
    random_state: Any = None,
) -> SequenceModel:
    r"""Draw from the model of independent observations whose risk is that of kernel ridge regression,

    .. math:: y_j = \sqrt{\lambda_j} \theta_j + \frac{\omega}{\sqrt n} g_j, \quad
        \hat\theta_j = \frac{\sqrt{\lambda_j}\, y_j}{\lambda_j + \kappa}, \quad
        \omega^2 = \sigma^2 + E\,\mathrm{risk},

    with the target's coefficients :math:`v_j = \sqrt{\lambda_j} \theta_j`. The risk is the sum of
    :math:`\lambda_j (\hat\theta_j - \theta_j)^2`: the norm is weighted by the eigenvalues.

    References: Misiakiewicz and Saeed, *A non-asymptotic theory of kernel ridge regression*, 2024.

    >>> import numpy as np
    >>> model = sequence_model(1 / np.arange(1, 200) ** 2, 1 / np.arange(1, 200), n=50, noise=0.1, draws=2000)
    >>> bool(abs(model.risks.mean() / model.expected - 1) < 0.02)
    True
    """
    check(n=n, alpha=alpha, noise=noise, draws=draws, random_state=random_state)
    v = vector(coefficients, "coefficients")
    found = krr_risk(spectrum, v, n, alpha, noise)
    omega = np.sqrt(float(found.test))
    rng = np.random.default_rng(as_seed(random_state))
    observed = v + omega / np.sqrt(float(n)) * rng.standard_normal((draws, len(v)))
    if not np.isfinite(observed).all():
        raise InputError(f"The error at n={n:g}, alpha={alpha:g} and noise={noise:g} is too large for a float.")
    estimated = found.learnabilities * observed
    return SequenceModel(observed, estimated, ((estimated - v) ** 2).sum(1), float(found.risk))
