"""KernelClassifier: the problems of scikit-learn's classifiers, probabilities, labels and awkward data."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mercer
from mercer import KernelClassifier, KernelRidge, load
from mercer.core.errors import InputError, InputTypeError
from mercer.estimators.by_loss import probabilities
from mercer.kernels import Gaussian, Linear
from mercer.losses import Logistic

LOSSES = ["logistic", "hinge", "squared_hinge", "squared"]


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    return scaled(load_breast_cancer)


@pytest.fixture(scope="module")
def wine():
    return scaled(load_wine)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_logistic_on_a_linear_kernel_is_logistic_regression_of_several_classes(load):
    X, y = scaled(load)
    ours = KernelClassifier(Linear(), alpha=0.5, fit_intercept=True, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    p = theirs.predict_proba(X)[np.arange(len(y)), y]
    assert ours.objective_ == pytest.approx(-np.log(p).sum() + 0.5 * (theirs.coef_**2).sum(), rel=1e-6)


def test_logistic_on_a_linear_kernel_is_logistic_regression_of_two_classes(cancer):
    X, y = cancer
    w = np.random.default_rng(0).uniform(0.5, 2, len(y))
    ours = KernelClassifier(Linear(), alpha=0.5, fit_intercept=True, tol=1e-10).fit(X, y, w)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y, w)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_the_hinge_is_the_support_vector_machine_with_c_one_over_two_alpha(load):
    X, y = scaled(load)
    y = np.where(y == 1, "yes", "no")
    ours = KernelClassifier(Gaussian(4.0), loss="hinge", alpha=0.05, fit_intercept=True, tol=1e-8).fit(X, y)
    theirs = SVC(C=10.0, gamma=1 / 32, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert set(ours.support_) == set(theirs.support_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_the_squared_loss_is_ridge_regression_on_signs(wine):
    X, y = wine
    ours = KernelClassifier(Gaussian(3.0), loss="squared", alpha=0.3).fit(X, y)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    theirs = KernelRidge(Gaussian(3.0), alpha=0.3).fit(X, signs)
    np.testing.assert_allclose(ours.decision_function(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_agree(loss, cancer):
    X, y = cancer
    options = {"loss": loss, "alpha": 0.3, "fit_intercept": True, "tol": 1e-7}
    dense = KernelClassifier(Gaussian(5.0), solver="dense", **options).fit(X, y)
    for other in ({"solver": "pcg"}, {"solver": "nystrom", "landmarks": X}):
        model = KernelClassifier(Gaussian(5.0), **options, **other).fit(X, y)
        assert model.objective_ == pytest.approx(dense.objective_, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_few_landmarks_reach_the_accuracy_of_all_rows(loss, cancer):
    X, y = cancer
    full = KernelClassifier(loss=loss, alpha=0.1).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    few = KernelClassifier(loss=loss, alpha=0.1, n_landmarks=100).fit(X[::2], y[::2])
    assert few.dual_coef_.shape == (100,)
    assert few.score(X[1::2], y[1::2]) > full - 0.02
    assert few.predict_proba(X).shape == (len(X), 2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 7, 11], [1.0, 2.0, 4.0]])
def test_labels_of_any_type_come_back(loss, labels, wine):
    X, y = wine
    model = KernelClassifier(loss=loss, alpha=0.1).fit(X, np.array(labels)[y])
    assert model.classes_.tolist() == labels
    assert set(model.predict(X)) <= set(labels)
    assert model.score(X, np.array(labels)[y]) > 0.95


def test_labels_may_be_true_and_false():
    X, y = make_moons(100, noise=0.1, random_state=0)
    model = KernelClassifier(alpha=0.1).fit(X, y.astype(bool))
    assert model.predict(X).dtype == bool
    assert model.score(X, y.astype(bool)) > 0.95


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_probabilities_sum_to_one_and_the_largest_is_the_prediction(loss, load):
    X, y = scaled(load)
    model = KernelClassifier(Gaussian(2.0), loss=loss, alpha=0.1).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0, atol=1e-12)
    assert p.min() >= 0
    if len(model.classes_) > 2:
        assert np.array_equal(model.classes_[p.argmax(1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_are_as_good_as_those_of_svc(loss, cancer):
    X, y = cancer
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    ours = KernelClassifier(Gaussian(5.0), loss=loss, alpha="auto", fit_intercept=True).fit(X, y)
    theirs = SVC(gamma=1 / 50, probability=True, random_state=0).fit(X, y)
    p, q = ours.predict_proba(X_new)[:, 1], theirs.predict_proba(X_new)[:, 1]
    assert log_loss(y_new, p) < log_loss(y_new, q) + 0.015
    assert brier_score_loss(y_new, p) < brier_score_loss(y_new, q) + 0.004


@pytest.mark.parametrize("loss", LOSSES)
def test_the_alpha_that_is_chosen_is_nearly_the_best_of_its_path(loss):
    X, y = make_moons(400, noise=0.35, random_state=0)
    X, X_new, y, y_new = X[:150], X[150:], y[:150], y[150:]
    model = KernelClassifier(Gaussian(0.7), loss=loss, alpha="auto").fit(X, y)
    judged = [
        log_loss(y_new, KernelClassifier(Gaussian(0.7), loss=loss, alpha=float(a)).fit(X, y).predict_proba(X_new))
        for a in model.alpha_path_.alphas
    ]
    assert log_loss(y_new, model.predict_proba(X_new)) < min(judged) + 0.05
    assert model.alpha_path_.criterion == ("folds" if loss == "hinge" else "loo")
    assert not model.alpha_path_.at_edge.any()


def test_integer_weights_equal_repeated_rows_also_for_alpha_and_calibration():
    X, y = make_moons(60, noise=0.3, random_state=0)
    w = np.tile([1, 2, 3], 20)
    index = np.repeat(np.arange(60), w)
    for loss in ("logistic", "squared_hinge"):
        one = KernelClassifier(loss=loss, alpha="auto", tol=1e-10).fit(X, y, w)
        two = KernelClassifier(loss=loss, alpha="auto", tol=1e-10).fit(X[index], y[index])
        assert one.alpha_ == pytest.approx(two.alpha_)
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-4)


def test_class_weights_are_weights_of_rows(cancer):
    X, y = cancer
    given = {"alpha": 0.1, "loss": "squared_hinge"}
    one = KernelClassifier(**given, class_weight={0: 3.0, 1: 0.5}).fit(X, y)
    two = KernelClassifier(**given).fit(X, y, np.where(y == 0, 3.0, 0.5))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-8)
    balanced = KernelClassifier(**given, class_weight="balanced").fit(X, y)
    three = KernelClassifier(**given).fit(X, y, (len(y) / (2 * np.bincount(y)))[y])
    np.testing.assert_allclose(balanced.decision_function(X), three.decision_function(X), atol=1e-8)


def test_probabilities_under_class_weights_survive_a_file(cancer, tmp_path):
    X, y = cancer
    model = KernelClassifier(loss="squared_hinge", alpha=0.1, class_weight={0: 3.0, 1: 0.5}).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    again = mercer.load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_one_class_alone_is_refused():
    X = np.arange(4.0).reshape(-1, 1)
    with pytest.raises(InputError, match="one class, 'a'"):
        KernelClassifier().fit(X, ["a"] * 4)
    with pytest.raises(InputError, match="at least two classes"):
        KernelClassifier().fit(X, [0, 0, 1, 1], [1, 1, 0, 0])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_with_one_member_constant_columns_and_equal_rows_have_an_answer(loss):
    X = np.array([[0.0, 5.0], [0.0, 5.0], [1.0, 5.0], [1.0, 5.0], [4.0, 5.0]])
    y = ["a", "a", "b", "b", "c"]
    for alpha in (0.1, "auto"):
        model = KernelClassifier(Gaussian(1.0), loss=loss, alpha=alpha).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
    model = KernelClassifier(Gaussian(1.0), loss=loss, alpha=0.01).fit(X, y)
    assert model.predict(X).tolist() == y


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_rows_with_different_labels_are_undecided(loss):
    X = np.zeros((4, 1))
    model = KernelClassifier(Gaussian(1.0), loss=loss, alpha=0.1).fit(X, [0, 1, 0, 1])
    assert abs(float(model.decision_function(X)[0])) < 1e-6
    assert model.solver_report_.converged


def test_frames_tensors_and_pipelines():
    X, y = scaled(load_wine)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model = KernelClassifier(alpha=0.1).fit(frame, pd.Series(y).map({0: "x", 1: "y", 2: "z"}))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    tensor = KernelClassifier(alpha=0.1).fit(torch.tensor(X), torch.tensor(y))
    assert isinstance(tensor.predict(torch.tensor(X)), torch.Tensor)
    assert isinstance(tensor.predict_proba(torch.tensor(X)), torch.Tensor)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelClassifier()), {"kernelclassifier__alpha": [0.1, 1.0]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.95


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("extra", [{}, {"n_landmarks": 30}, {"alpha": "auto", "fit_intercept": True}])
def test_a_saved_model_is_the_same_model(loss, extra, tmp_path, wine):
    X, y = wine
    names = np.array(["red", "white", "pink"])[y]
    if loss == "hinge" and extra.get("alpha") == "auto":
        X, names = X[::3], names[::3]
    model = KernelClassifier(loss=loss, class_weight={"red": 2.0}, **extra).fit(X, names)
    assert model.solver_report_.converged
    model.save(tmp_path / "model.safetensors")
    again = mercer.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.report()) == str(model.report())
    assert again.get_params()["class_weight"] == {"red": 2.0}


def test_a_fit_that_stops_early_warns_and_says_so(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 "):
        model = KernelClassifier(alpha=1e-4, max_iter=1).fit(X, y)
    assert not model.solver_report_.converged
    assert any("not reached" in concern for concern in model.report().concerns)


def test_the_choice_of_solver_is_made_by_memory_and_said(cancer):
    X, y = cancer
    assert "fits in memory" in KernelClassifier().fit(X, y).solver_report_.reason
    lazy = KernelClassifier(memory_budget="2MiB").fit(X, y)
    assert "products from tiles because the Gram matrix needs" in lazy.solver_report_.reason
    with pytest.raises(MemoryError, match="solver='pcg'"):
        KernelClassifier(memory_budget="1MiB", solver="dense").fit(X, y)


def test_several_classes_of_many_rows():
    X, y = load_digits(return_X_y=True)
    X = X[:900] / 16
    model = KernelClassifier(Gaussian(2.0), alpha=0.01).fit(X[:600], y[:600])
    assert model.solver_report_.converged
    assert model.score(X[600:], y[600:900]) > 0.94


def test_wrong_arguments_are_refused():
    X, y = np.arange(4.0).reshape(-1, 1), [0, 0, 1, 1]
    for options, words in [
        ({"loss": "huber"}, "loss='huber'"),
        ({"alpha": 0}, "alpha=0"),
        ({"alpha": "cv"}, "alpha='cv'"),
        ({"solver": "cholesky"}, "solver='cholesky'"),
        ({"solver": "pcg", "n_landmarks": 2}, "n_landmarks=2"),
        ({"n_landmarks": 0}, "n_landmarks=0"),
        ({"tol": 0}, "tol=0"),
        ({"class_weight": {5: 1.0}}, "class 5"),
        ({"class_weight": {0: -1.0}}, "must be a number >= 0"),
        ({"class_weight": 3}, "class_weight=3"),
    ]:
        with pytest.raises((InputError, InputTypeError), match=words):
            KernelClassifier(**options).fit(X, y)


def test_support_is_for_the_hinge_alone(cancer):
    X, y = cancer
    assert not hasattr(KernelClassifier().fit(X, y), "support_")
    assert not hasattr(KernelClassifier(loss="hinge"), "support_")


def test_landmarks_have_no_support_and_say_why(cancer):
    model = KernelClassifier(loss="hinge", solver="nystrom", n_landmarks=20).fit(*cancer)
    with pytest.raises(AttributeError, match="coefficients for landmarks"):
        model.support_  # noqa: B018


@pytest.mark.parametrize("labels", [["a", None], [1, None], [None, "a"], np.array([1, "a"], dtype=object)])
def test_missing_labels_and_labels_of_several_types_are_named(labels):
    with pytest.raises(InputError, match="labels of the types (NoneType|int)"):
        KernelClassifier().fit(np.arange(2.0).reshape(-1, 1), labels)


def test_a_loss_of_ones_own_classifies(cancer):
    X, y = cancer
    own = KernelClassifier(loss=Logistic(), alpha=0.1).fit(X, y)
    named = KernelClassifier(loss="logistic", alpha=0.1).fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X))


def test_plots_show_regions_or_reliability(cancer):
    X, y = make_moons(80, noise=0.2, random_state=0)
    ax = KernelClassifier(alpha=0.1).fit(X, y).plot()
    assert ax.get_xlabel() == "first feature"
    X, y = cancer
    model = KernelClassifier(loss="hinge", alpha=0.1).fit(X[:300], y[:300])
    assert model.plot(X[300:], y[300:]).get_ylabel() == "Observed share"
    with pytest.raises(InputError, match="held-out"):
        model.plot()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_most_likely_class_is_the_predicted_one(loss, dtype, cancer):
    X, y = cancer
    rare = np.flatnonzero((y == 1) | (np.arange(len(y)) % 5 == 0))  # few of one class: the sigmoid is not 1/2 at zero
    model = KernelClassifier("gaussian", loss=loss, alpha=1.0).fit(X[rare].astype(dtype), y[rare])
    p = model.predict_proba(X.astype(dtype))
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], model.predict(X.astype(dtype)))
    assert (np.abs(p[:, 1] - 0.5) < 1e-5).any()  # where the two would differ


def test_a_saved_model_on_a_ready_gram_matrix_calibrates_like_the_one_that_was_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y, w, gram = X[:, 0] + 0.3 * rng.normal(size=40) > 0, np.ones(40), Gaussian(1.0)(X)
    w[::5] = 0
    model = KernelClassifier("precomputed", loss="hinge", alpha=0.1).fit(gram, y, w)
    model.save(tmp_path / "model.safetensors")
    again = mercer.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict_proba(gram), model.predict_proba(gram))


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"solver": "nystrom", "n_landmarks": 40}])
def test_tune_finds_the_columns_that_tell_the_classes(options, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6)) * [1.0, 1.0, 100.0, 0.01, 1.0, 1.0]
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 0] * X[:, 1] > 0)]
    model = KernelClassifier("gaussian", alpha=0.01, tune=True, **options).fit(X[:160], y[:160])
    scales = np.divide(model.kernel_.length_scale, X.std(0))
    assert min(scales[2:]) > 4 * max(scales[:2])
    plain = KernelClassifier("gaussian", alpha=0.01, **options).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > plain.score(X[160:], y[160:])
    assert "by least squares, each column" in str(model.report())
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").tuning_.judged == model.tuning_.judged


@pytest.mark.parametrize("options", [{}, {"solver": "nystrom", "n_landmarks": 20}])
def test_alpha_may_be_chosen_on_some_rows_and_the_minimum_is_that_of_all(options, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    monkeypatch.setattr("mercer.estimators.by_loss.solving.PATH_ROWS", 50)
    monkeypatch.setattr("mercer.estimators.by_loss.solving.FEW_PATH_ROWS", 50)
    model = KernelClassifier("gaussian", alpha="auto", **options).fit(X, y)
    assert "alpha was chosen on 50 rows" in str(model.report())
    cold = KernelClassifier("gaussian", alpha=model.alpha_, **options).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert np.allclose(model.predict_proba(X), cold.predict_proba(X), atol=1e-3)


def test_the_margin_of_separable_classes_is_half_their_distance_and_other_losses_have_none():
    X, y = np.array([[0.0], [1.0], [4.0], [6.0]]), [0, 0, 1, 1]
    model = KernelClassifier(Linear(), loss="hinge", alpha=1e-5).fit(X, y)
    np.testing.assert_allclose(model.margin_, 1.5, rtol=1e-3)
    with pytest.raises(AttributeError, match="hinge"):
        _ = KernelClassifier(Linear(), alpha=1.0).fit(X, y).margin_


@pytest.mark.parametrize("seed", [2, 3])
def test_tuning_never_loses_against_the_kernels_as_they_were_by_the_loss_at_rows_left_out(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * rng.normal(size=90) > 0

    def loss(**settings):
        return float(KernelClassifier(**settings).fit(X, y).alpha_path_.errors.min())

    least = min(loss(kernel=name) for name in ("laplace", "laplace_l1", "matern52"))
    assert loss(tune=True) <= least * (1 + 1e-9)


def test_decisions_for_rows_left_out_are_found_once(cancer, monkeypatch):
    X, y = cancer
    found, of = [], probabilities.decisions_left_out
    monkeypatch.setattr(probabilities, "decisions_left_out", lambda *given: found.append(1) or of(*given))
    model = KernelClassifier(loss="hinge", alpha=0.1).fit(X[:80], y[:80])
    model.predict_proba(X[:1])
    model.report()
    model.report()
    assert len(found) == 1
