"""Rows left out of a fit with several classes: the blocks of the inverse Hessian, and fits without each row."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from mercer.kernels import Gaussian
from mercer.losses import Multinomial
from mercer.operators.stored import Stored
from mercer.selection import approximate_loo
from mercer.selection.joint_influence import few_joint_influences, joint_influences
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.objective import Objective
from mercer.solvers.row_blocks import Block

HALVES = slice(0, 5), slice(5, 12)


def blocks_of_inverse(K: Tensor, p: Tensor, w: Tensor, alpha: float, intercept: bool) -> Tensor:
    """The same from one matrix of size n t, or (n + 1) t."""
    n, t = p.shape
    curvature = w.unsqueeze(2) * (torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1))
    H = torch.zeros(n, t, n, t).double()
    H[torch.arange(n), :, torch.arange(n), :] = curvature
    J = torch.eye(n * t).double()
    penalty = 2 * alpha * torch.kron(torch.linalg.inv(K).contiguous(), torch.eye(t).double())
    if intercept:
        J = torch.cat([J, torch.eye(t).double().repeat(n, 1)], dim=1)
        penalty = torch.block_diag(penalty, torch.zeros(t, t).double())
    whole = J @ torch.linalg.pinv(penalty + J.T @ H.reshape(n * t, n * t) @ J, hermitian=True, rtol=1e-13) @ J.T
    return whole.reshape(n, t, n, t)[torch.arange(n), :, torch.arange(n), :]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("t", [2, 3, 5])
def test_joint_influences_are_blocks_of_the_inverse_hessian(t: int, intercept: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(12, 2, generator=generator).double()
    K = torch.as_tensor(Gaussian()(X)) + 1e-6 * torch.eye(12).double()
    p = torch.softmax(3 * torch.randn(12, t, generator=generator).double(), 1)
    w = 0.5 + torch.rand(12, 1, generator=generator).double()
    centre = torch.eye(t).double() - 1 / t  # probabilities do not feel what is added to all classes
    found = centre @ joint_influences(K, p, w, 0.3, intercept=intercept) @ centre
    expected = centre @ blocks_of_inverse(K, p, w, 0.3, intercept) @ centre
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    landmarks = FewSpan.of([Block(Stored(K[some]), torch.zeros(len(K[some]), t).double()) for some in HALVES], K)
    few = centre @ few_joint_influences(landmarks, p, w, 0.3, intercept=intercept) @ centre
    torch.testing.assert_close(few, expected, rtol=1e-6, atol=1e-6)


def few_of(K: Tensor, codes: Tensor, budget: int | None) -> FewSpan:
    return FewSpan.of([Block(Stored(K[:, :20]), codes.double().unsqueeze(1))], K[:20, :20], budget)


def labelled_rows() -> tuple[Tensor, Tensor]:
    """A kernel matrix and three classes."""
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(60, 3, generator=generator).double()
    codes = (X[:, 0] + 0.7 * torch.randn(60, generator=generator).double() > 0).long() + (X[:, 1] > 0.5).long()
    return torch.as_tensor(Gaussian(1.5)(X)), codes


@functools.cache
def true_loss_left_out(intercept: bool) -> float:
    """The mean loss of fits on 20 landmarks without each row."""
    K, codes = labelled_rows()
    problem, span = Objective(Multinomial(), codes.double(), 0.01, None, intercept, 3), few_of(K, codes, None)
    rows = torch.eye(60).double()
    exact = torch.stack([minimise(span, replace(problem, weights=1 - row)).fitted[i] for i, row in enumerate(rows)])
    return float(problem.losses(exact).sum()) / 60


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("most", "budget"), [(0, None), (60, None), (60, 2**22), (60, 2**16)])
def test_landmarks_join_the_classes_where_they_are_few(
    intercept: bool, most: int, budget: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[few_joint_influences.__module__], "MOST_UNKNOWNS", most)
    K, codes = labelled_rows()
    span = few_of(K, codes, budget)
    problem = Objective(Multinomial(), codes.double(), 0.01, None, intercept, 3)
    left = approximate_loo(span, problem, minimise(span, problem))
    approximate, true = float(problem.losses(left).sum()) / 60, true_loss_left_out(intercept)
    joined = most > 0 and budget != 2**16
    assert (span.spare >= 3 * 8 * 60**2) == (budget != 2**16)
    assert (abs(approximate - true) < 0.15 * true) == joined


@pytest.mark.parametrize("intercept", [False, True])
def test_loss_of_three_classes_left_out_is_that_of_fits_without_each_row(intercept: bool) -> None:
    K, codes = labelled_rows()
    span = FullSpan.of(None, matrix=K)
    for alpha in (0.1, 0.3):
        problem = Objective(Multinomial(), codes.double(), alpha, None, intercept, 3)
        left = approximate_loo(span, problem, minimise(span, problem))
        rows = torch.eye(60).double()
        exact = torch.stack([minimise(span, replace(problem, weights=1 - row)).fitted[i] for i, row in enumerate(rows)])
        approximate, true = (float(problem.losses(f).sum()) / 60 for f in (left, exact))
        assert abs(approximate - true) < 0.02 * true
