"""Kernel principal component analysis."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, as_points, checked_values, restore
from mercer.core.devices import choose_device
from mercer.core.errors import InputError
from mercer.core.results import SolverReport
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.state import float_array
from mercer.estimators.principal_state import PRINCIPAL, principal_arrays, principal_from_arrays
from mercer.estimators.ridge.kernel_ridge import KernelRidge
from mercer.estimators.transformer import MapTransformer, checked_count
from mercer.features import KernelProjection, NystromMap, PrincipalSubspace, principal_subspace
from mercer.features.pre_image import fixed_point_pre_images
from mercer.features.principal import principal_subspace_of_landmarks
from mercer.files.kinds import number
from mercer.files.persistence import register
from mercer.kernels import Gaussian, Kernel
from mercer.plots import coordinates
from mercer.solvers.choose import landmark_count
from mercer.solvers.landmarks import check_landmarks, choose_landmarks


@register
class KernelPCA(MapTransformer):
    r"""Principal components of k(x_1, .), ..., k(x_n, .) in the RKHS: PCA that can follow curves. The coordinates are

    .. math:: \varphi_s(x) = \frac{1}{\sqrt{\lambda_s}} \sum_i a_{is} \bigl(k(x, x_i) - \bar k(x_i)\bigr), \qquad
              P K P\, a_s = \lambda_s a_s,

    where P takes off the mean. With a linear kernel this is ordinary PCA.

    Parameters
    ----------
    n_components : number of components, None for all with an eigenvalue above rounding. More than there are rows are
        cut to their number; directions without variance have the coordinate zero.
    kernel : a `Kernel`, its name, or a function of two points. By default Gaussian with the median length scale,
        because with a linear kernel, scikit-learn's default, `sklearn.decomposition.PCA` does the same for less.
    center : take off the mean in the RKHS; False for the textbook form without it.
    landmarks, n_landmarks : search the components in the span of landmarks, in one pass over the rows: for large n.
        "uniform", "pivoted", "leverage" or an array; see `mercer.solvers.choose_landmarks`. None and None is exact.
    solver : "krylov" finds the largest eigenvalues alone from products with blocks of vectors, "dense" all. "auto" is
        dense for few rows or where more than one in eight components is wanted.
    tol, max_iter : largest residual of an eigenvector relative to the largest eigenvalue, and steps, of "krylov".
    pre_image : how `inverse_transform` finds points from coordinates: "ridge" is a kernel ridge regression from the
        coordinates to the inputs, "fixed_point" improves its answer for a Gaussian kernel.
    inverse_kernel, inverse_alpha : of that regression.
    device : "auto", "cpu", "cuda" or a torch device.
    memory_budget : bytes, or text such as "2GiB"; by default half of what is free. Where the Gram matrix does not fit,
        products are computed tile by tile.
    random_state : seed of landmarks, medians and starting vectors; None is 0.

    Attributes
    ----------
    kernel_ : the kernel with every parameter found.
    eigenvalues_ : of the centred Gram matrix, in falling order.
    explained_variance_ratio_ : each eigenvalue as a share of the sum of all.
    features_ : the map, a `KernelProjection`.
    X_fit_ : the points of its coefficients: training rows or landmarks.
    solver_report_ : how the eigenvalues were found.

    References
    ----------
    Schölkopf, Smola and Müller, *Nonlinear component analysis as a kernel eigenvalue problem*, 1998.

    Examples
    --------
    Two concentric circles fall apart along the first component:

    >>> import numpy as np
    >>> angle = np.linspace(0, 2 * np.pi, 100)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> first = KernelPCA(2, Gaussian(2**0.5)).fit_transform(np.r_[ring, 3 * ring])[:, 0]
    >>> bool(first[:100].min() > first[100:].max() or first[:100].max() < first[100:].min())
    True
    """

    title = "Kernel principal components"
    saved = PRINCIPAL | {"total": number(0)}

    def __init__(
        self,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        *,
        center: bool = True,
        landmarks: Any = None,
        n_landmarks: int | None = None,
        solver: str = "auto",
        tol: float = 1e-12,
        max_iter: int = 500,
        pre_image: str = "ridge",
        inverse_kernel: Any = "gaussian",
        inverse_alpha: Any = 0.1,
        device: Any = "auto",
        memory_budget: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.center = center
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pre_image = pre_image
        self.inverse_kernel = inverse_kernel
        self.inverse_alpha = inverse_alpha
        self.device = device
        self.memory_budget = memory_budget
        self.random_state = random_state

    eigenvalues_: Any
    explained_variance_ratio_: Any
    solver_report_: SolverReport
    _coordinates: Tensor | None  # of the training rows, while fit_transform needs them
    _regression: tuple[KernelRidge, Tensor] | None

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the rows of X; y is ignored."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the components of the rows of X and give their coordinates."""
        found = self._fit(X)
        if found is None:
            return self.transform(X)
        rows = self.features_.points
        return restore(found.to(rows.values) if rows.is_tensor else found, X)

    def inverse_transform(self, X: Any) -> Any:
        """Points whose coordinates are near the rows of X, of shape (n, d): approximate pre-images."""
        check_is_fitted(self)
        self._check_parameters()  # pre_image may have been set since
        self._check_pre_image(self.kernel_)
        points = self.features_.points
        if not points.is_tensor or self.kernel_.domain == "matrix":
            raise InputError("inverse_transform gives rows of a table, but the model was not fitted to one.")
        Y = as_points(X).values
        if Y.shape[1] != self.features_.n_features:
            raise InputError(f"X has {Y.shape[1]} columns but there are {self.features_.n_features} components.")
        regression, mean = self._inverse()
        found = torch.as_tensor(regression.predict(Y.to(mean))) + mean
        if self.pre_image == "fixed_point":
            found = fixed_point_pre_images(self.features_, self._mean_coef, Y, found)
        return restore(checked_values(found.to(Y), "Pre-images"), X)

    @property
    def X_fit_(self) -> Any:
        """The points whose kernels the components are sums of: training rows or landmarks."""
        check_is_fitted(self)
        return self._as_given(self.features_.points.values)

    @property
    def n_iter_(self) -> int:
        """Steps of the solver, 1 for a direct one."""
        return max(1, self.solver_report_.iterations)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Draw the first two coordinates of the rows of X, by default of `X_fit_`, coloured by y.

        A single component is drawn against the number of the row. Returns the axes: `.figure.savefig(...)` writes the
        picture, and with `ax` it is drawn into a figure of your own.
        """
        check_is_fitted(self)
        Y = np.asarray(self.transform(self.X_fit_ if X is None else X))
        shares = np.asarray(self.explained_variance_ratio_)[:2]
        names = [f"Component {i + 1} ({share:.0%} of the variance)" for i, share in enumerate(shares)]
        if len(names) == 1:
            Y, names = np.c_[np.arange(len(Y)), Y], ["Number of the row", *names]
        return coordinates(Y[:, 0], Y[:, 1], labels=y, x_name=names[0], y_name=names[1], ax=ax)

    # Private

    def _fit(self, X: Any) -> Tensor | None:
        self._torch_in = isinstance(X, Tensor)
        self._coordinates = self._regression = None
        super().fit(X)
        found, self._coordinates = self._coordinates, None
        return found

    def _made(self, kernel: Kernel, rows: Points) -> KernelProjection:
        count = None if self.n_components is None else checked_count(self.n_components, "n_components")
        self._check_pre_image(kernel)
        place = self._place(rows)
        if self.landmarks is None and self.n_landmarks is None:
            options: dict[str, Any] = {
                "solver": self.solver,
                "tol": self.tol,
                "max_iter": self.max_iter,
                "seed": self._seed,
            }
            rows = self._own(rows)
            found = principal_subspace(kernel, rows, count, center=self.center, **options, **self._place(rows))
        else:
            found = self._on_landmarks(kernel, rows, count, place)
        self._keep(found)
        return found.projection

    def _on_landmarks(
        self, kernel: Kernel, rows: Points, count: int | None, place: dict[str, Any]
    ) -> PrincipalSubspace:
        if kernel.domain == "matrix":
            raise InputError("landmarks are chosen among rows, which a precomputed kernel does not have.")
        how = "uniform" if self.landmarks is None else self.landmarks
        given = None if self.n_landmarks is None else checked_count(self.n_landmarks, "n_landmarks")
        given, most = check_landmarks(how, given), len(rows) if isinstance(how, str) else len(how)
        m = landmark_count(most, given, "nystrom", self.memory_budget, place["device"])
        chosen = choose_landmarks(kernel, rows, m, how, self._seed, memory_budget=self.memory_budget)
        self._note = chosen.note
        nystrom = NystromMap.of(kernel, chosen.points, **place)
        return principal_subspace_of_landmarks(nystrom, rows, count, center=self.center)

    def _keep(self, found: PrincipalSubspace) -> None:
        self._coordinates, self._mean_coef = found.coordinates, found.mean_coef
        self._set_values(found.values, found.total)
        self.solver_report_ = found.report
        if not found.report.converged:
            warnings.warn(f"KernelPCA: {found.report}", ConvergenceWarning, stacklevel=6)

    def _set_values(self, values: Tensor, total: float) -> None:
        self._total = total
        self.eigenvalues_ = self._as_given(values)
        self.explained_variance_ratio_ = self._as_given(values / total if total > 0 else torch.zeros_like(values))

    def _check_pre_image(self, kernel: Kernel) -> None:
        if self.pre_image == "fixed_point" and not isinstance(kernel, Gaussian):
            raise InputError(f"pre_image='fixed_point' is for a Gaussian kernel, not {kernel!r}; use 'ridge'.")

    def _place(self, rows: Points) -> dict[str, Any]:
        like = rows.values if self._torch_in else None
        device = choose_device(self.device, like) if rows.is_tensor else torch.device("cpu")
        return {"device": device, "memory_budget": self._budget()}

    def _as_given(self, values: Any) -> Any:
        return values if self._torch_in or not isinstance(values, Tensor) else values.cpu().numpy()

    def _inverse(self) -> tuple[KernelRidge, Tensor]:
        """The regression from coordinates to inputs less their mean, fitted when it is first needed."""
        if self._regression is None:
            points = self.features_.points
            inputs = points.values.to(torch.float64)
            mean = inputs.mean(0)
            regression = KernelRidge(
                self.inverse_kernel,
                alpha=self.inverse_alpha,
                device=self.device,
                memory_budget=self.memory_budget,
                random_state=self._seed,
            )
            self._regression = regression.fit(self.features_(points).to(inputs), inputs - mean), mean
        return self._regression

    def _map_lines(self) -> list[tuple[str, object]]:
        shares = np.asarray(self.explained_variance_ratio_)
        shown = ", ".join(f"{share:.1%}" for share in shares[:5]) + (", ..." if len(shares) > 5 else "")
        lines: list[tuple[str, object]] = [
            ("components", f"{len(shares):,} with {shares.sum():.1%} of the variance ({shown})"),
            ("solver", str(self.solver_report_)),
        ]
        return lines + ([("landmarks", self._note)] if self._note else [])

    def _concerns(self) -> list[str]:
        values = np.asarray(self.eigenvalues_)
        found = []
        if not self.solver_report_.converged:
            found.append("the eigenvectors are not as accurate as asked for: allow a larger max_iter")
        if not values.all():
            found.append(f"{int((values == 0).sum())} of {len(values)} components have no variance")
        return found

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        meta, arrays = principal_arrays(self)
        return meta | {"total": self._total}, arrays | {"mean_coef": self._mean_coef}

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> KernelProjection:
        self._coordinates = self._regression = None
        projection, values = principal_from_arrays(self, meta, arrays)
        self._mean_coef = float_array(arrays, "mean_coef", (len(projection.points),))
        self._set_values(values, float(meta["total"]))
        self._check_pre_image(self.kernel_)
        return projection
