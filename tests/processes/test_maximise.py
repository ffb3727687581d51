"""Learning finds the maximum, stays in its box and says where it touches it."""

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Matern
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, Hyperparameters, LogNormal, Observations, as_mean, maximise
from mercer.processes.dials import FIRST_STEPS
from mercer.processes.maximise import Ascent, random_starts

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(1)
X = Points(torch.from_numpy(rng.uniform(0, 6, size=(60, 1))))
Y = torch.sin(X.values) + 0.1 * torch.from_numpy(rng.normal(size=(60, 1)))


def problem(kernel=None, Y=Y, **kwargs):
    hyper = Hyperparameters.of(1.0 * Gaussian(1.0) if kernel is None else kernel, 0.1, True, **kwargs)
    return ExactEvidence(Observations(X, Y), hyper, as_mean("zero", X), PLACE)


def test_the_gradient_vanishes_at_the_maximum():
    evidence = problem()
    found = maximise(evidence)
    value, gradient = evidence(found.theta)
    assert found.converged
    assert value == found.value > found.start_value
    assert np.abs(gradient).max() < 1e-2
    assert np.exp(found.theta[-1]) == pytest.approx(0.01, rel=0.5)


def test_a_short_first_step_from_a_start_near_the_end_wastes_no_evaluations():
    evidence = problem(1.0 * Matern(1.5, 1.0))
    best = maximise(evidence).theta
    near = best + np.array([0.1, -0.1, 0.1])
    ascents = {step: Ascent(evidence).run(near, 100, 1e-7, first_step=step) for step in (None, 0.05)}
    for found in ascents.values():
        assert found.converged
        assert found.message.startswith("converged")
        np.testing.assert_allclose(found.theta, best, atol=2e-2)
    tried = {step: [np.frombuffer(key) for key in found._seen] for step, found in ascents.items()}
    assert np.abs(tried[0.05][1] - near).max() == pytest.approx(0.05)
    assert np.abs(tried[None][1] - near).max() > 1.0
    assert ascents[0.05].evaluations < ascents[None].evaluations


def test_points_that_cannot_be_computed_are_stepped_back_from():
    evidence = problem()
    best, start = maximise(evidence), evidence.hyperparameters.start

    class Walled:
        data = evidence.data
        hyperparameters = evidence.hyperparameters
        reach = 1.2 * np.abs(best.theta - start).max()

        def __call__(self, theta):
            inside = np.abs(theta - start).max() < self.reach
            return evidence(theta) if inside else (-np.inf, np.zeros_like(theta))

    assert Walled()(start - evidence(start)[1])[0] == -np.inf  # the first step leads out
    found = maximise(Walled())
    assert found.value == pytest.approx(best.value, abs=1e-3)
    assert found.evaluations < 3 * best.evaluations


def test_short_first_steps_are_never_the_last():
    evidence = problem(1.0 * Matern(1.5, 1.0))
    found = Ascent(evidence).run(evidence.hyperparameters.start, 100, 10.0, first_step=1e-3)
    assert len(found.history) == FIRST_STEPS
    assert found.converged


def test_a_start_that_sees_noise_only_is_rescued_by_restarts():
    fast = torch.sin(5.0 * X.values) + 0.1 * torch.from_numpy(rng.normal(size=(60, 1)))
    bad, good = problem(1.0 * Gaussian(5.0), fast), problem(1.0 * Gaussian(0.5), fast)
    assert maximise(bad).value < maximise(good).value - 20
    assert maximise(bad, n_restarts=4).value == pytest.approx(maximise(good).value, abs=1e-3)


def test_noise_is_not_explained_by_a_lucky_restart():
    chance = np.random.default_rng(0)
    noise = torch.from_numpy(chance.normal(size=(120, 1)))
    data = Observations(Points(torch.from_numpy(chance.normal(size=(120, 3)))), noise)
    hyper = Hyperparameters.of(1.0 * Matern(2.5, (1.7, 1.7, 1.7)), 0.1, True)
    evidence = ExactEvidence(data, hyper, as_mean("constant", data.X), PLACE)
    given, end = maximise(evidence), None
    for start in random_starts(hyper, 2, seed=0):
        end = Ascent(evidence).run(start, 100, 1e-7)
        if end.value > given.value + 0.5:
            break
    assert end.value > given.value + 0.5  # there is a coincidence to be found
    np.testing.assert_array_equal(maximise(evidence, n_restarts=2).theta, given.theta)


def test_few_rows_first_gives_the_same_maximum():
    evidence = problem()
    few = ExactEvidence(Observations(X, Y).take(slice(0, 20)), evidence.hyperparameters, as_mean("zero", X), PLACE)
    assert maximise(evidence, few).value == pytest.approx(maximise(evidence).value, abs=1e-4)


def test_parameters_stay_within_bounds_and_bounds_are_named():
    evidence = problem(bounds={"noise": (0.05, 1.0), "length_scale": "fixed"})
    found = maximise(evidence)
    assert evidence.hyperparameters.kernel_at(found.theta).kernel.length_scale == 1.0
    assert evidence.hyperparameters.at_bounds(found.theta) == {"noise": "lower"}


def test_a_narrow_prior_wins_over_the_data():
    evidence = problem(priors={"length_scale": LogNormal(3.0, 1e-3)})
    found = maximise(evidence)
    assert evidence.hyperparameters.kernel_at(found.theta).kernel.length_scale == pytest.approx(3.0, rel=1e-2)


def test_progress_reports_the_best_value_so_far():
    seen = []
    found = maximise(problem(), progress=lambda step, value: seen.append((step, value)))
    assert [step for step, _ in seen] == list(range(1, len(seen) + 1))
    values = [value for _, value in seen]
    assert values == sorted(values)
    assert values[-1] == found.value


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("bounds", {"alpha": (1.0, 2.0)}, InputError),
        ("bounds", {"noise": (2.0, 1.0)}, InputError),
        ("bounds", {"noise": (0.0, 1.0)}, InputError),
        ("bounds", {"length_scale": (1.0, np.inf)}, InputError),
        ("bounds", {"length_scale": "free"}, InputError),
        ("priors", {"nu": LogNormal(1.0, 1.0)}, InputError),
        ("priors", {"noise": 3.0}, InputTypeError),
    ],
)
def test_bad_bounds_and_priors_are_refused(name, given, error):
    with pytest.raises(error, match=name):
        Hyperparameters.of(1.0 * Matern(2.5, 1.0), 0.1, True, **{name: given})
