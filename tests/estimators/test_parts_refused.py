"""What cannot be done in parts is said in words, with what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GaussianProcessRegressor, KernelClassifier, KernelRegressor, KernelRidge, RFMClassifier
from mercer.core.errors import InputTypeError
from mercer.rows import ArrayRows

X = np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize(
    "estimator", [KernelClassifier(), KernelRegressor(), GaussianProcessRegressor(), RFMClassifier()]
)
def test_sources_of_rows_are_for_ridge(estimator):
    with pytest.raises(InputTypeError, match="needs all rows in memory. KernelRidge takes rows in parts"):
        estimator.fit(ArrayRows(X, X[:, 0]), None)


def test_a_path_says_how_to_name_a_source():
    with pytest.raises(InputTypeError, match=r"mercer.rows.ParquetRows\('trips', target='price'\)"):
        KernelRidge().fit("trips", "fare")
    with pytest.raises(InputTypeError, match=r"mercer.rows.npy_rows\('X.npy', 'y.npy'\)"):
        KernelRidge().fit("X.npy", "y.npy")
    with pytest.raises(InputTypeError, match="read the file into a data frame first"):
        KernelClassifier().fit("trips.csv", [0, 1])


@pytest.mark.parametrize("estimator", [KernelClassifier(loss="hinge"), KernelRegressor()])
def test_losses_say_why_they_have_no_partial_fit(estimator):
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError, match=r"depends on all rows together.*KernelRidge\(solver='nystrom'\)"):
        estimator.partial_fit(X, X[:, 0])
