"""`TableModel`: a kernel regressor together with the columns it reads, in one model file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

from mercer.cli.frame_model import FrameModel
from mercer.core.arrays import as_points
from mercer.core.errors import ModelFileError
from mercer.estimators import KernelRidge, TabularEstimator
from mercer.files.fields import Array, Field, Fields, Model, read, written
from mercer.files.kinds import TEXT, Several, number, optional
from mercer.files.persistence import load, register, save

MODEL_FILE = "model.safetensors"


FIELDS: Fields = {
    "features": Field(Several(TEXT, 1), sizes=lambda names: {"d": len(names)}),
    "target": Field(TEXT),
    "target_mean": Field(number()),
    "weights": Field(optional(TEXT)),
    "regressor": Model(KernelRidge),
    "center": Array("d"),
    "scale": Array("d"),
}


@register
@dataclass(frozen=True, eq=False)
class TableModel:
    r"""A fitted regressor g of standardised features, and what is needed to use it on tables

    .. math:: f(x) = \bar y + g\left(\frac{x - \text{center}}{\text{scale}}\right).

    Attributes
    ----------
    regressor : KernelRidge
        The fitted `KernelRidge` g.
    features, target, weights : tuple[str, ...] and str and str or None
        Names of columns; target is empty where it is not known, weights None where rows count alike.
    center, scale : array
        One number per feature; zeros and ones where features are used as they are.
    target_mean : float
        The mean of the training targets.

    Examples
    --------
    >>> X, y = np.array([[10.0], [20.0], [30.0]]), np.array([5.0, 6.0, 7.0])
    >>> g = KernelRidge("gaussian", alpha=0.0).fit((X - 20.0) / 10.0, y - 6.0)
    >>> TableModel(g, ("size",), "price", np.array([20.0]), np.array([10.0]), 6.0).predict(X).round(6)
    array([5., 6., 7.])
    """

    regressor: KernelRidge
    features: tuple[str, ...]
    target: str
    center: np.ndarray
    scale: np.ndarray
    target_mean: float
    weights: str | None = None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predictions for rows X of shape (m, d), the columns in the order of `features`."""
        rows = as_points((X - self.center) / self.scale)
        named = replace(rows, names=self.features) if hasattr(self.regressor, "feature_names_in_") else rows
        return self.target_mean + np.asarray(self.regressor.predict(named))

    def save(self, path: Path) -> None:
        """Write one safetensors file that `mercer predict` reads."""
        save(self, path)

    @staticmethod
    def load(path: Path) -> TableModel | FrameModel:
        """The model in a file, or in the model file of a folder."""
        if path.is_dir():
            path = path / MODEL_FILE
            if not path.exists():
                raise ModelFileError(f"There is no {MODEL_FILE} in the folder {path.parent}.")
        model = load(path)
        return model if isinstance(model, TableModel | FrameModel) else _of_estimator(model, path)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        return written(FIELDS, self)

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""
        found = read(FIELDS, meta, arrays, "TableModel")[0]
        regressor, features, target, weights = (found[k] for k in ("regressor", "features", "target", "weights"))
        names = [*features, target] if weights is None else [*features, target, weights]
        if len(set(names)) != len(names):
            raise ModelFileError("features, target and weights must be different column names")
        center, scale = found["center"].numpy(), found["scale"].numpy()
        if (scale <= 0).any():
            raise ModelFileError("scale must be positive")
        if regressor.n_features_in_ != len(features) or not _one_target(regressor):
            raise ModelFileError("the regressor does not fit the features and the target")
        return cls(regressor, tuple(features), target, center, scale, float(found["target_mean"]), weights)


def _one_target(model: KernelRidge) -> bool:
    coef = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    return coef.ndim == 1


def _of_estimator(model: Any, path: Path) -> TableModel | FrameModel:
    """A model saved from Python."""
    if isinstance(model, TabularEstimator) and hasattr(model, "feature_names_in_"):
        return FrameModel(model, "", None, np.empty(0, dtype=np.int64))
    return _of_regressor(model, path)


def _of_regressor(model: Any, path: Path) -> TableModel:
    """A model saved from Python: it knows its columns when it was fitted on a table with column names."""
    names = getattr(model, "feature_names_in_", None)
    if not isinstance(model, KernelRidge) or names is None or not _one_target(model):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__} without the names of its columns, or with several targets; "
            "use it from Python: mercer.load(path).predict(X)."
        )
    d = len(names)
    return TableModel(model, tuple(names), "", np.zeros(d), np.ones(d), 0.0)
