"""Laws of the choice of landmarks."""

from __future__ import annotations

import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.data.equal import distinct_rows
from mercer.kernels import Callable, Gaussian, Kernel, Laplace, Linear, Polynomial, Spectrum, WhiteNoise
from mercer.solvers.landmarks import check_landmarks, choose_landmarks
from mercer.solvers.leverage import leverage_sample
from mercer.testing.solvers import MatrixSystem

HOW = ["uniform", "pivoted", "leverage"]


def sample(n=200, d=2, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("how", HOW)
def test_landmarks_are_different_rows_of_the_data(how):
    X = Points(torch.cat([sample(), sample()]), ("a", "b"))
    chosen = choose_landmarks(Laplace(), X, 30, how)
    assert len(chosen) == 30
    assert len(chosen.points.values.unique(dim=0)) == 30
    assert torch.equal(chosen.points.values, X.values[chosen.index])
    assert chosen.points.names == ("a", "b")
    assert "30 landmarks" in chosen.note


@pytest.mark.parametrize("how", HOW)
def test_weights_equal_repetitions_and_the_order_of_rows_does_not_matter(how):
    X = sample()
    repeats = torch.randint(0, 4, (200,), generator=torch.Generator().manual_seed(2))
    index = torch.arange(200).repeat_interleave(repeats)
    index = index[torch.randperm(len(index), generator=torch.Generator().manual_seed(3))]
    weighted = choose_landmarks(Laplace(), Points(X), 20, how, seed=5, weights=repeats.double())
    repeated = choose_landmarks(Laplace(), Points(X[index]), 20, how, seed=5)
    order = [values[values[:, 0].argsort()] for values in (weighted.points.values, repeated.points.values)]
    torch.testing.assert_close(*order, rtol=0, atol=0)


@pytest.mark.parametrize("how", HOW)
def test_the_seed_decides_and_rows_without_weight_are_never_taken(how):
    X, weights = Points(sample()), torch.ones(200).double()
    weights[:100] = 0.0
    first, again, other = (choose_landmarks(Laplace(), X, 20, how, seed=s, weights=weights) for s in (1, 1, 2))
    assert torch.equal(first.index, again.index)
    assert not torch.equal(first.index, other.index)
    assert int(first.index.min()) >= 100


@pytest.mark.parametrize("how", ["pivoted", "leverage"])
def test_a_row_of_large_weight_is_a_landmark(how):
    weights = torch.ones(200).double()
    weights[77] = 1e6
    for seed in range(5):
        chosen = choose_landmarks(Laplace(), Points(sample()), 10, how, seed=seed, weights=weights)
        assert 77 in chosen.index.tolist()


@pytest.mark.parametrize("how", HOW)
def test_there_are_never_more_landmarks_than_distinct_rows(how):
    chosen = choose_landmarks(Laplace(), Points(torch.cat([sample(10), sample(10)])), 50, how)
    assert len(chosen) == 10
    assert chosen.note == "all 10 distinct rows are landmarks"
    assert "all 10 rows" in choose_landmarks(Laplace(), Points(sample(10)), 50, how).note


def test_zeros_of_both_signs_are_one_value():
    rows, counts = distinct_rows(Points(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])))
    assert len(rows) == 2
    assert counts.sum() == 3


def test_pivoted_landmarks_stop_at_the_rank_of_the_kernel():
    chosen = choose_landmarks(Linear(), Points(sample(200, 3)), 20, "pivoted")
    assert len(chosen) == 3
    assert "no larger rank" in chosen.note


@pytest.mark.parametrize(("how", "least"), [("pivoted", 9), ("leverage", 5)])
def test_a_rare_cluster_is_found_by_pivots_and_leverage(how, least):
    """Five rows far from a thousand others: a uniform draw of 20 mostly misses them, the kernel does not."""
    X = torch.cat([0.3 * sample(1000), 0.3 * sample(5, seed=1) + 50.0])

    def hits(how):
        return sum(
            bool((choose_landmarks(Gaussian(), Points(X), 20, how, seed=s).index >= 1000).any()) for s in range(10)
        )

    assert hits(how) >= least
    assert hits("uniform") <= 3


def test_leverage_draws_follow_the_scores():
    """Blocks of identical points share one unit of leverage: lone points are drawn far more often."""
    big, lone = torch.ones(90, 90), torch.eye(10)
    A = MatrixSystem(torch.block_diag(big, lone).double())
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(100)
    for _ in range(50):
        chosen = leverage_sample(A, 12, generator)
        assert len(chosen.unique()) == 12
        counts[chosen] += 1
    assert float(counts[90:].mean()) > 5 * float(counts[:90].mean())


@pytest.mark.parametrize("seed", range(3))
def test_leverage_scores_of_a_kernel_of_low_rank_come_from_few_rows(seed):
    """Scores that are rounding errors, divided by others, would keep every row."""
    asked = []

    class Counted(MatrixSystem):
        def rows(self, index):
            asked.append(len(index))
            return super().rows(index)

    A = Counted(Polynomial(3)(sample(3000, 1, seed)))
    assert len(leverage_sample(A, 100, torch.Generator().manual_seed(seed))) == 100
    assert max(asked) <= 100


def test_given_landmarks_are_used_without_repetitions():
    X = Points(sample())
    chosen = choose_landmarks(Gaussian(), X, 3, torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    assert torch.equal(chosen.points.values, torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
    assert chosen.index is None
    assert chosen.note == "2 landmarks were given, and 1 repetitions left out"


@pytest.mark.parametrize("how", HOW)
def test_objects_can_be_landmarks(how):
    words = Points(["tree", "trees", "house", "houses", "tree", "river", "rivers"] * 3)
    chosen = choose_landmarks(Spectrum(2), words, 4, how)
    assert len(chosen) == 4
    assert len(set(chosen.points.values)) == 4


@pytest.mark.parametrize("how", ["pivoted", "leverage"])
def test_a_small_memory_budget_means_fewer_rows_to_choose_from(how):
    X = Points(sample(2000))
    assert "1,500 rows" in choose_landmarks(Laplace(), X, 50, how).note
    assert "256 rows" in choose_landmarks(Laplace(), X, 50, how, memory_budget="300KiB").note
    assert "128 rows" in choose_landmarks(Laplace(), X, 50, how, memory_budget="150KiB").note
    assert len(choose_landmarks(Laplace(), X, 120, how, memory_budget="300KiB")) == 120


class NoisyByHand(Kernel):
    """A kernel that asks for equal rows itself."""

    def of(self, pair):
        return pair.inner() + 0.1 * pair.same()


@pytest.mark.parametrize("how", [*HOW, sample(5)])
@pytest.mark.parametrize(
    "kernel", [Gaussian() + WhiteNoise(0.1), Gaussian() * (Linear() + 0.2 * WhiteNoise()), NoisyByHand()], ids=repr
)
def test_white_noise_of_rows_is_refused(kernel, how):
    with pytest.raises(InputError, match="white noise, which belongs to rows.* adding 0"):
        choose_landmarks(kernel, Points(sample()), 5, how)


def test_white_noise_is_found_where_the_first_row_has_none():
    X = torch.cat([torch.zeros(1, 2), sample()]).double()
    with pytest.raises(InputError, match="white noise"):
        choose_landmarks(Linear() * WhiteNoise(), Points(X), 5)
    assert len(choose_landmarks(Callable(lambda a, b: float(a @ b)), Points(X), 5)) == 5


def test_given_landmarks_have_the_columns_of_the_data():
    X = Points(sample(), ("a", "b"))
    with pytest.raises(InputError, match="columns of landmarks are .'b', 'a'. but those of X are .'a', 'b'."):
        choose_landmarks(Gaussian(), X, 3, Points(sample(5), ("b", "a")))
    for names in (("a", "b"), None):
        assert choose_landmarks(Gaussian(), X, 3, Points(sample(5), names)).points.names == ("a", "b")


def test_what_is_asked_for_is_counted_or_refused():
    assert check_landmarks("leverage") is None
    assert check_landmarks("leverage", 5) == 5
    assert check_landmarks(sample(7)) == check_landmarks(sample(7), 7) == 7
    for wrong in (None, 3.0, torch.tensor(3.0), "kmeans"):
        with pytest.raises(
            InputError if wrong == "kmeans" else InputTypeError,
            match="landmarks=.*give 'uniform', 'pivoted', 'leverage' or an array",
        ):
            check_landmarks(wrong)
    for wrong in (0, -1, 2.5, True, "7"):
        with pytest.raises(InputError, match="n_landmarks=.*must be an integer >= 1"):
            check_landmarks("uniform", wrong)
    with pytest.raises(InputError, match="n_landmarks=7 but 20 landmarks are given as points"):
        check_landmarks(sample(20), 7)


def test_bad_choices_are_named():
    X = Points(sample())
    with pytest.raises(ValueError, match="landmarks='best'"):
        choose_landmarks(Gaussian(), X, 3, "best")
    with pytest.raises(ValueError, match="n_landmarks=0"):
        choose_landmarks(Gaussian(), X, 0)
    with pytest.raises(ValueError, match="3 columns but X has 2"):
        choose_landmarks(Gaussian(), X, 3, torch.ones(4, 3))
    with pytest.raises(ValueError, match="landmarks is empty"):
        choose_landmarks(Gaussian(), X, 3, torch.ones(0, 2))
    with pytest.raises(ValueError, match="no rows to"):
        choose_landmarks(Gaussian(), X, 3, weights=torch.zeros(200))
