"""What the spectrum says of a ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.report import Report, make_report
from mercer.plots.canvas import numbers
from mercer.plots.spectrum import spectrum
from mercer.theory.arguments import check
from mercer.theory.ridge_path import Eigen, RidgePath
from mercer.theory.spectral_forecast import SpectralForecast


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """What one eigendecomposition says, at one alpha.

    Attributes
    ----------
    alpha : float
        The ridge.
    best_alpha : float
        That of the least leave-one-out error.
    kappa : float
        The effective regularisation; kappa > alpha / n is what dimension adds.
    df1, df2 : float
        Degrees of freedom, estimates of sum L_i and sum L_i^2.
    loo, gcv : float
        Mean squared errors by leave-one-out and generalised cross-validation.
    noise : float or None
        The squared error that more rows would not remove; None where the path does not tell.
    decay : float or None
        Eigenvalues fall like rank^-decay around kappa; None likewise.
    source : float or None
        The bias falls like kappa^source; None likewise.
    eigenvalues : array
        Of the Gram matrix, falling; without the intercept's.
    """

    n: int
    alpha: float
    best_alpha: float
    kappa: float
    df1: float
    df2: float
    loo: float
    gcv: float
    noise: float | None
    decay: float | None
    source: float | None
    eigenvalues: np.ndarray

    @property
    def gap(self) -> float:
        """log GCV / LOO: far from zero where the rows are not like independent draws."""
        return float(np.log(self.gcv / self.loo)) if self.gcv > 0 and self.loo > 0 else 0.0

    def report(self) -> Report:
        """The numbers with what they mean."""
        unknown = "not known: the best alpha is at the end of the path"
        lines: list[tuple[str, object]] = [
            ("rows", f"{self.n:,}"),
            ("alpha", f"{self.alpha:.4g} (leave-one-out prefers {self.best_alpha:.4g})"),
            ("kappa", f"{self.kappa:.4g}, beside alpha / n = {self.alpha / self.n:.4g}"),
            ("degrees of freedom", f"{self.df1:.1f} (squares {self.df2:.1f}) of {self.n:,}"),
            ("leave-one-out", f"{self.loo**0.5:.4g} (root mean square), GCV {self.gcv**0.5:.4g}"),
            ("noise", unknown if self.noise is None else f"about {self.noise**0.5:.4g} (root mean square)"),
            ("spectrum", unknown if self.decay is None else f"falls like rank^-{self.decay:.2f}"),
            ("target", unknown if self.source is None else f"bias falls like kappa^{self.source:.2f}"),
        ]
        odd = "GCV and leave-one-out disagree: rows repeat, or are not like independent draws"
        return make_report("Diagnostics of a ridge regression", lines, [odd] if abs(self.gap) > 0.2 else [])

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues of the Gram matrix; returns matplotlib axes."""
        return spectrum(self.eigenvalues, ax=ax)

    def __repr__(self) -> str:
        return repr(self.report())


def diagnostics(gram: Any, targets: Any, alpha: float, weights: Any = None, *, intercept: bool = False) -> Diagnostics:
    """The effective regularisation, degrees of freedom, errors and exponents of a ridge regression.

    See `RidgePath` for the formulas.

    References: Jacot, Simsek, Spadaro, Hongler and Gabriel, *Kernel alignment risk estimator*, 2020; Golub, Heath and
    Wahba, *Generalized cross-validation*, 1979.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(-3, 3, (100, 1))
    >>> found = diagnostics(np.exp(-abs(x - x.T)), np.sin(x[:, 0]), alpha=0.1)
    >>> found.df2 < found.df1 < 100
    True
    """
    check(alpha=alpha, intercept=intercept)
    eigen = Eigen.of(gram, weights, intercept=intercept)
    path = RidgePath.of(eigen, targets)
    here = RidgePath.of(eigen, targets, [max(float(alpha), path.alphas[0])])
    spectral = SpectralForecast.of(path)
    finite = eigen.values[np.isfinite(eigen.values)][::-1]
    return Diagnostics(
        n=len(numbers(gram, "gram")),
        alpha=float(alpha),
        best_alpha=float(path.alphas[path.best]),
        kappa=float(here.kappa[0]),
        df1=float(here.df1[0]),
        df2=float(here.df2[0]),
        loo=float(here.loo[0]),
        gcv=float(here.gcv[0]),
        noise=None if spectral is None else spectral.noise,
        decay=None if spectral is None or not spectral.decay > 0 else 1 / spectral.decay,
        source=None if spectral is None else spectral.exponent,
        eigenvalues=finite,
    )
