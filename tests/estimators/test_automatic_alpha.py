"""Laws of alpha="auto": leave-one-out of all rows where there are few, of a sample where there are more."""

import warnings

import numpy as np
import pytest

from mercer import KernelRidge, load
from mercer.core.errors import InputError
from mercer.estimators.common import alpha_sample
from mercer.rows import ArrayRows

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=90) + 20.0
NEW = rng.normal(size=(7, 3))
FEW = 40
LANDMARKS = {"landmarks": X[:15]}
SOLVERS = {
    "auto": {},
    "cholesky": {},
    "eigh": {},
    "mixed_cholesky": {},
    "pcg": {},
    "nystrom": LANDMARKS,
    "falkon": LANDMARKS,
    "random_features": {"n_features": 30},
}
PATHS = [solver for solver in SOLVERS if solver != "falkon"]


def ridge(solver="auto", **more):
    return KernelRidge("gaussian", solver=solver, **{"alpha": "auto"} | SOLVERS[solver] | more)


@pytest.fixture
def many(monkeypatch):
    """More rows than a path is found on."""
    monkeypatch.setattr(alpha_sample, "ALPHA_ROWS", FEW)


@pytest.mark.parametrize("solver", PATHS)
def test_few_rows_have_the_whole_path_by_leave_one_out(solver):
    found, asked = ridge(solver).fit(X, y), ridge(solver, alpha="loo").fit(X, y)
    assert found.alpha_ == asked.alpha_
    np.testing.assert_array_equal(found.predict(NEW), asked.predict(NEW))
    assert "of 90" not in str(found.report())


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("solver", SOLVERS)
def test_many_rows_have_the_solver_and_the_solution_of_the_number(solver):
    found = ridge(solver).fit(X, y)
    number = ridge(solver, alpha=found.alpha_).fit(X, y)
    assert found.solver_report_.solver == number.solver_report_.solver
    np.testing.assert_array_equal(found.predict(NEW), number.predict(NEW))
    assert "on 40 of 90 distinct rows" in str(found.report())


@pytest.mark.usefixtures("many")
def test_the_alpha_of_many_rows_is_that_of_some_of_them_by_leave_one_out():
    found = ridge().fit(X, y)
    path = found.alpha_path_
    scores = []
    for seed in range(300):
        some = np.random.default_rng(seed).permutation(90)[:FEW]
        exact = KernelRidge(found.kernel_, alpha="loo", alphas=path.alphas).fit(X[some], y[some])
        scores.append(float(exact.alpha_path_.errors.min()))
    assert np.quantile(scores, 0.001) <= float(path.errors.min()) <= np.quantile(scores, 0.999)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("solver", SOLVERS)
def test_integer_weights_are_repeated_rows(solver):
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = ridge(solver).fit(X, y, times)
    repeated = ridge(solver).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-9)
    if solver != "random_features":  # which stand for the kernel as well with other frequencies
        np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-4)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("solver", ["cholesky", "nystrom"])
def test_few_different_rows_many_times_are_few_rows(solver):
    some = slice(0, 30)
    once = ridge(solver).fit(X[some], y[some], np.full(30, 3.0))
    often = ridge(solver).fit(np.tile(X[some], (3, 1)), np.tile(y[some], 3))
    assert once.alpha_ == pytest.approx(often.alpha_, rel=1e-9)
    np.testing.assert_allclose(once.predict(NEW), often.predict(NEW), rtol=1e-7)


@pytest.mark.usefixtures("many")
def test_neither_units_nor_the_order_of_rows_change_the_sample():
    order = np.random.default_rng(2).permutation(90)
    plain = ridge().fit(X, y)
    for other in (
        ridge().fit(X * [1e-3, 7.0, 1e5] + [3.0, -80.0, 0.1], y),
        ridge().fit(X[order], y[order]),
        ridge().fit(X, y + 1e4),
        ridge().fit(X, 1e6 * y),
    ):
        assert other.alpha_ == pytest.approx(plain.alpha_, rel=1e-6)


@pytest.mark.usefixtures("many")
def test_each_target_has_its_own_alpha():
    Y = np.column_stack([y, rng.normal(size=90)])
    both, one = ridge().fit(X, Y), ridge().fit(X, Y[:, 1])
    assert both.alpha_.shape == (2,)
    assert both.alpha_[1] > 10 * both.alpha_[0]
    assert one.solver_report_.solver == both.solver_report_.solver == "cholesky"


@pytest.mark.parametrize("solver", ["gd", "eigenpro"])
def test_descents_stop_by_rows_held_out(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, zero = (KernelRidge("gaussian", alpha=alpha, solver=solver).fit(X, y) for alpha in ("auto", 0.0))
    assert found.alpha_ == 0.0
    np.testing.assert_array_equal(found.predict(NEW), zero.predict(NEW))


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_smallest_samples_have_an_alpha(solver, n_rows):
    options = {"landmarks": X[:2]} if "landmarks" in SOLVERS[solver] else {}
    model = ridge(solver, **options).fit(X[:n_rows], y[:n_rows])
    assert np.isfinite(model.predict(NEW)).all()
    assert np.abs(model.predict(NEW) - y[:n_rows].mean()).max() < 10 * np.ptp(y)


@pytest.mark.parametrize("solver", ["nystrom", "random_features"])
def test_partial_fits_keep_the_alpha_of_their_first_rows(solver):
    model = ridge(solver).partial_fit(X[:50], y[:50])
    first = model.alpha_
    assert model.partial_fit(X[50:], 5 * y[50:]).alpha_ == first
    assert "on 50 of the first 50 rows" in str(model.report())
    assert model.set_params(alpha=3.0).partial_fit(X[:5], y[:5]).alpha_ == 3.0
    assert "given" in str(model.report())
    with pytest.raises(InputError, match="chosen from the first rows"):
        ridge(solver, alpha="loo").partial_fit(X, y)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("solver", ["nystrom", "falkon", "random_features"])
def test_a_stream_has_the_alpha_of_the_same_rows_in_memory(solver):
    memory, stream = ridge(solver).fit(X, y), ridge(solver).fit(ArrayRows(X, y, rows_at_once=20))
    assert stream.alpha_ == memory.alpha_
    np.testing.assert_allclose(stream.predict(NEW), memory.predict(NEW), rtol=1e-5)
    assert "on 40 of 90 rows" in str(stream.report())


@pytest.mark.usefixtures("many")
def test_a_model_file_keeps_which_rows_alpha_is_from(tmp_path):
    for model in (ridge(), ridge("pcg"), ridge("nystrom")):
        model.fit(X, y)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.alpha_path_.rows == model.alpha_path_.rows != ""
        assert str(again.report()) == str(model.report())


@pytest.mark.usefixtures("many")
def test_a_ready_gram_matrix_takes_a_sample_too():
    kernel = ridge().fit(X, y).kernel_
    found = KernelRidge("precomputed", alpha="auto").fit(kernel(X), y)
    number = KernelRidge(kernel, alpha=found.alpha_).fit(X, y)
    np.testing.assert_allclose(found.predict(kernel(NEW, X)), number.predict(NEW), rtol=1e-7)
    assert "on 40 of 90 distinct rows" in str(found.report())


def test_no_room_for_a_path_means_a_smaller_sample():
    model = ridge(memory_budget="40KiB").fit(X, y)
    assert model.solver_report_.solver == "pcg"
    assert "of 90 distinct rows" in model.alpha_path_.rows
