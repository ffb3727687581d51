"""Thinning, herding and control functionals."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, InverseMultiquadric, Matern, RationalQuadratic
from mercer.stats import KernelHerding, KernelThinning, SteinKernel, SteinThinning, control_functional, ksd, mmd
from mercer.stats.stein_greedy import SteinRows

RNG = np.random.default_rng(0)
IMQ = InverseMultiquadric(1.0)


def minus(x):
    return -x


@pytest.mark.parametrize("kernel", [IMQ, Matern(2.5, 1.0), Gaussian((1.0, 2.0)) + 0.5 * IMQ], ids=repr)
def test_stein_thinning_is_greedy(kernel):
    """Each choice is the best one given the others, and the discrepancy is that of the points."""
    X = RNG.normal(size=(60, 2)) * 1.5
    thinned = SteinThinning(8, kernel).fit(X, minus)
    K = SteinKernel(kernel)(np.hstack([X, -X]))
    chosen = []
    for _ in range(8):
        cost = K.diagonal() / 2 + K[:, chosen].sum(1)
        chosen.append(int(cost.argmin()))
    assert thinned.indices_.tolist() == chosen
    assert thinned.discrepancy_ == pytest.approx(ksd(X[chosen], minus, kernel=kernel))
    assert thinned.discrepancies_[3] == pytest.approx(ksd(X[chosen[:4]], minus, kernel=kernel))


@pytest.mark.parametrize(
    "kernel",
    [IMQ, InverseMultiquadric((1.0, 3.0)), Matern(2.5, 1.0), Gaussian((1.0, 2.0)), 2.0 * Gaussian(0.7),
     Gaussian(2.0) + 3.0, RationalQuadratic(1.0, alpha=0.8), Gaussian((1.0, 2.0)) + 0.5 * IMQ],
    ids=repr,
)  # fmt: skip
def test_rows_made_from_inner_products_are_those_of_the_kernel(kernel):
    X, S = RNG.normal(size=(40, 2)) + 100.0, RNG.normal(size=(40, 2))
    scored = Points(torch.from_numpy(np.hstack([X, S])))
    cost = torch.ones(40, dtype=torch.float64)
    SteinRows(SteinKernel(kernel), scored).add_to(cost, 7)
    centred = np.hstack([X - 100.0, S])
    assert cost.numpy() == pytest.approx(1.0 + 2.0 * SteinKernel(kernel)(centred)[7], rel=1e-9, abs=1e-9)


def test_stein_thinning_reaches_the_published_discrepancies():
    X = np.random.default_rng(1).normal(size=(10_000, 2))
    thinned = SteinThinning(50, IMQ).fit(X, minus)
    assert thinned.discrepancies_[[9, 19, 49]] == pytest.approx([0.304, 0.182, 0.081], rel=0.08)


def test_thinning_stops_at_a_target():
    X = RNG.normal(size=(500, 2))
    stein = SteinThinning(kernel=IMQ, target=0.3).fit(X, minus)
    assert stein.discrepancy_ <= 0.3 < stein.discrepancies_[-2]
    herd = KernelHerding(target=0.05).fit(X)
    assert herd.discrepancy_ <= 0.05 < herd.discrepancies_[-2]
    assert KernelThinning(target=0.05).fit(X).discrepancy_ <= 0.05


def test_regularisation_keeps_thinning_out_of_the_saddle():
    """Between two modes the score vanishes: plain thinning likes it there."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 1)) - 4, rng.normal(size=(300, 1)) + 4, 0.02 * rng.normal(size=(60, 1))])

    def log_prob(x):
        return torch.logsumexp(torch.stack([-0.5 * (x[:, 0] - 4) ** 2, -0.5 * (x[:, 0] + 4) ** 2]), 0)

    plain = SteinThinning(20, IMQ).fit(X, log_prob=log_prob)
    regular = SteinThinning(20, IMQ, regularisation="auto").fit(X, log_prob=log_prob)
    assert not (np.abs(X[regular.indices_]) < 1).any()
    density = [float(log_prob(torch.tensor(X[t.indices_])).mean()) for t in (regular, plain)]
    assert density[0] > density[1]
    with pytest.raises(InputError, match="needs log_prob"):
        SteinThinning(5, regularisation=0.1).fit(X, minus)


def test_units_of_columns_do_not_matter_when_standardised():
    X = RNG.normal(size=(200, 2))
    unit = np.array([1e-2, 1e3])
    a = SteinThinning(10, standardize=True).fit(X, -X)
    b = SteinThinning(10, standardize=True).fit(X * unit, -X / unit)
    assert a.indices_.tolist() == b.indices_.tolist()


def test_herding_reports_the_discrepancy_to_all_rows_and_beats_chance():
    X = RNG.normal(size=(400, 2))
    herd = KernelHerding(15, Gaussian(1.0)).fit(X)
    assert herd.discrepancy_ == pytest.approx(mmd(X[herd.indices_], X, Gaussian(1.0)), abs=1e-8)
    chance = np.mean([mmd(X[RNG.choice(400, 15)], X, Gaussian(1.0)) for _ in range(20)])
    assert herd.discrepancy_ < chance / 3


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("m", [1, 7, 32, 50])
def test_kernel_thinning_takes_any_size(m, compress):
    X = np.random.default_rng(m).normal(size=(1000, 2))
    thinned = KernelThinning(m, Gaussian(1.0), compress=compress).fit(X)
    assert len(thinned.indices_) == m
    assert thinned.discrepancy_ == pytest.approx(mmd(X[thinned.indices_], X, Gaussian(1.0)), abs=1e-7)
    chance = np.mean([mmd(X[RNG.choice(1000, m)], X, Gaussian(1.0)) for _ in range(20)])
    assert thinned.discrepancy_ < (0.8 if m == 1 else 0.6) * chance


@pytest.mark.parametrize("X", [RNG.normal(size=(60, 1)), np.ones((60, 2)), RNG.integers(3, size=(60, 2)) * 1.0])
def test_kernel_thinning_takes_each_row_once(X):
    assert len(set(KernelThinning(40).fit(X).indices_)) == 40


def test_the_error_of_kernel_thinning_falls_twice_as_fast_as_that_of_chance():
    """From n rows the root of n are kept: the error falls like n^-1/2, by chance like n^-1/4."""
    kernel, sizes = Gaussian(2**0.5), [64, 256, 1024, 4096]
    errors, chance = [], []
    for n in sizes:
        rng = np.random.default_rng(n)
        samples = [rng.normal(size=(n, 2)) for _ in range(3)]
        errors.append(np.mean([KernelThinning(kernel=kernel).fit(x).discrepancy_ for x in samples]))
        chance.append(np.mean([mmd(x[: int(n**0.5)], x, kernel) for x in samples]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope < -0.4
    assert errors[-1] < 0.25 * chance[-1]


def test_large_samples_are_compressed_first():
    X = np.random.default_rng(0).normal(size=(25_000, 2)).astype(np.float32)
    thinned = KernelThinning(16, Gaussian(1.0)).fit(X)
    assert len(set(thinned.indices_.tolist())) > 10
    assert mmd(X[thinned.indices_], X[:4000], Gaussian(1.0)) < 0.09


def test_control_functionals_integrate_smooth_functions_closely():
    X = RNG.normal(size=(150, 1))
    found = control_functional(lambda x: np.sin(x[:, 0]) + x[:, 0] ** 2, X, minus, kernel=Gaussian(2.0))
    assert abs(found.mean - 1.0) < 0.01
    assert found.weights.sum() == pytest.approx(1.0)
    both = control_functional(np.c_[X[:, 0], X[:, 0] ** 2], X, minus, kernel=Gaussian(2.0))
    assert both.mean == pytest.approx([0.0, 1.0], abs=0.01)
    K = SteinKernel(IMQ)(np.hstack([X, -X]))
    inverse = np.linalg.inv(K + 1e-3 * K.trace() / 150 * np.eye(150))
    expected = inverse.sum(0) @ X[:, 0] ** 2 / inverse.sum()
    assert control_functional(X[:, 0] ** 2, X, minus, kernel=IMQ, alpha=1e-3).mean == pytest.approx(expected)


def test_frames_and_pictures():
    frame = pd.DataFrame(RNG.normal(size=(100, 2)), columns=["a", "b"])
    thinned = SteinThinning(5).fit(frame, -frame.to_numpy())
    assert thinned.transform(frame).shape == (5, 2)
    assert thinned.plot().get_xlabel() == "a"
    assert KernelHerding(5).fit(frame[["a"]]).plot().get_ylabel() == "Share of the rows"


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: SteinThinning().fit([[0.0]], minus), "Give m"),
        (lambda: SteinThinning(0).fit([[0.0]], minus), "m=0"),
        (lambda: SteinThinning(2).fit([[0.0]], [[np.nan]]), "score contains NaN"),
        (lambda: KernelHerding(target=0).fit([[0.0]]), "target=0"),
        (lambda: KernelThinning(3).fit([[0.0]]), "only 1 rows"),
        (lambda: KernelThinning(3).plot(), "not fitted"),
        (lambda: control_functional([1.0], [[0.0], [1.0]], minus), "f has shape"),
    ],
)
def test_wrong_arguments_are_clear_errors(call, match):
    with pytest.raises((InputError, NotFittedError), match=match):
        call()


def test_one_row_is_thinned_to_itself():
    assert SteinThinning(2).fit([[0.5]], minus).indices_.tolist() == [0, 0]
    assert KernelHerding(1).fit([[0.5]]).discrepancy_ == 0.0
    assert KernelThinning(1).fit([[0.5]]).indices_.tolist() == [0]
