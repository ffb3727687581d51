"""Labels of any type as codes 0, 1, 2, ... and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from mercer.core.arrays import check_finite, refuse_tensor
from mercer.core.errors import InputError
from mercer.data.given import ClassWeight, Targets
from mercer.data.sample import Sample


def encoded(y: Targets | None) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes and the code of each label.

    >>> encoded(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y is None:
        raise InputError("y is None: this estimator requires y to be passed, but the target y is None.")
    if isinstance(y, Tensor):
        refuse_tensor(y, "y")
        if y.requires_grad:
            raise InputError("y requires grad, but fitting is not differentiable: pass y.detach().")
        y = y.detach().cpu().numpy()
    _refuse_mixed(y)
    labels = _labels(y)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.reshape(-1)


def _labels(y: Targets) -> np.ndarray:
    """One label for each row, none missing; what scikit-learn's checks find comes with the way out."""
    try:
        labels: np.ndarray = column_or_1d(y, warn=True)
    except ValueError as error:
        raise InputError(f"y: {error} A classifier takes one label for each row, shape (n,).") from None
    if labels.dtype.kind == "f":
        check_finite(torch.from_numpy(labels.astype(np.float64)), "y")
    try:
        check_classification_targets(labels)
    except (ValueError, TypeError) as error:
        said = str(error).split(". ")[0]
        raise InputError(
            f"{said}: y must hold classes, such as text or whole numbers. For numbers to predict use a regressor."
        ) from None
    return labels


def _refuse_mixed(y: Targets) -> None:
    """Raise an error for labels of several types, which have no order and which numpy would turn into text."""
    if isinstance(y, list | tuple) or getattr(y, "dtype", None) == np.dtype(object):
        kinds = {type(label) for label in np.ravel(np.asarray(y, dtype=object))}
        if type(None) in kinds or (any(issubclass(kind, str) for kind in kinds) and len(kinds) > 1):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(f"y has labels of the types {names}: give labels of one type, none missing.")


def decoded(codes: Tensor, classes: np.ndarray, like: Any) -> Any:
    """The labels of codes: a tensor where X was one and labels are numbers, else a numpy array."""
    labels = classes[codes.detach().cpu().numpy()]
    if isinstance(like, Tensor) and labels.dtype.kind in "biuf":
        return torch.from_numpy(np.ascontiguousarray(labels)).to(like.device)
    return labels


def class_weights(
    class_weight: ClassWeight, classes: np.ndarray, codes: np.ndarray, weights: Tensor | None
) -> np.ndarray:
    """One weight per class: those given, or for "balanced" such that all classes weigh the same."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        counted = np.ones(len(codes)) if weights is None else weights.numpy()
        totals = np.bincount(codes, counted, len(classes))
        return np.where(totals > 0, totals.sum() / (np.count_nonzero(totals) * np.maximum(totals, 1e-300)), 1.0)
    if not isinstance(class_weight, Mapping):
        raise InputError(f'class_weight={class_weight!r}: give None, "balanced" or a dictionary of classes.')
    known = {label.item() if isinstance(label, np.generic) else label: i for i, label in enumerate(classes)}
    result = np.ones(len(classes))
    for label, weight in class_weight.items():
        if label not in known:
            raise InputError(f"class_weight contains class {label!r}, which does not occur in y.")
        if not weight >= 0:
            raise InputError(f"class_weight[{label!r}]={weight!r}: must be a number >= 0.")
        result[known[label]] = weight
    return result


def known_classes(before: np.ndarray | None, given: Targets | None, y: Targets) -> np.ndarray:
    """The classes of fits that add rows: those of the first call, which has to name them."""
    if before is None:
        if given is None:
            some = encoded(y)[0].tolist()
            raise InputError(f"partial_fit needs classes= at its first call: all labels there will be, such as {some}.")
        found = encoded(given)[0]
        if len(found) < 2:
            raise InputError(f"classes has one class, {found.tolist()[0]!r}: a classifier needs at least two.")
        return found
    if given is not None and not np.array_equal(encoded(given)[0], before):
        raise InputError(f"classes={given!r:.80}: the first call had {before.tolist()}.")
    return before


def codes_among(classes: np.ndarray, y: Targets) -> np.ndarray:
    """The places of labels among classes; an error that names the first label that is none of them."""
    labels, places = encoded(y)
    unknown = [label for label in labels.tolist() if label not in classes.tolist()]
    if unknown:
        row = int((places == labels.tolist().index(unknown[0])).argmax())
        raise InputError(f"y has the label {unknown[0]!r} in row {row}, which is none of {classes.tolist()}.")
    return np.searchsorted(classes, labels)[places]


def fixed_class_weights(class_weight: ClassWeight, classes: np.ndarray) -> np.ndarray | None:
    """The weights of classes where rows are added, None for equal ones; "balanced" would change with every call."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        raise InputError(
            f"class_weight={class_weight!r}: partial_fit does not know the rows to come; give a dictionary of weights."
        )
    return class_weights(class_weight, classes, np.arange(len(classes)), None)


def with_class_weights(sample: Sample, class_weight: ClassWeight, classes: np.ndarray, codes: np.ndarray) -> Sample:
    """A sample with class weights in the weights of its rows; an error where fewer than two classes have weight."""
    by_class = class_weights(class_weight, classes, codes, sample.weights)
    if (by_class != 1).any():
        own = torch.ones(len(codes), dtype=torch.float64) if sample.weights is None else sample.weights
        units = torch.from_numpy(by_class[codes])
        sample = replace(sample, weights=own * units, units=units)
    seen = codes if sample.weights is None else codes[(sample.weights > 0).numpy()]
    if not len(seen):
        raise InputError("sample_weight times class_weight is zero for every row: the weights are too small.")
    if len(np.unique(seen)) < 2:
        raise InputError(
            f"y has one class, {classes.tolist()[seen[0]]!r}, among the rows with positive weight: a "
            "classifier needs at least two classes."
        )
    return sample
