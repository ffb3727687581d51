"""Kernels of networks from layers in model files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mercer import KernelClassifier, KernelRidge, load
from mercer.core.errors import InputError, ModelFileError
from mercer.kernels import Gaussian, from_dict, to_dict
from mercer.neural import (
    Activation,
    AveragePool,
    Conv,
    Dense,
    EmpiricalNTK,
    Flatten,
    LayerKernel,
    MonteCarloNNGP,
    Residual,
)

RESIDUAL = Residual((Activation("leaky_relu", 0.2), Residual([Conv(3, 1.5, 0.0, "circular")]), Conv(1)))
KERNEL = LayerKernel([Conv(3), RESIDUAL, AveragePool(2), Activation("tanh"), Flatten(), Dense()], (1, 4, 4), False)
X = np.random.default_rng(0).normal(size=(14, 16))
Y = X[:, 0] + X[:, 5] > 0


@pytest.mark.parametrize(
    "kernel", [KERNEL, LayerKernel([Dense(), Activation("gelu"), Dense()]), 2.0 * KERNEL + Gaussian()]
)
def test_networks_from_layers_come_back_from_strict_json(kernel: Any) -> None:
    back = from_dict(json.loads(json.dumps(to_dict(kernel), allow_nan=False)))
    assert back == kernel
    np.testing.assert_array_equal(back(X), kernel(X))


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(KERNEL, alpha=0.1),
        KernelClassifier(KERNEL, loss="squared", alpha=0.1),
        KernelRidge(3.0 * KERNEL, alpha="loo"),
    ],
    ids=str,
)
def test_saved_models_of_networks_predict_the_same(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y if isinstance(model, KernelClassifier) else Y.astype(float)).save(tmp_path / "model.mercer")
    np.testing.assert_array_equal(load(tmp_path / "model.mercer").predict(X[::-1]), model.predict(X[::-1]))


def saved() -> dict[str, Any]:
    return to_dict(LayerKernel([Conv(3), Activation(), AveragePool(2), Flatten(), Dense()], (1, 4, 4)))


def part(kind: str, **params: Any) -> dict[str, Any]:
    return {"class": kind, "params": params}


def nested(depth: int) -> dict[str, Any]:
    data = part("Flatten")
    for _ in range(depth):
        data = part("Residual", layers=[data])
    return data


@pytest.mark.parametrize(
    ("place", "hostile"),
    [
        (0, part("Conv", size=2)),
        (0, part("Conv", size=-3)),
        (0, part("Conv", size="3")),
        (0, part("Conv", size=True)),
        (0, part("Conv", size=3, w_var=0.0)),
        (0, part("Conv", w_var="inf")),
        (0, part("Conv", b_var=-1.0)),
        (0, part("Conv", padding="mirror")),
        (0, part("Conv", padding=["zero"])),
        (0, part("Conv", strides=2)),
        (0, part("Convolution")),
        (0, part("os.system", layers=[1])),
        (0, part("Gaussian", length_scale=1.0)),
        (0, 3),
        (0, "Conv"),
        (0, ["Conv"]),
        (1, part("Activation", activation="eval")),
        (1, part("Activation", activation=7)),
        (1, part("Activation", activation="leaky_relu", slope=1e9)),
        (1, part("Activation", activation="leaky_relu", slope="steep")),
        (2, part("AveragePool", size=0)),
        (2, part("AveragePool", size=1.5)),
        (3, nested(500)),
        (3, part("Residual", layers=[])),
        (3, part("Residual", layers="all")),
        (4, part("Flatten")),
    ],
)
def test_hostile_layers_of_a_file_are_errors_of_ours(place: int, hostile: Any) -> None:
    data = saved()
    data["params"]["layers"][place] = hostile
    with pytest.raises(ModelFileError):
        from_dict(data)


@pytest.mark.parametrize(
    ("name", "hostile"),
    [
        ("shape", [1, 4]),
        ("shape", [1, 4, 0]),
        ("shape", [1, 4.5, 4]),
        ("shape", ["1", "4", "4"]),
        ("shape", part("Flatten")),
        ("tangent", 2),
        ("tangent", None),
        ("layers", None),
        ("layers", []),
        ("layers", part("Dense")),
    ],
)
def test_hostile_parameters_of_networks_are_errors_of_ours(name: str, hostile: Any) -> None:
    data = saved()
    data["params"][name] = hostile
    if (name, hostile) == ("layers", part("Dense")):  # one layer is a network
        assert from_dict(data).layers == (Dense(),)
        return
    with pytest.raises(ModelFileError):
        from_dict(data)


@pytest.mark.parametrize("data", [part("Conv"), part("Residual", layers=[part("Flatten")])])
def test_a_layer_alone_is_no_kernel(data: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match="unknown kernel"):
        from_dict(data)


@pytest.mark.parametrize("size", [10**9 + 1, 9])
def test_filters_much_larger_than_images_are_refused_before_they_are_made(size: int) -> None:
    with pytest.raises(InputError, match="are smaller than that"):
        LayerKernel([Conv(size), Flatten(), Dense()], (1, 4, 4))(X)


def test_images_whose_covariances_do_not_fit_are_refused_before_they_are_made() -> None:
    rows = torch.zeros(1, 4000 * 4000, dtype=torch.float64)
    with pytest.raises(MemoryError, match="two images at all pairs"):
        LayerKernel([Conv(3), AveragePool(2), Flatten(), Dense()], (1, 4000, 4000))(rows)


@pytest.mark.parametrize(
    "kernel",
    [
        LayerKernel([Dense(), Activation(torch.tanh), Dense()]),
        MonteCarloNNGP(lambda: torch.nn.Linear(16, 4)),
        EmpiricalNTK(torch.nn.Linear(16, 1)),
    ],
    ids=["function", "modules", "module"],
)
def test_functions_and_modules_cannot_be_saved_and_say_so(kernel: Any) -> None:
    with pytest.raises(InputError, match="cannot be saved in a model file: .*pickle"):
        to_dict(kernel)
