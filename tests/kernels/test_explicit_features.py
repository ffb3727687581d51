"""Kernels with finitely many features say what these are, by their own formula."""

from __future__ import annotations

import math

import pytest
import torch

import mercer.kernels as k
from mercer.core.arrays import Points
from mercer.kernels.explicit import ExplicitFeatures

X = Points(torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double())

FINITE = [
    (k.Linear(), 3),
    (k.Linear(bias=2.0), 4),
    (k.Polynomial(degree=3, scale=0.5, offset=2.0), math.comb(6, 3)),
    (k.Polynomial(degree=2, offset=0.0), math.comb(4, 2)),
    (k.AllSubsets(), 8),
    (k.Constant(2.0), 1),
    (0.5 * k.Linear() + 1.0, 4),
    (k.Linear() * k.Polynomial(degree=2), 30),
    (k.Linear() ** 3, 10),
    ((lambda rows: rows[:, 0]) * k.Linear(), 3),
    (k.Subspace(k.Linear(), [0, 2]) + k.Subspace(k.Polynomial(degree=2), [1]), 5),
    (k.FeatureMap(torch.cos), 3),
    (k.FeatureMap(torch.sin, [[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]]), 3),
]

INFINITE = [
    k.Gaussian(),
    k.Laplace() * k.Linear(),
    k.Gaussian() + k.Linear(),
    k.ArcCosine(1),
    k.NTK(),
    k.WhiteNoise(),
    k.Brownian(),
    k.Periodic(),
    k.Precomputed(),
    k.Spectrum(2),
]


@pytest.mark.parametrize(("kernel", "count"), FINITE, ids=lambda value: str(value)[:40])
def test_inner_products_of_the_features_are_the_kernel(kernel: k.Kernel, count: int) -> None:
    features = ExplicitFeatures.of(kernel, X, most=100)
    assert features is not None
    phi = features(X)
    assert phi.shape == (len(X), count)
    expected = kernel(X.values)
    assert torch.allclose(phi @ phi.T, expected, rtol=0, atol=1e-13 * float(expected.abs().max()))


@pytest.mark.parametrize("kernel", INFINITE, ids=repr)
def test_other_kernels_have_none(kernel: k.Kernel) -> None:
    assert ExplicitFeatures.of(kernel, X, most=10**6) is None


def test_more_features_than_wanted_are_none_and_are_not_made() -> None:
    assert ExplicitFeatures.of(k.Linear(), X, most=2) is None
    wide = Points(torch.ones(3, 60).double())
    assert ExplicitFeatures.of(k.AllSubsets(), wide, most=10**6) is None
    assert ExplicitFeatures.of(k.Polynomial(degree=40), wide, most=10**6) is None
