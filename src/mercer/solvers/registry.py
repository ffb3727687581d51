"""Solvers register themselves: a decorator gives the name, and with it the place in choosers, estimators and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from mercer.core.errors import InputError, InputTypeError
from mercer.solvers.traits import Traits

S = TypeVar("S", bound=type)

RIDGE_SOLVERS: dict[str, Any] = {}
"""All solvers of `KernelRidge` by name; each is a class with `traits`."""

PLACE = ("memory_budget",)
"""Settings of a solver that stay on the machine where they were given, as those of estimators do."""


def register(name: str) -> Callable[[S], S]:
    """A class of solvers, with `traits`, that is known by a name from now on; its objects clone as themselves."""

    def mark(cls: S) -> S:
        RIDGE_SOLVERS[name] = cls
        cls.__sklearn_clone__ = _itself  # type: ignore[attr-defined]
        return cls

    return mark


def name_of(solver: Any) -> str:
    """The name of a solver, given by its name or as an object.

    >>> from mercer.solvers import PCG
    >>> name_of("eigh"), name_of(PCG(rank=200))
    ('eigh', 'pcg')
    """
    if isinstance(solver, str):
        if solver not in RIDGE_SOLVERS:
            raise InputError(f"solver={solver!r} is unknown; the solvers are {known()}, or 'auto' to choose.")
        return solver
    for name, cls in RIDGE_SOLVERS.items():
        if type(solver) is cls and is_dataclass(cls):
            return name
    raise InputTypeError(f"solver={solver!r}: give a name, {known()}, or a solver such as PCG(rank=200).")


def solver_asked_for(solver: Any) -> str:
    """The same, or "auto" where the choice is left open."""
    return "auto" if isinstance(solver, str) and solver == "auto" else name_of(solver)


def known() -> str:
    """The names of all solvers."""
    return ", ".join(map(repr, sorted(RIDGE_SOLVERS)))


def traits_of(solver: Any) -> Traits:
    """The traits of a solver, given by its name or as an object.

    >>> traits_of("eigh").matrices, traits_of("falkon").sums_of
    (3.5, 'landmarks')
    """
    traits: Traits = RIDGE_SOLVERS[name_of(solver)].traits
    return traits


def merges(solver: Any) -> bool:
    """Whether further rows can join a fit by the solver of that name."""
    return isinstance(solver, str) and solver in RIDGE_SOLVERS and traits_of(solver).merges


def options_of(solver: Any) -> set[str]:
    """The names of what a solver can be told."""
    cls = RIDGE_SOLVERS[name_of(solver)]
    return {f.name for f in fields(cls)} if is_dataclass(cls) else set()


def is_default(solver: Any, name: str) -> bool:
    """Whether a field of a solver object has the value that it has when nothing is said."""
    return bool(getattr(solver, name) == next(f.default for f in fields(solver) if f.name == name))


def to_dict(solver: Any) -> dict[str, Any]:
    """A solver object as plain data: its name and its fields."""
    values = {f.name: getattr(solver, f.name) for f in fields(solver) if f.repr and f.name not in PLACE}
    for name, value in values.items():
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(f"solver={solver!r}: its {name} does not fit a model file. Use pickle instead.")
    return {"solver": name_of(solver), "fields": values}


def from_dict(values: Mapping[str, Any]) -> Any:
    """The solver object that `to_dict` described; an error of ours for what it cannot be."""
    name, given = values.get("solver"), values.get("fields")
    if set(values) != {"solver", "fields"} or not isinstance(name, str) or not isinstance(given, Mapping):
        raise InputError(f"solver={dict(values)!r}: expected the name of a solver and its fields.")
    cls = RIDGE_SOLVERS[name_of(name)]
    allowed = {f.name for f in fields(cls) if f.repr and f.name not in PLACE} if is_dataclass(cls) else set()
    plain = all(isinstance(value, bool | int | float | str | None) for value in given.values())
    if not set(given) <= allowed or not plain:
        raise InputError(f"solver={dict(values)!r}: has fields that {cls.__name__} does not.")
    try:
        return cls(**given)
    except TypeError as error:
        raise InputError(f"solver={dict(values)!r}: {error}") from None


def _itself(self: Any) -> Any:
    return self
