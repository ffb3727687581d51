"""One seed from whatever `random_state` was given; global generators are never touched."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import torch

from mercer.core.errors import InputTypeError

SEEDS = 2**63
"""Larger integers count modulo this, so that all that numpy takes are seeds."""


def as_seed(random_state: Any) -> int:
    """A non-negative seed: None is 0, so that results repeat by default; generators give their next number.

    >>> as_seed(None), as_seed(7), as_seed(2**63 + 7)
    (0, 7, 7)
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state) % SEEDS
    raise InputTypeError(
        f"random_state={random_state!r}: give None, an integer >= 0, a numpy RandomState or a numpy Generator."
    )


def generator_from(seed: int | torch.Generator) -> torch.Generator:
    """A generator of random numbers on the CPU, so that every device sees the same ones; never the global one."""
    return seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
