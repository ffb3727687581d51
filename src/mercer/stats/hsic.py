"""The Hilbert-Schmidt independence criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from mercer.core.arrays import Points, as_points, plain_array
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.kernels import Kernel, Linear, resolve
from mercer.kernels.pair import DensePair
from mercer.stats.arguments import check_name
from mercer.stats.dials import MOST_LABELS
from mercer.stats.families import domain_of, given_kernels
from mercer.stats.mixed import encoded, is_mixed
from mercer.stats.samples import sample_points


def hsic(
    X: Any,
    Y: Any,
    kernel_x: Any = "gaussian",
    kernel_y: Any = None,
    *,
    estimator: str = "v",
    memory_budget: Any = None,
) -> float:
    r"""The Hilbert-Schmidt independence criterion of paired samples, zero only for independent ones where the kernels
    are characteristic,

    .. math:: \mathrm{HSIC} = \tfrac{1}{n^2} \operatorname{tr}(K H L H), \qquad H = I - \tfrac1n 1 1^\top.

    Parameters
    ----------
    X, Y : array, table or list
        Samples with one row for each observation.
    kernel_x, kernel_y : Kernel, str, callable or None
        A kernel for each, with its own width. `kernel_y` None is that of x for numbers, and one where labels are equal,
        else zero, for labels (text, booleans, few different integers in one dimension).
    estimator : str
        "v", or "u" for the unbiased one of Song et al., which can be negative.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Gretton et al., *Measuring statistical dependence with Hilbert-Schmidt norms*, 2005; Song et al.,
    *Feature selection via dependence maximization*, 2012.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> hsic([[-1.0], [1.0]], [[-1.0], [1.0]], Linear(), Linear())
    1.0
    """
    check_name("estimator", estimator, ("v", "u"))
    x, y = variable(X, "X", kernel_x), variable(Y, "Y", kernel_y)
    if len(x) != len(y):
        raise InputError(f"X has {len(x)} rows but Y has {len(y)}; rows are paired.")
    n = len(x)
    require(4 * 8 * n * n, resolve_budget(memory_budget), f"HSIC of {n:,} rows")
    K, L = x.gram(), y.gram()
    if estimator == "v":
        return float((centred(K) * L).sum()) / n**2
    if n < 4:
        raise InputError('estimator="u" needs at least four rows.')
    K.fill_diagonal_(0.0)
    L.fill_diagonal_(0.0)
    k, l = K.sum(1), L.sum(1)
    total = float((K * L).sum()) + float(k.sum() * l.sum()) / ((n - 1) * (n - 2)) - 2.0 * float(k @ l) / (n - 2)
    return total / (n * (n - 3))


class Variable:
    """One side of a test of dependence: rows and a kernel with its width found.

    >>> variable(["a", "b", "a"], "Y", None).gram().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    def __init__(self, points: Points, kernel: Kernel) -> None:
        self.points, self.kernel = points, kernel

    def __len__(self) -> int:
        return len(self.points)

    def gram(self) -> Tensor:
        """The Gram matrix in float64."""
        return self.kernel.on(DensePair(self.points)).double()


def variable(X: Any, name: str, kernel: Any) -> Variable:
    """Rows and their kernel; labels have the kernel that is one where they are equal."""
    if kernel is None and is_labels(X):
        return Variable(indicators(X), Linear())
    kernels = given_kernels("gaussian" if kernel is None else kernel)
    assert kernels is not None
    if len(kernels) != 1:
        raise InputError(f"One kernel is needed for {name}, got {len(kernels)}.")
    if is_mixed(X) and domain_of(kernels, X) == "vectors":
        (X,) = encoded([X])
    points = sample_points(X, name, domain_of(kernels, X))
    chosen = kernels[0]
    return Variable(points, resolve(chosen.bind(points.names), points) if chosen.domain == "vectors" else chosen)


def is_labels(X: Any) -> bool:
    """Whether X is one dimension of text, of booleans, or of integers that are few and occur twice on average.

    >>> is_labels([0, 1, 1, 0]), is_labels([31, 54, 47, 40])
    (True, False)
    """
    if isinstance(X, Tensor):
        X = X.cpu().numpy()
    array = plain_array(X, "The sample") if not hasattr(X, "to_numpy") else np.asarray(X.to_numpy())
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return array.ndim == 1 and array.dtype.kind in "OUSb"
    return len(np.unique(array)) <= min(MOST_LABELS, len(array) // 2)


def label_values(labels: Any) -> tuple[Any, ...]:
    """The different labels, sorted.

    >>> label_values(["b", "a", "b"])
    ('a', 'b')
    """
    return tuple(np.unique(_label_array(labels)).tolist())


def indicators(labels: Any, values: tuple[Any, ...] | None = None) -> Points:
    """Labels as columns of zeros and ones, one for each of the values; others are rows of zeros."""
    array = _label_array(labels)
    known = np.array(label_values(labels) if values is None else values)
    return as_points((array[:, None] == known[None, :]).astype(float))


def _label_array(labels: Any) -> np.ndarray:
    array = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    missing = [i for i, v in enumerate(array.tolist()) if v is None or v != v] if array.dtype == object else []
    if missing:
        raise InputError(f"Labels: row {missing[0]} has none; drop such rows or give them a label of their own.")
    return array.astype(str) if array.dtype == object else array


def centred(K: Tensor) -> Tensor:
    """H K H."""
    means = K.mean(0)
    return K - means - means.unsqueeze(1) + means.mean()
