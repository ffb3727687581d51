"""Which rows are equal is one question: everything that merges, counts or separates rows gives the same answer."""

import numpy as np
import pytest
import torch

from mercer import RKHSFunction
from mercer.core.arrays import Points
from mercer.data.equal import Kinds, distinct_rows, mixed_keys
from mercer.data.sample import Sample
from mercer.estimators.common.alpha_sample import distinct
from mercer.kernels import Gaussian, Spectrum
from mercer.kernels.median import _distinct
from mercer.processes.copies import copied
from mercer.processes.observations import Observations
from mercer.selection.loss_alpha import fold_numbers
from mercer.selection.rows import merged_rows

rng = np.random.default_rng(0)
SOME = rng.normal(size=(6, 3)).round(1)
NEAR = np.nextafter(SOME, np.inf)
SINGLE = SOME.astype(np.float32).astype(np.float64)

TABLES = {
    "repeated": SOME[rng.integers(6, size=30)],
    "signed zeros": np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [1.0, -0.0], [-0.0, -1.0]]),
    "near copies": np.concatenate([SOME, NEAR, SOME]),
    "float32 in float64": np.concatenate([SINGLE, SOME, SINGLE]),
    "float32": np.concatenate([SINGLE, SINGLE[:3], np.nextafter(SINGLE.astype(np.float32), np.float32(9))]).astype(
        "f4"
    ),
    "one column": rng.integers(4, size=(20, 1)).astype(float),
    "all alike": np.full((5, 2), 0.1),
    "all different": rng.normal(size=(12, 2)),
}
WORDS = ["b", "a", "b", "c", "a", "bb"]


def partition(rows):
    """The places of each different row, by Python's own numbers."""
    found = {}
    for i, row in enumerate(rows):
        key = row if isinstance(row, str) else tuple(float(v) for v in row)
        found.setdefault(key, []).append(i)
    return sorted(found.values())


def of_groups(group):
    return sorted(np.flatnonzero(np.asarray(group) == g).tolist() for g in np.unique(group))


@pytest.mark.parametrize("name", [*TABLES, "words"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "zero weights"])
def test_all_who_ask_find_the_same_rows_equal(name, weighted):
    values = WORDS if name == "words" else TABLES[name]
    X = Points(values if name == "words" else torch.from_numpy(np.ascontiguousarray(values)))
    n = len(X)
    w = torch.ones(n, dtype=torch.float64)
    if weighted:
        w[::3] = 0.0
        w[1::3] = 2.5
    used = (w > 0).nonzero().squeeze(1)
    kept = X.take(used)
    groups = partition([values[i] for i in used])
    sums = sorted(round(float(w[used][g].sum()), 9) for g in groups)
    first, total = distinct_rows(X, w)
    assert sorted(first.tolist()) == sorted(int(used[g[0]]) for g in groups)
    assert sorted(total.round(decimals=9).tolist()) == sums
    assert of_groups(Kinds.of(kept).group) == groups == of_groups(mixed_keys(kept))
    merged = merged_rows(kept, torch.zeros(len(kept)), w[used])
    assert sorted(merged.weights.round(decimals=9).tolist()) == sums
    sample = Sample(X, torch.zeros(n, 1, dtype=torch.float64), w, True)
    assert len(distinct(sample)) == len(sample.positive()[0].kinds) == len(groups)
    folds = fold_numbers(kept, torch.zeros(len(kept)), folds=3)
    assert all(len(folds[g].unique()) == 1 for g in groups)
    kernel = Spectrum(1) if name == "words" else Gaussian(1.0)
    function = RKHSFunction(kernel, kept, np.ones(len(kept)))
    assert function.simplify().n_centres == len(groups)
    if name != "words":
        rows, summed = _distinct(X, w)
        assert sorted(summed.round(decimals=9).tolist()) == sums
        assert partition(rows.values.numpy()) == [[i] for i in range(len(groups))]
    y = torch.from_numpy(np.argmax([[i in g for g in groups] for i in range(len(kept))], axis=1)).double()
    if 2 <= len(groups) < len(kept):
        repeats = [i for g in groups if len(g) > 1 for i in g]
        assert copied(Observations(kept, y.unsqueeze(1))).nonzero().squeeze(1).tolist() == sorted(repeats)


@pytest.mark.parametrize("name", TABLES)
def test_kinds_do_not_depend_on_the_order_of_rows(name):
    values = torch.from_numpy(np.ascontiguousarray(TABLES[name]))
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(0))
    one, other = Kinds.of(values), Kinds.of(values[order])
    assert torch.equal(one.group[order], other.group)
    assert torch.equal(mixed_keys(Points(values))[order], mixed_keys(Points(values[order])))


def test_numbers_of_different_types_are_different_objects_and_what_has_no_hash_equals_itself():
    one = {1}
    assert len(Kinds.of(Points([1, True, 1.0, 1]))) == 3
    assert len(Kinds.of(Points([one, {1}, one, "a", "a"]))) == 3


def test_rows_are_equal_in_all_parts():
    X, Y = torch.tensor([[1.0], [1.0], [2.0], [1.0]]), torch.tensor([[0.0], [1.0], [0.0], [0.0]])
    kinds = Kinds.of(X, Y)
    assert kinds.group.tolist() == [0, 1, 2, 0]
    assert kinds.sums().tolist() == [2.0, 1.0, 1.0]
    assert kinds.as_they_come().group.tolist() == [0, 1, 2, 0]
