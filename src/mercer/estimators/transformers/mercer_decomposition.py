"""The Mercer decomposition of a kernel on a sample."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import checked_values, restore
from mercer.core.errors import InputError
from mercer.core.report import Report
from mercer.core.rules import Rules
from mercer.data.given import Axes, Budget, Device, Rows, Seed, Targets
from mercer.data.sample import Sample
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.samples import checked_inputs, checked_rows
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.common.state import Saved
from mercer.estimators.transformers.base import FeatureTransformer
from mercer.estimators.transformers.principal import (
    PRINCIPAL,
    PrincipalFit,
    PrincipalSettings,
    exact_subspace,
    projection_of,
)
from mercer.estimators.transformers.report import Lines, map_report
from mercer.estimators.transformers.state import seen_of
from mercer.files.fields import Field
from mercer.files.kinds import number
from mercer.files.persistence import register
from mercer.kernels import FeatureMap, Kernel
from mercer.kernels.names import KernelLike
from mercer.plots import spectrum
from mercer.solvers.registry import EIGENSOLVERS, SolverLike


def decompose(settings: PrincipalSettings, sample: Sample) -> PrincipalFit:
    """The eigenvalues of a kernel for the rows of the sample, and the features from its eigenfunctions."""
    kernel = resolved_kernel(settings.kernel, sample, settings.seed)
    found, n = exact_subspace(settings, kernel, sample, center=False).with_variance(), len(sample)
    values, total = found.values / n, found.total / n
    return PrincipalFit(sample.seen, kernel, found.projection, eigenvalues=values, total=total, report=found.report)


def _restored(model: MercerDecomposition, found: Any) -> PrincipalFit:
    projection = projection_of(PrincipalSettings.of(model.get_params(deep=False)), found)
    values, total = found.eigenvalues, float(found.trace)
    kernel, note = projection.kernel, found.note
    return PrincipalFit(seen_of(found), kernel, projection, note, eigenvalues=values, total=total, report=found.report)


@register
class MercerDecomposition(FeatureTransformer):
    r"""Eigenvalues and eigenfunctions of a kernel for the empirical distribution of a sample,

    .. math:: \frac1n \sum_j k(x, x_j)\, \psi_s(x_j) = \lambda_s \psi_s(x), \qquad
              \frac1n \sum_i \psi_s(x_i) \psi_t(x_i) = \delta_{st}, \qquad
              k(x, z) \approx \sum_s \lambda_s\, \psi_s(x)\, \psi_s(z).

    At the sample the eigenfunctions are :math:`\sqrt n` times the eigenvectors of the Gram matrix, and the first
    equation extends them to every point (Nyström). `transform` gives the features :math:`\sqrt{\lambda_s}\,\psi_s(x)`,
    whose inner products are the sum above; among all maps with as many features it is the closest to the kernel on the
    sample, in the mean square.

    Parameters
    ----------
    n_components : int or None
        The number of eigenvalues; None for all above rounding.
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. A name has `length_scale="auto"`.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of medians and starting vectors; None is 0.
    solver, tol, max_iter : str or solver object, float, int
        As in `KernelPCA`.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter found.
    eigenvalues_ : array of shape (q,)
        The lambda_s, in falling order; those above rounding.
    trace_ : float
        The sum of all eigenvalues, the mean of k(x_i, x_i).
    features_ : KernelProjection
        The map from rows to coordinates.
    solver_report_ : SolverReport
        How the eigenvalues were found.

    References
    ----------
    Williams and Seeger, *The effect of the input density distribution on kernel-based classifiers*, 2000; Rosasco,
    Belkin and De Vito, *On learning with integral operators*, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(200, 1))
    >>> mercer = MercerDecomposition(8, "gaussian").fit(X)
    >>> psi = mercer.eigenfunctions(X)
    >>> bool(np.allclose(psi.T @ psi / 200, np.eye(8), atol=1e-6))
    True
    >>> mercer.approximation_error(X).max < 1e-4
    True
    """

    title = "Mercer decomposition"
    saved = Saved({**PRINCIPAL, "trace": Field(number(0), at="total")}, _restored)
    own_rules: ClassVar[Rules] = {"solver": solver_rule(EIGENSOLVERS)}

    def __init__(
        self,
        n_components: int | None = 10,
        kernel: KernelLike = "gaussian",
        random_state: Seed = None,
        *,
        solver: SolverLike = "auto",
        tol: float = 1e-12,
        max_iter: int = 500,
        device: Device = "auto",
        memory_budget: Budget = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.memory_budget = memory_budget

    _fit: PrincipalFit

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Decompose the kernel on the rows of X; y is ignored."""
        settings = PrincipalSettings.of(self.get_params(deep=False))
        fit = decompose(settings, checked_inputs(self, settings.kernel, X))
        return self._keep(fit)

    def eigenfunctions(self, X: Rows) -> Any:
        """The values psi_s(x_i), of shape (n, n_components)."""
        check_is_fitted(self)
        rows = checked_rows(self, self.kernel_, X)
        values = self._fit.powers(0.0)(rows)
        values = values.to(rows.values) if rows.is_tensor else values
        return restore(checked_values(values, "Eigenfunctions"), X)

    def power(self, theta: float) -> Kernel:
        r"""The kernel of a power space, :math:`k_\theta(x, z) = \sum_s \lambda_s^\theta\, \psi_s(x)\, \psi_s(z)`.

        Theta = 1 is the RKHS as far as it is known, 0 is L2, and above 1 spaces are smaller. Paths of a Gaussian
        process with kernel k are not in the RKHS of k but in power spaces of a smaller theta.
        """
        check_is_fitted(self)
        if isinstance(theta, bool) or not isinstance(theta, numbers.Real) or not 0 <= float(theta) < float("inf"):
            raise InputError(f"power(theta={theta!r}): theta must be a finite number >= 0.")
        return FeatureMap(self._fit.powers(float(theta)).powered_eigenfunctions)

    def report(self) -> Report:
        """What was found and how."""
        check_is_fitted(self)
        fit = self._fit
        largest, smallest, share = float(fit.eigenvalues[0]), float(fit.eigenvalues[-1]), float(fit.shares.sum())
        shown = f"{largest:.3g} to {smallest:.3g}, {share:.1%} of the trace"
        lines: Lines = [("eigenvalues", f"{len(fit.eigenvalues):,} ({shown})"), ("solver", str(fit.report))]
        return map_report(self.title, fit, getattr(self, "n_features_in_", None), lines)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the eigenvalues on a logarithmic scale. Returns the axes: `.figure.savefig(...)` writes the picture."""
        check_is_fitted(self)
        return spectrum(self._fit.eigenvalues.cpu().numpy(), total=self.trace_, ax=ax)

    def _keep(self, fit: PrincipalFit, *, warn: bool = True) -> Self:
        if warn:
            warn_if_not_converged("MercerDecomposition", fit.report)
        self.eigenvalues_, self.trace_ = fit.seen.given_back(fit.eigenvalues), fit.total
        self.solver_report_, self.n_iter_ = fit.report, max(1, fit.report.iterations)
        return super()._keep(fit)
