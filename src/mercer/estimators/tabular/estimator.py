"""`TabularEstimator`: any estimator on tables as they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    has_fit_parameter,
)
from torch import Tensor

from mercer.core.arrays import Points, as_points
from mercer.core.errors import InputError, InputTypeError
from mercer.core.report import Report
from mercer.core.rules import Rules, of_kind, whole
from mercer.core.seeding import as_seed
from mercer.data.given import Axes, Rows, Targets, Weights
from mercer.data.rows import DaskTables, EncodedRows, RowSource, is_dask, sampled_table
from mercer.data.table import Table
from mercer.estimators.common.available import Method, available_if
from mercer.estimators.common.base import KernelEstimator, all_or_nothing
from mercer.estimators.common.parameters import check_parameters
from mercer.estimators.common.samples import checked_weights, pair_of
from mercer.estimators.common.spread import predicted_later
from mercer.estimators.dials import FEWEST_SAMPLED, MAX_LEVELS, MOST_LEVELS, MOST_ROWS, RARE
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.estimators.tabular.report import tabular_report
from mercer.estimators.tabular.state import tabular_from_state, tabular_state
from mercer.estimators.tabular.units import ready
from mercer.files.persistence import register, save

ROUTED = ("fit", "partial_fit", "predict", "score")
"""Methods whose further arguments go to the same method of the estimator inside."""


def tabular(estimator: Any, **options: Any) -> TabularEstimator:
    """An estimator for tables as they are: data frames with numbers, categories, text, booleans, dates and gaps.

    Parameters
    ----------
    estimator : object
        Any estimator of mercer, or of scikit-learn.
    **options
        Those of `TabularEstimator`.

    Returns
    -------
    TabularEstimator
        Not fitted yet.

    Examples
    --------
    >>> import mercer
    >>> X = {"size": [50.0, 80.0, None, 60.0, 95.0, 70.0], "city": ["Oslo", "Rome", "Oslo", "Rome", "Oslo", "Rome"]}
    >>> model = mercer.tabular(mercer.KernelRidge(alpha=0.1)).fit(X, [5.0, 4.0, 6.0, 3.0, 9.0, 3.5])
    >>> print(model.estimator_.feature_names_in_)
    ['size' 'size=missing' 'city=Rome']
    """
    return TabularEstimator(estimator, **options)


def _inner_has(name: str) -> Callable[[Method], Method]:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.inner), name))


@register
class TabularEstimator(BaseEstimator):
    r"""An estimator on tables as they are: each column becomes numbers in a way that `report()` shows.

    Takes data frames of pandas, polars and any library that narwhals reads, dictionaries of columns, and arrays.

    ============  ======================================================================================================
    column        what becomes of it
    ============  ======================================================================================================
    numbers       centred, in units of their spread (see `mercer.kernels.resolve`); so are numbers written as text
    categories    text, categories and booleans: a 0/1 column for each level, in units of s with
                  :math:`s^2 = 1 - \sum_k p_k^2` for levels of shares p, so that rows are as far apart as in a column of
                  numbers, however many levels there are. Rare levels and those not seen in `fit` are one level,
                  "other levels"
    dates         the time elapsed, as a number; where they vary, the time of year and of day as points on circles, and
                  the day of the week as a category; also where they are written as text
    gaps          a level of their own in categories; numbers and dates get a column that tells of them
    left out      constants, columns without values, ids (a name such as "id" and a different value in every row) and
                  text that is different in every row
    ============  ======================================================================================================

    Length scales "auto" of the kernel inside are then one number, the median distance of encoded rows, for every
    column: the share of each column of the table in squared distances is the same.

    Parameters
    ----------
    estimator : object, default=None
        Any estimator of mercer, or of scikit-learn; None is `KernelRidge()`. It is cloned before it is fitted.
    columns : Mapping[str, str] or None
        What to take a column for, by name: "number", "category", "date" or "drop".
    max_levels : int
        The most frequent levels of a category that are kept apart.
    rare : int
        Levels of fewer rows than this are rare, in tables of less than 500 rows those of less than 2%
        of them; not where there are only two.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator; its features are the encoded columns.
    encoder_ : TableEncoder
        The treatment of each column.
    n_features_in_, feature_names_in_ : int, array of str
        The columns of the table.

    References
    ----------
    Gower, *A general coefficient of similarity and some of its properties*, 1971.

    Examples
    --------
    >>> from mercer import KernelClassifier, tabular
    >>> X = {"age": [30.0, 41.0, None, 25.0] * 5, "smoker": ["no", "yes", "yes", "no"] * 5}
    >>> model = tabular(KernelClassifier(alpha=0.01)).fit(X, ["ok", "ill", "ill", "ok"] * 5)
    >>> print(model.predict({"age": [33.0], "smoker": ["never"]}), model.encoder_.columns)
    ['ok'] ('age', 'age=missing', 'smoker=yes')
    """

    own_rules: ClassVar[Rules] = {
        "columns": of_kind(lambda value: isinstance(value, Mapping), "a dictionary of kinds by the names of columns"),
        "estimator": of_kind(lambda value: hasattr(value, "fit"), "an estimator, such as KernelRidge()"),
        "max_levels": whole(1, MOST_LEVELS),
        "rare": whole(1, MOST_ROWS),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        columns: Mapping[str, str] | None = None,
        max_levels: int = MAX_LEVELS,
        rare: int = RARE,
    ) -> None:
        self.estimator = estimator
        self.columns = columns
        self.max_levels = max_levels
        self.rare = rare

    @property
    def inner(self) -> Any:
        """The estimator that is cloned and fitted."""
        return KernelRidge() if self.estimator is None else self.estimator

    @all_or_nothing
    def fit(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None, **params: Any) -> Self:
        """Look at every column of the table X, and fit the estimator to what becomes of them.

        X may be a `RowSource`, such as `mercer.rows.ParquetTables`, or a Dask data frame, of which y may name a column:
        20,000 rows, drawn at random, then show what becomes of the columns.
        """
        return self._fitted("fit", X, y, sample_weight, params)

    @_inner_has("partial_fit")
    @all_or_nothing
    def partial_fit(self, X: Rows, y: Targets, sample_weight: Weights = None, **params: Any) -> Self:
        """Add rows; those of the first call decide what becomes of the columns."""
        if not hasattr(self, "estimator_"):
            return self._fitted("partial_fit", X, y, sample_weight, params)
        given = self._routed("partial_fit", params | _given(sample_weight))
        self.estimator_.partial_fit(self._encoded(X), y, **given)
        return self

    @_inner_has("predict")
    def predict(self, X: Rows, **params: Any) -> Any:
        """Predictions of the estimator for the rows of a table, which may be a `RowSource` or a Dask data frame."""
        if is_dask(X):
            some = np.asarray(self._inner().predict(_for(self._inner(), self._one_row())))
            return predicted_later(self, X, some[:0])
        return self._inner().predict(self._encoded(X), **self._routed("predict", params))

    @_inner_has("predict_proba")
    def predict_proba(self, X: Rows) -> Any:
        """Probabilities of the classes, (m, classes)."""
        if is_dask(X):
            check_is_fitted(self)
            return predicted_later(self, X, np.empty((0, len(self.classes_))), "predict_proba")
        return self._inner().predict_proba(self._encoded(X))

    @_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Rows) -> Any:
        """Logarithms of the probabilities."""
        return self._inner().predict_log_proba(self._encoded(X))

    @_inner_has("decision_function")
    def decision_function(self, X: Rows) -> Any:
        """Decisions of a classifier."""
        return self._inner().decision_function(self._encoded(X))

    @_inner_has("predict_interval")
    def predict_interval(self, X: Rows, level: float = 0.9, **options: Any) -> Any:
        """Intervals of the estimator; rows to `calibrate` with are tables, too."""
        if options.get("calibrate") is not None:
            rows, targets = pair_of(options["calibrate"])
            options["calibrate"] = (self._encoded(rows), targets)
        return self._inner().predict_interval(self._encoded(X), level, **options)

    @_inner_has("transform")
    def transform(self, X: Rows) -> Any:
        """The features that a transformer makes."""
        return self._inner().transform(self._encoded(X))

    @_inner_has("score")
    def score(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None, **params: Any) -> float:
        """The score of the estimator at the rows of a table."""
        if is_dask(X):
            X, y, sample_weight = DaskTables(X, y, sample_weight), None, None
        return float(self._inner().score(self._encoded(X), y, **self._routed("score", params | _given(sample_weight))))

    @property
    def classes_(self) -> np.ndarray:
        """The classes of a classifier."""
        return self._inner().classes_

    @property
    def kernel_(self) -> Any:
        """The kernel of the estimator, on encoded columns."""
        return self._inner().kernel_

    def report(self) -> Report:
        """What became of each column, and the report of the estimator."""
        inner = self._inner()
        return tabular_report(self.encoder_, inner)

    @_inner_has("plot")
    def plot(self, X: Rows | None = None, y: Targets | None = None, ax: Axes | None = None) -> Any:
        """The picture of the estimator."""
        data = () if X is None and y is None else (None if X is None else self._encoded(X), y)
        return self._inner().plot(*data, ax=ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model, with what becomes of each column, to one file; `mercer.load(path)` reads it back."""
        check_is_fitted(self)
        save(self, path)

    def get_metadata_routing(self) -> MetadataRouter:
        """Weights and other metadata go to the same method of the estimator."""
        mapping = MethodMapping()
        for name in ROUTED:
            mapping.add(caller=name, callee=name)
        return MetadataRouter(owner=self).add(estimator=self.inner, method_mapping=mapping)

    def _fitted(self, method: str, X: Rows, y: Targets | None, sample_weight: Weights, params: dict[str, Any]) -> Self:
        if is_dask(X):
            X, y, sample_weight = DaskTables(X, y, sample_weight), None, None
        if isinstance(X, RowSource):
            return self._fitted_in_parts(X, y, sample_weight, params)
        table = Table.of(X)
        if not len(table) or not table.columns:
            what = "sample(s)" if table.columns else "feature(s)"
            shape = f"({len(table)}, {len(table.columns)})"
            raise InputError(f"X is empty: 0 {what} (shape={shape}) while a minimum of 1 is required.")
        own = isinstance(self.inner, KernelEstimator)
        if own and sample_weight is not None and not has_fit_parameter(self.inner, "sample_weight"):
            raise InputTypeError(f"sample_weight: {type(self.inner).__name__} takes no weights.")
        checked = checked_weights(sample_weight, len(table))
        weights = None if checked is None else checked.numpy()
        seen: Any = slice(None) if weights is None else weights > 0
        table_seen, weights_seen = table.take(seen), None if weights is None else weights[seen]
        self._remember(X, table)
        encoder = TableEncoder.looking_at(table_seen, weights_seen, self.columns, self.max_levels, self.rare)
        points = as_points(encoder.encode(table), names=encoder.columns)
        inner = ready(self.inner, encoder, points, y, weights)
        self.encoder_ = encoder
        given = self._routed(method, params | _given(sample_weight))
        self.estimator_ = getattr(inner, method)(_for(inner, points), y, **given)
        return self

    def _fitted_in_parts(
        self, source: RowSource, y: Targets | None, sample_weight: Weights, params: dict[str, Any]
    ) -> Self:
        if y is not None or sample_weight is not None:
            raise InputError("Pass y and sample_weight when creating the RowSource, not to fit().")
        seed = as_seed(getattr(self.inner, "random_state", None))
        table, targets, weights = sampled_table(source, FEWEST_SAMPLED, seed)
        if weights is not None:
            table, targets = table.take(weights > 0), None if targets is None else targets[weights > 0]
            weights = weights[weights > 0]
        self._remember(table, table)
        encoder = TableEncoder.looking_at(table, weights, self.columns, self.max_levels, self.rare)
        points = as_points(encoder.encode(table), names=encoder.columns)
        inner = ready(self.inner, encoder, points, targets, weights)
        self.encoder_ = encoder
        self.estimator_ = inner.fit(EncodedRows(source, encoder), **self._routed("fit", params))
        return self

    def _remember(self, X: Rows, table: Table) -> None:
        """What scikit-learn knows of the columns of a table."""
        if table.named:
            self.n_features_in_ = len(table.columns)
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        else:
            _check_feature_names(self, X, reset=True)
            _check_n_features(self, X, reset=True)

    def _encoded(self, X: Rows) -> Any:
        inner = self._inner()
        if isinstance(X, RowSource):
            return EncodedRows(X, self.encoder_)
        table = Table.of(X)
        if not table.named:
            _check_n_features(self, X, reset=False)
            if hasattr(self, "feature_names_in_"):
                table = Table(dict(zip(self.feature_names_in_, table.columns.values(), strict=True)), len(table))
        elif not isinstance(X, Mapping | Table):
            _check_feature_names(self, X, reset=False)
        if not len(table):
            raise InputError("X is empty: 0 sample(s) while a minimum of 1 is required.")
        return _for(inner, as_points(self.encoder_.encode(table), names=self.encoder_.columns))

    def _one_row(self) -> Points:
        """A row at the centre."""
        return as_points(np.zeros((1, len(self.encoder_.columns))), names=self.encoder_.columns)

    def _inner(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"] or not params:
            return params
        return dict(getattr(process_routing(self, method, **params).estimator, method))

    def _check_parameters(self) -> None:
        check_parameters(self, self.own_rules)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.inner, "__sklearn_tags__", None)
        if inner is not None:
            own, tags = tags, inner()
            tags.input_tags = own.input_tags
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.sparse = tags.input_tags.pairwise = False
        tags.array_api_support = False
        return tags

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        check_is_fitted(self)
        return tabular_state(self)

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""
        model, fitted = tabular_from_state(cls, meta, arrays)
        model.__dict__.update(fitted)
        return model


def _given(sample_weight: Weights) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}


def _for(inner: Any, points: Points) -> Any:
    """Rows with names for an estimator of mercer, an array for others."""
    return points if isinstance(inner, KernelEstimator) else points.values.numpy()
