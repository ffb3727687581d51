"""Gaussian process classification: agreement with scikit-learn, laws, awkward data and files."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.gaussian_process.kernels import Matern as PeerMatern
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from mercer import GaussianProcessClassifier, KernelClassifier, load
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError, ModelFileError
from mercer.files.persistence import read_model, write_model
from mercer.kernels import Gaussian, Matern, Spectrum, Subspace
from mercer.processes import LogNormal

X, y = make_moons(60, noise=0.25, random_state=0)
NEW = np.random.default_rng(0).uniform(-2, 3, size=(25, 2))
KERNEL = 2.3 * Matern(2.5, (0.9, 0.6))


def fixed(kernel=KERNEL, **settings):
    return GaussianProcessClassifier(kernel, tune=False, **settings)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X)[::2], y[::2]


# Agreement

PEERS = {
    "gaussian": (3.0 * Gaussian(0.8), ConstantKernel(3.0) * RBF(0.8)),
    "matern": (KERNEL, ConstantKernel(2.3) * PeerMatern([0.9, 0.6], nu=2.5)),
    "large": (900.0 * Gaussian(1.5), ConstantKernel(900.0) * RBF(1.5)),
}


@pytest.mark.parametrize("name", PEERS)
def test_mode_and_evidence_are_those_of_scikit_learn(name):
    kernel, peer_kernel = PEERS[name]
    peer = Peer(peer_kernel, optimizer=None, max_iter_predict=1000).fit(X, y)
    model = fixed(kernel).fit(X, y)
    assert model.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-6)
    mean, variance = model.latent_mean_and_variance(NEW)
    other_mean, other_variance = peer.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(mean, other_mean, rtol=1e-6, atol=1e-6 * np.abs(other_mean).max())
    np.testing.assert_allclose(variance, other_variance, rtol=1e-6, atol=1e-6 * variance.max())
    assert np.array_equal(model.predict(NEW), peer.predict(NEW))
    # scikit-learn takes the sigmoid for a sum of five error functions, which is good to a few thousandths
    np.testing.assert_allclose(model.predict_proba(NEW), peer.predict_proba(NEW), atol=5e-3)


def test_learning_reaches_at_least_the_evidence_of_scikit_learn():
    peer = Peer(ConstantKernel() * PeerMatern([1.0, 1.0], nu=2.5)).fit(X, y)
    model = GaussianProcessClassifier(1.0 * Matern(2.5, (1.0, 1.0)), n_restarts=0).fit(X, y)
    assert model.log_marginal_likelihood_ >= peer.log_marginal_likelihood_value_ - 1e-3


def test_the_mode_is_logistic_regression_with_alpha_one_half(iris):
    for rows, labels, kernel in ((X, y, KERNEL), (*iris, Gaussian(2.0))):
        model = fixed(kernel).fit(rows, labels)
        ridge = KernelClassifier(kernel, alpha=0.5, fit_intercept=False, tol=1e-12).fit(rows, labels)
        np.testing.assert_allclose(model.latent_mean_and_variance(rows)[0], ridge.decision_function(rows), atol=1e-5)


def test_several_classes_are_predicted_as_well_as_by_one_against_the_rest():
    data, labels = load_wine(return_X_y=True)
    data = StandardScaler().fit_transform(data)
    kernel, peer_kernel = 25.0 * Gaussian(5.0), ConstantKernel(25.0) * RBF(5.0)
    model = fixed(kernel).fit(data[::2], labels[::2])
    peer = Peer(peer_kernel, optimizer=None).fit(data[::2], labels[::2])
    p, q = model.predict_proba(data[1::2]), peer.predict_proba(data[1::2])
    assert log_loss(labels[1::2], p) < log_loss(labels[1::2], q) + 0.03
    assert model.score(data[1::2], labels[1::2]) >= peer.score(data[1::2], labels[1::2])


# Laws


def test_far_from_the_data_all_classes_are_equally_likely(iris):
    far = np.full((1, 2), 1e4)
    np.testing.assert_allclose(fixed().fit(X, y).predict_proba(far), 0.5, atol=1e-12)
    model = fixed(4.0 * Gaussian(1.0)).fit(*iris)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 4), 1e4)), 1 / 3, atol=1e-3)


def test_averaging_makes_probabilities_more_careful_than_those_of_the_mode():
    model = fixed().fit(X, y)
    mean, _ = model.latent_mean_and_variance(NEW)
    careful, bold = model.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-mean))
    assert (np.abs(careful - 0.5) <= np.abs(bold - 0.5) + 1e-12).all()


def test_probabilities_sum_to_one_and_the_largest_is_the_prediction(iris):
    for rows, labels in ((X, y), iris):
        model = fixed(4.0 * Gaussian(1.0)).fit(rows, labels)
        p = model.predict_proba(rows)
        np.testing.assert_allclose(p.sum(1), 1.0, atol=1e-12)
        assert np.array_equal(model.classes_[p.argmax(1)], model.predict(rows))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), p, rtol=1e-12)


def test_probabilities_do_not_depend_on_the_other_rows(iris, monkeypatch):
    for rows, labels in ((X, y), iris):
        model = fixed(4.0 * Gaussian(1.0)).fit(rows, labels)
        whole = model.predict_proba(rows)
        np.testing.assert_allclose(model.predict_proba(rows[3:5]), whole[3:5], atol=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr("mercer.processes.posterior.CROSS_TILE", 8 * len(rows) * 20)
            np.testing.assert_allclose(model.predict_proba(rows), whole, atol=1e-12)


def test_the_names_of_classes_and_the_order_of_rows_do_not_matter(iris):
    rows, labels = iris
    order = np.random.default_rng(0).permutation(len(labels))
    one, two = fixed(Gaussian(1.0)).fit(rows, labels), fixed(Gaussian(1.0)).fit(rows[order], 2 - labels[order])
    assert one.log_marginal_likelihood_ == pytest.approx(two.log_marginal_likelihood_, abs=1e-9)
    np.testing.assert_allclose(
        one.latent_mean_and_variance(rows)[0], two.latent_mean_and_variance(rows)[0][:, ::-1], atol=1e-9
    )


@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 7, 11], [1.0, 2.0, 4.0]])
def test_labels_of_any_type_come_back(labels, iris):
    rows, codes = iris
    model = fixed(4.0 * Gaussian(1.0)).fit(rows, np.array(labels)[codes])
    assert model.classes_.tolist() == labels
    assert set(model.predict(rows)) <= set(labels)
    assert model.score(rows, np.array(labels)[codes]) > 0.95


def test_labels_may_be_true_and_false_and_rows_tensors_or_frames():
    model = fixed().fit(X, y.astype(bool))
    assert model.predict(X).dtype == bool
    tensor = fixed().fit(torch.tensor(X), torch.tensor(y))
    assert isinstance(tensor.predict(torch.tensor(X)), torch.Tensor)
    assert tensor.predict_proba(torch.tensor(X, dtype=torch.float32)).dtype == torch.float32
    np.testing.assert_allclose(tensor.predict_proba(torch.tensor(X)).numpy(), model.predict_proba(X), atol=1e-12)
    frame = pd.DataFrame(X, columns=["east", "north"])
    named = fixed(4.0 * Subspace(Gaussian(1.0), ["north"])).fit(frame, y)
    assert named.feature_names_in_.tolist() == ["east", "north"]
    assert named.predict_proba(frame).shape == (60, 2)


def test_strings_are_classified():
    words = ["aaa", "aab", "aba", "bbb", "bba", "bab"]
    model = fixed(9.0 * Spectrum(1)).fit(words, [0, 0, 0, 1, 1, 1])
    assert model.predict(["aaaa", "bbbb"]).tolist() == [0, 1]


# Learning


def test_what_was_learned_predicts_the_same_when_given(iris):
    model = GaussianProcessClassifier(n_restarts=0).fit(*iris)
    again = GaussianProcessClassifier(model.kernel_, tune=False).fit(*iris)
    np.testing.assert_allclose(again.predict_proba(iris[0]), model.predict_proba(iris[0]), atol=1e-10)
    assert model.log_marginal_likelihood(model.kernel_) == pytest.approx(model.log_marginal_likelihood_, abs=1e-9)
    assert model.log_marginal_likelihood() > model.log_marginal_likelihood(1.0 * Gaussian(1.0))
    assert model.optimum_.value == pytest.approx(model.log_marginal_likelihood_, abs=1e-8)


def test_the_units_of_the_features_do_not_matter():
    plain = GaussianProcessClassifier(n_restarts=0).fit(X, y)
    scaled = GaussianProcessClassifier(n_restarts=0).fit(1e3 * X + 5e4, y)
    np.testing.assert_allclose(scaled.predict_proba(1e3 * NEW + 5e4), plain.predict_proba(NEW), atol=1e-3)


def test_bounds_and_priors_hold():
    model = GaussianProcessClassifier(n_restarts=0, bounds={"factor": (0.5, 2.0)}).fit(X, y)
    assert model.kernel_.factor == pytest.approx(2.0)
    assert "factor is at its upper bound" in str(model.report())
    prior = GaussianProcessClassifier(n_restarts=0, priors={"factor": LogNormal(1.0, 0.1)}).fit(X, y)
    assert prior.kernel_.factor < 1.5


def test_more_than_five_hundred_rows_start_from_a_subset(monkeypatch):
    monkeypatch.setattr("mercer.estimators.gaussian.labels_fit.FEW_ROWS", 40)
    model = GaussianProcessClassifier(n_restarts=1).fit(X, y)
    whole = GaussianProcessClassifier(1.0 * Matern(2.5, (1.0, 1.0)), n_restarts=0, bounds={"factor": (1e-5, 1e2)})
    assert model.log_marginal_likelihood_ == pytest.approx(whole.fit(X, y).log_marginal_likelihood_, abs=0.01)


def test_the_same_seed_gives_the_same_model():
    a, b = (GaussianProcessClassifier(random_state=3, n_restarts=1).fit(X[:30], y[:30]) for _ in range(2))
    assert a.kernel_ == b.kernel_


def test_labels_without_pattern_and_irrelevant_features_are_named():
    coins = np.random.default_rng(1).integers(0, 2, size=60)
    assert "the features say little" in str(GaussianProcessClassifier(n_restarts=0).fit(X, coins).report())
    wide = np.c_[X, np.random.default_rng(2).normal(size=(60, 1))]
    model = GaussianProcessClassifier(n_restarts=0, max_iter=200).fit(wide, wide[:, 0] > 0.5)
    assert "irrelevant" in str(model.report())


# Awkward data


def test_one_class_alone_is_refused():
    with pytest.raises(InputError, match="one class, 'a'"):
        GaussianProcessClassifier().fit(X[:4], ["a"] * 4)


def test_a_class_with_one_member_constant_columns_and_equal_rows_have_an_answer():
    rows = np.array([[0.0, 5.0], [0.0, 5.0], [1.0, 5.0], [1.0, 5.0], [4.0, 5.0]])
    labels = ["a", "a", "b", "b", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessClassifier(n_restarts=0).fit(rows, labels)
        assert np.isfinite(model.predict_proba(rows)).all()
    assert "one row only: class c" in str(model.report())
    assert fixed(25.0 * Gaussian(1.0)).fit(rows, labels).predict(rows).tolist() == labels


@pytest.mark.parametrize("tune", [True, False])
def test_equal_rows_with_different_labels_are_undecided(tune):
    model = GaussianProcessClassifier(4.0 * Gaussian(1.0), tune=tune, n_restarts=0)
    model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    np.testing.assert_allclose(model.predict_proba([[0.0]]), 0.5, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_stay_finite(classes):
    rows = np.linspace(0, 1, 12 * classes).reshape(-1, 1)
    labels = np.repeat(np.arange(classes), 12)
    for kernel in ("matern52", 1.0 * Gaussian(1.0)):
        model = GaussianProcessClassifier(kernel, n_restarts=0).fit(rows, labels)
        assert np.isfinite(model.log_marginal_likelihood_)
        assert np.isfinite(model.predict_log_proba(10 * rows - 5)).all()
        assert model.score(rows, labels) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = fixed(1e6 * Gaussian(0.3)).fit(rows, labels)
    mean, _ = wide.latent_mean_and_variance(rows)
    assert np.array_equal(mean > 0 if classes == 2 else mean.argmax(1), labels)
    assert "far too careful" in str(wide.report())


def test_a_mode_that_rounding_hides_is_a_warning_and_a_line_in_the_report():
    rows, labels = np.linspace(0, 1, 36).reshape(-1, 1), np.repeat(np.arange(3), 12)
    with pytest.warns(ConvergenceWarning, match="NOT CONVERGED"):
        model = fixed(1e12 * Gaussian(0.3)).fit(rows, labels)
    assert "variance may be too large" in str(model.report())


def test_five_hundred_features_and_two_rows():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 500)), np.arange(40) % 2
    rows[:, 0] += 6 * labels
    model = GaussianProcessClassifier(n_restarts=0).fit(rows, labels)
    assert len(model._fit.plan.hyper) == 2  # the length scales keep their ratios
    assert np.isfinite(model.predict_proba(rows)).all()
    assert GaussianProcessClassifier().fit([[0.0], [1.0]], ["no", "yes"]).predict([[-1.0], [2.0]]).tolist() == [
        "no",
        "yes",
    ]


def test_what_does_not_fit_is_refused_with_what_would():
    with pytest.raises(MemoryBudgetError, match=r"60 rows and 2 classes, 5 matrices .* At most \d+ rows fit"):
        GaussianProcessClassifier(memory_budget="100KiB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="At most 50 rows fit"):
        fixed(memory_budget=8 * 4 * 50**2 + X.nbytes).fit(X, y)  # beside the copy of the rows


def test_wrong_arguments_are_refused():
    for settings, error, words in [
        ({"n_restarts": -1}, InputError, "n_restarts=-1"),
        ({"max_iter": 0}, InputError, "max_iter=0"),
        ({"bounds": 3}, InputTypeError, "bounds=3"),
        ({"bounds": {"noise": (1, 2)}}, InputError, "no parameter 'noise'"),
        ({"priors": {"factor": 3}}, InputTypeError, "priors"),
    ]:
        with pytest.raises(error, match=words):
            GaussianProcessClassifier(**settings).fit(X, y)


# Keeping and showing


@pytest.mark.parametrize("kind", ["learned", "fixed", "bounds", "torch", "names"])
def test_a_saved_model_comes_back_whole(kind, tmp_path, iris):
    rows, labels = iris
    new, named = rows[:5], np.array(["x", "y", "z"])[labels]
    model = GaussianProcessClassifier(n_restarts=0, max_iter=3)
    if kind == "fixed":
        model = fixed(4.0 * Gaussian(1.0))
    elif kind == "bounds":
        model.set_params(bounds={"factor": (0.1, 9.0)}, priors={"length_scale": LogNormal(1.0, 1.0)})
    elif kind == "torch":
        rows, new, named = torch.tensor(rows), torch.tensor(new), torch.tensor(labels == 1)
    elif kind == "names":
        rows, new = (pd.DataFrame(part, columns=list("abcd")) for part in (rows, new))
    model.fit(rows, named)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(np.asarray(again.predict_proba(new)), np.asarray(model.predict_proba(new)), atol=1e-12)
    assert np.array_equal(again.predict(new), model.predict(new))
    assert again.classes_.dtype == model.classes_.dtype
    assert str(again.report()) == str(model.report())
    assert again.kernel_ == model.kernel_
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(np.asarray(pickled.predict_proba(new)), np.asarray(model.predict_proba(new)), atol=1e-12)
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    fixed().fit(X, y).save(path)
    name, meta, arrays = read_model(path, ["GaussianProcessClassifier"])
    for change in (
        {"classes": [1]},
        {"class_kind": "V"},
        {"likelihood": "high"},
        {"seen": {}},
    ):
        write_model(path, name, meta | change, arrays)
        with pytest.raises(ModelFileError):
            load(path)
    for change in ({"targets": arrays["targets"] + 5}, {"weights": arrays["weights"][:3]}, {"more": arrays["weights"]}):
        write_model(path, name, meta, arrays | change)
        with pytest.raises(ModelFileError):
            load(path)


def test_plots_show_probabilities_reliability_or_relevance(iris):
    model = fixed().fit(X, y)
    assert model.plot().get_xlabel() == "first feature"
    rows, labels = iris
    three = fixed(4.0 * Gaussian(1.0)).fit(rows[:, 2:], labels)
    assert three.plot(rows[:9, 2:], labels[:9]).get_ylabel() == "second feature"
    full = fixed(4.0 * Gaussian((1.0,) * 4)).fit(rows, labels)
    assert full.plot(rows, labels).get_ylabel() == "Observed share"
    assert "length scale" in full.plot().get_xlabel()
    with pytest.raises(InputError, match="give both"):
        model.plot(X)
    with pytest.raises(InputError, match="pass X and y"):
        fixed(4.0 * Gaussian(1.0)).fit(rows, labels).plot()
