"""What the explicit feature maps share as scikit-learn transformers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import Points, restore
from mercer.core.errors import InputTypeError
from mercer.core.report import Report
from mercer.core.rules import whole
from mercer.data.given import Rows
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.samples import checked_rows
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.report import feature_lines, map_report
from mercer.features import ApproximationError, approximation_error
from mercer.kernels import Kernel


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A map from rows to rows of numbers; a subclass finds one in `fit`, and says how it is saved.

    `leading` are its first two parameters: a size, and what could be given in its place by mistake; () without a size.
    """

    title: ClassVar[str] = "Features"
    leading: ClassVar[tuple[()] | tuple[str, str]] = ("n_components", "kernel")

    _fit: MapFit[Any]
    kernel_: Kernel
    features_: Any

    def transform(self, X: Rows) -> Any:
        """The features of the rows of X, of shape (n, p), in the dtype of X."""
        check_is_fitted(self)
        return restore(self._fit.values(checked_rows(self, self.kernel_, X)), X)

    def report(self) -> Report:
        """What was chosen and why."""
        check_is_fitted(self)
        return map_report(self.title, self._fit, getattr(self, "n_features_in_", None), feature_lines(self._fit))

    def _keep(self, fit: Any, *, warn: bool = True) -> Self:
        """Make a fit the state of the estimator."""
        self._fit, self.kernel_, self.features_ = fit, fit.kernel, fit.features
        return self

    def _check_parameters(self) -> None:
        if self.leading:
            size, second = self.leading
            given = getattr(self, size)
            if isinstance(given, str) or callable(given):
                name = type(self).__name__
                raise InputTypeError(
                    f"{size}={given!r} is not a number: write {name}({second}=...), or {name}({size}, {second})."
                )
        super()._check_parameters()

    @property
    def _n_features_out(self) -> int:
        return int(self._fit.features.n_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FeatureTransformer(MapTransformer):
    """A map phi with phi(x).phi(z) close to a kernel."""

    def approximation_error(self, X: Rows, Z: Rows | None = None, *, max_rows: int = 2000) -> ApproximationError:
        """How far phi(x).phi(z) is from the kernel on the pairs of rows of X and Z (X by default).

        Of more than `max_rows` rows, that many are taken at even distances.
        """
        check_is_fitted(self)
        whole(1).check("max_rows", max_rows, False)
        x, z = (_spread(checked_rows(self, self.kernel_, A), max_rows) for A in (X, X if Z is None else Z))
        return approximation_error(self._fit.values, self._fit.exact, x, z)


def _spread(rows: Points, most: int) -> Points:
    n = len(rows)
    return rows if n <= most else rows.take(torch.linspace(0, n - 1, most).round().long())
