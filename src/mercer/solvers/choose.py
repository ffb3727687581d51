"""Which solver to use: decided from the size of the job before any work starts."""

from __future__ import annotations

import math
from typing import Any

import torch

from mercer.core.errors import InputError
from mercer.core.memory import parse_budget, readable, require, resolve_budget
from mercer.solvers.dials import MANY_ALPHAS, MANY_LANDMARKS, MATRIX_SHARE, MOST_ROWS
from mercer.solvers.newton_solvers import LOSS_SOLVERS
from mercer.solvers.registry import RIDGE_SOLVERS, name_of, solver_asked_for, traits_of
from mercer.solvers.system import check_alpha

SPECTRAL = "eigh"
"""The solver whose one decomposition gives a path of alphas, and decides on the rank at alpha = 0."""


def choose(
    n: int,
    n_targets: int,
    alpha: Any,
    solver: Any = "auto",
    memory_budget: int | str | None = None,
    device: torch.device | str = "cpu",
    *,
    n_landmarks: int | None = None,
    n_features: int | None = None,
) -> tuple[str, str]:
    """The name of the solver for n rows and the reason; `MemoryBudgetError` when its matrices do not fit.

    `alpha` is a number, one per target, or the name of a criterion that searches a path ("loo", "gcv").
    ``solver="auto"`` solves the full system while it can: by Cholesky for positive alphas, by an eigendecomposition for
    alpha = 0, for a path, and for more than a dozen different alphas; where the matrix does not fit, by conjugate
    gradients up to 100,000 rows, a million on a GPU. Beyond that, and for a path that does not fit, it takes landmarks;
    alpha = 0 goes to EigenPro, though estimators take landmarks where few rows are distinct. Landmarks or features
    that are asked for decide at once.

    >>> choose(1000, 1, 1.0, memory_budget="1GiB")
    ('cholesky', 'chosen for alpha > 0')
    >>> choose(1000, 1, "loo", memory_budget="1GiB")
    ('eigh', 'chosen because one eigendecomposition gives the whole path of alpha')
    >>> choose(50_000, 1, 1.0, memory_budget="1GiB")
    ('pcg', 'chosen because the Gram matrix needs 27.9 GiB but the memory budget is 1.0 GiB')
    >>> choose(10**6, 1, 1.0, memory_budget="1GiB")[0], choose(100, 1, 1.0, n_landmarks=10)[0]
    ('nystrom', 'nystrom')
    """
    budget = resolve_budget(memory_budget, device)
    if isinstance(solver, str) and solver == "auto":
        return _automatic(n, n_targets, alpha, budget, _kind(device), n_landmarks, n_features)
    name, reason = _checked(solver, n_landmarks, n_features), f"asked for by solver={solver!r}"
    traits, needs_path = traits_of(name), isinstance(alpha, str)
    if needs_path and not traits.path:
        raise InputError(f"alpha={alpha!r}: solver={name!r} needs a number; solver='nystrom' searches a path.")
    if not needs_path and not traits.zero_alpha:
        _check_positive(alpha, n_targets, name)
    if traits.sums_of != "rows" or (traits.iterates and not needs_path):
        return name, reason
    widest = SPECTRAL if needs_path else name
    if (needed := memory_needed(n, widest, n_targets)) > budget:
        require(needed, budget, _what(n, widest), _advice(n, widest, n_targets, budget, memory_budget))
    if needs_path and not traits.spectral:
        reason += "; the path of alpha comes from an eigendecomposition"
    return name, reason


def memory_needed(n: int, solver: str, n_targets: int = 1) -> int:
    """Bytes that an exact solve with n rows takes at its peak.

    >>> memory_needed(10_000, "cholesky") / 2**30
    1.11...
    """
    return int(8 * (traits_of(solver).matrices * n * n + 4 * n * n_targets))


def landmark_count(n: int, given: int | None, solver: str, memory_budget: Any, device: torch.device | str) -> int:
    """How many landmarks to choose: as many as given, else 4 sqrt(n) between 500 and 4000, fewer where memory is short.

    >>> landmark_count(10_000, None, "nystrom", "1GiB", "cpu"), landmark_count(10**6, None, "nystrom", "16GiB", "cpu")
    (500, 4000)
    """
    budget = resolve_budget(memory_budget, device)
    matrices = int(traits_of(solver).matrices)
    fitting = math.isqrt(int(MATRIX_SHARE * budget) // (8 * matrices))
    if given is None:
        return max(1, min(n, fitting, max(500, min(4000, 4 * math.isqrt(n)))))
    what = f"solver={solver!r} with {given:,} landmarks, which takes {matrices} matrices of that size beside rows,"
    require(8 * matrices * min(n, given) ** 2 / MATRIX_SHARE, budget, what, f"At most {fitting:,} landmarks fit.")
    return min(n, given)


def landmark_solver(m: int, alpha: Any) -> str:
    """Iterations for many landmarks, except for what they cannot do: a path of alpha, or alpha = 0.

    >>> landmark_solver(10_000, 1.0), landmark_solver(10_000, 0.0), landmark_solver(100, 1.0)
    ('falkon', 'nystrom', 'nystrom')
    """
    iterations = m > MANY_LANDMARKS and not isinstance(alpha, str) and bool(torch.all(torch.as_tensor(alpha) > 0))
    return "falkon" if iterations else "nystrom"


def _automatic(
    n: int, n_targets: int, alpha: Any, budget: int, device: str, n_landmarks: int | None, n_features: int | None
) -> tuple[str, str]:
    if n_features is not None:
        _checked("random_features", n_landmarks, n_features)
        return "random_features", f"chosen because n_features={n_features} is given"
    if n_landmarks is not None:
        return landmark_solver(min(n, n_landmarks), alpha), f"chosen because n_landmarks={n_landmarks} is given"
    if isinstance(alpha, str):
        if (needed := memory_needed(n, "eigh", n_targets)) <= budget:
            return "eigh", "chosen because one eigendecomposition gives the whole path of alpha"
        return "nystrom", f"chosen because the path of alpha on all rows {_too_much(needed, budget)}"
    alphas = set(check_alpha(alpha, n_targets).reshape(-1).tolist())
    if 0.0 in alphas:
        if (needed := memory_needed(n, "eigh", n_targets)) <= budget:
            return "eigh", "chosen because alpha = 0 needs a decision on the rank"
        return "eigenpro", f"chosen because the exact interpolant {_too_much(needed, budget)}"
    distinct = len(alphas)
    if (needed := memory_needed(n, "cholesky", n_targets)) > budget:
        if n > MOST_ROWS[device]:
            return "nystrom", f"chosen because {n:,} rows are more than the {MOST_ROWS[device]:,} of a full fit"
        return "pcg", f"chosen because the Gram matrix {_too_much(needed, budget)}"
    if distinct <= MANY_ALPHAS:
        return "cholesky", "chosen for alpha > 0"
    if memory_needed(n, "eigh", n_targets) > budget:
        return (
            "cholesky",
            f"chosen for {distinct} different alphas because an eigendecomposition does not fit in memory",
        )
    return "eigh", f"chosen because it is the cheapest for {distinct} different alphas"


def _kind(device: torch.device | str) -> str:
    kind = torch.device(device).type
    if kind not in MOST_ROWS:
        raise InputError(f'device={str(device)!r}: mercer computes on "cpu" and "cuda".')
    return kind


def _too_much(needed: int, budget: int) -> str:
    return f"needs {readable(needed)} but the memory budget is {readable(budget)}"


def _checked(solver: Any, n_landmarks: int | None, n_features: int | None) -> str:
    """The name of a solver that goes with the other arguments."""
    name = name_of(solver)
    sums_of = traits_of(name).sums_of
    if n_landmarks is not None and sums_of != "landmarks":
        raise InputError(f"n_landmarks={n_landmarks} has no meaning for solver={name!r}: use {_those('landmarks')}.")
    if n_features is not None and sums_of != "features":
        raise InputError(f"n_features={n_features} has no meaning for solver={name!r}: use {_those('features')}.")
    return name


def _those(sums_of: str) -> str:
    """The names of the solvers whose functions are sums of these."""
    return " or ".join(repr(name) for name, cls in RIDGE_SOLVERS.items() if cls.traits.sums_of == sums_of)


def _check_positive(alpha: Any, n_targets: int, solver: str) -> None:
    if not bool((check_alpha(alpha, n_targets) > 0).all()):
        instead = SPECTRAL if traits_of(solver).exact else "nystrom"
        raise InputError(f"alpha={alpha}: solver={solver!r} needs alpha > 0; for alpha = 0 use solver={instead!r}.")


def _what(n: int, solver: str) -> str:
    return f"solver={solver!r} on the {n:,} x {n:,} Gram matrix, in float64 (float32 is not accurate enough here),"


def _advice(n: int, solver: str, n_targets: int, budget: int, given: Any) -> str:
    rows = most_rows(solver, n_targets, budget)
    options = [
        f"At most {rows:,} rows fit",
        f"memory_budget={readable(1.05 * memory_needed(n, solver, n_targets))!r} would do",
    ]
    if solver == "eigh" and memory_needed(n, "cholesky", n_targets) <= budget:
        options.append("one number alpha > 0 with solver='cholesky' fits")
    options.append("one number alpha > 0 with solver='pcg' needs no matrix")
    options.append("solver='nystrom' takes any alpha")
    origin = "" if parse_budget(given) is not None else " The budget is half of the free memory."
    return f"{'; '.join(options)}.{origin}"


def most_rows(solver: str, n_targets: int, budget: int) -> int:
    """The largest number of rows that an exact solver fits into so many bytes: 8 (m n^2 + 4 t n) <= budget.

    >>> most_rows("eigh", 1, 2**30)
    6191
    """
    m, t = traits_of(solver).matrices, n_targets
    return int((-4 * t + math.sqrt(16 * t * t + 4 * m * budget / 8)) / (2 * m))


def choose_for_loss(
    n: int,
    solver: Any = "auto",
    memory_budget: int | str | None = None,
    device: torch.device | str = "cpu",
    n_landmarks: int | None = None,
) -> tuple[str, str]:
    """Where Newton's method takes its systems from, and the reason, for a loss that is not squared and n rows.

    "dense" stores the Gram matrix, "pcg" multiplies by it without storing it, "nystrom" has a coefficient for each
    landmark. ``solver="auto"`` takes the first that fits the memory budget; "pcg" up to 100,000 rows, a million on a
    GPU.

    >>> choose_for_loss(1000, memory_budget="1GiB")
    ('dense', 'the Gram matrix fits in memory')
    >>> choose_for_loss(10**6, memory_budget="1GiB")[0]
    'nystrom'
    """
    asked, solver = solver, solver_asked_for(solver, LOSS_SOLVERS)
    if n_landmarks is not None and solver not in ("auto", "nystrom"):
        raise InputError(f"n_landmarks={n_landmarks} has no meaning for solver={solver!r}: use 'nystrom'.")
    budget, needed = resolve_budget(memory_budget, device), memory_needed(n, "cholesky")
    if solver == "dense":
        fitting = most_rows("cholesky", 1, budget)
        require(needed, budget, _what(n, solver), f"At most {fitting:,} rows fit; solver='pcg' needs no matrix.")
    if solver != "auto":
        return solver, f"asked for by solver={asked!r}"
    if n_landmarks is not None:
        return "nystrom", f"landmarks because n_landmarks={n_landmarks} is given"
    if needed <= budget:
        return "dense", "the Gram matrix fits in memory"
    most = MOST_ROWS[_kind(device)]
    if n <= most:
        return "pcg", f"products from tiles because the Gram matrix {_too_much(needed, budget)}"
    return "nystrom", f"landmarks because {n:,} rows are more than the {most:,} of a full fit"
