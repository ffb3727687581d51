"""The solver that an estimator is asked for: a name, or an object with options of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mercer.core.errors import InputError
from mercer.core.rules import Reader
from mercer.solvers.registry import Solvers, is_default, options_of, solver_asked_for

ELSEWHERE = {"random_state": "seed", "memory_budget": "memory_budget"}
"""Parameters that every estimator has: a solver takes them over where its own field is as it was."""


def solver_rule(among: Solvers) -> Reader:
    """What `solver` may be."""
    return Reader(partial(solver_asked_for, among=among))


def asked_for(p: Mapping[str, Any], among: Solvers, **defaults: Any) -> tuple[str, Any]:
    """The name of the solver, or "auto", and the solver itself where it is an object.

    An option given to both is an error; `defaults` are those of the options that the estimator has, too.

    >>> from mercer.solvers import Krylov
    >>> from mercer.solvers.registry import EIGENSOLVERS
    >>> asked_for({"solver": Krylov(tol=1e-6), "tol": 1e-12}, EIGENSOLVERS, tol=1e-12)
    ('krylov', Krylov(tol=1e-06, max_iter=500))
    """
    solver = p["solver"]
    name = solver_asked_for(solver, among)
    if isinstance(solver, str):
        return name, None
    takes = options_of(name, among)
    twice = [option for option, default in defaults.items() if option in takes and p[option] != default]
    twice += [
        option
        for option, field in ELSEWHERE.items()
        if field in takes and p[option] is not None and not is_default(solver, field)
    ]
    for option in twice:
        raise InputError(f"{option}={p[option]!r} and solver={solver!r}: give the option to one of the two.")
    return name, solver


def with_options(p: Mapping[str, Any], among: Solvers, **defaults: Any) -> dict[str, Any]:
    """The parameters with the name of the solver, and with the options of the object where one is given."""
    name, solver = asked_for(p, among, **defaults)
    options = {} if solver is None else {option: getattr(solver, option) for option in options_of(name, among)}
    return {**p, "solver": name, **options}
