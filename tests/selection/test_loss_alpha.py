"""Laws of the criteria that choose alpha for any loss."""

import numpy as np
import pytest
import torch

from mercer import KernelClassifier, KernelPCA, KernelRegressor, KernelRidge
from mercer.core.errors import InputError
from mercer.kernels import Gaussian
from mercer.losses import Logistic, Multinomial, Squared
from mercer.selection.approximate_loo import approximate_loo
from mercer.selection.gcv import gcv_error
from mercer.solvers import Eigh
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.objective import Objective
from mercer.testing.solvers import MatrixSystem

rng = np.random.default_rng(3)
X = rng.normal(size=(24, 2))
K = torch.from_numpy(np.exp(-((X[:, None] - X[None]) ** 2).sum(2)))
y = torch.from_numpy(np.sin(X[:, :1]) + 0.3 * rng.normal(size=(24, 1)))
WORDS = ["auto", "loo", "gcv"]


def span_of(matrix):
    return FullSpan.of(None, matrix=matrix.clone())


@pytest.mark.parametrize("weights", [None, "integers"])
def test_the_mean_influence_of_the_squared_loss_is_generalised_cross_validation(weights):
    w = None if weights is None else torch.from_numpy(rng.integers(1, 4, size=24).astype(float))
    root = torch.ones(24).double() if w is None else w.sqrt()
    system = MatrixSystem(root.unsqueeze(1) * K * root)
    for alpha in (1e-3, 0.1, 10.0):
        problem = Objective(Squared(), y, alpha, w)
        left = approximate_loo(span_of(K), problem, minimise(span_of(K), problem), mean=True)
        spectrum = Eigh().prepare(system)
        x = root.unsqueeze(1) * spectrum.solve(root.unsqueeze(1) * y, alpha).value / root.unsqueeze(1)
        inverse_diag = torch.linalg.inv(system.dense() + alpha * torch.eye(24).double()).diagonal()
        expected = float(gcv_error(x, inverse_diag, alpha, w)[0])
        total = float(root.square().sum())
        assert float((root.square().unsqueeze(1) * (left - y).square()).sum()) / total == pytest.approx(expected)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
def test_integer_weights_have_the_mean_influence_of_repeated_rows(loss):
    w = rng.integers(1, 4, size=24)
    again = np.repeat(np.arange(24), w)
    labels = torch.from_numpy(rng.integers(0, 3, size=24)).double()
    targets = labels if loss.joint else torch.sign(y)
    outputs = 3 if loss.joint else 1
    one = Objective(loss, targets, 0.3, torch.from_numpy(w.astype(float)), True, outputs)
    two = Objective(loss, targets[again], 0.3, None, True, outputs)
    some, all_rows = span_of(K), span_of(K[again][:, again])
    a = approximate_loo(some, one, minimise(some, one, tol=1e-12), mean=True)
    b = approximate_loo(all_rows, two, minimise(all_rows, two, tol=1e-12), mean=True)
    assert torch.allclose(a[again], b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("how", WORDS)
@pytest.mark.parametrize(
    "estimator",
    [
        KernelRidge("gaussian"),
        KernelRegressor("gaussian", loss="huber"),
        KernelRegressor("gaussian", loss="epsilon_insensitive"),
        KernelRegressor("gaussian", loss="quantile", quantiles=[0.2, 0.8]),
        KernelRegressor("gaussian", loss="huber", n_landmarks=10, solver="nystrom"),
        *(KernelClassifier("gaussian", loss=loss) for loss in ("logistic", "hinge", "squared_hinge", "squared")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{type(value).__name__}-{getattr(value, 'loss', '')}",
)
def test_every_estimator_with_alpha_takes_the_words_and_one_per_target(estimator, how):
    targets = (y[:, 0] > 0).long() if isinstance(estimator, KernelClassifier) else y[:, 0]
    model = estimator.set_params(alpha=how).fit(X, targets)
    path = model.alpha_path_
    assert float(path.alpha[0]) == float(np.ravel(model.alpha_)[0])
    if how != "auto":
        assert path.criterion == how
    assert model.report()
    one = estimator.set_params(alpha=[0.3]).fit(X, targets).predict(X)
    number = estimator.set_params(alpha=0.3).fit(X, targets).predict(X)
    np.testing.assert_allclose(one, number, rtol=1e-9, atol=1e-12)


def test_auto_is_leave_one_out_for_ridge():
    auto, loo = (KernelRidge("gaussian", alpha=how).fit(X, y[:, 0]) for how in ("auto", "loo"))
    assert auto.alpha_ == loo.alpha_


@pytest.mark.parametrize("how", WORDS)
def test_the_way_back_of_components_takes_the_words(how):
    model = KernelPCA(2, Gaussian(1.0), inverse_alpha=how).fit(X)
    assert model.inverse_transform(model.transform(X)).shape == X.shape


def test_influences_that_are_not_known_are_an_error_with_a_way_out():
    with pytest.raises(InputError, match="Use alpha='auto'"):
        KernelRegressor("gaussian", loss="huber", alpha="loo", solver="pcg").fit(X, y[:, 0])
