"""Every estimator tells what it did, in words, after a fit and not before."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
y = np.sin(X[:, 0])
NAMES = [name for name in mercer.__all__ if isinstance(getattr(mercer, name), type) and name != "RKHSFunction"]


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_there_after_a_fit(name):
    model = getattr(mercer, name)()
    with pytest.raises(NotFittedError):
        model.report()
    assert not hasattr(model, "report_")
    model.fit(X, (y > 0).astype(int) if "Classifier" in name else y)
    assert str(model.report()) == str(model.report())
    assert "30 rows" in str(model.report())
