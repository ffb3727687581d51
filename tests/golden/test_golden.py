"""Every fit gives the numbers that it gave when the golden file was recorded; see record.py for when to record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden_cases import CASES, PRECISION
from record import read, run

GOLDEN = read()


def check_close(found: Any, expected: Any, tolerance: float, where: str) -> None:
    if isinstance(expected, str) or (isinstance(expected, list) and isinstance(expected[0], str)):
        assert found == expected, f"{where} is {found}, was {expected}"
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{where} has the shape {found.shape}, had {expected.shape}"
    difference = float(np.abs(found - expected).max())
    size = float(np.abs(expected).max())
    assert difference <= tolerance * size, f"{where} differs by {difference:.2e} from numbers up to {size:.2e}"


def test_every_case_is_recorded() -> None:
    assert GOLDEN.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_recorded(name: str) -> None:
    found, expected = run(name), GOLDEN[name]
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        check_close(found[key], value, PRECISION[CASES[name].precision], f"{key} of {name!r}")
