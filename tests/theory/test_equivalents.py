"""The expected risk against closed forms, identities and simulation."""

import numpy as np
import pytest
import scipy.linalg

from mercer.core.errors import InputError
from mercer.theory import effective_regularisation, equivalents_accuracy, krr_risk, sequence_model

P = np.arange(1, 401.0)


def simulated(values, v, n, alpha, noise, repeats, rng):
    """Mean test and train errors of ridge regression on Gaussian features, and the spread of the mean test error."""
    found = []
    for _ in range(repeats):
        g = rng.standard_normal((n, len(values)))
        y = g @ v + np.sqrt(noise) * rng.standard_normal(n)
        dual = scipy.linalg.solve((g * values) @ g.T + alpha * np.eye(n), y, assume_a="pos")
        found.append((((values * (g.T @ dual) - v) ** 2).sum() + noise, np.mean((alpha * dual) ** 2)))
    return np.mean(found, 0), np.std(found, 0)[0] / np.sqrt(repeats)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n", [1, 50, 5000])
def test_kappa_solves_its_equation(n, alpha):
    values = P**-1.5
    kappa = effective_regularisation(values, n, alpha)
    if kappa == 0:
        assert alpha == 0
        assert len(values) <= n
    else:
        assert np.isclose((values / (values + kappa)).sum() + alpha / kappa, n, rtol=1e-9)


def test_the_order_of_the_spectrum_and_equal_eigenvalues_written_once_do_not_matter():
    values, v = np.repeat([4.0, 1.0, 0.1], [2, 30, 200]), np.repeat([1.0, 0.5, 0.1], [2, 30, 200])
    shuffled = np.random.default_rng(0).permutation(len(values))
    power = np.sqrt([2.0, 30 * 0.25, 200 * 0.01])
    alone = krr_risk(values[shuffled], v[shuffled], [20, 100], 0.01, 0.1)
    grouped = krr_risk([4.0, 1.0, 0.1], power, [20, 100], 0.01, 0.1, multiplicities=[2, 30, 200])
    for name in ("kappa", "bias", "variance", "test", "train"):
        assert np.allclose(getattr(alone, name), getattr(grouped, name), rtol=1e-10)


def test_isotropic_features_without_ridge_have_the_known_closed_form():
    """Least squares with p features: bias |v|^2 (1 - n/p), variance s2 n/(p - n) above n, s2 p/(n - p) below."""
    p, s2 = 100, 0.3
    v = np.full(p, 0.1)
    over, under = krr_risk(np.ones(p), v, 40, 0.0, s2), krr_risk(np.ones(p), v, 150, 0.0, s2)
    assert np.isclose(over.bias, 1 - 0.4)
    assert np.isclose(over.variance, s2 * 40 / 60)
    assert under.bias == 0
    assert np.isclose(under.variance, s2 * 100 / 50)
    assert np.isclose(under.train, s2 * (1 - 100 / 150))
    assert under.kappa == 0


def test_at_the_interpolation_threshold_noise_is_infinite_and_nothing_is_nan():
    found = krr_risk(np.ones(50), np.ones(50), 50, 0.0, [0.0, 0.1])
    assert found.variance.tolist() == [0.0, np.inf]
    assert not np.isnan(np.stack([found.bias, found.test, found.train])).any()


def test_dimension_regularises_by_itself():
    found = krr_risk(P**-1.5, 1 / P, 100, 0.0)
    assert found.kappa > 0
    assert found.train == 0


def test_what_is_not_learned_acts_as_a_ridge():
    found = krr_risk(P**-2, 1 / P, [20, 200], [0.01, 1.0], 0.1)
    values = P**-2
    assert np.allclose(found.tail_power, (values * (1 - found.learnabilities)).sum(-1))


def test_a_tail_of_many_small_eigenvalues_is_the_same_as_its_trace_in_the_ridge():
    values, v = 1.0 / np.arange(1, 31) ** 2, np.r_[np.ones(30), 0.0]
    trace, many = 0.02, 10**7
    full = krr_risk(np.r_[values, trace / many], v, 40, 0.1, 0.2, multiplicities=np.r_[np.ones(30), many])
    cut = krr_risk(values, v[:30], 40, 0.1, 0.2, tail=trace)
    for name in ("kappa", "bias", "variance", "train"):
        assert np.isclose(getattr(full, name), getattr(cut, name), rtol=1e-3), name


def test_arrays_broadcast_as_numpy_does():
    found = krr_risk(P**-2, 1 / P, np.array([10, 100, 1000])[:, None], [0.0, 0.1], 0.3)
    assert found.test.shape == (3, 2)
    assert found.learnabilities.shape == (3, 2, len(P))
    alone = krr_risk(P**-2, 1 / P, 100, 0.1, 0.3)
    assert np.isclose(found.test[1, 1], alone.test)


def test_errors_fall_with_the_stated_rate():
    """Eigenvalues j^-a and coefficients^2 j^-(1+b) without noise and ridge: the bias falls like n^-min(b, 2a)."""
    j = np.arange(1, 200_001.0)
    for a, b in ((2.0, 1.0), (1.5, 2.0)):
        found = krr_risk(j**-a, j ** (-(1 + b) / 2), [300, 3000], 0.0)
        assert np.isclose(np.log10(found.bias[0] / found.bias[1]), min(b, 2 * a), rtol=0.05)


@pytest.mark.parametrize(("decay", "source", "alpha", "noise"), [(1.5, 1.0, 0.1, 0.2), (2.0, 1.5, 1e-3, 0.2)])
def test_ridge_regression_does_what_is_expected_of_it(decay, source, alpha, noise):
    values, v = P**-decay, P**-source
    (test, train), error = simulated(values, v, 120, alpha, noise, 60, np.random.default_rng(0))
    expected = krr_risk(values, v, 120, alpha, noise)
    assert abs(test - expected.test) < 4 * error + 0.01 * expected.test
    assert np.isclose(train, expected.train, rtol=0.1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_many_settings_the_median_is_within_two_per_cent_and_all_within_ten():
    from mercer.kernels import Gaussian, Laplace
    from mercer.theory import sphere_spectrum

    rng = np.random.default_rng(0)
    spectra = [(P**-1.5, 1 / P), (P**-2, P**-1.5), (P**-1.2, 1 / P)]
    for kernel in (Gaussian(0.7), Laplace()):
        found = sphere_spectrum(kernel, 5, 6)
        counts = found.multiplicities.astype(int)
        spectra.append((np.repeat(found.eigenvalues, counts), np.repeat(0.5**found.degrees / np.sqrt(counts), counts)))
    off = []
    for values, v in spectra:
        for alpha in (0.0, 1e-2, 1.0):
            for noise in (0.0, 0.2):
                (test, train), _ = simulated(values, v, 120, alpha, noise, 200, rng)
                expected = krr_risk(values, v, 120, alpha, noise)
                off += [abs(test / expected.test - 1)] + ([abs(train / expected.train - 1)] if alpha else [])
    assert len(off) >= 24
    print(f"median {np.median(off):.4f}, largest {np.max(off):.4f} of {len(off)}")
    assert np.median(off) <= 0.02
    assert np.max(off) <= 0.10


def test_the_sequence_model_has_the_same_risk():
    model = sequence_model(P**-1.5, 1 / P, 80, 0.1, 0.2, draws=2000, random_state=1)
    assert np.isclose(model.risks.mean(), model.expected, rtol=0.02)


def test_single_designs_come_close_to_what_is_expected_with_the_root_of_the_rows_or_faster():
    j = np.arange(1, 401)
    found = equivalents_accuracy(j**-1.2, 1 / j, n=[30, 60, 120, 240], draws=20)
    bias, variance = found.exponents
    assert 0.3 < bias < 0.9
    assert 0.6 < variance < 1.2
    assert (found.variance < found.bias).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="number of rows"):
        krr_risk([1.0], [1.0], 0)
    with pytest.raises(InputError, match="ridge"):
        krr_risk([1.0], [1.0], 10, -1.0)
    with pytest.raises(InputError, match="variance"):
        krr_risk([1.0], [1.0], 10, 1.0, -1.0)
    with pytest.raises(InputError, match="rounding errors"):
        krr_risk([-1.0], [1.0], 10)
