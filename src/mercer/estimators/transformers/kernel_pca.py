"""Kernel principal component analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import as_points, checked_values, restore
from mercer.core.report import Report
from mercer.core.rules import Rules
from mercer.data.given import Alpha, Axes, Budget, Device, Landmarks, Rows, Seed, Targets
from mercer.estimators.common.base import all_or_nothing
from mercer.estimators.common.convergence import warn_if_not_converged
from mercer.estimators.common.samples import checked_inputs, checked_rows
from mercer.estimators.common.solvers import solver_rule
from mercer.estimators.common.state import Saved
from mercer.estimators.transformers.base import MapTransformer
from mercer.estimators.transformers.components import PCAFit, PCASettings, find_components, pca_concerns, pca_lines
from mercer.estimators.transformers.pre_images import check_coordinates, check_pre_image
from mercer.estimators.transformers.principal import PRINCIPAL, projection_of
from mercer.estimators.transformers.report import map_report
from mercer.estimators.transformers.state import seen_of
from mercer.features import PrincipalSubspace
from mercer.features.residual import squared_residuals
from mercer.files.fields import Array, Field
from mercer.files.kinds import number
from mercer.files.persistence import register
from mercer.kernels.names import KernelLike
from mercer.plots import coordinates
from mercer.solvers.registry import EIGENSOLVERS, SolverLike


def _restored(model: KernelPCA, found: Any) -> PCAFit:
    settings = PCASettings.of(model.get_params(deep=False))
    projection = projection_of(settings, found)
    check_pre_image(settings.pre_image, projection.kernel)
    parts = (projection, found.eigenvalues, None, float(found.total), found.mean_coef, found.report)
    return PCAFit.of(settings, seen_of(found), PrincipalSubspace(*parts), found.note)


FIELDS = {**PRINCIPAL, "total": Field(number(0)), "mean_coef": Array("m")}


@register
class KernelPCA(MapTransformer):
    r"""Principal components of k(x_1, .), ..., k(x_n, .) in the RKHS: PCA that can follow curves. The coordinates are

    .. math:: \varphi_s(x) = \frac{1}{\sqrt{\lambda_s}} \sum_i a_{is} \bigl(k(x, x_i) - \bar k(x_i)\bigr), \qquad
              P K P\, a_s = \lambda_s a_s,

    where P takes off the mean. With a linear kernel this is ordinary PCA.

    Parameters
    ----------
    n_components : int or None
        Number of components, None for all with an eigenvalue above rounding. More than there are rows are cut to their
        number; directions without variance have the coordinate zero.
    kernel : Kernel, str or callable
        A `Kernel`, its name, or a function of two points. By default Gaussian with `length_scale="auto"`, because with
        a linear kernel, scikit-learn's default, `sklearn.decomposition.PCA` does the same for less.
    center : bool
        Take off the mean in the RKHS; False for the textbook form without it.
    landmarks, n_landmarks : str or array-like of shape (m, d) and int or None
        Search the components in the span of landmarks, in one pass over the rows: for large n. "uniform", "pivoted",
        "leverage" or an array; see `mercer.solvers.choose_landmarks`. None and None is exact.
    solver : str or solver object
        "krylov" finds the largest eigenvalues alone from products with blocks of vectors, "dense" all. "auto" is dense
        for few rows or where more than one in eight components is wanted. Or a solver object of `mercer.solvers` with
        options of its own, such as ``Krylov(tol=1e-8)``.
    tol, max_iter : float, int
        Largest residual of an eigenvector relative to the largest eigenvalue, and steps, of "krylov".
    pre_image : str
        How `inverse_transform` finds points from coordinates: "ridge" is a kernel ridge regression from the coordinates
        to the inputs, "fixed_point" improves its answer for a Gaussian kernel.
    inverse_kernel, inverse_alpha : Kernel or str, float or str
        Of that regression; the length scale of a name is the median distance there.
    device : str or torch.device
        "auto", "cpu", "cuda" or a torch device.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free. Where the Gram matrix does not fit, products are
        computed tile by tile.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of landmarks, medians and starting vectors; None is 0.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter found.
    eigenvalues_ : array of shape (q,)
        Those of the centred Gram matrix, in falling order.
    explained_variance_ratio_ : array of shape (q,)
        Each eigenvalue as a share of the sum of all.
    features_ : KernelProjection
        The map from rows to coordinates.
    components_ : array of shape (q, p)
        The directions in the kernel's features, where it has few (`Linear`, `Polynomial`).
    X_fit_ : array of shape (n, d), or list of objects
        The points of its coefficients: training rows or landmarks.
    solver_report_ : SolverReport
        How the eigenvalues were found.

    References
    ----------
    Schölkopf, Smola and Müller, *Nonlinear component analysis as a kernel eigenvalue problem*, 1998.

    Examples
    --------
    Two concentric circles fall apart along the first component:

    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> angle = np.linspace(0, 2 * np.pi, 100)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> first = KernelPCA(2, Gaussian(2**0.5)).fit_transform(np.r_[ring, 3 * ring])[:, 0]
    >>> bool(first[:100].min() > first[100:].max() or first[:100].max() < first[100:].min())
    True
    """

    title = "Kernel principal components"
    saved = Saved(FIELDS, _restored)
    own_rules: ClassVar[Rules] = {"solver": solver_rule(EIGENSOLVERS)}

    def __init__(
        self,
        n_components: int | None = None,
        kernel: KernelLike = "gaussian",
        *,
        center: bool = True,
        landmarks: Landmarks | None = None,
        n_landmarks: int | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-12,
        max_iter: int = 500,
        pre_image: str = "ridge",
        inverse_kernel: KernelLike = "gaussian",
        inverse_alpha: Alpha = 0.1,
        device: Device = "auto",
        memory_budget: Budget = None,
        random_state: Seed = None,
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

    _fit: PCAFit

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None) -> Self:
        """Find the components of the rows of X; y is ignored."""
        return self._keep(self._found(X))

    @all_or_nothing
    def fit_transform(self, X: Rows, y: Targets | None = None) -> Any:
        """Find the components of the rows of X and give their coordinates."""
        fit = self._found(X)
        self._keep(fit)
        if fit.coordinates is None:
            return self.transform(X)
        rows = fit.features.points
        return restore(fit.coordinates.to(rows.values) if rows.is_tensor else fit.coordinates, X)

    def inverse_transform(self, X: Rows) -> Any:
        """Points whose coordinates are near the rows of X, of shape (n, d): approximate pre-images."""
        check_is_fitted(self)
        self._check_parameters()  # pre_image may have been set since
        check_pre_image(self.pre_image, self.kernel_)
        Y = as_points(X).values
        check_coordinates(Y, self._fit.features)
        self._fit = self._fit.with_inverse(self.inverse_kernel, self.inverse_alpha)
        return restore(checked_values(self._fit.pre_images(Y, self.pre_image).to(Y), "Pre-images"), X)

    def reconstruction_error(self, X: Rows) -> Any:
        r"""The squared distances :math:`\|\varphi(x) - P \varphi(x)\|^2` of the rows of X from the components, (n,).

        Large where a row is unlike the training rows: a score of novelty. For an isotropic Gaussian of rows seen
        before it is near zero, for one far away near k(x, x) plus the squared length of the mean.

        References: Hoffmann, *Kernel PCA for novelty detection*, 2007.

        >>> model = KernelPCA(2, kernel="gaussian").fit([[0.0], [0.1], [0.2], [0.3]])
        >>> near, far = model.reconstruction_error([[0.15], [9.0]])
        >>> bool(near < 0.01 < far)
        True
        """
        check_is_fitted(self)
        rows = checked_rows(self, self.kernel_, X)
        found = squared_residuals(self._fit.features, self._fit.mean_coef, rows)
        return restore(checked_values(found, "Reconstruction errors"), X)

    @property
    def components_(self) -> Any:
        """The directions in the features of the kernel, (q, p), of a kernel that has fewer of them than rows.

        For a linear kernel these are the `components_` of scikit-learn's PCA, up to their signs.
        """
        check_is_fitted(self)
        directions = self._fit.features.directions
        if directions is None:
            raise AttributeError(
                f"{self.kernel_!r} has no explicit features of a small number, which components_ needs; Linear and "
                f"Polynomial have."
            )
        return self._fit.seen.given_back(directions.T)

    @property
    def X_fit_(self) -> Any:
        """The points whose kernels the components are sums of: training rows or landmarks."""
        check_is_fitted(self)
        return self._fit.seen.rows_given_back(self._fit.features.points)

    def report(self) -> Report:
        """What was found, how, and what to worry about."""
        check_is_fitted(self)
        lines, concerns = pca_lines(self._fit), pca_concerns(self._fit)
        return map_report(self.title, self._fit, getattr(self, "n_features_in_", None), lines, concerns)

    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """Draw the first two coordinates of the rows of X, by default of `X_fit_`, coloured by y.

        A single component is drawn against the number of the row. Returns the axes: `.figure.savefig(...)` writes the
        picture, and with `ax` it is drawn into a figure of your own.
        """
        check_is_fitted(self)
        Y = np.asarray(self.transform(self.X_fit_ if X is None else X))
        shares = self._fit.shares.cpu().numpy()[:2]
        names = [f"Component {i + 1} ({share:.0%} of the variance)" for i, share in enumerate(shares)]
        if len(names) == 1:
            Y, names = np.c_[np.arange(len(Y)), Y], ["Number of the row", *names]
        return coordinates(Y[:, 0], Y[:, 1], labels=y, x_name=names[0], y_name=names[1], ax=ax)

    def _found(self, X: Rows) -> PCAFit:
        settings = PCASettings.of(self.get_params(deep=False))
        fit = find_components(settings, checked_inputs(self, settings.kernel, X))
        return fit

    def _keep(self, fit: PCAFit, *, warn: bool = True) -> Self:
        if warn:
            warn_if_not_converged("KernelPCA", fit.report)
        self.eigenvalues_ = fit.seen.given_back(fit.eigenvalues)
        self.explained_variance_ratio_ = fit.seen.given_back(fit.shares)
        self.solver_report_, self.n_iter_ = fit.report, max(1, fit.report.iterations)
        return super()._keep(replace(fit, coordinates=None))
