"""Two samples that are sources of rows."""

import numpy as np
import pytest
import torch
from scipy.stats import binom

from mercer.core.arrays import as_points
from mercer.core.errors import InputError
from mercer.data.engines import SerialEngine
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import Gaussian
from mercer.rows import ArrayRows
from mercer.stats import KernelThinning, SteinThinning, mmd, two_sample_test
from mercer.stats.dials import STREAMED_FEATURES

ESTIMATORS = ["features", "cross", "linear", "block", "incomplete"]
RNG = np.random.default_rng(0)


def sources(X, Y):
    return ArrayRows(X, rows_at_once=70), ArrayRows(Y, rows_at_once=110)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_level_holds_and_a_shift_is_found(estimator):
    pvalues = []
    for i in range(40):
        rng = np.random.default_rng(i)
        X, Y = rng.normal(size=(250, 2)), rng.normal(size=(300, 2))
        pvalues.append(two_sample_test(*sources(X, Y), Gaussian(1.5), estimator=estimator, random_state=i).pvalue)
    assert np.sum(np.array(pvalues) <= 0.05) <= binom.ppf(0.999, 40, 0.05)
    result = two_sample_test(*sources(X, Y + np.array([0.0, 1.5])), Gaussian(1.5), estimator=estimator)
    assert result.pvalue < 0.01
    assert result.columns()[0].name == "1"


def test_random_features_give_the_distance_of_their_means():
    X, Y = RNG.normal(size=(200, 2)), RNG.normal(size=(150, 2)) + 0.5
    phi = FourierFeatures.draw(Gaussian(1.0), as_points(X), STREAMED_FEATURES, 0)
    squared = float((phi(as_points(X)).mean(0) - phi(as_points(Y)).mean(0)).square().sum())
    assert two_sample_test(*sources(X, Y), Gaussian(1.0), estimator="features", random_state=0).statistic == (
        pytest.approx(squared)
    )
    assert mmd(*sources(X, Y), Gaussian(1.0), estimator="features", random_state=0) == pytest.approx(
        mmd(X, Y, Gaussian(1.0), estimator="u"), abs=0.05
    )


@pytest.mark.parametrize("estimator", ["features", "cross"])
def test_sums_do_not_depend_on_who_makes_them(estimator):
    X, Y = RNG.normal(size=(200, 2)), RNG.normal(size=(150, 2))
    options = {"estimator": estimator, "random_state": 0}
    here = two_sample_test(*sources(X, Y), Gaussian(1.0), **options)
    there = two_sample_test(*sources(X, Y), Gaussian(1.0), client=SerialEngine(group_rows=75), **options)
    assert there.statistic == pytest.approx(here.statistic, rel=1e-10)


@pytest.mark.parametrize("estimator", ["linear", "block", "incomplete"])
def test_pairs_of_rows_read_together_give_the_mean(estimator):
    """All are unbiased: over many seeds they come to the U-statistic."""
    X, Y = RNG.normal(size=(400, 1)), RNG.normal(size=(400, 1)) + 1.0
    found = mmd(*sources(X, Y), Gaussian(1.0), estimator=estimator, squared=True, random_state=0)
    assert found == pytest.approx(mmd(X, Y, Gaussian(1.0), estimator="u", squared=True), abs=0.08)


def test_dask_collections_are_samples_too():
    da = pytest.importorskip("dask.array")
    X, Y = RNG.normal(size=(300, 2)), RNG.normal(size=(200, 2))
    found = two_sample_test(da.from_array(X, (90, 2)), da.from_array(Y, (90, 2)), Gaussian(1.0), estimator="features",
                            random_state=0)  # fmt: skip
    assert found.statistic == pytest.approx(
        two_sample_test(*sources(X, Y), Gaussian(1.0), estimator="features", random_state=0).statistic
    )


def test_tests_and_thinning_read_sources_that_fit():
    X = RNG.normal(size=(300, 2))
    source = ArrayRows(torch.from_numpy(X), rows_at_once=80)
    assert (
        SteinThinning(10).fit(source, lambda x: -x).indices_ == SteinThinning(10).fit(X, lambda x: -x).indices_
    ).all()
    thinned = KernelThinning(10, random_state=0)
    assert (thinned.fit(source).indices_ == thinned.fit(X).indices_).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"estimator": "u"}, "read in parts: give"),
        ({"estimator": "features", "kernel": None}, "needs one kernel"),
        ({"estimator": "features", "kernel": "linear"}, "take every kernel"),
        ({"estimator": "block", "block_size": 1}, "block_size=1"),
    ],
)
def test_wrong_arguments_are_clear_errors(options, match):
    with pytest.raises(InputError, match=match):
        two_sample_test(*sources(np.ones((20, 1)), np.ones((20, 1))), **({"kernel": Gaussian(1.0)} | options))
    with pytest.raises(InputError, match="X has 1 columns but Y has 2"):
        two_sample_test(*sources(np.ones((20, 1)), np.ones((20, 2))), Gaussian(1.0), estimator="features")
