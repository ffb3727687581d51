"""Kernels of the distance |x - z| / length_scale."""

from __future__ import annotations

from typing import Any

from mercer.core.errors import InputError
from mercer.formula.maths import exp, power
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import AUTO, MEDIAN, Parameter, length_scale, parameter
from mercer.kernels.properties import ANALYTIC, Properties
from mercer.kernels.registry import register
from mercer.kernels.spectral import SpectralMeasure, gaussian_mixture, scaled


@register(
    names={"gaussian": {"length_scale": AUTO}, "rbf": {"length_scale": AUTO}},
    examples=[{"length_scale": 0.8}, {"length_scale": (0.5, 1.0, 3.0)}, {"length_scale": MEDIAN}],
)
class Gaussian(Kernel):
    r"""The Gaussian (RBF) kernel

    .. math:: k(x, z) = \exp\left(-\frac{\|x - z\|^2}{2\ell^2}\right).

    Characteristic, universal and analytic; its RKHS does not contain the constants. `length_scale` is a number,
    one per column (ARD), "auto" or "median".

    References: Schölkopf and Smola, *Learning with Kernels*, 2002.

    >>> Gaussian(length_scale=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    length_scale: Any = length_scale()

    def of(self, pair: Pair) -> Any:
        return exp(-0.5 * pair.squared_distance(self.length_scale))

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are normal."""
        return gaussian_mixture(n_columns, self.length_scale)

    @classmethod
    def from_gamma(cls, gamma: float) -> Gaussian:
        """The kernel ``exp(-gamma |x - z|^2)``, scikit-learn's parametrisation.

        >>> Gaussian.from_gamma(0.5)
        Gaussian(length_scale=1.0)
        """
        checked = Parameter().check(gamma, "Gaussian.from_gamma", "gamma")
        return cls(length_scale=(2.0 * checked) ** -0.5)

    @property
    def properties(self) -> Properties:
        return stationary_properties(ANALYTIC, controls_convergence=False)


@register(
    names={
        "laplace": {"length_scale": AUTO},
        "laplace_l1": {"length_scale": AUTO, "metric": "l1"},
        "auto": {"length_scale": AUTO},
    },
    examples=[
        {"length_scale": 1.5},
        {"length_scale": (1.0, 2.0)},
        {"length_scale": 2.0, "metric": "l1"},
        {"length_scale": (0.5, 2.0), "metric": "l1"},
    ],
)
class Laplace(Kernel):
    r"""The Laplace (exponential) kernel, of the Euclidean distance or, with ``metric="l1"``, of the L1 distance

    .. math:: k(x, z) = \exp(-\|x - z\| / \ell).

    The robust first choice. scikit-learn's ``laplacian_kernel(gamma)`` is ``Laplace(1/gamma, metric="l1")``.

    >>> Laplace(length_scale=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    length_scale: Any = length_scale()
    metric: str = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in ("l1", "l2"):
            raise InputError(f'Laplace(metric={self.metric!r}): metric must be "l2" or "l1".')

    def of(self, pair: Pair) -> Any:
        if self.metric == "l1":
            return exp(-pair.l1_distance(self.length_scale))
        return exp(-pair.distance(self.length_scale))

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are Cauchy: of each column on its own for the L1 distance, else those of Matern at 1/2."""
        if self.metric == "l1":
            return scaled(n_columns, self.length_scale, lambda draws: draws.cauchy(n_columns))
        return gaussian_mixture(n_columns, self.length_scale, lambda draws: 0.5 / draws.gamma(0.5))

    @property
    def properties(self) -> Properties:
        return stationary_properties(0.5 if self.metric == "l2" else None)


@register(
    names={"exponential_power": {"length_scale": AUTO}},
    examples=[{"length_scale": 1.2, "power": 0.6}, {"length_scale": 1.2, "power": 2.0}],
)
class ExponentialPower(Kernel):
    r"""The exponential power kernel

    .. math:: k(x, z) = \exp\left(-(\|x - z\| / \ell)^p\right), \qquad 0 < p \le 2.

    Laplace at p = 1, a Gaussian at p = 2; outside (0, 2] it is not positive definite and is rejected.

    References: Schoenberg, *Metric spaces and positive definite functions*, 1938.

    >>> ExponentialPower(length_scale=1.0, power=1.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    length_scale: Any = length_scale()
    power: float = parameter(1.0, upper=2.0, tunable=False)

    def of(self, pair: Pair) -> Any:
        return exp(-power(pair.squared_distance(self.length_scale, exact=True), self.power / 2))

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are symmetric stable: normal with a positive stable variance."""
        return gaussian_mixture(n_columns, self.length_scale, lambda draws: 2.0 * draws.stable(self.power / 2))

    @property
    def properties(self) -> Properties:
        return stationary_properties(ANALYTIC if self.power == 2 else self.power / 2)


@register(
    names={"rational_quadratic": {"length_scale": AUTO}},
    examples=[{"length_scale": 0.9, "alpha": 0.4}],
)
class RationalQuadratic(Kernel):
    r"""The rational quadratic kernel, a scale mixture of Gaussians

    .. math:: k(x, z) = \left(1 + \frac{\|x - z\|^2}{2 \alpha \ell^2}\right)^{-\alpha}.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, eq. 4.19.

    >>> RationalQuadratic(length_scale=1.0, alpha=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6667],
           [0.6667, 1.    ]])
    """

    length_scale: Any = length_scale()
    alpha: float = parameter(1.0)

    def of(self, pair: Pair) -> Any:
        return (1.0 + pair.squared_distance(self.length_scale) * (0.5 / self.alpha)) ** (-self.alpha)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are normal with a gamma variance of mean one."""
        return gaussian_mixture(n_columns, self.length_scale, lambda draws: draws.gamma(self.alpha) / float(self.alpha))

    @property
    def properties(self) -> Properties:
        return stationary_properties(ANALYTIC, controls_convergence=_slow_tails(self.alpha))


@register(
    names={"inverse_multiquadric": {"length_scale": AUTO}, "imq": {"length_scale": AUTO}},
    examples=[{"length_scale": 1.3, "power": 0.7}],
)
class InverseMultiquadric(Kernel):
    r"""The inverse multiquadric kernel

    .. math:: k(x, z) = \left(1 + \|x - z\|^2 / \ell^2\right)^{-b}, \qquad b > 0.

    The base kernel of Stein discrepancies: for a power in (0, 1) it controls weak convergence.

    References: Gorham and Mackey, *Measuring Sample Quality with Kernels*, 2017.

    >>> InverseMultiquadric(length_scale=1.0, power=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    length_scale: Any = length_scale()
    power: float = parameter(0.5)

    def of(self, pair: Pair) -> Any:
        return (1.0 + pair.squared_distance(self.length_scale)) ** (-self.power)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are normal with a gamma variance."""
        return gaussian_mixture(n_columns, self.length_scale, lambda draws: 2.0 * draws.gamma(self.power))

    @property
    def properties(self) -> Properties:
        return stationary_properties(ANALYTIC, controls_convergence=_slow_tails(self.power))


def _slow_tails(power: Any) -> bool | None:
    """Whether a tail |x - z|^(-2 power) controls weak convergence (Gorham and Mackey, 2017; open at one)."""
    return None if power == 1 else bool(power < 1)


def stationary_properties(smoothness: float | None, controls_convergence: bool | None = None) -> Properties:
    """Facts shared by the kernels with a positive spectral density on all of R^d."""
    return Properties(
        stationary=True,
        characteristic=True,
        universal=True,
        bounded=True,
        smoothness=smoothness,
        contains_constants=False,
        controls_convergence=controls_convergence,
        is_normalised=True,
    )
