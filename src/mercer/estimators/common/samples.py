"""What users pass in becomes a `Sample` or `Points`: numpy, pandas, polars, torch or lists of objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_n_features,
    _check_sample_weight,
    check_array,
    validate_data,
)
from torch import Tensor

from mercer.core.arrays import Points, as_points, check_finite, refuse_lazy, refuse_masked, refuse_tensor
from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.data.engines import Engine, sample_with
from mercer.data.given import Order, Rows, Targets, Weights
from mercer.data.rows import DaskRows, RowSource, is_dask
from mercer.data.sample import Sample
from mercer.data.table import first_moment, first_text
from mercer.estimators.common.concerns import refuse_text
from mercer.estimators.common.refused import refuse_path
from mercer.estimators.dials import SMALLEST_WEIGHT
from mercer.kernels import Kernel

PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
"""What needs no conversion."""


def checked_sample(
    estimator: BaseEstimator, kernel: Kernel, X: Rows, y: Targets | None, sample_weight: Weights, *, reset: bool = True
) -> Sample:
    """Validate what `fit` was given and remember the features seen; without `reset`, compare them with those."""
    _refuse_none(y)
    objects = _objects(kernel, X)
    if objects is None and isinstance(X, Tensor):
        _reject_gradients(X, "X")
        rows, targets = tensor_rows(estimator, X, reset=reset), _tensor_targets(y, len(X))
    else:
        rows = _array_rows(estimator, X, reset=reset) if objects is None else objects
        targets = _numpy_targets(y, len(rows))
    _check_size(targets, rows, getattr(estimator, "dtype", None) == "float32")
    weights = checked_weights(sample_weight, len(targets))
    columns = targets.unsqueeze(1) if targets.ndim == 1 else targets
    square = kernel.domain == "matrix"
    return Sample(rows, columns, weights, targets.ndim == 1, torch_in=isinstance(X, Tensor), square=square)


def checked_inputs(estimator: BaseEstimator, kernel: Kernel, X: Rows) -> Sample:
    """Validate the rows that a transformer is fitted to and remember the features seen: a sample without targets."""
    _reject_gradients(X, "X")
    rows = checked_rows(estimator, kernel, X, reset=True)
    no_targets = torch.empty(len(rows), 0, dtype=torch.float64)
    return Sample(rows, no_targets, None, False, isinstance(X, Tensor), square=kernel.domain == "matrix")


def source_given(
    estimator: BaseEstimator,
    X: Rows,
    y: Targets | None,
    sample_weight: Weights = None,
    order: Order = None,
    *,
    labels: bool = False,
) -> RowSource | None:
    """The source of rows to fit to, also for Dask collections; None for rows in memory."""
    refuse_path(estimator, X, y)
    if is_dask(X):
        X, y, sample_weight = DaskRows(X, y, sample_weight), None, None
    if not isinstance(X, RowSource):
        return None
    if order is not None:
        raise InputError("order= is for rows in memory.")
    return checked_source(estimator, X, y, sample_weight, labels=labels)


def checked_source(
    estimator: BaseEstimator, source: RowSource, y: Targets | None, sample_weight: Weights, *, labels: bool = False
) -> RowSource:
    """A source of rows that is to be fitted; its features are remembered. With `labels`, targets may be text."""
    if y is not None or sample_weight is not None:
        raise InputError("Pass y and sample_weight when creating the RowSource, not to fit().")
    if source.n_targets == 0:
        raise InputError("The source of rows has no targets: say which column is the target.")
    if source.n_rows == 0:
        raise InputError("The source has no rows.")
    if source.labels is not None and not labels:
        some = ", ".join(map(repr, source.labels[:3]))
        raise InputTypeError(
            f"The target is text, such as {some}; {type(estimator).__name__} needs numbers. KernelClassifier takes "
            "labels."
        )
    remember_features(estimator, source)
    return source


def sampled(source: RowSource, count: int, seed: int, engine: Engine | None = None) -> Sample:
    """Some rows of a source, to choose landmarks and parameters from."""
    X, targets, weights = sample_with(engine, source, count, torch.Generator().manual_seed(seed))
    assert targets is not None
    rows = Points(X, source.names)
    _check_size(targets, rows)
    return Sample(rows, targets, weights, source.one_target)


def remember_features(estimator: BaseEstimator, source: RowSource) -> None:
    """Note the number and the names of the features, as scikit-learn does for arrays."""
    estimator.n_features_in_ = source.n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if source.names is not None:
        estimator.feature_names_in_ = np.asarray(source.names, dtype=object)


def check_features(estimator: BaseEstimator, source: RowSource) -> None:
    """Compare the features of a source with those seen in `fit`."""
    names = getattr(estimator, "feature_names_in_", None)
    if source.n_features != estimator.n_features_in_:
        raise InputError(f"The source has {source.n_features} features but {estimator.n_features_in_} are expected.")
    if names is not None and source.names is not None and tuple(names) != source.names:
        raise InputError(f"The features of the source are {list(source.names)} but {list(names)} are expected.")


def features_to_draw(estimator: BaseEstimator) -> tuple[str, ...] | None:
    """The names of the features, or "x", of an estimator that was fitted to one or two columns; else None."""
    unnamed = {1: ("x",), 2: ("first feature", "second feature")}.get(getattr(estimator, "n_features_in_", 0))
    if unnamed is None or estimator.__sklearn_tags__().input_tags.pairwise:
        return None
    return tuple(map(str, getattr(estimator, "feature_names_in_", unnamed)))


def checked_rows(estimator: BaseEstimator, kernel: Kernel, X: Rows, *, reset: bool = False) -> Points:
    """Validate what `predict` was given against the features seen in `fit`; with `reset`, remember them instead."""
    objects = _objects(kernel, X)
    if objects is not None:
        return objects
    if isinstance(X, Tensor):
        return tensor_rows(estimator, X, reset=reset)
    rows = _array_rows(estimator, X, reset=reset)
    return rows if reset else replace(rows, names=None)


def _array_rows(estimator: BaseEstimator, X: Rows, *, reset: bool) -> Points:
    """Rows from a table as scikit-learn reads it, with the names seen in `fit`; NaN and infinities are found by us."""
    if isinstance(X, Points):
        return _named_rows(estimator, X, reset=reset)
    try:
        if _is_plain(X) and not hasattr(estimator, "feature_names_in_"):
            _check_n_features(estimator, X, reset=reset)
            return as_points(X, source=X)
        refuse_path(estimator, X)
        refuse_masked(X, "X")
        refuse_lazy(X, "X")
        _refuse_entry(estimator, first_moment(X))
        with np.errstate(over="ignore"):  # numbers too large for float64 become infinities
            array = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=reset, ensure_all_finite=False)
    except MercerError:
        raise
    except Exception as error:  # libraries of frames have errors of their own
        _refuse_entry(estimator, first_text(X))
        raise _in_our_words(estimator, X, error) from None
    return as_points(array, names=getattr(estimator, "feature_names_in_", None), source=X)


def pair_of(calibrate: Any) -> tuple[Any, Any]:
    """Rows and targets that a fit has not seen, as `predict_interval` is given them."""
    if not isinstance(calibrate, tuple | list) or len(calibrate) != 2:
        raise InputTypeError(
            f"calibrate is a {type(calibrate).__name__}; give a pair (X_new, y_new) of rows and targets."
        )
    return calibrate[0], calibrate[1]


def rows_to_calibrate(estimator: BaseEstimator, kernel: Kernel, calibrate: Any) -> tuple[Points, Tensor]:
    """The same, checked as the rows and the targets of a fit are."""
    X, y = pair_of(calibrate)
    rows = checked_rows(estimator, kernel, X)
    return rows, checked_targets(y, len(rows))


def _is_plain(values: Any, least: int = 2) -> bool:
    """Whether values are an array as models use them, in which there is nothing to convert."""
    return type(values) is np.ndarray and values.dtype in PLAIN and least <= values.ndim <= 2 and values.size > 0


def _in_our_words(estimator: BaseEstimator, X: Rows, error: Exception) -> InputError | InputTypeError:
    """What scikit-learn's check of X found, with the shape or the type and the way out, and without the numbers."""
    said, name = str(error).split("\narray=")[0].split("\n")[0].rstrip(".:, "), type(estimator).__name__
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, list | tuple | float | int) and "inhomogeneous" not in said:
        shape = np.shape(X)
    got = f"X has shape {tuple(shape)}" if isinstance(shape, tuple) else f"X is a {type(X).__name__}"
    if not isinstance(error, ValueError | OverflowError):
        return InputTypeError(f"X of type {type(X).__name__} cannot be read as a table of numbers: {error}")
    if "Complex" in said:
        return InputError("Complex data not supported: X has complex numbers; give their real and imaginary parts.")
    if "1D array" in said or "scalar" in said:
        return InputError(
            f"{said}: {got}. {name} takes one row for each sample and one column for each feature. Reshape your data: "
            "X.reshape(-1, 1) where it is one feature, X.reshape(1, -1) where it is one sample."
        )
    if said.startswith("Found array with"):
        return InputError(f"{said}. X needs rows of features, shape (n, d), with n and d at least 1.")
    if 0 in getattr(X, "shape", (1,)):
        return InputError(f"{got}: at least one row and one column are needed.")
    if "unique column names" in said:
        return InputError("X has several columns of one name; column names must differ.")
    if isinstance(error, OverflowError):
        return InputError("X has a number beyond what float64 can hold; rescale its column.")
    if "inhomogeneous" in said:
        return InputError("The rows of X differ in length: each needs one number for each column.")
    return InputError(f"{said}.")


def _refuse_entry(estimator: BaseEstimator, found: tuple[int, str | int, Any] | None) -> None:
    """Raise an error that names the first text, category or date found in a table, and the way out."""
    if found is None:
        return
    row, column, value = found
    name = type(estimator).__name__
    raise InputTypeError(
        f"X has {value!r:.60} in row {row}, column {column!r}; {name} takes numbers only. For tables with text, "
        f"categories, dates and gaps use mercer.tabular({name}())."
    )


def _named_rows(estimator: BaseEstimator, X: Points, *, reset: bool) -> Points:
    """Rows that other estimators of ours made, with the names of their columns."""
    _check_n_features(estimator, X.values, reset=reset)
    if reset and X.names is not None:
        estimator.feature_names_in_ = np.asarray(X.names, dtype=object)
    return X


def _objects(kernel: Kernel, X: Rows) -> Points | None:
    """X as a list of objects where the kernel takes them and X is not a table of numbers."""
    if kernel.domain != "objects":
        return None
    points = as_points(X, objects=True)
    if not len(points):
        raise InputError("X is empty: at least one object is needed.")
    return None if points.is_tensor else points


def tensor_rows(estimator: BaseEstimator, X: Tensor, *, reset: bool) -> Points:
    """Rows from a torch tensor, checked by us because scikit-learn checks numpy arrays only."""
    rows = as_points(X)
    if not len(rows):
        raise InputError(f"X has shape {tuple(X.shape)}: at least one row is needed.")
    validate_data(estimator, rows.values, reset=reset, skip_check_array=True)
    return rows


def _refuse_none(y: Targets | None) -> None:
    if y is None:
        raise InputError("y is None: this estimator requires y to be passed, but the target y is None.")


def checked_targets(y: Targets | None, n_rows: int) -> Tensor:
    """Targets of so many rows in float64, (n,) or (n, t)."""
    _refuse_none(y)
    return _tensor_targets(y, n_rows) if isinstance(y, Tensor) else _numpy_targets(y, n_rows)


def _tensor_targets(y: Any, n_rows: int) -> Tensor:
    if not isinstance(y, Tensor):
        y = _numpy_targets(y, n_rows)
    _reject_gradients(y, "y")
    if y.is_complex():
        raise InputTypeError(f"y is complex ({y.dtype}); targets are real numbers.")
    if y.ndim not in (1, 2) or len(y) != n_rows:
        raise InputError(f"y has shape {tuple(y.shape)} but X has {n_rows} rows.")
    check_finite(y, "y")
    result: Tensor = y.to(torch.float64, copy=True)
    return result


def _numpy_targets(y: Any, n_rows: int) -> Tensor:
    if _is_plain(y, 1):
        return _finite_targets(np.array(y, dtype=np.float64), n_rows)
    _reject_gradients(y, "y")
    refuse_masked(y, "y")
    refuse_text(y)
    try:
        array = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, allow_nd=True, input_name="y"
        )
    except (ValueError, TypeError, OverflowError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"y: {str(error).split(chr(10))[0]}") from None
    return _finite_targets(np.array(array), n_rows)


def _finite_targets(array: np.ndarray, n_rows: int) -> Tensor:
    if array.ndim > 2:
        raise InputError(f"y has shape {array.shape}; expected (n,) or (n, t).")
    targets = torch.from_numpy(array)
    check_finite(targets, "y")
    if len(targets) != n_rows:
        raise InputError(f"Found inconsistent numbers of samples: X has {n_rows} rows but y has {len(targets)}.")
    return targets


def _check_size(targets: Tensor, rows: Points, single: bool = False) -> None:
    """Raise an error where predictions, made in float32 or with rows of that type, could not be like the targets."""
    given = rows.is_tensor and rows.values.dtype == torch.float32
    if not (given or single) or not targets.numel():
        return
    size, limits = float(targets.abs().max()), torch.finfo(torch.float32)
    if size > limits.max or 0 < size < limits.tiny:
        where, other = ("X is float32", "Pass X as float64") if given else ("dtype='float32'", "Take dtype='float64'")
        raise InputError(
            f"y has values up to {size:.2g} but {where}, with numbers from {limits.tiny:.1g} to {limits.max:.1g} "
            f"only, and so do predictions. {other}, or divide y by its spread."
        )


def checked_weights(sample_weight: Weights, n_rows: int) -> Tensor | None:
    """Weights of rows in float64; None for equal ones."""
    if sample_weight is None:
        return None
    _reject_gradients(sample_weight, "sample_weight")
    refuse_masked(sample_weight, "sample_weight")
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    try:
        with np.errstate(over="ignore"):
            weights = _check_sample_weight(
                sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True, copy=True
            )
            total = weights.sum()
    except (ValueError, TypeError, OverflowError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"sample_weight: {str(error).split(chr(10))[0]}") from None
    if not np.isfinite(total):
        raise InputError(
            f"sample_weight has values up to {weights.max():.2g}, whose sum overflows: divide them by that."
        )
    if 0 < weights.max(initial=0.0) < SMALLEST_WEIGHT:
        raise InputError(
            f"sample_weight has values of at most {weights.max():.2g}, products of which vanish: divide them by that."
        )
    return None if bool((weights == 1.0).all()) else torch.from_numpy(weights)


def _reject_gradients(values: Any, name: str) -> None:
    refuse_tensor(values, name)
    if isinstance(values, Tensor) and values.requires_grad:
        raise InputTypeError(f"{name} requires grad, but fitting is not differentiable: pass {name}.detach().")
