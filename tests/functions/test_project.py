"""The projection of a function onto the span of points is the nearest function there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer import RKHSFunction, project
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Linear, Matern

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(12, 2)), rng.normal(size=(5, 2))


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(1.5), Linear(bias=1.0)], ids=repr)
@pytest.mark.parametrize("shape", [(12,), (12, 3)], ids=str)
def test_what_is_left_is_orthogonal_to_the_span_and_values_at_the_points_stay(kernel, shape):
    f = RKHSFunction(kernel, X, rng.normal(size=shape))
    g = project(f, Z)
    np.testing.assert_allclose(g(Z), f(Z), atol=1e-8)
    for j in range(len(Z)):
        section = RKHSFunction(kernel, Z[j : j + 1], np.ones((1, *shape[1:])))
        np.testing.assert_allclose((f - g).inner(section), 0.0, atol=1e-8)


def test_no_other_function_of_the_span_is_nearer():
    f = RKHSFunction(Gaussian(), X, rng.normal(size=12))
    g = project(f, Z)
    for _ in range(5):
        other = RKHSFunction(Gaussian(), Z, g.coef + 0.1 * rng.normal(size=5))
        assert f.distance(other) > f.distance(g)
    np.testing.assert_allclose(f.norm() ** 2, g.norm() ** 2 + f.distance(g) ** 2)


def test_points_that_come_twice_and_tensors():
    f = RKHSFunction(Gaussian(), X, torch.ones(12, dtype=torch.float64))
    twice = project(f, np.concatenate([Z, Z]))
    assert isinstance(twice.coef, torch.Tensor)
    np.testing.assert_allclose(twice(X), project(f, Z)(X), atol=1e-7)


def test_what_is_no_function_and_points_of_other_columns_are_refused():
    with pytest.raises(InputTypeError, match="RKHSFunction"):
        project(np.sin, Z)
    with pytest.raises(InputError, match="columns"):
        project(RKHSFunction(Gaussian(), X, np.ones(12)), Z[:, :1])
