"""A solver is asked for by name or as an object, which says the same and has options of its own."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone

import mercer
from mercer import KernelClassifier, KernelPCA, KernelRegressor, KernelRidge, MercerDecomposition, RFMRegressor
from mercer.core.errors import InputError, InputTypeError
from mercer.operators import Stored
from mercer.rows import ArrayRows
from mercer.solvers import (
    PCG,
    Cholesky,
    DenseEigen,
    DenseNewton,
    EigenPro,
    Eigh,
    Falkon,
    Flow,
    GradientDescent,
    Krylov,
    MixedCholesky,
    Nystrom,
    NystromNewton,
    NystromSums,
    PCGNewton,
    Primal,
    RandomFeatures,
    register,
)
from mercer.solvers.registry import EIGENSOLVERS, LOSS_SOLVERS, RIDGE_SOLVERS, from_dict, name_of, to_dict
from mercer.solvers.traits import Traits

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.sin(X[:, 0])
OBJECTS = {
    "cholesky": Cholesky(),
    "eigh": Eigh(),
    "mixed_cholesky": MixedCholesky(),
    "pcg": PCG(),
    "falkon": Falkon(),
    "eigenpro": EigenPro(tol=1e-6),
    "gd": GradientDescent(),
    "flow": Flow(),
    "nystrom": Nystrom(),
    "random_features": RandomFeatures(),
}
LABELS = np.where(y > 0, "b", "a")
OTHERS = [
    *[(KernelClassifier("gaussian", alpha=0.1), solver) for solver in (DenseNewton(), PCGNewton(), NystromNewton())],
    *[
        (KernelRegressor("gaussian", loss="epsilon_insensitive", alpha=0.1), solver)
        for solver in (DenseNewton(), PCGNewton(), NystromNewton())
    ],
    *[(KernelPCA(3), solver) for solver in (DenseEigen(), Krylov())],
    *[(MercerDecomposition(3), solver) for solver in (DenseEigen(), Krylov())],
    (RFMRegressor(max_iter=1, n_folds=2), Cholesky()),
    (KernelRidge("linear", alpha=1.0), Primal()),
]


def ridge(name):
    return 1.0 if RIDGE_SOLVERS[name].traits.ridge else 0.0


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_with_the_options_of_the_name_fits_the_same(name):
    by_name = KernelRidge("gaussian", solver=name, alpha=ridge(name)).fit(X, y)
    model = KernelRidge("gaussian", solver=OBJECTS[name], alpha=ridge(name)).fit(X, y)
    assert model.solver_report_.solver == name
    assert np.array_equal(model.predict(X), by_name.predict(X))


def test_the_options_of_an_object_are_those_of_the_fit():
    rough = KernelRidge("gaussian", alpha=1e-3, solver=PCG(tol=0.1, rank=1, preconditioner="nystrom")).fit(X, y)
    fine = KernelRidge("gaussian", alpha=1e-3, solver=PCG(tol=1e-10)).fit(X, y)
    exact = KernelRidge("gaussian", alpha=1e-3, solver="cholesky").fit(X, y).predict(X)
    errors = [np.abs(model.predict(X) - exact).max() for model in (rough, fine)]
    assert errors[0] > 100 * errors[1]
    with pytest.warns(UserWarning, match="max_iter"):
        KernelRidge("gaussian", alpha=1e-6, solver=PCG(max_iter=1, rank=1)).fit(X, y)


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_clones_as_itself_and_is_saved_by_name_and_fields(name, tmp_path):
    solver = OBJECTS[name]
    model = KernelRidge("gaussian", solver=solver, alpha=ridge(name))
    assert clone(model).solver is solver
    assert pickle.loads(pickle.dumps(model)).solver == solver
    assert name_of(solver) == name
    assert from_dict(to_dict(solver)) == solver
    model.fit(X, y).save(tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.solver == solver
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("solver", "option", "value"),
    [
        (PCG(rank=5), "tol", 1e-3),
        (PCG(), "max_iter", 7),
        (Falkon(), "tol", 1e-3),
        (PCG(seed=3), "random_state", 1),
        (PCG(memory_budget="1GiB"), "memory_budget", "2GiB"),
    ],
)
def test_an_option_given_to_both_is_an_error(solver, option, value):
    with pytest.raises(InputError, match=f"{option}=.* and solver=.*give the option to one of the two"):
        KernelRidge("gaussian", solver=solver, **{option: value}).fit(X, y)


def test_the_seed_and_the_budget_of_the_estimator_reach_an_object_that_has_none():
    model = KernelRidge("gaussian", solver=Falkon(), random_state=3, n_landmarks=20, alpha=1.0).fit(X, y)
    named = KernelRidge("gaussian", solver="falkon", random_state=3, n_landmarks=20, alpha=1.0).fit(X, y)
    assert np.array_equal(model.predict(X), named.predict(X))


def test_rows_in_parts_take_an_object():
    named = KernelRidge("gaussian", solver="falkon", n_landmarks=20, tol=1e-3, alpha=1.0).fit(ArrayRows(X, y))
    model = KernelRidge("gaussian", solver=Falkon(tol=1e-3), n_landmarks=20, alpha=1.0).fit(ArrayRows(X, y))
    assert np.array_equal(model.predict(X), named.predict(X))


def named(solver):
    """The name of an object, in the family of its class."""
    families = (RIDGE_SOLVERS, LOSS_SOLVERS, EIGENSOLVERS)
    return next(name for among in families for name, cls in among.items() if type(solver) is cls)


@pytest.mark.parametrize(("model", "solver"), OTHERS, ids=lambda value: type(value).__name__)
def test_every_estimator_takes_an_object_which_says_what_its_name_does(model, solver, tmp_path):
    targets = LABELS if isinstance(model, KernelClassifier) else y
    by_name = clone(model).set_params(solver=named(solver)).fit(X, targets)
    by_object = clone(clone(model).set_params(solver=solver)).fit(X, targets)
    assert by_object.solver is solver
    by_object.save(tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.solver == solver
    assert type(again.solver) is type(solver)
    what = "predict" if hasattr(model, "predict") else "transform"
    for other in (by_object, again):
        assert np.array_equal(getattr(other, what)(X), getattr(by_name, what)(X))


@pytest.mark.parametrize(
    ("model", "solver"),
    [
        (KernelClassifier(tol=1e-3), DenseNewton(tol=1e-4)),
        (KernelRegressor(max_iter=7, loss="huber"), PCGNewton()),
        (KernelPCA(3, tol=1e-3), Krylov()),
        (MercerDecomposition(3, max_iter=7), Krylov()),
    ],
)
def test_an_option_given_to_any_estimator_and_its_solver_is_an_error(model, solver):
    with pytest.raises(InputError, match="give the option to one of the two"):
        model.set_params(solver=solver).fit(X, LABELS if isinstance(model, KernelClassifier) else y)


def test_the_options_of_an_object_are_those_of_a_fit_with_any_loss():
    with pytest.warns(UserWarning, match="max_iter=1 "):
        KernelClassifier("gaussian", alpha=1e-3, solver=DenseNewton(max_iter=1)).fit(X, LABELS)
    some = KernelClassifier("gaussian", alpha=1e-3, solver=PCGNewton(rank=3)).fit(X, LABELS)
    assert "preconditioner of rank 3" in some.solver_report_.reason
    with pytest.warns(UserWarning, match="krylov: NOT CONVERGED"):
        KernelPCA(2, solver=Krylov(max_iter=1)).fit(np.random.default_rng(0).normal(size=(300, 3)))


@pytest.mark.parametrize(
    ("model", "solver"), [(KernelClassifier(), PCG()), (KernelPCA(3), DenseNewton()), (KernelRidge(), Krylov())]
)
def test_a_solver_of_another_problem_is_refused(model, solver):
    with pytest.raises(InputTypeError, match="solver=.*: must be 'auto', .* or a solver object such as"):
        model.set_params(solver=solver).fit(X, LABELS if isinstance(model, KernelClassifier) else y)


def test_an_object_for_landmarks_takes_further_rows():
    for model in (
        KernelRidge("gaussian", alpha=1.0, n_landmarks=20, solver=Nystrom()),
        KernelRegressor("gaussian", loss="squared", alpha=1.0, n_landmarks=20, solver=NystromNewton()),
    ):
        by_name = clone(model).set_params(solver="nystrom").partial_fit(X, y)
        assert np.array_equal(model.partial_fit(X, y).predict(X), by_name.predict(X))


@pytest.mark.parametrize("wrong", [3, object(), [], PCG, NystromSums, torch.nn.Identity()])
def test_what_is_no_solver_is_refused(wrong):
    with pytest.raises(InputTypeError, match="solver="):
        KernelRidge("gaussian", solver=wrong).fit(X, y)


@pytest.mark.parametrize(
    "wrong",
    [
        {"solver": "PCG", "fields": {"tol": -1.0}},
        {"solver": "PCG", "fields": {"callback": None}},
        {"solver": "PCG", "fields": {"memory_budget": 10}},
        {"solver": "Nystrom", "fields": {"tol": 1.0}},
        {"solver": "magic", "fields": {}},
        {"solver": "PCG", "fields": {"rank": [1]}},
        {"solver": "PCG"},
        {"solver": ["PCG"], "fields": {}},
    ],
)
def test_files_cannot_hold_other_solvers(wrong):
    from mercer.estimators.common.saved_parameters import read_params

    with pytest.raises(InputError):
        from_dict(wrong)
    with pytest.raises(InputError):
        read_params(KernelRidge, {"solver": wrong})


def test_the_file_of_an_estimator_cannot_hold_a_solver_of_another_problem():
    from mercer.estimators.common.saved_parameters import read_params

    with pytest.raises(InputTypeError, match="or a solver object such as"):
        read_params(KernelRidge, {"solver": {"solver": "DenseNewton", "fields": {}}})


def test_a_solver_of_ones_own_is_used_by_its_name_once_it_is_registered():
    @register("damped")
    @dataclass(frozen=True)
    class Damped:
        traits: ClassVar[Traits] = Traits(matrices=1.5)
        factor: float = 1.0

        def solve(self, A, B, alpha):
            return Cholesky().solve(A, B, self.factor * alpha)

    try:
        by_name, half = (
            KernelRidge("gaussian", solver="damped", alpha=1.0),
            KernelRidge("gaussian", solver=Damped(0.5), alpha=1.0),
        )
        assert np.array_equal(by_name.fit(X, y).predict(X), KernelRidge("gaussian", alpha=1.0).fit(X, y).predict(X))
        assert np.allclose(half.fit(X, y).predict(X), KernelRidge("gaussian", alpha=0.5).fit(X, y).predict(X))
    finally:
        del RIDGE_SOLVERS["damped"]


def test_momentum_reaches_the_same_solution_in_fewer_steps():
    plain, fast = (
        KernelRidge("gaussian", alpha=0.02, solver=GradientDescent(momentum=m, max_iter=20_000)).fit(X, y)
        for m in (0.0, 0.9)
    )
    exact = KernelRidge("gaussian", alpha=0.02, solver="cholesky").fit(X, y).predict(X)
    for model in (plain, fast):
        assert model.solver_report_.converged
        assert np.abs(model.predict(X) - exact).max() < 1e-4
    assert fast.n_iter_ < 0.3 * plain.n_iter_
    with pytest.raises(InputError, match="momentum=1"):
        GradientDescent(momentum=1.0)


def test_momentum_repeats_a_share_of_the_last_change():
    A = torch.diag(torch.tensor([1.0, 0.3])).double()
    b, c, before = torch.tensor([[1.0], [2.0]]).double(), torch.zeros(2, 1).double(), torch.zeros(2, 1).double()
    for _ in range(5):
        c, before = c + 0.7 * (b - A @ c) + 0.5 * (c - before), c
    found = GradientDescent(max_iter=5, step=0.7, momentum=0.5, tol=1e-12).solve(Stored(A), b)
    torch.testing.assert_close(found.value, c)
