"""Laws of the intercept: it has no penalty, and everything that is exact without it stays exact."""

import numpy as np
import pytest
import torch

from mercer import GaussianProcessRegressor, KernelRidge, load
from mercer.kernels import Gaussian, Laplace
from mercer.rows import ArrayRows

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 20.0
NEW = rng.normal(size=(7, 3))
COUNTS = rng.integers(1, 4, 50).astype(float)
WEIGHTS = {"equal": None, "counts": COUNTS, "small": 0.3 * COUNTS}
KERNEL = Laplace(1.7)
LANDMARKS = X[:15]
FULL = ["cholesky", "eigh", "mixed_cholesky", "pcg"]
FEW = {"nystrom": {"landmarks": LANDMARKS}, "falkon": {"landmarks": LANDMARKS}}
ALL = {solver: {} for solver in FULL} | FEW | {"random_features": {"n_features": 40, "random_state": 0}}


def ridge(solver, alpha=0.1, kernel=KERNEL, **more):
    options = {"tol": 1e-11} if solver in ("pcg", "falkon") else {}
    kernel = Gaussian(1.7) if solver == "random_features" else kernel
    return KernelRidge(kernel, alpha=alpha, solver=solver, fit_intercept=True, **options | ALL[solver] | more)


def by_hand(K, penalty, y, w, alpha):
    """Coefficients and intercept of least w (y - K c - b)^2 + alpha c^T penalty c, from the normal equations."""
    F = np.column_stack([K, np.ones(len(y))])
    P = np.zeros((F.shape[1], F.shape[1]))
    P[:-1, :-1] = penalty
    found = np.linalg.lstsq(F.T @ (w[:, None] * F) + alpha * P, F.T @ (w * y), rcond=1e-15)[0]
    return found[:-1], found[-1]


def functions_of(solver):
    """The points whose kernels a fit is a sum of."""
    return LANDMARKS if solver in FEW else X


def weights_of(name):
    return np.ones(len(y)) if WEIGHTS[name] is None else WEIGHTS[name]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("solver", [*FULL, *FEW])
def test_a_fit_is_the_least_of_the_sum_without_a_penalty_on_the_intercept(solver, weights):
    Z, w = functions_of(solver), weights_of(weights)
    c, b = by_hand(KERNEL(X, Z), KERNEL(Z), y, w, 0.1)
    model = ridge(solver).fit(X, y, WEIGHTS[weights])
    np.testing.assert_allclose(model.predict(NEW), KERNEL(NEW, Z) @ c + b, rtol=1e-9)
    assert model.intercept_ == pytest.approx(b, rel=1e-8)
    function = model.function_(NEW)
    np.testing.assert_allclose(function + model.intercept_, model.predict(NEW), rtol=1e-9)


@pytest.mark.parametrize("solver", FULL)
def test_coefficients_sum_to_zero_and_label_weights_to_one(solver):
    model = ridge(solver).fit(X, y, COUNTS)
    assert abs(model.dual_coef_.sum()) < 1e-9 * np.abs(model.dual_coef_).sum()
    shares = model.label_weights(NEW)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(shares @ y, model.predict(NEW), rtol=1e-9)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("solver", ["cholesky", "eigh", "pcg"])
def test_leave_one_out_is_that_of_refits(solver, weights, alpha):
    K, w = KERNEL(X), weights_of(weights)
    refits = np.empty(len(y))
    for i in range(len(y)):
        left = w.copy()
        left[i] = max(left[i] - 1.0, 0.0)
        kept = left > 0
        inside = K[np.ix_(kept, kept)]
        system = np.block(
            [[inside + alpha * np.diag(1 / left[kept]), np.ones((kept.sum(), 1))], [np.ones((1, kept.sum())), 0]]
        )
        *c, b = np.linalg.solve(system, np.append(y[kept], 0.0))
        refits[i] = K[i, kept] @ c + b
    model = ridge(solver, alpha=alpha).fit(X, y, WEIGHTS[weights])
    np.testing.assert_allclose(model.loo_predictions_, refits, rtol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_leave_one_out_of_landmarks_is_that_of_refits(weights):
    K, penalty, w = KERNEL(X, LANDMARKS), KERNEL(LANDMARKS), weights_of(weights)
    refits = np.empty(len(y))
    for i in range(len(y)):
        left = w.copy()
        left[i] = max(left[i] - 1.0, 0.0)
        c, b = by_hand(K, penalty, y, left, 0.1)
        refits[i] = K[i] @ c + b
    model = ridge("nystrom", alpha="loo", alphas=[0.1]).fit(X, y, WEIGHTS[weights])
    np.testing.assert_allclose(model.loo_predictions_, refits, rtol=1e-8)
    error = np.average((y - refits) ** 2, weights=w)
    assert float(model.alpha_path_.errors[0, 0]) == pytest.approx(error, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*NOT CONVERGED")
@pytest.mark.parametrize("solver", [*ALL, "gd", "eigenpro"])
def test_a_constant_on_top_of_y_is_a_constant_on_top_of_predictions(solver):
    if solver in ALL:
        models = [ridge(solver) for _ in range(2)]
    else:
        models = [KernelRidge(KERNEL, alpha=0.0, solver=solver, fit_intercept=True, max_iter=20) for _ in range(2)]
        for model in models:
            model.set_params(tol=1e-3)
    plain, shifted = models[0].fit(X, y), models[1].fit(X, y + 1000.0)
    np.testing.assert_allclose(shifted.predict(NEW), plain.predict(NEW) + 1000.0, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("solver", ["eigh", "nystrom"])
def test_integer_weights_are_repeated_rows(solver, criterion):
    times = COUNTS.astype(int)
    weighted = ridge(solver, alpha=criterion, alphas=[1e-3, 1e-1, 10.0]).fit(X, y, COUNTS)
    repeated = ridge(solver, alpha=criterion, alphas=[1e-3, 1e-1, 10.0]).fit(
        np.repeat(X, times, 0), np.repeat(y, times)
    )
    assert weighted.alpha_ == repeated.alpha_
    np.testing.assert_allclose(weighted.alpha_path_.errors, repeated.alpha_path_.errors, rtol=1e-6)
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-9)


@pytest.mark.parametrize("solver", ["nystrom", "falkon", "random_features"])
def test_a_stream_is_a_fit_in_memory_for_any_size_of_its_parts(solver):
    model = ridge(solver, kernel=KERNEL).fit(X, y, COUNTS)
    for rows_at_once in (7, 50):
        streamed = ridge(solver, kernel=KERNEL).fit(ArrayRows(X, y, COUNTS, rows_at_once=rows_at_once))
        np.testing.assert_allclose(streamed.predict(NEW), model.predict(NEW), rtol=1e-8)


@pytest.mark.parametrize("solver", ["nystrom", "random_features"])
def test_rows_that_are_added_later_make_the_same_fit(solver):
    whole = ridge(solver).fit(X, y, COUNTS)
    grown = ridge(solver)
    for part in np.array_split(np.arange(len(y)), 3):
        grown.partial_fit(X[part], y[part], COUNTS[part])
    if solver == "nystrom":  # random features are drawn from the first rows
        np.testing.assert_allclose(grown.predict(NEW), whole.predict(NEW), rtol=1e-8)
    other = ridge(solver)
    for part in np.array_split(np.arange(len(y)), 3):
        other.partial_fit(X[part], y[part] - 1000.0, COUNTS[part])
    np.testing.assert_allclose(other.predict(NEW) + 1000.0, grown.predict(NEW), rtol=1e-7)


def test_a_ready_gram_matrix_is_its_kernel():
    model = ridge("cholesky").fit(X, y, COUNTS)
    ready = ridge("cholesky", kernel="precomputed").fit(KERNEL(X), y, COUNTS)
    np.testing.assert_allclose(ready.predict(KERNEL(NEW, X)), model.predict(NEW), rtol=1e-10)


def test_it_is_a_process_with_a_constant_mean():
    process = GaussianProcessRegressor(KERNEL, noise=0.1, mean="constant", tune=False).fit(X, y)
    np.testing.assert_allclose(ridge("cholesky").fit(X, y).predict(NEW), process.predict(NEW), rtol=1e-7)


def test_without_a_ridge_it_interpolates_with_coefficients_that_sum_to_zero():
    model = ridge("eigh", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-10)
    assert abs(model.dual_coef_.sum()) < 1e-9 * np.abs(model.dual_coef_).sum()


def test_a_constant_target_is_predicted_exactly_and_its_function_is_zero():
    model = ridge("cholesky").fit(X, np.full(len(y), 0.1))
    assert (model.predict(NEW) == 0.1).all()
    assert not model.dual_coef_.any()


def test_each_target_has_its_own_intercept():
    Y = np.column_stack([y, -3 * y])
    model = ridge("cholesky").fit(X, Y)
    assert model.intercept_.shape == (2,)
    np.testing.assert_allclose(model.intercept_[1], -3 * model.intercept_[0], rtol=1e-10)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], ridge("cholesky").fit(X, y).predict(NEW), rtol=1e-10)


def test_a_model_file_keeps_it(tmp_path):
    for solver in ("cholesky", "random_features"):
        model = ridge(solver).fit(X, y)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.intercept_ == model.intercept_
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_a_centred_operator_with_weights_is_the_projected_matrix():
    from mercer.operators.centred import Centred
    from mercer.operators.stored import Stored

    v = torch.tensor(np.sqrt(COUNTS))
    u = (v / v.norm()).unsqueeze(1)
    K = torch.tensor(KERNEL(X))
    P = torch.eye(50).double() - u @ u.T
    A, expected = Centred(Stored(K), v, level=2.0), P @ K @ P + 2.0 * u @ u.T
    V = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double()
    index = torch.tensor([3, 0, 49])
    torch.testing.assert_close(A.matmul(V), expected @ V)
    torch.testing.assert_close(A.rows_matmul(index, V), (expected @ V)[index])
    torch.testing.assert_close(A._rows(index), expected[index])
    torch.testing.assert_close(A._diag(), expected.diagonal())
    torch.testing.assert_close(A._dense(), expected)
