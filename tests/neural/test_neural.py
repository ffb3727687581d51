"""Tangent kernels of networks as they are, linearised networks, gradient flow and last layers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from mercer import KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import NTK, Gaussian
from mercer.neural import (
    EmpiricalNTK,
    MonteCarloNNGP,
    empirical_ntk,
    gradient_flow,
    last_hidden,
    last_layer_regression,
    lazy_training,
    linearize,
    ntk_product,
    two_layer,
)
from mercer.testing import check_kernel


def mlp(outputs: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, outputs)).double()


def cnn() -> nn.Module:
    torch.manual_seed(0)
    parts = nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12, 2)
    return nn.Sequential(*parts).double()


X = torch.randn(7, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Z = torch.randn(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
IMAGES = torch.randn(6, 1, 4, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def jacobian(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Row by row and output by output."""
    rows = []
    for row in x:
        outputs = module(row.unsqueeze(0))[0]
        grads = [torch.autograd.grad(f, list(module.parameters()), retain_graph=True) for f in outputs]
        rows.append(torch.stack([torch.cat([g.flatten() for g in grad]) for grad in grads]))
    return torch.stack(rows)


@pytest.mark.parametrize(("module", "x"), [(mlp(), X), (cnn(), IMAGES)], ids=["mlp", "cnn"])
@pytest.mark.parametrize("memory_budget", [None, "40KB"])
def test_the_tangent_kernel_is_the_product_of_naive_jacobians(module, x, memory_budget) -> None:
    J = jacobian(module, x)
    z = x[2:5]
    full = torch.einsum("itp,jsp->itjs", J, J)
    torch.testing.assert_close(empirical_ntk(module, x, full=True, memory_budget=memory_budget), full)
    torch.testing.assert_close(empirical_ntk(module, x, memory_budget=memory_budget), torch.einsum("itjt->ij", full))
    across = empirical_ntk(module, x, z, full=True, memory_budget=memory_budget)
    torch.testing.assert_close(across, full[:, :, 2:5])
    V = torch.ones(len(z), 2).double()
    torch.testing.assert_close(ntk_product(module, x, z, V), torch.einsum("itjs,js->it", across, V))
    assert torch.linalg.eigvalsh(empirical_ntk(module, x))[0] > -1e-12


def test_products_split_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    module, V = mlp(), torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).double()
    whole = ntk_product(module, X, Z, V)
    monkeypatch.setattr("mercer.neural.tangent.ROWS_AT_ONCE", 2)
    torch.testing.assert_close(ntk_product(module, X, Z, V), whole)
    with pytest.raises(InputError, match="row of 2 outputs for each row of Z"):
        ntk_product(module, X, Z, V[:, :1])


def test_the_tangent_kernel_of_a_module_is_a_kernel_for_estimators() -> None:
    check_kernel(EmpiricalNTK(mlp()))
    kernel = EmpiricalNTK(cnn(), shape=(1, 4, 4))
    rows = IMAGES.reshape(6, 16).numpy()
    np.testing.assert_allclose(kernel(rows), empirical_ntk(cnn(), IMAGES).numpy(), rtol=1e-12)
    y = np.arange(6.0)
    fit = KernelRidge(kernel, alpha=1e-8).fit(rows, y)
    np.testing.assert_allclose(fit.predict(rows), y, atol=1e-4)
    with pytest.raises(InputError, match=r"shape=\(3, 3\) is of 9 numbers, but rows have 16"):
        EmpiricalNTK(cnn(), shape=(3, 3))(rows)


@pytest.mark.parametrize("part", [nn.Dropout(0.5), nn.BatchNorm1d(8)], ids=["dropout", "batch norm"])
def test_what_depends_on_other_rows_or_on_chance_is_refused_until_it_is_fixed(part: nn.Module) -> None:
    module = nn.Sequential(nn.Linear(3, 8), part, nn.ReLU(), nn.Linear(8, 1)).double()
    with pytest.raises(InputError, match=r"training mode.*module.eval\(\)"):
        empirical_ntk(module, X)
    assert empirical_ntk(module.eval(), X).shape == (7, 7)


class Centred(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x - x.mean(0))


def test_modules_that_mix_rows_are_noticed() -> None:
    with pytest.raises(InputError, match="depends on the other rows"):
        empirical_ntk(Centred(3, 1).double(), X)


def test_parameters_that_are_fixed_take_no_part() -> None:
    module = mlp(1)
    module[0].requires_grad_(False)
    hidden = last_hidden(module)(X)
    torch.testing.assert_close(empirical_ntk(module, X), hidden @ hidden.T + 1.0)
    module.requires_grad_(False)
    with pytest.raises(InputError, match="no parameter that requires a gradient"):
        empirical_ntk(module, X)


def test_a_linearised_network_is_tangent_and_trains_by_its_kernel() -> None:
    module = mlp(1)
    linear = linearize(module)
    torch.testing.assert_close(linear(X), module(X))
    J = jacobian(module, X)[:, 0]
    (slope,) = torch.autograd.grad(linear(X).sum(), linear.differences[0])
    torch.testing.assert_close(slope.flatten(), J.sum(0)[: slope.numel()])
    step, y = 1e-3, torch.sin(X[:, :1])
    before = linear(X).detach()
    (linear(X) - y).square().mean().backward()
    with torch.no_grad():
        for p in linear.parameters():
            p -= step * p.grad
    H = empirical_ntk(module, X)
    torch.testing.assert_close(linear(X).detach(), before - step * 2.0 / len(X) * H @ (before - y))


def test_gradient_flow_is_the_limit_of_small_steps_and_ends_at_ridgeless_regression() -> None:
    kernel, y = Gaussian(1.0), torch.sin(X).sum(1)
    flow = gradient_flow(kernel, X, y)
    H, h, f = kernel(X), kernel(Z, X), torch.zeros(len(X)).double()
    new, steps, t = torch.zeros(len(Z)).double(), 20000, 3.0
    for _ in range(steps):
        gap = (f - y) * (2.0 * t / steps / len(X))
        f, new = f - H @ gap, new - h @ gap
    torch.testing.assert_close(flow.predict(Z, t), new, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(flow.residual(t), (f - y).square().mean().reshape(1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(flow.predict(Z), h @ torch.linalg.solve(H, y), atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(flow.predict(Z, 0.0), torch.zeros(5).double())
    started = gradient_flow(kernel, X, y, start=lambda rows: rows[:, 0])
    torch.testing.assert_close(started.predict(X, 1e9), y, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(started.predict(Z, 0.0), Z[:, 0])
    with pytest.raises(InputError, match="must be a number >= 0, a time"):
        flow.predict(Z, -1.0)


@pytest.mark.parametrize("space", ["function", "coefficients"])
def test_the_table_of_a_flow_goes_from_nothing_learned_to_all_and_the_picture_shows_it(space: str) -> None:
    flow = gradient_flow(Gaussian(1.0), X, torch.sin(X).sum(1), space=space)
    times, losses, modes = ([row[name] for row in flow.table] for name in ("time", "loss", "modes"))
    assert losses == sorted(losses, reverse=True)
    assert modes == sorted(modes)
    assert modes[-1] == len(X)
    assert losses[0] > 0.9 * float(flow.residual(0.0))
    assert losses[-1] < 1e-2 * losses[0]
    assert losses == [float(flow.residual(t)) for t in times]
    loss, trained = flow.plot().get_lines()
    np.testing.assert_allclose(loss.get_ydata(), np.array(losses) / float(flow.residual(0.0)))
    np.testing.assert_allclose(trained.get_ydata(), np.array(modes) / len(X))
    assert "tensor" not in repr(flow)


def test_directions_that_never_train_stay_where_they_are() -> None:
    twice, y = torch.cat([X, X]), torch.cat([torch.ones(7), torch.zeros(7)]).double()
    flow = gradient_flow(NTK(2), twice, y)
    torch.testing.assert_close(flow.predict(X), torch.full((7,), 0.5).double(), atol=1e-6, rtol=1e-6)
    assert float(flow.residual(float("inf"))) == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize("width", [4, 60])
def test_training_the_last_layer_is_kernel_regression_at_any_width(width: int) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 1)).double()
    y = torch.sin(X).sum(1)
    fit = last_layer_regression(module, X, y, alpha=0.1)
    layer = Ridge(0.1, fit_intercept=False).fit(last_hidden(module)(X), y)
    np.testing.assert_allclose(fit.predict(Z), layer.predict(last_hidden(module)(Z)), atol=1e-9)


def test_lazy_networks_move_less_the_wider_they_are_and_rich_ones_do_not() -> None:
    y = torch.sin(2.0 * X[:, 0]) + X[:, 1]
    lazy = lazy_training([64, 256, 1024], X, y, time=4.0, steps=200)
    assert -0.6 < lazy.slopes["movement"] < -0.4
    assert lazy.slopes["ntk_change"] < -0.35
    assert lazy.slopes["kernel_gap"] < -0.35
    for run in lazy.runs:  # the bound on the decay of the loss
        assert run.loss <= run.start_loss * np.exp(-run.rate * 4.0)
        assert run.decay >= run.rate
    rich = lazy_training([64, 256, 1024], X, y, scaling="mean_field", time=4.0, steps=200)
    assert abs(rich.slopes["movement"]) < 0.15
    assert [row["width"] for row in rich.table] == [64, 256, 1024]


def test_training_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="an even number"):
        lazy_training([3], X, X[:, 0])
    with pytest.raises(InputError, match="must be .lazy. or .mean_field."):
        lazy_training([4], X, X[:, 0], scaling="ntk")
    with pytest.raises(InputError, match="diverged at width 64: use more than 5 steps"):
        lazy_training([64], X, X[:, 0], time=1e4, steps=5)


def test_a_mean_field_layer_turns_to_the_directions_of_its_target_and_a_lazy_one_does_not() -> None:
    rows = torch.randn(240, 8, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    U = torch.linalg.qr(torch.randn(8, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64))[0]
    y = torch.tanh(2 * rows @ U[:, 0]) + 0.5 * (rows @ U[:, 0]) * (rows @ U[:, 1])
    turned = U @ torch.tensor([[1.0, 2.0], [0.0, 3.0]]).double()  # only the span matters
    result = two_layer(
        rows[:160], y[:160], turned, width=100, time=40.0, steps=400, moments=4, test=(rows[160:], y[160:])
    )
    rich, lazy = result.last["mean_field"], result.last["lazy"]
    assert [moment.time for moment in result.moments] == [0.0, 10.0, 20.0, 30.0, 40.0] * 2
    for moment in (result.moments[0], result.moments[5]):  # before training
        assert abs(moment.alignment - 2 / 8) < 0.1
        assert moment.movement == 0.0
    assert rich.alignment > 1.7 * lazy.alignment
    assert rich.movement > 3 * lazy.movement
    assert rich.test_error is not None
    assert lazy.test_error is not None
    assert rich.test_error < lazy.test_error
    assert result.plot().get_ylabel().startswith("Share")
    assert len(result.table) == 10
    with pytest.raises(InputError, match="a row for each of the 8 columns"):
        two_layer(rows, y, U.T)
    with pytest.raises(InputError, match="diverged"):
        two_layer(rows, y, U, time=4000.0, steps=20, moments=2)


def test_a_flow_takes_several_times_at_once() -> None:
    flow = gradient_flow("gaussian", X, torch.stack([X[:, 0], X[:, 1]], 1))
    both = flow.predict(Z, t=[1.0, math.inf])
    torch.testing.assert_close(both, torch.stack([flow.predict(Z, t=1.0), flow.predict(Z)]))
    for t in (-1.0, [], math.nan, "now"):
        with pytest.raises((InputError, InputTypeError), match="time"):
            flow.predict(Z, t=t)


@pytest.mark.parametrize(
    "call",
    [
        lambda: empirical_ntk(nn.Linear(4, 1), X),
        lambda: MonteCarloNNGP(lambda: nn.Linear(4, 1))(X),
        lambda: NTK(1)(X, Z[:, :2]),
        lambda: empirical_ntk(nn.Linear(3, 1).to(torch.complex64), X),
        lambda: linearize(nn.Linear(3, 1))(X.numpy()),
    ],
)
@pytest.mark.filterwarnings("ignore:Complex modules")
def test_what_does_not_fit_a_network_is_an_error_of_ours(call) -> None:
    with pytest.raises((InputError, InputTypeError), match=r"cannot take rows|3 columns|complex|tensor"):
        call()


@pytest.mark.parametrize("given", [{"n_modules": 2.5}, {"n_modules": 0}, {"seed": -1}, {"shape": 3}])
def test_arguments_of_random_networks_are_named(given) -> None:
    (name,) = given
    with pytest.raises((InputError, InputTypeError), match=f"{name}="):
        MonteCarloNNGP(lambda: nn.Linear(3, 1), **given)


def test_a_module_is_shown_in_one_line() -> None:
    assert repr(EmpiricalNTK(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))) == (
        "EmpiricalNTK(module=<Sequential, 8 parameters>, shape=None)"
    )


def test_activations_of_numpy_are_those_of_torch_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = NTK(2, np.tanh)(X)
    torch.testing.assert_close(found, NTK(2, torch.tanh)(X))
