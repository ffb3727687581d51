"""Newton systems of several classes on landmarks."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import KernelClassifier
from mercer.kernels import Gaussian
from mercer.solvers import class_curvature, few_span


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classes_on_landmarks_need_few_iterations_however_small_alpha_is(monkeypatch, fit_intercept):
    monkeypatch.setattr(few_span, "FEW_SPAN_STEPS", 150)  # of conjugate gradients for each step; fewer end by rounding
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = (np.abs(X).sum(1) + 0.3 * rng.standard_normal(600)).round().astype(int)
    model = KernelClassifier(Gaussian(1.5), alpha=1e-6, n_landmarks=40, fit_intercept=fit_intercept).fit(X, y)
    assert model.solver_report_.converged


def test_some_rows_lead_to_the_same_minimum_as_all(monkeypatch):
    monkeypatch.setattr(class_curvature, "PAIR_ROWS", 1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = (np.abs(X).sum(1) + 0.3 * rng.standard_normal(600)).round().astype(int)
    few = KernelClassifier(Gaussian(1.5), alpha=1e-2, n_landmarks=40, tol=1e-11).fit(X, y)
    monkeypatch.undo()
    whole = KernelClassifier(Gaussian(1.5), alpha=1e-2, n_landmarks=40, tol=1e-11).fit(X, y)
    assert few.solver_report_.converged
    assert np.allclose(few.predict_proba(X), whole.predict_proba(X), atol=1e-5)
