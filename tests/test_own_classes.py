"""Custom kernels and losses: registered, they are saved and loaded like the others; a file imports nothing."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import mercer
from mercer import kernels, losses
from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.formula.maths import exp
from mercer.kernels import Gaussian, Kernel, as_kernel, registry
from mercer.kernels.parameters import length_scale
from mercer.losses import Huber, Loss
from mercer.losses import registry as losses_registry
from mercer.testing import check_kernel

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.sin(X[:, 0])


@kernels.register(names={"arch": {"length_scale": "median"}}, examples=[{"length_scale": 0.5}])
class Arch(Kernel):
    length_scale: float = length_scale()

    def of(self, pair):
        return exp(-pair.squared_distance(self.length_scale))


@losses.register
class Cauchy(Loss):
    convex = False
    scale: float = 1.0

    def __post_init__(self):
        if not self.scale > 0:
            raise InputError(f"Cauchy(scale={self.scale}): must be > 0.")

    def value(self, y, f):
        return torch.log1p(((y - f) / self.scale) ** 2)


def test_a_registered_kernel_is_a_frozen_dataclass_that_keeps_the_laws_and_has_a_name():
    assert as_kernel("arch") == Arch("median")
    assert registry.EXAMPLES["Arch"] == (Arch(0.5),)
    for example in registry.EXAMPLES["Arch"]:
        check_kernel(example)
    with pytest.raises(AttributeError):
        Arch().length_scale = 2.0


@pytest.mark.parametrize("model", [mercer.KernelRidge(2.0 * Arch(0.7) + 1.0), mercer.KernelPCA(2, "arch")], ids=repr)
def test_models_with_a_registered_kernel_come_back(model, tmp_path):
    model.fit(X, Y).save(tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert again.kernel_ == model.kernel_
    use = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_allclose(getattr(again, use)(X), getattr(model, use)(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Arch(0.7), "arch"], ids=repr)
def test_a_program_that_has_not_registered_the_kernel_refuses_the_file(kernel, tmp_path, monkeypatch):
    mercer.KernelRidge(kernel).fit(X, Y).save(tmp_path / "m")
    monkeypatch.delitem(registry.SAVED, "Arch")
    with pytest.raises(ModelFileError, match=r"kernel.*register"):
        mercer.load(tmp_path / "m")


def test_a_kernel_that_is_not_registered_is_not_saved(tmp_path):
    @dataclass(frozen=True, eq=False, repr=False)
    class Plain(Arch):
        pass

    with pytest.raises(InputError, match="Plain .*not registered"):
        mercer.KernelRidge(Plain(0.5)).fit(X, Y).save(tmp_path / "m")


def test_a_dataclass_keeps_its_fields_when_it_is_registered(monkeypatch):
    monkeypatch.setattr(registry, "SAVED", dict(registry.SAVED))
    monkeypatch.setattr(registry, "EXAMPLES", dict(registry.EXAMPLES))

    @kernels.register
    @dataclass(frozen=True, eq=False, repr=False)
    class Twice(Kernel):
        length_scale: float = length_scale()

    with pytest.raises(InputError, match="must be a number > 0"):
        Twice(-1.0)


def test_names_belong_to_one_class(monkeypatch):
    for name in ("SAVED", "NAMED", "EXAMPLES"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    taken = type("Gaussian", (Kernel,), {"__module__": __name__})
    with pytest.raises(InputError, match=r"Two classes are named Gaussian; one from mercer.kernels.stationary"):
        kernels.register(taken)
    other = type("Other", (Kernel,), {"__module__": __name__})
    with pytest.raises(InputError, match="Two classes are named gaussian"):
        kernels.register(names={"gaussian": {}})(other)
    assert as_kernel("gaussian") == Gaussian("auto")
    assert registry.SAVED["Gaussian"] is Gaussian
    assert "Other" not in registry.SAVED
    again = type("Arch", (Kernel,), {"__module__": __name__})
    kernels.register(again)  # a cell of a notebook that is run twice
    assert registry.SAVED["Arch"] is again
    with pytest.raises(InputTypeError, match="must be a class of kernels"):
        kernels.register(Gaussian(1.0))


@pytest.mark.parametrize("loss", [Cauchy(2.0), Huber(0.5)], ids=repr)
def test_models_with_a_registered_loss_come_back(loss, tmp_path):
    model = mercer.KernelRegressor("gaussian", loss=loss).fit(X, Y)
    model.save(tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.fit(X, Y).predict(X), model.predict(X))


def test_a_loss_of_ones_own_is_given_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setitem(losses_registry.LOSSES, "cauchy", Cauchy)
    model = mercer.KernelRegressor("gaussian", loss="cauchy").fit(X, Y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(X), model.predict(X))
    with pytest.raises(InputError, match="'logistic', 'squared_hinge' or a mercer"):
        mercer.KernelClassifier("gaussian", loss="cauchy").fit(X, Y > 0)


def test_a_program_that_has_not_registered_the_loss_refuses_the_file(tmp_path, monkeypatch):
    mercer.KernelRegressor("gaussian", loss=Cauchy()).fit(X, Y).save(tmp_path / "m")
    monkeypatch.delitem(losses_registry.SAVED, "Cauchy")
    with pytest.raises(ModelFileError, match=r"loss.*register"):
        mercer.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("Cauchy", "has the keys"),
        ({"class": "Cauchy"}, "has the keys"),
        ({"class": "Cauchy", "params": [1.0]}, "has the keys"),
        ({"class": "os.system", "params": {}}, "unknown loss 'os.system'"),
        ({"class": ["Huber"], "params": {}}, "unknown loss"),
        ({"class": "Cauchy", "params": {"width": 1.0}}, r"has the parameters \['scale'\]"),
        ({"class": "Cauchy", "params": {"scale": [1.0]}}, "numbers or text"),
        ({"class": "Cauchy", "params": {"scale": -1.0}}, "an invalid loss: .*must be > 0"),
        ({"class": "Huber", "params": {"delta": "wide"}}, "an invalid loss"),
    ],
)
def test_losses_in_a_file_that_make_no_sense_are_refused(data, message):
    with pytest.raises(ModelFileError, match=message):
        losses.from_dict(data)


def test_a_loss_that_is_not_registered_or_holds_more_than_numbers_is_not_saved(monkeypatch):
    monkeypatch.setattr(losses_registry, "SAVED", dict(losses_registry.SAVED))

    @dataclass(frozen=True)
    class Own(Loss):
        table: object = ()

    with pytest.raises(InputError, match="Own is not registered"):
        losses.to_dict(Own())
    losses.register(Own)
    with pytest.raises(InputError, match="table is neither a number nor text"):
        losses.to_dict(Own())
    with pytest.raises(InputTypeError, match="must be a class of losses"):
        losses.register(Gaussian)
    with pytest.raises(InputError, match="Two classes are named huber"):
        losses.register("huber")(Own)
