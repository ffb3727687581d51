"""What cannot be rows is an error of ours, for every public function and method that takes rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from fuzz.functions import CALLS
from mercer.core.errors import InputError, InputTypeError

WRONG = {
    "one dimension": lambda X: X[:, 0],
    "no rows": lambda X: X[:0],
    "three dimensions": lambda X: X[:, :, None],
    "complex": lambda X: X + 1j,
    "text": lambda X: np.full(X.shape, "a"),
    "NaN": lambda X: np.where(np.arange(len(X))[:, None] == 1, np.nan, X),
    "sparse": scipy.sparse.csr_array,
    "nothing": lambda X: None,
    "a number": lambda X: 3.0,
    "a word": lambda X: "rows",
    "ragged": lambda X: [[1.0], [1.0, 2.0]],
}
MAY_WORK = {"one dimension", "text", "nothing", "a number", "ragged"}
"""For functions of one column, of labels, of objects, of gradients of one sample, and of tables."""
ALSO = {"gram": {"no rows"}, "kernel": {"no rows"}, "LayerKernel": {"no rows"}, "tabular": {"NaN"}}
"""Matrices of kernel values may have no rows, tables have gaps."""


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.arrays])
def test_what_cannot_be_rows_is_named_in_our_words(name):
    call = CALLS[name]
    for argument in call.arrays[:1]:
        for kind, change in WRONG.items():
            given = call.good(np.random.default_rng(0))
            given[argument] = change(given[argument])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call.call(**given)
                except (InputError, InputTypeError) as error:
                    words = str(error)
                    assert 20 < len(words) < 600, (kind, words)
                    assert words.rstrip()[-1] in ".)", (kind, words)
                    continue
            assert kind in MAY_WORK | ALSO.get(name.split(",")[0], set()), f"{argument}, {kind}: no error"
