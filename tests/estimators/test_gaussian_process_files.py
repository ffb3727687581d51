"""A model file holds the whole Gaussian process and nothing that runs."""

import numpy as np
import pandas as pd
import pytest
import torch

import mercer
from mercer import GaussianProcessRegressor, load
from mercer.core.errors import InputError, ModelFileError
from mercer.files.persistence import read_model, write_model
from mercer.kernels import Gaussian, Linear, Matern, Periodic, Spectrum, Subspace
from mercer.processes import Gamma, LogNormal

rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
X_test = rng.normal(size=(9, 3))
KERNEL = 1.2 * Matern(2.5, (1.0, 2.0, 0.5))

MODELS = {
    "learned": (GaussianProcessRegressor(n_restarts=0, max_iter=5), X, y),
    "fixed": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False), X, y),
    "linear mean": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False, mean="linear"), X, y),
    "line chosen": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False, mean="auto"), X, y + 50 * X[:, 0]),
    "constant chosen": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False, mean="auto"), X, y),
    "given mean": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False, mean=2.0), X, y),
    "noise of rows": (GaussianProcessRegressor(KERNEL, noise=np.linspace(0.1, 1, 30), tune=False), X, y),
    "several targets": (GaussianProcessRegressor(n_restarts=0, max_iter=3), X, np.c_[y, 9 * y[::-1]]),
    "tied": (GaussianProcessRegressor(n_restarts=0, max_iter=3), X[:9], y[:9]),
    "composed": (
        GaussianProcessRegressor(
            2.0 * Gaussian(1.5) + Subspace(Periodic(1.0, 2.0), [1]) * Linear(1.0), max_iter=2, n_restarts=0
        ),
        X,
        y,
    ),
    "bounds and priors": (
        GaussianProcessRegressor(
            n_restarts=0,
            max_iter=3,
            bounds={"noise": (0.01, 2.0), "factor": "fixed"},
            priors={"length_scale": LogNormal(1.0, 1.0), "noise": Gamma(2.0, 1.0)},
        ),
        X,
        y,
    ),
    "torch": (GaussianProcessRegressor(KERNEL, noise=0.1, tune=False), torch.tensor(X), torch.tensor(y)),
    "names": (
        GaussianProcessRegressor(Subspace(Gaussian(), ["b"]), noise=0.1, tune=False),
        pd.DataFrame(X, columns=["a", "b", "c"]),
        y,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_comes_back_whole(tmp_path, name):
    model, data, targets = MODELS[name]
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(UserWarning)
        model.fit(data, targets)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load(path)
    new = torch.tensor(X_test) if isinstance(data, torch.Tensor) else X_test
    if isinstance(data, pd.DataFrame):
        new = pd.DataFrame(X_test, columns=data.columns)
    for a, b in zip(again.predict(new, return_cov=True), model.predict(new, return_cov=True), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-13)
        assert type(a) is type(b)
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.noise_, model.noise_)
    assert again.log_marginal_likelihood_ == model.log_marginal_likelihood_
    assert str(again.report()) == str(model.report())
    assert str(again) == str(model) or name in ("noise of rows", "bounds and priors")
    np.testing.assert_allclose(again.loo().mean, model.loo().mean, rtol=1e-10)
    np.testing.assert_allclose(again.sample_functions(2)(new), model.sample_functions(2)(new), rtol=1e-9, atol=1e-9)
    if name != "noise of rows":
        again.partial_fit(data[:2], targets[:2])
        assert again._fit.seen.n_rows == model._fit.seen.n_rows + 2


def test_a_model_of_strings_comes_back(tmp_path):
    words = ["ACGT", "AACC", "GGTT", "ACAC"]
    model = GaussianProcessRegressor(Spectrum(2), noise=0.1, tune=False).fit(words, [1.0, 2.0, 3.0, 4.0])
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_allclose(load(tmp_path / "m.safetensors").predict(words), model.predict(words))


@pytest.mark.parametrize(
    "settings",
    [{"mean": lambda X: X[:, 0]}, {"kernel": lambda a, b: float(a @ b)}, {"priors": {"noise": lambda x: -x}}],
)
def test_python_functions_are_refused_before_anything_is_written(tmp_path, settings):
    model = GaussianProcessRegressor(**({"kernel": KERNEL, "max_iter": 1, "n_restarts": 0} | settings)).fit(X, y)
    with pytest.raises(InputError, match="pickle"):
        model.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: arrays.update(X=arrays["X"][:, 0]),
        lambda meta, arrays: arrays.update(X=arrays["X"][:5]),
        lambda meta, arrays: arrays.update(weights=arrays["weights"][:5]),
        lambda meta, arrays: arrays.update(weights=arrays["weights"].to(torch.int64)),
        lambda meta, arrays: arrays.update(extra=torch.ones(2)),
        lambda meta, arrays: arrays.update(posterior_extra=torch.ones(2)),
        lambda meta, arrays: arrays.update(start_bounds=arrays["start_bounds"][:1]),
        lambda meta, arrays: arrays.pop("targets"),
        lambda meta, arrays: meta.update(kernel={"class": "os.system", "params": {}}),
        lambda meta, arrays: meta.update(noise=-1.0),
        lambda meta, arrays: meta.update(noise="x"),
        lambda meta, arrays: meta.update(method="magic"),
        lambda meta, arrays: meta.update(optimum=3),
        lambda meta, arrays: meta.update(priors=[["noise", "os.system", {}]]),
        lambda meta, arrays: meta.update(report={"solver": 3}),
        lambda meta, arrays: meta.update(y_scale=0.0),
        lambda meta, arrays: meta.update(likelihood="high"),
        lambda meta, arrays: meta.update(names=["a"]),
        lambda meta, arrays: meta["params"].update(verbose_hook="x"),
        lambda meta, arrays: meta["seen"].update(n_rows=-1),
    ],
)
def test_hostile_content_in_a_valid_file_is_refused(tmp_path, spoil):
    path = tmp_path / "m.safetensors"
    GaussianProcessRegressor(KERNEL, noise=0.1, tune=False).fit(X, y).save(path)
    name, meta, arrays = read_model(path, {"GaussianProcessRegressor"})
    spoil(meta, arrays)
    write_model(path, name, meta, arrays)
    with pytest.raises(ModelFileError, match="m.safetensors"):
        load(path)


@pytest.mark.parametrize("fitted", ["zero", "constant", "linear", 3.0, "auto"])
@pytest.mark.parametrize("later", ["zero", "constant", "linear", 3.0])
def test_a_file_holds_the_mean_that_was_fitted(tmp_path, fitted, later):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = GaussianProcessRegressor(mean=fitted, n_restarts=0).fit(X, 5 + np.sin(X[:, 0]))
    expected, report = model.predict(X), str(model.report())
    model.set_params(mean=later).save(tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-12)
    assert str(model.report()) == str(loaded.report()) == report
