"""Which exact solver to use: decided from the size of the job before any work starts."""

from __future__ import annotations

import math
from typing import Any

import torch

from mercer.core.errors import InputError
from mercer.core.memory import parse_budget, readable, require, resolve_budget
from mercer.solvers.ridge import get_solver
from mercer.solvers.system import check_alpha

MATRICES = {"cholesky": 1.5, "eigh": 3.5}
"""The memory a solver needs, in matrices of n x n float64 numbers: one and three, and room to evaluate the first."""

MANY_ALPHAS = 12
"""An eigendecomposition costs about as much as this many Cholesky factorisations."""


def choose(
    n: int,
    n_targets: int,
    alpha: Any,
    solver: str = "auto",
    memory_budget: int | str | None = None,
    device: torch.device | str = "cpu",
) -> tuple[str, str]:
    """The name of the solver for n rows and the reason; `MemoryBudgetError` when its n x n matrices do not fit.

    `alpha` is a number, one per target, or the name of a criterion that searches a path ("loo", "gcv").
    ``solver="auto"`` takes Cholesky for positive alphas, and an eigendecomposition for alpha = 0, for a path, and for
    more than a dozen different alphas, where it is cheaper. Where the matrix does not fit, positive alphas go to
    conjugate gradients, which never store it. The problem that is solved is never changed.

    >>> choose(1000, 1, 1.0, memory_budget="1GiB")
    ('cholesky', 'chosen for alpha > 0')
    >>> choose(1000, 1, "loo", memory_budget="1GiB")
    ('eigh', 'chosen because one eigendecomposition gives the whole path of alpha')
    >>> choose(50_000, 1, 1.0, memory_budget="1GiB")
    ('pcg', 'chosen because the Gram matrix needs 27.9 GiB but the memory budget is 1.0 GiB')
    """
    budget = resolve_budget(memory_budget, device)
    if solver == "auto":
        name, reason = _automatic(n, n_targets, alpha, budget)
    else:
        get_solver(solver)
        name, reason = solver, f"asked for by solver={solver!r}"
    needs_path = isinstance(alpha, str)
    if name == "pcg" and not needs_path:
        _check_positive(alpha, n_targets)
        return name, reason
    widest = "eigh" if needs_path else name
    require(
        memory_needed(n, widest, n_targets),
        budget,
        _what(n, widest),
        _advice(n, widest, n_targets, budget, memory_budget),
    )
    if needs_path and name != "eigh":
        reason += "; the path of alpha comes from an eigendecomposition"
    return name, reason


def memory_needed(n: int, solver: str, n_targets: int = 1) -> int:
    """Bytes that an exact solve with n rows takes at its peak.

    >>> memory_needed(10_000, "cholesky") / 2**30
    1.11...
    """
    return int(8 * (MATRICES[solver] * n * n + 4 * n * n_targets))


def _automatic(n: int, n_targets: int, alpha: Any, budget: int) -> tuple[str, str]:
    if isinstance(alpha, str):
        return "eigh", "chosen because one eigendecomposition gives the whole path of alpha"
    alphas = check_alpha(alpha, n_targets)
    if bool((alphas == 0).any()):
        return "eigh", "chosen because alpha = 0 needs a decision on the rank"
    distinct = len(alphas.unique())
    needed = memory_needed(n, "cholesky", n_targets)
    if needed > budget:
        sizes = f"needs {readable(needed)} but the memory budget is {readable(budget)}"
        return "pcg", f"chosen because the Gram matrix {sizes}"
    if distinct <= MANY_ALPHAS:
        return "cholesky", "chosen for alpha > 0"
    if memory_needed(n, "eigh", n_targets) > budget:
        return (
            "cholesky",
            f"chosen for {distinct} different alphas because an eigendecomposition does not fit in memory",
        )
    return "eigh", f"chosen because it is the cheapest for {distinct} different alphas"


def _check_positive(alpha: Any, n_targets: int) -> None:
    if not bool((check_alpha(alpha, n_targets) > 0).all()):
        raise InputError(f"alpha={alpha}: solver='pcg' needs alpha > 0; for alpha = 0 use solver='eigh'.")


def _what(n: int, solver: str) -> str:
    return f"solver={solver!r} on the {n:,} x {n:,} Gram matrix, in float64 (float32 is not accurate enough here),"


def _advice(n: int, solver: str, n_targets: int, budget: int, given: Any) -> str:
    rows = _largest_fitting(solver, n_targets, budget)
    options = [
        f"At most {rows:,} rows fit",
        f"memory_budget={readable(1.05 * memory_needed(n, solver, n_targets))!r} would do",
    ]
    if solver == "eigh" and memory_needed(n, "cholesky", n_targets) <= budget:
        options.append("one number alpha > 0 with solver='cholesky' fits")
    options.append("one number alpha > 0 with solver='pcg' needs no matrix")
    origin = "" if parse_budget(given) is not None else " The budget is half of the free memory."
    return f"{'; '.join(options)}.{origin}"


def _largest_fitting(solver: str, n_targets: int, budget: int) -> int:
    """The largest n with 8 (m n^2 + 4 t n) <= budget."""
    m, t = MATRICES[solver], n_targets
    return int((-4 * t + math.sqrt(16 * t * t + 4 * m * budget / 8)) / (2 * m))
