"""Several classes at once: the shared inverse against one large matrix, and Newton steps from it against iterations."""

from __future__ import annotations

import pytest
import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Gaussian
from mercer.losses import Multinomial
from mercer.solvers.dials import FEW_ROWS
from mercer.solvers.full_span import FullSpan
from mercer.solvers.joint_inverse import JointInverse
from mercer.solvers.newton import Newton
from mercer.solvers.objective import Objective


def problem(n: int, alpha: float, intercept: bool) -> tuple[torch.Tensor, Objective]:
    """A Gram matrix, and four classes of noisy rows, some of them without weight."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, 3, generator=generator).double()
    codes = ((X[:, 0] > 0).long() + 2 * (X[:, 1] + 0.3 * torch.randn(n, generator=generator) > 0).long()).double()
    weights = torch.rand(n, generator=generator).double()
    weights[::7] = 0.0
    return torch.as_tensor(Gaussian(1.5)(X)), Objective(Multinomial(), codes, alpha, weights, intercept, 4)


@pytest.mark.parametrize("t", [2, 3, 5])
def test_the_shared_inverse_is_that_of_one_large_matrix(t: int) -> None:
    generator = torch.Generator().manual_seed(t)
    n = 9
    K = torch.as_tensor(Gaussian()(torch.randn(n, 2, generator=generator).double()))
    D = 0.1 + torch.rand(n, t, generator=generator).double()
    H = torch.zeros(t, n, t, n).double()
    for i, d in enumerate(D):
        H[:, i, :, i] = torch.diag(d) - torch.outer(d, d) / d.sum()
    H = H.reshape(t * n, t * n)
    whole = torch.linalg.solve(torch.eye(t * n).double() + H @ torch.block_diag(*[K] * t), H)  # (K + H^-1)^-1
    V = torch.randn(t, n, 2, generator=generator).double()
    expected = (whole @ V.reshape(t * n, 2)).reshape(t, n, 2)
    joint = JointInverse.of(K, D)
    torch.testing.assert_close(joint.reduce(V), expected, rtol=1e-10, atol=1e-10)
    log_det = torch.linalg.slogdet(torch.eye(t * n).double() + H @ torch.block_diag(*[K] * t))[1]
    assert joint.log_det == pytest.approx(float(log_det), rel=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_few_rows_of_several_classes_need_no_iterations(alpha: float, intercept: bool) -> None:
    K, objective = problem(60, alpha, intercept)
    direct, iterative = FullSpan.of(None, matrix=K), FullSpan.of(None, matrix=K, direct=0)
    found, expected = (Newton(tol=1e-10).solve(span, objective) for span in (direct, iterative))
    assert found.converged
    assert direct.inner_steps == 0 < iterative.inner_steps
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    torch.testing.assert_close(found.fitted, expected.fitted, rtol=1e-3, atol=1e-3)
    gradient = 2 * alpha * found.value + objective.gradient(found.fitted)
    assert float((K @ gradient).abs().max()) < 1e-5
    if intercept:
        torch.testing.assert_close(found.value.sum(0), torch.zeros(4).double(), atol=1e-7, rtol=0)


def test_where_iterations_are_many_factors_take_over() -> None:
    K, objective = problem(FEW_ROWS + 50, 1e-5, True)
    mixed, iterative = FullSpan.of(None, matrix=K, rank=5), FullSpan.of(None, matrix=K, rank=5, direct=0)
    found, expected = (Newton().solve(span, objective) for span in (mixed, iterative))
    assert 0 < mixed.inner_steps < iterative.inner_steps / 2
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_where_rounding_spoils_the_factors_iterations_take_over() -> None:
    K, objective = problem(60, 1e-11, False)
    direct, iterative = FullSpan.of(None, matrix=K), FullSpan.of(None, matrix=K, direct=0)
    found, expected = (Newton(max_iter=5).solve(span, objective) for span in (direct, iterative))
    assert direct.inner_steps > 0
    assert found.objective <= expected.objective * (1 + 1e-9)


def test_a_kernel_that_is_not_positive_is_called_that() -> None:
    K, objective = problem(30, 0.1, False)
    with pytest.raises(NotPositiveDefiniteError, match="not positive semi-definite"):
        Newton().solve(FullSpan.of(None, matrix=2.0 * torch.eye(30).double() - K), objective)
