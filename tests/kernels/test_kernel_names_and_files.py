"""Kernels by name, and kernels as plain data in model files."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.kernels import (
    Callable,
    Constant,
    FeatureMap,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Power,
    Precomputed,
    Scaled,
    Spectrum,
    Subspace,
    Sum,
    as_kernel,
    from_dict,
    kernel_from_name,
    to_dict,
)
from mercer.kernels.dials import MAX_DEPTH, MAX_ENTRIES
from mercer.kernels.registry import NAMED
from mercer.kernels.serialize import SAVED
from mercer.testing import check_kernel
from mercer.testing.examples import EXAMPLES


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_name_is_a_kernel_that_keeps_the_laws(name):
    check_kernel(kernel_from_name(name))


def test_names_stand_for_length_scales_in_the_units_of_the_columns():
    assert kernel_from_name("rbf") == kernel_from_name("gaussian") == Gaussian("auto")
    assert kernel_from_name("laplace") == Laplace("auto")
    assert kernel_from_name("laplace_l1") == Laplace("auto", metric="l1")
    assert [kernel_from_name(f"matern{i}2").nu for i in (1, 3, 5)] == [0.5, 1.5, 2.5]
    assert kernel_from_name("poly") == Polynomial()
    assert kernel_from_name("imq") == InverseMultiquadric("auto")
    assert kernel_from_name(" RBF ") == Gaussian("auto")


def test_unknown_names_list_the_known_and_suggest_the_closest():
    with pytest.raises(
        InputError, match=r"no kernel named 'gausian'. Did you mean \"gaussian\"\? Known names: all_subsets, .*rbf"
    ):
        kernel_from_name("gausian")
    with pytest.raises(InputError, match=r"no kernel named 'xyzzy'. Known names"):
        as_kernel("xyzzy")


def test_laplacian_is_explained_not_guessed():
    with pytest.raises(InputError, match=r'"laplace" uses the Euclidean \(L2\).*"laplace_l1" the L1'):
        as_kernel("laplacian")


def test_kernels_names_and_functions_become_kernels():
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel
    assert as_kernel("linear") == Linear()
    assert as_kernel(np.dot) == Callable(np.dot)
    with pytest.raises(InputTypeError, match=r"kernel=Gaussian is a class; write Gaussian\(...\)"):
        as_kernel(Gaussian)
    with pytest.raises(InputTypeError, match="kernel=3 must be a kernel, a name or a function"):
        as_kernel(3)


# Model files


def savable(kernel):
    return type(kernel).__name__ in SAVED and all(savable(child) for _, child in kernel.children())


@pytest.mark.parametrize("kernel", [k for k in EXAMPLES if savable(k)], ids=repr)
def test_saved_kernels_come_back_through_strict_json(kernel):
    text = json.dumps(to_dict(kernel), allow_nan=False)
    assert from_dict(json.loads(text)) == kernel


def test_the_saved_form_is_class_and_params():
    assert to_dict(2.0 * Subspace(Matern(math.inf, (1.0, 2.0)), ["a", 1])) == {
        "class": "Scaled",
        "params": {
            "kernel": {
                "class": "Subspace",
                "params": {
                    "kernel": {"class": "Matern", "params": {"nu": "inf", "length_scale": [1.0, 2.0]}},
                    "columns": ["a", 1],
                },
            },
            "factor": 2.0,
        },
    }


class OwnKernel(Gaussian):
    pass


class Periodic2(Periodic):
    pass


Periodic2.__name__ = "Periodic"


@pytest.mark.parametrize(
    "kernel",
    [
        Callable(np.dot),
        FeatureMap(np.sin),
        np.sin * Gaussian(),
        1.0 + Linear() * FeatureMap(np.sin),
        Gaussian().replace(length_scale=torch.tensor(1.0)),
        OwnKernel(),
        Periodic2(),
    ],
    ids=repr,
)
def test_functions_tensors_and_foreign_classes_cannot_be_saved_and_say_so(kernel):
    with pytest.raises(InputError, match="cannot be saved in a model file: .*pickle"):
        to_dict(kernel)


def gaussian(**params):
    return {"class": "Gaussian", "params": params}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, 'has the keys "class" and "params", got None'),
        ([], 'has the keys "class" and "params"'),
        ("Gaussian", 'has the keys "class" and "params"'),
        ({}, 'has the keys "class" and "params"'),
        ({"class": "Gaussian"}, 'has the keys "class" and "params"'),
        ({**gaussian(), "module": "os"}, 'has the keys "class" and "params"'),
        ({"class": "Callable", "params": {"function": "os.system"}}, "unknown kernel 'Callable'"),
        ({"class": "Kernel", "params": {}}, "unknown kernel 'Kernel'"),
        ({"class": "__import__", "params": {}}, "unknown kernel '__import__'"),
        ({"class": ["Gaussian"], "params": {}}, r"unknown kernel \['Gaussian'\]"),
        ({"class": {}, "params": {}}, r"unknown kernel \{\}"),
        ({"class": "Gaussian", "params": [1.0]}, r"parameters of Gaussian in the model file are not a table: \[1.0\]"),
        (gaussian(gamma=1.0), r"Gaussian has the parameters \['length_scale'\], but the model file gives \['gamma'\]"),
        ({"class": "Sum", "params": {"k1": gaussian()}}, r"Sum has the parameters \['k1', 'k2'\]"),
        (gaussian(length_scale=-1.0), r"invalid kernel: Gaussian\(length_scale=-1.0\)"),
        (gaussian(length_scale=math.nan), r"length_scale=nan"),
        (gaussian(length_scale="wide"), "length_scale='wide'"),
        (gaussian(length_scale=True), "length_scale=True"),
        (gaussian(length_scale=None), "Gaussian.length_scale in the model file is None"),
        (gaussian(length_scale="inf"), "length_scale=inf"),
        (gaussian(length_scale=10**400), "length_scale="),
        (gaussian(length_scale=[]), "length_scale="),
        (gaussian(length_scale=[[1.0]]), "must list numbers or names"),
        (gaussian(length_scale=[1.0, "a"]), "length_scale="),
        (gaussian(length_scale=gaussian()), "length_scale="),
        (gaussian(length_scale=[1.0] * (MAX_ENTRIES + 1)), f"has {MAX_ENTRIES + 1} entries; at most {MAX_ENTRIES}"),
        ({"class": "Scaled", "params": {"kernel": 3, "factor": 1.0}}, "kernel must be a kernel"),
        ({"class": "Power", "params": {"kernel": gaussian(), "exponent": 1.5}}, "exponent"),
        ({"class": "Laplace", "params": {"length_scale": 1.0, "metric": 5}}, "metric=5"),
        ({"class": "Spectrum", "params": {"k": 3, "normalised": 1}}, "normalised=1"),
        ({"class": "Subspace", "params": {"kernel": gaussian(), "columns": [1.5]}}, "1.5 is neither"),
        ({"class": "Subspace", "params": {"kernel": gaussian(), "columns": []}}, "at least one column"),
        (
            {"class": "Sum", "params": {"k1": gaussian(), "k2": {"class": "Precomputed", "params": {}}}},
            "one reads a precomputed Gram matrix",
        ),
    ],
)
def test_damaged_and_hostile_data_are_rejected(data, message):
    with pytest.raises(ModelFileError, match=message):
        from_dict(data)


def test_parameters_with_a_default_may_be_missing():
    assert from_dict(gaussian()) == Gaussian()


def test_the_depth_of_nesting_is_limited_the_same_way_in_and_out():
    kernel = sum(Subspace(Constant(), i) for i in range(MAX_DEPTH))
    assert from_dict(to_dict(kernel)) == kernel
    with pytest.raises(InputError, match=f"nested deeper than {MAX_DEPTH}"):
        to_dict(kernel + Gaussian() + Gaussian())
    data = gaussian()
    for _ in range(5000):
        data = {"class": "Scaled", "params": {"kernel": data, "factor": 1.0}}
    with pytest.raises(ModelFileError, match=f"nested deeper than {MAX_DEPTH}"):
        from_dict(data)


def test_every_kernel_class_without_functions_can_be_saved():
    savable_classes = {type(k) for k in EXAMPLES if savable(k)} | {Sum, Scaled, Power, Precomputed, Spectrum}
    assert {c.__name__ for c in savable_classes} <= set(SAVED)
    assert not {"Callable", "FeatureMap", "FunctionScaled", "Kernel"} & set(SAVED)
