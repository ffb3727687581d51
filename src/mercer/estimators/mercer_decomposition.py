"""The Mercer decomposition of a kernel on a sample."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.devices import choose_device
from mercer.core.errors import InputError
from mercer.core.results import SolverReport
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.principal_state import PRINCIPAL, principal_arrays, principal_from_arrays
from mercer.estimators.transformer import FeatureTransformer, checked_count
from mercer.features import KernelProjection, principal_subspace
from mercer.files.kinds import number
from mercer.files.persistence import register
from mercer.kernels import FeatureMap, Kernel
from mercer.plots import spectrum


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
    n_components : the number of eigenvalues; None for all above rounding.
    kernel : a `Kernel`, its name, or a function of two points. A name has the median length scale.
    random_state : seed of medians and starting vectors; None is 0.
    solver, tol, max_iter : as in `KernelPCA`.
    device : "auto", "cpu", "cuda" or a torch device.
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    eigenvalues_ : the lambda_s, in falling order; those above rounding.
    trace_ : the sum of all eigenvalues, the mean of k(x_i, x_i).
    features_ : the map, a `KernelProjection`.
    solver_report_ : how the eigenvalues were found.

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
    saved = PRINCIPAL | {"trace": number(0)}

    def __init__(
        self,
        n_components: int | None = 10,
        kernel: Any = "gaussian",
        random_state: Any = None,
        *,
        solver: str = "auto",
        tol: float = 1e-12,
        max_iter: int = 500,
        device: Any = "auto",
        memory_budget: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.memory_budget = memory_budget

    eigenvalues_: Any
    solver_report_: SolverReport

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Any:
        """Decompose the kernel on the rows of X; y is ignored."""
        self._torch_in = isinstance(X, Tensor)
        return super().fit(X, y)

    def eigenfunctions(self, X: Any) -> Any:
        """The values psi_s(x_i), of shape (n, n_components)."""
        check_is_fitted(self)
        rows = self._rows(X)
        values = self._powered(rows, 0.0)
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
        exponent = float(theta)

        def powered_eigenfunctions(rows: Tensor) -> Tensor:
            return self._powered(Points(rows), exponent).to(rows)

        return FeatureMap(powered_eigenfunctions)

    @property
    def n_iter_(self) -> int:
        """Steps of the solver, 1 for a direct one."""
        return max(1, self.solver_report_.iterations)

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues on a logarithmic scale. Returns the axes: `.figure.savefig(...)` writes the picture."""
        check_is_fitted(self)
        return spectrum(torch.as_tensor(self.eigenvalues_).cpu().numpy(), total=self.trace_, ax=ax)

    # Private

    def _made(self, kernel: Kernel, rows: Points) -> KernelProjection:
        count = None if self.n_components is None else checked_count(self.n_components, "n_components")
        rows = self._own(rows)
        options: dict[str, Any] = {
            "solver": self.solver,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "seed": self._seed,
        }
        found = principal_subspace(kernel, rows, count, center=False, **options, **self._place(rows))
        self.solver_report_ = found.report
        if not found.report.converged:
            warnings.warn(f"MercerDecomposition: {found.report}", ConvergenceWarning, stacklevel=6)
        kept = found.values > 0
        kept[0] = True
        projection, n = found.projection, len(rows)
        self.eigenvalues_ = self._as_given(found.values[kept] / n)
        self.trace_ = found.total / n
        coef, shift = projection.coef[:, kept], projection.shift[kept]
        return KernelProjection(kernel, rows, coef, shift, projection.device, projection.memory_budget)

    def _powered(self, rows: Points, theta: float) -> Tensor:
        """lambda^(theta/2) psi, of shape (n, q)."""
        features = self.features_(rows)
        values = torch.as_tensor(self.eigenvalues_).to(features)
        return features * torch.where(values > 0, values ** (0.5 * (theta - 1.0)), 0.0)

    def _place(self, rows: Points) -> dict[str, Any]:
        like = rows.values if self._torch_in else None
        device = choose_device(self.device, like) if rows.is_tensor else torch.device("cpu")
        return {"device": device, "memory_budget": self._budget()}

    def _as_given(self, values: Tensor) -> Any:
        return values if self._torch_in else values.cpu().numpy()

    def _map_lines(self) -> list[tuple[str, object]]:
        values = torch.as_tensor(self.eigenvalues_)
        share = float(values.sum()) / self.trace_ if self.trace_ > 0 else 0.0
        shown = f"{float(values[0]):.3g} to {float(values[-1]):.3g}, {share:.1%} of the trace"
        return [("eigenvalues", f"{len(values):,} ({shown})"), ("solver", str(self.solver_report_))]

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        meta, arrays = principal_arrays(self)
        return meta | {"trace": self.trace_}, arrays

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> KernelProjection:
        projection, values = principal_from_arrays(self, meta, arrays)
        self.eigenvalues_, self.trace_ = self._as_given(values), float(meta["trace"])
        return projection
