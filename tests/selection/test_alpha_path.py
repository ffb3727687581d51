"""The path of alpha: one eigendecomposition, the best alpha for each target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refitting import loo_by_refitting
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.operators import Weighted, gram
from mercer.selection import default_alphas, loo_predictions, select_alpha
from mercer.selection.alpha import CRITERIA, best_alpha, entries_at_once
from mercer.selection.few import loo_predictions_of_few, select_alpha_of_few
from mercer.solvers import Eigh
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.row_blocks import Block, RowBlocks
from mercer.testing.solvers import MatrixSystem


def noisy_sine(n=60, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, (n, 1)), axis=0)
    return X, np.sin(X[:, 0]) + noise * rng.normal(size=n)


def spectrum_of(kernel, X, w=None):
    K = gram(kernel, torch.from_numpy(X))
    return Eigh().prepare(K if w is None else Weighted(K, torch.from_numpy(np.sqrt(w))))


def test_the_path_has_the_leave_one_out_errors_of_refitting_for_every_alpha():
    X, y = noisy_sine(15)
    K = Gaussian(1.0)(X)
    path = select_alpha(spectrum_of(Gaussian(1.0), X), torch.from_numpy(y), None, [1e-3, 0.1, 10.0])
    expected = [np.mean(loo_by_refitting(K, y, np.ones(15), a) ** 2) for a in (1e-3, 0.1, 10.0)]
    np.testing.assert_allclose(path.errors[:, 0].numpy(), expected, rtol=1e-8)
    assert float(path.alpha[0]) == (1e-3, 0.1, 10.0)[int(np.argmin(expected))]


def test_the_choice_is_that_of_a_grid_search_with_leave_one_out():
    X, y = noisy_sine(25)
    alphas = np.logspace(-4, 2, 7)
    search = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=0.5), {"alpha": alphas}, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    ).fit(X, y)
    path = select_alpha(spectrum_of(Gaussian(1.0), X), torch.from_numpy(y), None, alphas)
    assert float(path.alpha[0]) == search.best_params_["alpha"]
    np.testing.assert_allclose(path.errors[:, 0].numpy(), -search.cv_results_["mean_test_score"], rtol=1e-8)


def test_each_target_gets_its_own_alpha():
    X, smooth = noisy_sine(noise=0.01)
    _, rough = noisy_sine(noise=1.0)
    Y = torch.from_numpy(np.stack([smooth, rough], axis=1))
    spectrum = spectrum_of(Gaussian(1.0), X)
    both = select_alpha(spectrum, Y)
    assert both.alpha[0] < 0.1 * both.alpha[1]
    for j in range(2):
        alone = select_alpha(spectrum, Y[:, j])
        assert torch.equal(alone.alpha, both.alpha[j : j + 1])
        torch.testing.assert_close(alone.errors[:, 0], both.errors[:, j])


def test_many_targets_are_done_in_parts(monkeypatch):
    X, _ = noisy_sine(20)
    Y = torch.randn(20, 7, generator=torch.Generator().manual_seed(0)).double()
    spectrum = spectrum_of(Laplace(1.0), X)
    whole = select_alpha(spectrum, Y, alphas=[0.0, 0.1, 1.0])
    monkeypatch.setattr("mercer.selection.alpha.ENTRIES_AT_ONCE", 150)
    torch.testing.assert_close(select_alpha(spectrum, Y, alphas=[0.0, 0.1, 1.0]).errors, whole.errors)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_targets_done_together_follow_the_memory(monkeypatch, criterion):
    X, _ = noisy_sine(20)
    Y = torch.randn(20, 50, generator=torch.Generator().manual_seed(0)).double()
    spectrum, sizes, error_of = spectrum_of(Laplace(1.0), X), [], CRITERIA[criterion]

    def watched(x, *args, **options):
        sizes.append(x.numel())
        return error_of(x, *args, **options)

    monkeypatch.setitem(CRITERIA, criterion, watched)
    whole = select_alpha(spectrum, Y, criterion=criterion, memory_budget="1GiB")
    assert sizes == [20 * 30 * 50]
    parts = select_alpha(spectrum, Y, criterion=criterion, memory_budget="1MiB")
    assert max(sizes[1:]) <= entries_at_once("1MiB") == 2**20 // (4 * 6 * 8)
    torch.testing.assert_close(parts.errors, whole.errors)


def test_rows_done_together_follow_the_memory(monkeypatch):
    X = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)).double()
    Y, sizes, parts = X.repeat(1, 4).cumsum(1).sin(), [], Block.parts
    blocks = RowBlocks(Laplace(), Points(X), Points(X[:20]), Y)
    spectrum = NystromSums.of(blocks).prepare(Laplace()(X[:20]))

    def watched(block, most):
        for part in parts(block, most):
            sizes.append(len(part[0]))
            yield part

    monkeypatch.setattr(Block, "parts", watched)
    whole, some = (select_alpha_of_few(spectrum, blocks, memory_budget=budget) for budget in ("1GiB", "1MiB"))
    rows = entries_at_once("1MiB") // (30 * 12)
    assert sizes[:2] == [300, rows]
    assert sum(sizes) == 600
    torch.testing.assert_close(some.errors, whole.errors)
    loo = loo_predictions_of_few(spectrum, blocks, whole.alpha, "1GiB")
    sizes.clear()
    torch.testing.assert_close(loo_predictions_of_few(spectrum, blocks, whole.alpha, "100KiB"), loo)
    assert max(sizes) == entries_at_once("100KiB") // 12


def test_noise_free_targets_take_a_small_alpha_and_noise_a_large_one():
    X = np.linspace(0, 6, 60).reshape(-1, 1)
    spectrum = spectrum_of(Gaussian(1.5), X)
    largest = float(spectrum.values[-1])
    clean = select_alpha(spectrum, torch.from_numpy(np.sin(X[:, 0])))
    assert float(clean.errors.min()) < 1e-10
    assert float(clean.alpha[0]) < 1e-9 * largest
    noise = torch.randn(60, generator=torch.Generator().manual_seed(3)).double()
    lost = select_alpha(spectrum_of(Laplace(0.05), X), noise)
    assert float(lost.alpha[0]) >= float(spectrum_of(Laplace(0.05), X).values[-1])


def test_the_default_path_scales_with_the_kernel_and_so_does_the_choice():
    X, y = noisy_sine()
    K = Laplace(1.0)(X)
    one, thousand = (
        select_alpha(Eigh().prepare(MatrixSystem(torch.from_numpy(f * K))), torch.from_numpy(y)) for f in (1, 1000)
    )
    torch.testing.assert_close(thousand.alpha, 1000 * one.alpha)
    torch.testing.assert_close(thousand.errors, one.errors, rtol=1e-6, atol=0.0)
    assert len(default_alphas(3.0)) == 30
    assert float(default_alphas(3.0)[24]) == pytest.approx(3.0)
    assert float(default_alphas(0.0)[24]) == pytest.approx(1.0)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_integer_weights_choose_as_repeated_rows_do(criterion):
    X, y = noisy_sine(40, noise=0.5, seed=4)
    rng = np.random.default_rng(0)
    w = rng.integers(1, 6, 40).astype(float)
    index = rng.permutation(np.repeat(np.arange(40), w.astype(int)))
    kernel = Laplace(1.0)
    a = select_alpha(spectrum_of(kernel, X, w), torch.from_numpy(y), torch.from_numpy(w), criterion=criterion)
    b = select_alpha(spectrum_of(kernel, X[index]), torch.from_numpy(y[index]), criterion=criterion)
    torch.testing.assert_close(a.alphas, b.alphas)
    torch.testing.assert_close(a.errors, b.errors, rtol=1e-6, atol=1e-15)
    torch.testing.assert_close(a.alpha, b.alpha)
    unweighted = select_alpha(spectrum_of(kernel, X), torch.from_numpy(y), criterion=criterion)
    assert not torch.allclose(unweighted.errors, a.errors, rtol=1e-2)  # the weights matter here


def test_the_edge_of_the_path_is_reported():
    X, y = noisy_sine()
    spectrum = spectrum_of(Gaussian(1.0), X)
    assert not select_alpha(spectrum, torch.from_numpy(y)).at_edge.any()
    assert select_alpha(spectrum, torch.from_numpy(y), alphas=[1e3, 1e4]).at_edge.all()
    assert select_alpha(spectrum, torch.from_numpy(y), alphas=[1e-9, 1e-8]).at_edge.all()


def test_targets_that_are_all_zero_take_the_largest_alpha_without_an_edge():
    X, _ = noisy_sine()
    path = select_alpha(spectrum_of(Gaussian(1.0), X), torch.zeros(60))
    assert float(path.alpha[0]) == float(path.alphas[-1])
    assert not path.at_edge.any()


def test_equal_errors_take_the_largest_alpha():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = X @ np.array([1.0, -2.0])  # in the span of a linear kernel: every small alpha is perfect
    path = select_alpha(spectrum_of(Linear(), X), torch.from_numpy(y))
    chosen = float(path.alpha[0]) / float(path.alphas[24])
    assert 1e-12 < chosen < 1e-8


def test_predictions_follow_from_the_chosen_alphas():
    X, y = noisy_sine()
    Y = torch.from_numpy(np.stack([y, y**2], axis=1))
    spectrum = spectrum_of(Gaussian(1.0), X)
    path = select_alpha(spectrum, Y)
    left_out = loo_predictions(spectrum, Y, None, path.alpha)
    torch.testing.assert_close((Y - left_out).square().mean(0), path.errors.amin(0), rtol=1e-5, atol=0.0)


def test_bad_paths_are_named():
    spectrum = Eigh().prepare(MatrixSystem(torch.eye(3).double()))
    y = torch.arange(3.0)
    with pytest.raises(ValueError, match=r"alphas contains -1"):
        select_alpha(spectrum, y, alphas=[1.0, -1.0])
    with pytest.raises(ValueError, match="alphas contains nan"):
        select_alpha(spectrum, y, alphas=[float("nan")])
    with pytest.raises(ValueError, match="at least one number"):
        select_alpha(spectrum, y, alphas=[])
    with pytest.raises(ValueError, match="criterion='aic' is unknown; choose one of 'loo', 'gcv'"):
        select_alpha(spectrum, y, criterion="aic")


def test_a_path_without_any_finite_error_is_refused():
    with pytest.raises(InputError, match="No alpha gives a finite error"):
        best_alpha(torch.zeros(0), torch.zeros(0, 1), torch.ones(1), "loo")
