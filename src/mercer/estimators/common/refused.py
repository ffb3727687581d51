"""Words for rows that an estimator cannot take in parts, and for names of files where rows are wanted."""

from __future__ import annotations

import os

from sklearn.base import BaseEstimator

from mercer.core.errors import InputTypeError
from mercer.data.given import Rows
from mercer.data.rows import RowSource, is_dask
from mercer.losses import Squared
from mercer.solvers import NystromNewton

IN_PARTS = ("KernelRidge", "KernelRegressor", "KernelClassifier", "GaussianProcessRegressor")
TEXT = (".csv", ".tsv", ".txt", ".json", ".xlsx")


def refuse_parts(estimator: BaseEstimator, X: Rows) -> None:
    """Raise an error for a `RowSource` or a Dask collection given to an estimator that needs all rows at once."""
    if not isinstance(X, RowSource) and not is_dask(X):
        return
    name = type(estimator).__name__
    raise InputTypeError(
        f"X is of {type(X).__name__}, whose rows are read in parts; {name} needs all rows in memory. KernelRidge, "
        f"KernelRegressor and KernelClassifier take rows in parts. For {name} give an array or a data frame of some of "
        "the rows."
    )


def refuse_path(estimator: BaseEstimator, X: object, y: object = None) -> None:
    """Raise an error for the name of a file or folder, which says how to name a source of rows; y may name a column."""
    if not isinstance(X, str | os.PathLike):
        return
    path, name = os.fspath(X), type(estimator).__name__
    if name not in IN_PARTS or str(path).endswith(TEXT):
        raise InputTypeError(f"X is the path {path!r:.80}; {name} takes rows: read the file into a data frame first.")
    source = "npy_rows" if str(path).endswith(".npy") else "ParquetRows"
    target = "'y.npy'" if source == "npy_rows" else f"target={y if isinstance(y, str) else 'price'!r}"
    raise InputTypeError(
        f"X is the path {path!r:.80}; name a source of rows: {name}().fit(mercer.rows.{source}({path!r}, {target}))."
    )


def adds_rows(estimator: BaseEstimator) -> bool:
    """Whether an estimator with a loss can add rows; the error says why it cannot, and what can."""
    name, loss, solver = (
        type(estimator).__name__,
        getattr(estimator, "loss", None),
        getattr(estimator, "solver", "auto"),
    )
    if loss != "squared" and not isinstance(loss, Squared):
        raise AttributeError(
            f"{name}(loss={loss!r}) has no partial_fit: this loss needs all rows at once. "
            'Use loss="squared", whose sums over rows add up, or fit to all rows or to a mercer.rows source of them.'
        )
    if not isinstance(solver, NystromNewton) and solver not in ("auto", "nystrom"):
        raise AttributeError(
            f"{name}(solver={solver!r}) has no partial_fit: a coefficient for each row depends on all of them. Use "
            "solver='nystrom'."
        )
    return True
