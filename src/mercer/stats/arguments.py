"""What the arguments of tests and thinning may be: one table, looked at before any work."""

from __future__ import annotations

from mercer.core.memory import parse_budget
from mercer.core.rules import (
    FLAG,
    SCALE,
    SEED,
    Reader,
    Rule,
    Rules,
    check_arguments,
    is_integer,
    is_number,
    number,
    one_of,
    whole,
)

RULES: Rules = {
    "alpha": SCALE,
    "bins": whole(1, 10**7),
    "block_size": Rule(is_integer, lambda value: value >= 2, "an integer from 2 to the rows of the smaller sample"),
    "budget": Rule(is_integer, lambda value: 1 <= value <= 10**12, "an integer >= 1, of pairs"),
    "compress": FLAG,
    "level": Rule(is_number, lambda value: 0 < value < 1, "a number between 0 and 1"),
    "m": whole(1, 10**8),
    "max_rows": whole(2),
    "memory_budget": Reader(parse_budget),
    "min_size": whole(1),
    "n_features": whole(1, 10**6),
    "n_projections": whole(1, 10**6),
    "n_resamples": whole(1, 10**7),
    "random_state": SEED,
    "squared": FLAG,
    "standardize": FLAG,
    "target": number(lambda value: value > 0, "a number > 0"),
}


def check(**given: object) -> None:
    """Raise an error that names the first argument that cannot be what it is."""
    check_arguments(RULES, **given)


def check_given(**given: object) -> None:
    """The same for arguments that may be None."""
    check(**{name: value for name, value in given.items() if value is not None})


def check_name(name: str, value: object, names: tuple[str, ...]) -> None:
    """Raise an error for what is none of these names."""
    one_of(*names).check(name, value, False)
