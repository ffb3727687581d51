"""A model file holds the whole model and nothing that runs."""

import numpy as np
import pandas as pd
import pytest
import torch

from mercer import KernelRidge, load
from mercer.core.errors import InputError, ModelFileError
from mercer.files.persistence import read_model, write_model
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Periodic, Spectrum, Subspace

rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
X_test = rng.normal(size=(9, 3))

MODELS = {
    "default": (KernelRidge(), X, y),
    "loo": (KernelRidge("gaussian", alpha="loo"), X, y),
    "own path": (KernelRidge("gaussian", alpha="gcv", alphas=[0.1, 1.0]), X, y),
    "tuned": (KernelRidge(Gaussian((1.0, 2.0, 3.0)), alpha="loo", tune=True), X, y),
    "several targets": (KernelRidge("matern32", alpha=[0.1, 1.0]), X, np.c_[y, -y]),
    "composed": (KernelRidge(2.0 * Gaussian(1.5) + Subspace(Periodic(1.0, 2.0), [1]) * Linear(1.0) ** 2), X, y),
    "float32": (KernelRidge(Matern(1.7, 1.0), alpha=0.1), X.astype(np.float32), y.astype(np.float32)),
    "torch": (KernelRidge(Laplace(1.0, "l1")), torch.tensor(X), torch.tensor(y)),
    "names": (KernelRidge(Subspace(Gaussian(), ["b"])), pd.DataFrame(X, columns=["a", "b", "c"]), y),
    "ridgeless": (KernelRidge("laplace", alpha=0.0), X, y),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_saved_model_comes_back_whole(tmp_path, name, weighted):
    model, data, targets = MODELS[name]
    model.fit(data, targets, np.arange(40) % 3 + 0.5 if weighted else None)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load(path)
    new = torch.tensor(X_test) if isinstance(data, torch.Tensor) else X_test.astype(getattr(data, "dtype", float))
    if isinstance(data, pd.DataFrame):
        new = pd.DataFrame(X_test, columns=data.columns)
        assert list(again.feature_names_in_) == list(data.columns)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert type(again.predict(new)) is type(model.predict(new))
    assert again.kernel_ == model.kernel_
    assert again.solver_report_ == model.solver_report_
    assert again.n_features_in_ == model.n_features_in_
    np.testing.assert_array_equal(again.alpha_, model.alpha_)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    np.testing.assert_allclose(again.loo_predictions_, model.loo_predictions_, atol=1e-9)
    np.testing.assert_allclose(again.label_weights(new), model.label_weights(new), atol=1e-12)
    assert repr(again) == repr(model)
    assert str(again.report()) == str(model.report())
    np.testing.assert_array_equal(again.fit(data, targets).predict(new), model.fit(data, targets).predict(new))


def test_a_model_of_strings_comes_back(tmp_path):
    words = ["ACGT", "AACC", "GGTT", "ACAC"]
    model = KernelRidge(Spectrum(2), alpha=0.1).fit(words, [1.0, 2.0, 3.0, 4.0])
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(words), model.predict(words))


def test_python_functions_are_refused_before_anything_is_written(tmp_path):
    model = KernelRidge(lambda a, b: float(a @ b)).fit(X, y)
    with pytest.raises(InputError, match="pickle"):
        model.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: arrays.update(X=arrays["X"][:, 0]),
        lambda meta, arrays: arrays.update(X=arrays["X"][:5]),
        lambda meta, arrays: arrays.update(coef=arrays["coef"][:, :0]),
        lambda meta, arrays: arrays.update(coef=arrays["coef"].to(torch.int64)),
        lambda meta, arrays: arrays.update(extra=torch.ones(2)),
        lambda meta, arrays: arrays.pop("targets"),
        lambda meta, arrays: meta.update(kernel={"class": "os.system", "params": {}}),
        lambda meta, arrays: meta.update(kernel={"class": "Gaussian", "params": {"length_scale": -1.0}}),
        lambda meta, arrays: meta.update(alpha=[-1.0]),
        lambda meta, arrays: meta.update(alpha=["x"]),
        lambda meta, arrays: meta.update(report={"solver": 3}),
        lambda meta, arrays: meta.update(names=["a"]),
        lambda meta, arrays: meta.update(names=[1, 2, 3]),
        lambda meta, arrays: meta["params"].update(verbose_hook="x"),
        lambda meta, arrays: meta.pop("params"),
        lambda meta, arrays: meta["seen"].update(one_target="yes"),
        lambda meta, arrays: meta["seen"].update(n_rows=-1),
        lambda meta, arrays: meta["seen"].update(dtype="object"),
        lambda meta, arrays: meta.update(solver="nystrom"),
    ],
)
def test_hostile_content_in_a_valid_file_is_refused(tmp_path, spoil):
    path = tmp_path / "m.safetensors"
    KernelRidge(Gaussian(1.0)).fit(X, y).save(path)
    name, meta, arrays = read_model(path, {"KernelRidge"})
    spoil(meta, arrays)
    write_model(path, name, meta, arrays)
    with pytest.raises(ModelFileError, match="m.safetensors"):
        load(path)
