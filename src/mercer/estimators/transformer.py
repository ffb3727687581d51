"""What the explicit feature maps share as scikit-learn transformers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.arrays import Points, checked_values, restore
from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.core.memory import require, resolve_budget
from mercer.core.report import Report, make_report
from mercer.core.seeding import as_seed
from mercer.estimators.common.base import KernelEstimator, all_or_nothing
from mercer.estimators.common.samples import checked_rows
from mercer.estimators.common.state import (
    POINTS,
    checked_params,
    nothing_left,
    plain_names,
    read_params,
    remember_features,
)
from mercer.features import ApproximationError, FeatureMapping, approximation_error
from mercer.files.kinds import ANY_TABLE, TEXT, Kind, Table, optional, whole
from mercer.kernels import Kernel, as_kernel, resolve, to_dict
from mercer.kernels.overflow import check_kernel_values
from mercer.kernels.pair import vectors

MAP: dict[str, Kind] = {
    "params": ANY_TABLE,
    "kernel": optional(ANY_TABLE),
    "names": POINTS["names"],
    "n_features": optional(whole(1)),
    "n_rows": whole(1),
    "note": TEXT,
}
"""What the model files of all maps hold."""


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A map from rows to rows of numbers, found from a sample and a kernel.

    A subclass makes its map in `_made(kernel, rows)`, and writes and reads it in `_map_state` and `_map_from_state`,
    which also sets `kernel_`; `saved` says what it writes beside arrays.
    `leading` are its first two parameters: a size, and what could be given in its place by mistake.
    """

    random_state: Any = None
    kernel_: Kernel
    features_: Any
    title = "Features"
    leading = ("n_components", "kernel")
    saved: ClassVar[Mapping[str, Kind]] = {}

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the features for rows like those of X; y is ignored."""
        kernel = self._given_kernel()
        rows = checked_rows(self, kernel, X, reset=True)
        self._seed = as_seed(self.random_state)
        kernel = resolve(kernel.bind(rows.names), rows, seed=self._seed)
        check_kernel_values(kernel, rows)
        self._keep_kernel(kernel)
        self._n_rows, self._note = len(rows), ""
        self.features_: FeatureMapping = self._made(kernel, rows)
        return self

    def transform(self, X: Any) -> Any:
        """The features of the rows of X, of shape (n, p), in the dtype of X."""
        check_is_fitted(self)
        return restore(self._values(self._rows(X)), X)

    def report(self) -> Report:
        """What was chosen and why."""
        check_is_fitted(self)
        d = getattr(self, "n_features_in_", None)
        size = f"{self._n_rows:,} rows" + ("" if d is None else f", {d} feature{'s' * (d != 1)}")
        lines: list[tuple[str, object]] = [("fitted to", size), *self._kernel_lines()]
        lines += self._map_lines()
        return make_report(self.title, lines, self._concerns())

    # What subclasses decide

    def _given_kernel(self) -> Kernel:
        return as_kernel(self.kernel)

    def _keep_kernel(self, kernel: Kernel) -> None:
        self.kernel_ = kernel

    def _made(self, kernel: Kernel, rows: Points) -> FeatureMapping:
        raise NotImplementedError

    def _kernel_lines(self) -> list[tuple[str, object]]:
        return [("kernel", self.kernel_.rounded())]

    def _map_lines(self) -> list[tuple[str, object]]:
        return [("features", f"{self.features_.n_features:,}" + (f" ({self._note})" if self._note else ""))]

    def _concerns(self) -> list[str]:
        return []

    def _map_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        raise NotImplementedError

    def _map_from_state(self, meta: dict[str, Any], arrays: dict[str, Tensor]) -> FeatureMapping:
        raise NotImplementedError

    # Shared

    def _check_parameters(self) -> None:
        size, second = self.leading
        given = getattr(self, size)
        if isinstance(given, str) or callable(given):
            name = type(self).__name__
            raise InputTypeError(
                f"{size}={given!r} is not a number: write {name}({second}=...), or {name}({size}, {second})."
            )
        super()._check_parameters()

    def _rows(self, X: Any) -> Points:
        return checked_rows(self, self._fitted_kernel(), X)

    def _fitted_kernel(self) -> Kernel:
        return self.kernel_

    def _values(self, rows: Points) -> Tensor:
        values = self.features_(rows)
        return checked_values(values.to(rows.values) if rows.is_tensor else values, "Features")

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        more, arrays = self._map_state()
        meta = {
            "params": checked_params(self),
            "kernel": to_dict(self.kernel_) if "kernel_" in self.__dict__ else None,
            "names": plain_names(self),
            "n_features": getattr(self, "n_features_in_", None),
            "n_rows": self._n_rows,
            "note": self._note,
        }
        return meta | more, arrays

    @classmethod
    def _from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        Table({**MAP, **cls.saved}).check(meta, "meta")
        if meta["n_features"] is None and meta.get("objects") is None:
            raise ModelFileError("meta.n_features is None, expected a number for rows of a table")
        arrays = dict(arrays)
        model = read_params(cls, meta["params"])
        model._n_rows, model._note = meta["n_rows"], meta["note"]
        remember_features(model, meta["n_features"], meta["names"])
        model._seed = 0
        try:
            model.features_ = model._map_from_state(meta, arrays)
        except InputError as error:
            raise ModelFileError(str(error)) from None
        nothing_left(arrays, cls.__name__)
        return model


class FeatureTransformer(MapTransformer):
    """A map phi with phi(x).phi(z) close to a kernel."""

    def approximation_error(self, X: Any, Z: Any = None, *, max_rows: int = 2000) -> ApproximationError:
        """How far phi(x).phi(z) is from the kernel on the pairs of rows of X and Z (X by default).

        Of more than `max_rows` rows, that many are taken at even distances.
        """
        check_is_fitted(self)
        if max_rows < 1:
            raise InputError(f"max_rows={max_rows}: must be at least 1.")
        x, z = (_spread(self._rows(A), max_rows) for A in (X, X if Z is None else Z))
        return approximation_error(self._values, self._exact, x, z)

    def _exact(self, X: Any, Z: Any) -> Tensor:
        """The kernel that the features stand for."""
        return torch.as_tensor(self.kernel_(X, Z))


def checked_count(value: Any, name: str) -> int:
    """A number of features or components, an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputTypeError(f"{name}={value!r}: must be an integer >= 1.")
    if value < 1:
        raise InputError(f"{name}={value}: must be an integer >= 1.")
    return int(value)


def checked_draw(n_components: Any, rows: Points) -> int:
    """A number of random features, each with a number for every column of the rows, that fits into memory."""
    count = checked_count(n_components, "n_components")
    size, budget = vectors(rows).shape[1] * torch.float64.itemsize, resolve_budget()
    advice = f"At most {budget // size:,} would fit."
    require(count * size, budget, f"n_components={count}: a draw of so many random features", advice)
    return count


def _spread(rows: Points, most: int) -> Points:
    n = len(rows)
    return rows if n <= most else rows.take(torch.linspace(0, n - 1, most).round().long())
