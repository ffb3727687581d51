"""What cannot be rows, a number, a name or a flag is an error of ours, for every public function and method."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from fuzz.functions import CALLS
from mercer import TabularEstimator, stats
from mercer.core.errors import InputError, InputTypeError, MercerError

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
    "huge integers": lambda X: np.full(X.shape, 10**400, dtype=object),
    "an empty frame": lambda X: pd.DataFrame(),
    "two columns of one name": lambda X: pd.DataFrame(np.c_[X[:, :1], X[:, :1]], columns=["a", "a"]),
}
MAY_WORK = {"one dimension", "text", "nothing", "a number", "ragged", "two columns of one name"}
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


CALLED = {"parts": "rows_at_once", "kernel_x": "kernel"}
"""Arguments that an error calls by the name they have further in."""
NOT_ARGUMENTS = {"method", "options", "settings"}
"""Of the calls themselves."""


def of_another_kind(value):
    """What is neither a number nor text nor a flag, and what is one of these where another one is wanted."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return [object(), {}, *([True, np.bool_(True), 1j] if number else ["x"] if isinstance(value, bool) else [3])]


def refused(call, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MercerError) as caught:
            call(**given)
    return caught.value


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_another_kind_is_a_type_error_that_names_and_quotes_it(name):
    call = CALLS[name]
    for argument, value in call.good(np.random.default_rng(0)).items():
        if argument in NOT_ARGUMENTS or not isinstance(value, int | float | str):
            continue
        for wrong in of_another_kind(value):
            error = refused(call.call, **(call.good(np.random.default_rng(0)) | {argument: wrong}))
            assert isinstance(error, TypeError), (argument, wrong, error)
            assert CALLED.get(argument, argument) in str(error), (argument, wrong, error)
            assert repr(wrong) in str(error), (argument, wrong, error)


@pytest.mark.parametrize("name", CALLS)
def test_a_number_or_a_flag_of_numpy_is_taken_as_one_of_python(name):
    call = CALLS[name]
    for argument, value in call.good(np.random.default_rng(0)).items():
        kinds = {bool: [np.bool_], int: [np.int64, np.int32], float: [np.float64, np.float32]}.get(type(value), [])
        for kind in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call.call(**(call.good(np.random.default_rng(0)) | {argument: kind(value)}))


X = np.random.default_rng(0).normal(size=(60, 2))
FITS = {
    stats.DriftDetector: lambda model: model.fit(X),
    stats.KernelHerding: lambda model: model.fit(X),
    stats.KernelThinning: lambda model: model.fit(X),
    stats.MeanEmbedding: lambda model: model.fit(X),
    stats.SteinThinning: lambda model: model.fit(X, lambda x: -x),
    TabularEstimator: lambda model: model.fit({"a": X[:, 0].tolist()}, X[:, 1]),
}
"""Classes with parameters that are no estimators of a kernel; those are in `tests/estimators/test_parameters.py`."""


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner in FITS for name in inspect.signature(owner).parameters],
    ids=lambda case: getattr(case, "__name__", case),
)
def test_a_parameter_of_another_kind_is_a_type_error_that_names_it(owner, name):
    given = {"m": 5} if "m" in inspect.signature(owner).parameters and name != "m" else {}
    error = refused(lambda **more: FITS[owner](owner(**given, **more)), **{name: object()})
    assert name in str(error)
    assert isinstance(error, TypeError) or "needs" in str(error)  # something else, without which it has no meaning
