"""Words for rows that an estimator cannot take in parts, and for names of files where rows are wanted."""

from __future__ import annotations

import os

from sklearn.base import BaseEstimator

from mercer.core.errors import InputTypeError
from mercer.data.given import Rows
from mercer.data.rows import RowSource, is_dask


def refuse_parts(estimator: BaseEstimator, X: Rows) -> None:
    """Raise an error for a `RowSource` or a Dask collection given to an estimator that needs all rows at once."""
    if not isinstance(X, RowSource) and not is_dask(X):
        return
    name = type(estimator).__name__
    raise InputTypeError(
        f"X is a {type(X).__name__}, whose rows are read in parts; {name} needs all rows in memory. KernelRidge takes "
        f"rows in parts. For {name} give an array or a data frame of some of the rows."
    )


def refuse_path(estimator: BaseEstimator, X: object) -> None:
    """Raise an error for the name of a file or folder, which says how to name a source of rows."""
    if not isinstance(X, str | os.PathLike):
        return
    path, name = os.fspath(X), type(estimator).__name__
    if name != "KernelRidge":
        raise InputTypeError(f"X is the path {path!r:.80}; {name} takes rows: read the file into a data frame first.")
    source = "npy_rows" if str(path).endswith(".npy") else "ParquetRows"
    target = "'y.npy'" if source == "npy_rows" else "target='price'"
    raise InputTypeError(
        f"X is the path {path!r:.80}; name a source of rows: {name}().fit(mercer.rows.{source}({path!r}, {target}))."
    )


def no_partial_fit(estimator: BaseEstimator) -> str:
    """Why an estimator has no `partial_fit`, and what has."""
    name = type(estimator).__name__
    loss = getattr(estimator, "loss", None)
    return (
        f"{name} has no partial_fit: the minimum of a loss such as {loss!r} depends on all rows together. For the "
        "squared loss use KernelRidge(solver='nystrom'), which adds rows exactly; else fit to all rows again."
    )
