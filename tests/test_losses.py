"""Losses: derivatives against differences, and losses of one's own."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from mercer import KernelRegressor
from mercer.core.errors import InputError, InputTypeError
from mercer.losses import LOSSES, EpsilonInsensitive, Hinge, Huber, Loss, PiecewiseLinear, Quantile, get_loss

SCALAR = [name for name in LOSSES if name != "multinomial"]
SMOOTH = [name for name in SCALAR if get_loss(name).smooth]


def targets_of(loss, n):
    signs = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    return signs if loss.name in ("logistic", "hinge", "squared_hinge") else torch.linspace(-2, 2, n).double()


def sample(loss, n=41):
    return targets_of(loss, n), torch.linspace(-3.05, 3.1, n).double()


@pytest.mark.parametrize("name", SCALAR)
def test_the_gradient_is_the_derivative_of_the_value(name):
    loss = get_loss(name)
    y, f = sample(loss)
    step = 1e-6
    slope = (loss.value(y, f + step) - loss.value(y, f - step)) / (2 * step)
    assert torch.allclose(loss.gradient(y, f), slope, atol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_hessian_is_the_derivative_of_the_gradient(name):
    loss = get_loss(name)
    y, f = sample(loss)
    step = 1e-6
    slope = (loss.gradient(y, f + step) - loss.gradient(y, f - step)) / (2 * step)
    assert torch.allclose(loss.hessian(y, f), slope, atol=1e-7)


@pytest.mark.parametrize("name", ["squared", "logistic", "huber", "squared_hinge"])
def test_derivatives_by_torch_equal_those_written_down(name):
    loss = get_loss(name)
    y, f = sample(loss)
    assert torch.allclose(Loss.gradient(loss, y, f), loss.gradient(y, f))
    assert torch.allclose(Loss.hessian(loss, y, f), loss.hessian(y, f))


def test_the_multinomial_loss_has_the_derivatives_of_its_value():
    loss, generator = get_loss("multinomial"), torch.Generator().manual_seed(0)
    f = torch.randn(5, 3, generator=generator).double()
    y = torch.tensor([0, 1, 2, 1, 0])
    each = torch.func.jacrev(lambda row, label: loss.value(label.reshape(1), row.reshape(1, -1))[0])
    for i in range(5):
        assert torch.allclose(each(f[i], y[i]), loss.gradient(y, f)[i])
        assert torch.allclose(torch.func.jacrev(each)(f[i], y[i]), loss.hessian(y, f)[i])


def test_the_multinomial_loss_of_two_classes_is_the_logistic_one():
    f = torch.linspace(-40, 40, 9).double()
    pair = torch.stack([torch.zeros_like(f), f], dim=1)
    assert torch.allclose(
        get_loss("multinomial").value(torch.ones(9), pair), get_loss("logistic").value(torch.ones(9), f)
    )


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "multinomial"])
def test_huge_predictions_stay_finite(name):
    loss = get_loss(name)
    f = torch.tensor([1e4, -1e4]).double()
    if loss.joint:
        f = torch.stack([f, -f], dim=1)
    y = torch.ones(2).double()
    for values in (loss.value(y, f), loss.gradient(y, f), loss.hessian(y, f)):
        assert bool(torch.isfinite(values).all())


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_quantile_loss_is_least_at_the_quantile(level):
    y = torch.arange(1.0, 101.0).double()
    grid = torch.linspace(0, 101, 2021).double()
    total = torch.stack([Quantile(level).value(y, f.expand_as(y)).sum() for f in grid])
    assert abs(float(grid[total.argmin()]) - 100 * level) <= 1.0


def test_a_loss_of_ones_own_needs_a_value_alone():
    @dataclass(frozen=True)
    class Fourth(Loss):
        def value(self, y, f):
            return (y - f) ** 4

    y, f = torch.zeros(3).double(), torch.tensor([0.0, 1.0, 2.0]).double()
    assert Fourth().gradient(y, f).tolist() == [0.0, 4.0, 32.0]
    assert Fourth().hessian(y, f).tolist() == [0.0, 12.0, 48.0]


def test_losses_refuse_what_has_no_meaning():
    with pytest.raises(InputError, match="-1 and 1"):
        Hinge().check_targets(torch.tensor([1.0, 0.0]))
    with pytest.raises(InputError, match="0, 1, 2"):
        get_loss("multinomial").check_targets(torch.tensor([0.5]))
    with pytest.raises(InputError, match="delta=0"):
        Huber(delta=0)
    with pytest.raises(InputError, match="level=1.0"):
        Quantile(level=1.0)
    with pytest.raises(InputError, match="is unknown"):
        get_loss("absolute")
    with pytest.raises(InputTypeError, match="give a name"):
        get_loss(3)


@pytest.mark.parametrize("make", [Huber, Quantile, EpsilonInsensitive])
def test_parameters_are_finite_numbers(make):
    for value in ("a", None, True, [0.5]):
        with pytest.raises(InputTypeError, match="must be a"):
            make(value)
    for value in (np.inf, np.nan, -1.0):
        with pytest.raises(InputError, match="must be a"):
            make(value)
    assert make(np.float32(0.5)) == make(0.5)


def own(base=Loss, **methods):
    return type("Own", (base,), methods)()


def pieces(kinks, slopes):
    return own(
        PiecewiseLinear,
        kinks=lambda self, y: torch.stack([y + k for k in kinks]),
        slopes=lambda self, y: torch.stack([torch.full_like(y, s) for s in slopes]),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_losses_pass_their_own_check(name):
    loss = get_loss(name)
    y = torch.zeros(4).double() if loss.joint else targets_of(loss, 4).unsqueeze(1)
    loss.check(y, torch.zeros(4, 2 if loss.joint else 1).double())


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (own(smooth=False, value=lambda self, y, f: (y - f).abs()), InputError, "PiecewiseLinear"),
        (pieces([0.0], [1.0, -1.0]), InputError, "not convex"),
        (pieces([1.0, 0.0], [-1.0, 0.0, 1.0]), InputError, "not convex"),
        (pieces([0.0], [1.0, 2.0]), InputError, "no least value"),
        (pieces([0.0], [-1.0, 0.0, 1.0]), InputError, "shape"),
        (own(value=lambda self, y, f: (y - f) ** 2 * torch.nan), InputError, "value that is not finite.*-2.0.*0.0"),
        (own(value=lambda self, y, f: (f * f).sqrt() + y**2), InputError, "derivative that is not finite"),
        (own(value=lambda self, y, f: (y - f).square().sum()), InputError, "one number for each target"),
        (own(value=lambda self, y, f: (y - f.detach()).numpy() ** 2), InputTypeError, "computed with torch"),
        (own(value=lambda self, y, f: (y - f.detach()) ** 2), InputTypeError, "computed with torch"),
        (own(value=lambda self, y, f: torch.from_numpy((y - f).numpy())), InputTypeError, "computed with torch"),
    ],
)
def test_a_loss_that_cannot_be_minimised_is_refused(loss, error, words):
    y = torch.linspace(-2, 2, 5).double().unsqueeze(1)
    with pytest.raises(error, match=words):
        loss.check(y, torch.zeros_like(y))


def of_pairs(self, y, f):
    return torch.nn.functional.softplus(-(y - y.T) * (f - f.T)).mean(1, keepdim=True)


def of_proportional_hazards(self, y, f):
    at_risk = torch.where(y >= y.T, f, -torch.inf)
    return torch.logsumexp(at_risk, 0).unsqueeze(1) - f


COUPLED = {
    "pairs": of_pairs,
    "proportional hazards": of_proportional_hazards,
    "mean of all": lambda self, y, f: (y - f).square().mean().expand_as(y),
    "neighbours": lambda self, y, f: (y - f).square() + (f - f.roll(1, 0)).square(),  # unseen where f is the same
    "number of rows": lambda self, y, f: (y - f).square() / len(y),
    "scale of y": lambda self, y, f: ((y - f) / y.std(correction=0)).square(),
    "softmax over rows": lambda self, y, f: -f.log_softmax(0) * y.abs(),
    "first row": lambda self, y, f: (y - f + f[:1]).square(),
    "last row": lambda self, y, f: (y - f + f[-1:]).square(),
    "one number for each row": lambda self, y, f: (y - f).square() * torch.arange(1.0, 8.0).to(y).unsqueeze(1),
}


@pytest.mark.parametrize("name", COUPLED)
def test_a_loss_that_couples_rows_is_refused(name):
    y = torch.tensor([0.3, -1.0, 2.0, 0.7, -0.2, 1.1, 5.0]).double().unsqueeze(1)
    with pytest.raises(InputError, match="depends on other rows.*cannot be used"):
        own(value=COUPLED[name]).check(y, torch.zeros_like(y))


def test_a_loss_that_couples_rows_is_refused_by_fits():
    X = np.linspace(0, 1, 12).reshape(-1, 1)
    for alpha in (1.0, "auto"):
        with pytest.raises(InputError, match="depends on other rows"):
            KernelRegressor("gaussian", loss=own(value=of_pairs), alpha=alpha).fit(X, X[:, 0])


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_single_rows_are_taken_at_any_size_of_the_targets(name, size):
    loss = get_loss(name)
    y = torch.arange(6).double() % 3 if loss.joint else targets_of(loss, 6).unsqueeze(1)
    if not loss.joint and not loss.name.startswith(("logistic", "hinge", "squared_hinge")):
        y = size * y
    loss.check(y, torch.zeros(6, 3 if loss.joint else 1).double())
