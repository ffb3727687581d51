"""Solvers register themselves: a decorator gives the name, and with it the place in choosers, estimators and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from mercer.core.errors import InputError, InputTypeError
from mercer.solvers.traits import Traits

S = TypeVar("S", bound=type)
Solvers = dict[str, Any]
"""Classes of solvers for one kind of problem by name; their objects are frozen."""


class SolverObject(Protocol):
    """An object of one of these classes: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


SolverLike: TypeAlias = str | SolverObject
"""A name, "auto" included, or an object."""

RIDGE_SOLVERS: Solvers = {}
"""The solvers of `KernelRidge`; each has `traits`."""
LOSS_SOLVERS: Solvers = {}
"""The solvers of `KernelClassifier` and `KernelRegressor`."""
EIGENSOLVERS: Solvers = {}
"""The solvers of `KernelPCA` and `MercerDecomposition`."""

PLACE = ("memory_budget",)
"""Settings of a solver that stay on the machine where they were given, as those of estimators do."""


def register(name: str, among: Solvers = RIDGE_SOLVERS) -> Callable[[S], S]:
    """A class of solvers that is known by a name from now on; its objects clone as themselves.

    `among` are the solvers of the same kind of problem, by default those of ridge regression.

    >>> from dataclasses import dataclass
    >>> from mercer.solvers import Cholesky
    >>> @register("halved")
    ... @dataclass(frozen=True)
    ... class Halved:
    ...     traits = Cholesky.traits
    ...
    ...     def solve(self, A, B, alpha):
    ...         return Cholesky().solve(A, B, alpha / 2)
    >>> name_of(Halved()), RIDGE_SOLVERS.pop("halved").__name__
    ('halved', 'Halved')
    """

    def mark(cls: S) -> S:
        among[name] = cls
        cls.__sklearn_clone__ = _itself  # type: ignore[attr-defined]
        return cls

    return mark


def name_of(solver: Any, among: Solvers = RIDGE_SOLVERS) -> str:
    """The name of a solver, given by its name or as an object.

    >>> from mercer.solvers import PCG
    >>> name_of("eigh"), name_of(PCG(rank=200))
    ('eigh', 'pcg')
    """
    name = _found(solver, among)
    if name is not None:
        return name
    kind = InputError if isinstance(solver, str) else InputTypeError
    such = " or ".join(f"{among[name].__name__}()" for name in sorted(among)[:2])
    raise kind(f"solver={solver!r}: must be 'auto', {known(among)}, or a solver object such as {such}.")


def solver_asked_for(solver: Any, among: Solvers = RIDGE_SOLVERS) -> str:
    """The same, or "auto" where the choice is left open."""
    return "auto" if isinstance(solver, str) and solver == "auto" else name_of(solver, among)


def known(among: Solvers = RIDGE_SOLVERS) -> str:
    """The names of all solvers."""
    return ", ".join(map(repr, sorted(among)))


def traits_of(solver: Any) -> Traits:
    """The traits of a solver of ridge regression, given by its name or as an object.

    >>> traits_of("eigh").matrices, traits_of("falkon").sums_of
    (3.5, 'landmarks')
    """
    traits: Traits = RIDGE_SOLVERS[name_of(solver)].traits
    return traits


def merges(solver: Any) -> bool:
    """Whether further rows can join a fit by a solver of ridge regression, given as a user gives it."""
    name = _found(solver, RIDGE_SOLVERS)
    return name is not None and traits_of(name).merges


def options_of(solver: Any, among: Solvers = RIDGE_SOLVERS) -> set[str]:
    """The names of what a solver can be told."""
    cls = among[name_of(solver, among)]
    return {f.name for f in fields(cls)} if is_dataclass(cls) else set()


def is_default(solver: Any, name: str) -> bool:
    """Whether a field of a solver object has the value that it has when nothing is said."""
    return bool(getattr(solver, name) == next(f.default for f in fields(solver) if f.name == name))


def to_dict(solver: Any) -> dict[str, Any]:
    """A solver object as plain data: the name of its class and its fields."""
    values = {name: getattr(solver, name) for name in _saved_fields(type(solver))}
    for name, value in values.items():
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(f"solver={solver!r}: its {name} does not fit a model file. Use pickle instead.")
    return {"solver": type(solver).__name__, "fields": values}


def from_dict(values: Mapping[str, Any]) -> Any:
    """The solver object that `to_dict` described; an error of ours for what it cannot be."""
    name, given = values.get("solver"), values.get("fields")
    if set(values) != {"solver", "fields"} or not isinstance(name, str) or not isinstance(given, Mapping):
        raise InputError(f"solver={dict(values)!r}: expected the name of a solver and its fields.")
    cls = _classes().get(name)
    if cls is None:
        raise InputError(f"solver={dict(values)!r}: no class of solvers that is registered has this name.")
    plain = all(isinstance(value, bool | int | float | str | None) for value in given.values())
    if not set(given) <= _saved_fields(cls) or not plain:
        raise InputError(f"solver={dict(values)!r}: has fields that {name} does not.")
    try:
        return cls(**given)
    except TypeError as error:
        raise InputError(f"solver={dict(values)!r}: {error}") from None


def is_solver(value: Any) -> bool:
    """Whether a value is an object of a class of solvers that is registered."""
    return _classes().get(type(value).__name__) is type(value)


def _found(solver: Any, among: Solvers) -> str | None:
    if isinstance(solver, str):
        return solver if solver in among else None
    return next((name for name, cls in among.items() if type(solver) is cls), None)


def _classes() -> Solvers:
    return {cls.__name__: cls for among in (RIDGE_SOLVERS, LOSS_SOLVERS, EIGENSOLVERS) for cls in among.values()}


def _saved_fields(cls: type) -> set[str]:
    return {f.name for f in fields(cls) if f.repr and f.name not in PLACE} if is_dataclass(cls) else set()


def _itself(self: Any) -> Any:
    return self
