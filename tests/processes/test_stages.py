"""Learning from few rows to all ends where learning from all rows does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.kernels import Matern
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, Hyperparameters, Observations, as_mean, maximise
from mercer.processes.dials import LEAST_NOISE, LONGEST
from mercer.processes.methods import Exact
from mercer.processes.stages import learn, next_start, with_neighbours

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(0)
N = 240
VALUES = torch.from_numpy(rng.uniform(-2, 2, size=(N, 2)))
DATA = Observations(Points(VALUES), (2 * VALUES[:, :1]).sin() + 0.1 * torch.from_numpy(rng.normal(size=(N, 1))))
HYPER = Hyperparameters.of(1.0 * Matern(1.5, (1.4, 1.4)), 0.1, learn_noise=True)
MEAN = as_mean("constant", DATA.X)


def test_stages_end_where_learning_from_all_rows_does(monkeypatch):
    monkeypatch.setattr("mercer.processes.stages.STAGES", {"cpu": (60, 100)})
    monkeypatch.setattr("mercer.processes.stages.FEW_ROWS", 30)
    staged = learn(Exact(PLACE), DATA, HYPER, MEAN, PLACE)
    once = maximise(ExactEvidence(DATA, HYPER, MEAN, PLACE))
    assert staged.value == pytest.approx(once.value, abs=0.1)
    assert staged.start_value > once.start_value
    assert staged.evaluations < once.evaluations


@pytest.mark.parametrize(
    ("n_learn", "sizes"), [(None, [60, 100, 240]), (150, [60, 150]), (90, [90]), (999, [60, 100, 240])]
)
def test_stages_are_for_many_more_rows_than_theirs(n_learn, sizes, monkeypatch):
    monkeypatch.setattr("mercer.processes.stages.STAGES", {"cpu": (60, 100)})
    seen = []

    def record(evidence, *args, **kwargs):
        seen.append(len(evidence.data))
        return maximise(evidence, *args, **kwargs)

    monkeypatch.setattr("mercer.processes.stages.maximise", record)
    found = learn(Exact(PLACE), DATA, HYPER, MEAN, PLACE, n_learn=n_learn, max_iter=5)
    assert seen == sizes
    assert (found.n_rows, found.n_copies) == (sizes[-1], 0)


def test_rows_of_a_stage_are_distinct_and_bring_their_nearest_neighbours():
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    rows = with_neighbours(order, 100, HYPER, DATA, PLACE)
    assert len(rows) == len(rows.unique()) == 100
    distances = torch.cdist(VALUES[order[:25]], VALUES)
    nearest = distances.topk(4, largest=False).indices
    assert set(nearest.flatten().tolist()) <= set(rows.tolist())


def test_the_next_start_has_some_noise_and_no_feature_out_of_sight():
    theta = np.log([0.5, 1000.0, 2.0, 1e-12])
    started = next_start(HYPER, theta)
    first, second = started.kernel.get_params()["kernel"].length_scale
    ratio = np.exp((np.log(0.5) + np.log(1000.0)) / 2) * LONGEST
    assert (first, second) == pytest.approx((0.5, min(1000.0, ratio)))
    assert started.noise == pytest.approx(LEAST_NOISE * HYPER.noise)
    np.testing.assert_array_equal(started.bounds, HYPER.bounds)
