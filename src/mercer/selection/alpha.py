"""The best alpha on a path, for each target, from one eigendecomposition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.plots import alpha_path
from mercer.selection.dials import ARRAYS_ALIVE, ENTRIES_AT_ONCE, SAME_ERROR, SHARE, ZERO_ERROR
from mercer.selection.gcv import gcv_error
from mercer.selection.loo import loo_criterion
from mercer.selection.weights import positive_weights
from mercer.solvers import Spectrum
from mercer.solvers.centring import centred
from mercer.solvers.scaling import powers_of_two

CRITERIA: dict[str, Callable[..., Tensor]] = {"loo": loo_criterion, "gcv": gcv_error}
"""Errors that choose alpha: functions of (x, inverse_diag, alpha, weights) over the rows."""


WORDS = {"loo": "leave-one-out", "gcv": "generalised cross-validation", "folds": "five-fold cross-validation"}


@dataclass(frozen=True, eq=False, repr=False)
class AlphaPath:
    """Errors along a path of alphas and the best alpha for each target.

    Attributes
    ----------
    alphas : Tensor of shape (k,)
        The values that were compared, ascending.
    errors : Tensor of shape (k, t)
        The criterion for each alpha and target.
    alpha : Tensor of shape (t,)
        The chosen ones.
    at_edge : Tensor of shape (t,)
        Whether the chosen alpha is the first or last of the path, so that a wider one may be better.
    criterion : str
        "loo", "gcv" or "folds".
    measure : str
        What the errors are.
    constant : Tensor of shape (t,) or None
        The error that the best constant leaves; None where it is not known.
    rows : str
        Which rows the errors are of, in words; "" for all rows of the fit.
    """

    alphas: Tensor
    errors: Tensor
    alpha: Tensor
    at_edge: Tensor
    criterion: str
    measure: str = "mean squared error"
    constant: Tensor | None = None
    rows: str = ""

    def plot(self, target: int = 0, ax: Any = None) -> Any:
        """Draw the error of one target against alpha, with the chosen one marked; returns matplotlib axes."""
        errors = self.errors[:, target].cpu()
        finite = errors.isfinite()
        alphas, chosen, words = self.alphas.cpu()[finite], float(self.alpha[target]), WORDS[self.criterion]
        measure = "score" if self.criterion == "gcv" else self.measure
        title = f"Chosen by {words}" + (f", {self.rows}" if self.rows else "")
        return alpha_path(alphas, errors[finite], chosen, criterion=words, error_name=measure, title=title, ax=ax)

    def __repr__(self) -> str:
        chosen = ", ".join(f"{a:.3g}" for a in self.alpha.tolist())
        edge = " (at the edge)" if bool(self.at_edge.any()) else ""
        of = f", {self.rows}" if self.rows else ""
        first, last = float(self.alphas[0]), float(self.alphas[-1])
        path = f"{len(self.alphas)} values from {first:.1e} to {last:.1e}"
        return f"AlphaPath({path}, best {chosen} by {self.criterion}{edge}{of})"


def default_alphas(largest_eigenvalue: float) -> Tensor:
    """Thirty alphas in half decades, from 1e-12 to 300 times the largest eigenvalue of A.

    Below, eigenvalues are rounding errors; above, every prediction is below 1/300 of the targets. The largest
    eigenvalue is the same for integer weights and for repeated rows, and so is the path.

    >>> default_alphas(1.0)[[0, 24, 29]]
    tensor([1.0000e-12, 1.0000e+00, 3.1623e+02], dtype=torch.float64)
    """
    scale = largest_eigenvalue if largest_eigenvalue > 0 else 1.0
    return scale * 10.0 ** (torch.arange(30, dtype=torch.float64) / 2 - 12)


def select_alpha(
    spectrum: Spectrum,
    Y: Tensor,
    weights: Tensor | None = None,
    alphas: Any = None,
    criterion: str = "loo",
    memory_budget: Any = None,
) -> AlphaPath:
    """Choose alpha for each target by the leave-one-out error or by generalised cross-validation.

    `spectrum` decomposes A = S K S with S = diag(sqrt weights); Y are the plain targets (n,) or (n, t). Where A is
    centred, the fits have an intercept. Where errors
    are equal to six digits the largest alpha is taken, the smoothest function. As many targets are done together as a
    quarter of `memory_budget` has room for, bytes or text such as "2GiB"; half of what is free by default.

    >>> from mercer.solvers import Eigh
    >>> from mercer.testing.solvers import MatrixSystem
    >>> X = torch.linspace(0, 6, 20).double().reshape(-1, 1)
    >>> spectrum = Eigh().prepare(MatrixSystem(torch.exp(-torch.cdist(X, X))))
    >>> path = select_alpha(spectrum, torch.sin(X), alphas=[1e-3, 1.0, 1e3])
    >>> path.alpha, path.at_edge
    (tensor([0.0010], dtype=torch.float64), tensor([True]))
    """
    error_of = get_criterion(criterion)
    y = centred(Y.to(spectrum.values).reshape(len(Y), -1), weights, wanted=spectrum.lift is not None)[1]
    unit = powers_of_two(y)  # squares of what is beyond 1e154 are no numbers
    y = y / unit
    w = positive_weights(weights, y)
    path = check_path(alphas, spectrum.largest).to(y.device)
    b = w.sqrt().unsqueeze(1) * y
    inverse = spectrum.inverse(path)
    diagonal, distinct = inverse.diag.unsqueeze(2), inverse.alpha.unsqueeze(1)
    rotated = spectrum.vectors.T @ b
    width = max(1, entries_at_once(memory_budget, y.device) // inverse.values.numel())
    null_diag = spectrum.null_diag().reshape(-1, 1, 1) if inverse.cut else None
    errors = []
    for targets, part in zip(rotated.split(width, dim=1), b.split(width, dim=1), strict=True):
        filtered = (inverse.values.unsqueeze(2) * targets.unsqueeze(1)).flatten(1)
        x = (spectrum.vectors @ filtered).reshape(*inverse.values.shape, -1)
        null_part = spectrum.null_part(part).unsqueeze(1) if inverse.cut else None
        errors.append(error_of(x, diagonal, distinct, w, null_part=null_part, null_diag=null_diag))
    found = best_alpha(path, torch.cat(errors, dim=1), (w @ y.square()) / w.sum(), criterion)
    around = centred(y, w)[1]
    constant = (w @ around.square()) / w.sum() * unit.square()
    return replace(found, errors=found.errors * unit.square(), constant=constant)


def entries_at_once(memory_budget: Any, device: torch.device | str = "cpu") -> int:
    """Entries of an array over rows, alphas and targets that leave room for the others of its size.

    >>> entries_at_once("48MiB"), entries_at_once("1TiB")
    (262144, 16777216)
    """
    return min(ENTRIES_AT_ONCE, resolve_budget(memory_budget, device) // (SHARE * ARRAYS_ALIVE * 8))


def get_criterion(criterion: str) -> Callable[..., Tensor]:
    """The error function of that name."""
    if criterion not in CRITERIA:
        raise InputError(f"criterion={criterion!r} is unknown; choose one of {', '.join(map(repr, CRITERIA))}.")
    return CRITERIA[criterion]


def check_path(alphas: Any, largest_eigenvalue: float) -> Tensor:
    """The path to search, ascending; None is the default one."""
    if alphas is None:
        return default_alphas(largest_eigenvalue)
    path = torch.as_tensor(alphas, dtype=torch.float64)
    if path.ndim != 1 or len(path) == 0:
        raise InputError(f"alphas={alphas!r}: must be a list of at least one number >= 0.")
    bad = ~((path >= 0) & torch.isfinite(path))
    if bool(bad.any()):
        raise InputError(f"alphas contains {float(path[bad][0])}: every alpha must be a finite number >= 0.")
    return path.unique()


def best_alpha(path: Tensor, errors: Tensor, mean_square: Tensor, criterion: str) -> AlphaPath:
    """The alpha of the smallest error (k, t) for each target; `mean_square` (t,) is that of the targets."""
    if not len(path):
        raise InputError("No alpha gives a finite error at rows left out: check the targets, the kernel and the loss.")
    errors = torch.where(torch.isfinite(errors), errors, torch.inf)
    allowed = errors.amin(0) * (1 + SAME_ERROR) + ZERO_ERROR * mean_square
    ties = errors <= allowed
    index = len(path) - 1 - ties.flip(0).to(torch.uint8).argmax(0)
    at_edge = ((index == 0) | (index == len(path) - 1)) & ~ties.all(0)
    return AlphaPath(path, errors, path[index], at_edge, criterion)
