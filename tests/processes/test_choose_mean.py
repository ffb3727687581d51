"""A line is the mean where the likelihood pays for it, and only there."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.kernels import Matern
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, Hyperparameters, Observations, maximise
from mercer.processes.choose_mean import choose_mean
from mercer.processes.means import ConstantMean, LinearMean

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(0)
X = torch.from_numpy(rng.normal(size=(120, 3)))
WAVE = torch.sin(4 * X[:, :1]) + 0.1 * torch.from_numpy(rng.normal(size=(120, 1)))
HYPER = Hyperparameters.of(1.0 * Matern(1.5, (1.0, 1.0, 1.0)), 0.1, learn_noise=True)


def data(Y):
    return Observations(Points(X), Y)


def test_a_steep_line_is_taken_and_a_wave_alone_is_not_one():
    assert isinstance(choose_mean(data(WAVE + 9 * X[:, 1:2]), HYPER, PLACE).mean, LinearMean)
    assert choose_mean(data(WAVE), HYPER, PLACE).mean == ConstantMean()


@pytest.mark.parametrize("slope", [0.0, 0.5, 3.0])
def test_the_choice_is_that_of_the_two_maxima(slope):
    here = data(WAVE + slope * X[:, 1:2])
    flat, sloped = (
        maximise(ExactEvidence(here, HYPER, mean, PLACE)).value for mean in (ConstantMean(), LinearMean.of(here.X))
    )
    pays = sloped - flat > 1.5 * math.log(120)
    assert isinstance(choose_mean(here, HYPER, PLACE).mean, LinearMean) == pays


def test_the_choice_does_not_depend_on_units():
    Y = WAVE + 3 * X[:, 1:2]
    moved = Observations(Points(X * torch.tensor([1e3, 1e-3, 1.0]) + 50.0), 200 * Y - 7)
    kernel = 4e4 * Matern(1.5, (1e3, 1e-3, 1.0))
    there = Hyperparameters.of(kernel, 4e3, learn_noise=True)
    for learn in (True, False):
        gains = [
            float(choose_mean(*pair, PLACE, learn=learn).reason.split()[3])
            for pair in ((data(Y), HYPER), (moved, there))
        ]
        assert gains[1] == pytest.approx(gains[0], rel=1e-2)


def test_each_target_pays_for_its_own_coefficients():
    one, two = (choose_mean(data(WAVE.repeat(1, t)), HYPER, PLACE).reason for t in (1, 2))
    assert float(two.split()[-1]) == pytest.approx(2 * float(one.split()[-1]), rel=1e-3)


def test_some_rows_decide_for_many(monkeypatch):
    monkeypatch.setattr("mercer.processes.choose_mean.ROWS", 50)
    assert "of 50 rows" in choose_mean(data(WAVE), HYPER, PLACE).reason


def test_too_few_rows_and_no_features_mean_a_constant():
    few = choose_mean(data(WAVE).take(slice(0, 4)), HYPER, PLACE)
    assert (few.mean, few.reason) == (ConstantMean(), "there are too few rows for a line")
    objects = Observations(Points(["ab", "ba"]), WAVE[:2])
    assert choose_mean(objects, HYPER, PLACE).reason == "there are no features"


def test_a_column_that_is_constant_but_for_rounding_has_no_part_in_a_line():
    values = torch.cat([X, torch.full((120, 1), 0.1, dtype=torch.float64)], dim=1)
    values[5, 3] = np.nextafter(0.1, 1.0)
    line = LinearMean.of(Points(values))
    new = torch.tensor([[0.0, 0.0, 0.0, 7.0]]).double()
    assert line.basis(Points(new))[0, 4] == 0.0
