"""What cannot be done in parts is said in words, with what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GaussianProcessClassifier, KernelClassifier, KernelRegressor, KernelRidge, RFMClassifier
from mercer.core.errors import InputTypeError
from mercer.rows import ArrayRows

X = np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize("estimator", [GaussianProcessClassifier(), RFMClassifier()])
def test_what_needs_all_rows_in_memory_says_what_does_not(estimator):
    with pytest.raises(InputTypeError, match="needs all rows in memory. KernelRidge, KernelRegressor and KernelClass"):
        estimator.fit(ArrayRows(X, X[:, 0]), None)


def test_a_path_says_how_to_name_a_source():
    with pytest.raises(InputTypeError, match=r"mercer.rows.ParquetRows\('trips', target='fare'\)"):
        KernelRidge().fit("trips", "fare")
    with pytest.raises(InputTypeError, match=r"mercer.rows.npy_rows\('X.npy', 'y.npy'\)"):
        KernelRidge().fit("X.npy", "y.npy")
    with pytest.raises(InputTypeError, match="read the file into a data frame first"):
        KernelClassifier().fit("trips.csv", [0, 1])


@pytest.mark.parametrize("estimator", [KernelClassifier(loss="hinge"), KernelRegressor(loss="huber")])
def test_losses_say_why_they_have_no_partial_fit(estimator):
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(
        AttributeError, match=r"needs all rows at once.*whose sums over rows add up, or fit to all rows"
    ):
        estimator.partial_fit(X, X[:, 0])
    with pytest.raises(AttributeError, match=r"a coefficient for each row depends on all of them"):
        type(estimator)(loss="squared", solver="pcg").partial_fit(X, X[:, 0])
