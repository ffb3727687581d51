"""Every kernel keeps the laws, and the laws notice kernels that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import mercer.kernels
from mercer.kernels import Callable, Gaussian, Kernel, Laplace, Linear, Subspace
from mercer.kernels.maths import exp, sqrt
from mercer.kernels.pair import DensePair, DiagonalPair, SymbolicPair
from mercer.kernels.parameters import length_scale, parameter
from mercer.testing import check_kernel
from mercer.testing.compositions import random_differences
from mercer.testing.examples import EXAMPLES


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
def test_every_kernel_keeps_the_laws(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("seed", range(12))
def test_kernels_with_negative_factors_of_distances_keep_the_laws(seed):
    check_kernel(random_differences(np.random.default_rng(seed), 3))


def test_every_public_class_is_among_the_examples():
    def classes(kernel):
        return {type(kernel)}.union(*(classes(child) for _, child in kernel.children()))

    public = {getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    expected = {c for c in public if isinstance(c, type) and issubclass(c, Kernel)} - {Kernel}
    assert set().union(*map(classes, EXAMPLES)) == expected


def test_a_kernel_of_named_columns_keeps_the_laws():
    check_kernel(Subspace(Gaussian("median"), "age") + Subspace(Linear(), ["height", "age"]))


def test_a_kernel_of_objects_is_checked_on_the_objects_given():
    sets = [set(np.random.default_rng(i).choice(9, size=4)) for i in range(20)]
    check_kernel(Callable(lambda a, b: len(a & b)), X=sets)
    with pytest.raises(AssertionError, match="positive semi-definiteness fails for Callable"):
        check_kernel(Callable(lambda a, b: len(a ^ b)), X=sets)


def test_any_kind_of_table_can_be_given():
    A = np.random.default_rng(0).normal(size=(20, 2))
    by_name = Subspace(Gaussian("median"), "b") + Linear()
    for table in (pd.DataFrame(A, columns=["a", "b"]), pl.DataFrame(A, schema=["a", "b"])):
        check_kernel(by_name, table)
    for table in (torch.from_numpy(A).float(), A.astype(np.float32), A.tolist()):
        check_kernel(Laplace("median"), table, Z=A[::-1] + 0.3)


@dataclass(frozen=True, eq=False, repr=False)
class Own(Kernel):
    """A kernel as a user would write it."""

    length_scale: Any = length_scale()

    def of(self, pair):
        return 1.0 / (1.0 + pair.squared_distance(self.length_scale)) ** 2


def test_a_kernel_of_the_user_needs_one_formula_only():
    check_kernel(Own((1.0, 2.0)) + 2.0 * Own())


@dataclass(frozen=True, eq=False, repr=False)
class Indefinite(Own):
    def of(self, pair):
        return -1.0 * pair.squared_distance(self.length_scale)


@dataclass(frozen=True, eq=False, repr=False)
class TooWide(Own):
    def of(self, pair):
        return 1.0 + 0.5 * pair.squared_distance(self.length_scale)


@dataclass(frozen=True, eq=False, repr=False)
class Lopsided(Own):
    def of(self, pair):
        left, right = pair.ends(lambda rows: rows[:, 0])
        return exp(-0.5 * pair.squared_distance()) * (2.0 + 0.1 * left - 0.1 * right)


@dataclass(frozen=True, eq=False, repr=False)
class WrongDiagonal(Own):
    def of(self, pair):
        value = exp(-0.5 * pair.squared_distance())
        return 2.0 * value if isinstance(pair, DiagonalPair) else value


@dataclass(frozen=True, eq=False, repr=False)
class WrongTrace(Own):
    def of(self, pair):
        return exp(-0.5 * pair.squared_distance()) * (2.0 if isinstance(pair, SymbolicPair) else 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class NoInputGradient(Own):
    def of(self, pair):
        return pair.matrix(lambda p: self._value(p).detach(), lambda p: torch.ones(len(p)).to(p.values))

    def _value(self, pair):
        return torch.exp(-0.5 * pair.squared_distance())


@dataclass(frozen=True, eq=False, repr=False)
class WrongParameterGradient(Own):
    def of(self, pair):
        scale = self.length_scale
        if isinstance(scale, torch.Tensor):
            scale = scale.detach() ** 0.5 * scale**0.5
        return exp(-0.5 * pair.squared_distance(scale))


@dataclass(frozen=True, eq=False, repr=False)
class Coarse(Own):
    def of(self, pair):
        if isinstance(pair, DensePair) and pair.x.values.dtype == torch.float32:
            return (exp(-0.5 * pair.squared_distance()) * 1000).round() / 1000
        return exp(-0.5 * pair.squared_distance())


@dataclass(frozen=True, eq=False, repr=False)
class Widening(Own):
    def of(self, pair):
        return exp(-0.5 * pair.squared_distance())

    def on(self, pair):
        return super().on(pair).to(torch.float64)


@dataclass(frozen=True, eq=False, repr=False)
class UnprotectedRoot(Own):
    def of(self, pair):
        s = pair.squared_distance(self.length_scale, exact=True)
        return exp(-sqrt(s)) if isinstance(pair, SymbolicPair) else torch.exp(-torch.sqrt(s))


@dataclass(frozen=True, eq=False, repr=False)
class Forgetful(Own):
    scale: float = parameter(1.0)

    def __repr__(self):
        return "Forgetful()"


@dataclass(frozen=True, eq=True, repr=False)
class ByIdentity(Own):
    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False, repr=False)
class DependsOnTheSample(Own):
    def of(self, pair):
        if isinstance(pair, DensePair) and pair.z is None:
            return exp(-0.5 * pair.squared_distance() / (1.0 + pair.squared_distance().mean()))
        return exp(-0.5 * pair.squared_distance())


BROKEN = [
    (Indefinite(), "positive semi-definiteness"),
    (TooWide(), "positive semi-definiteness"),
    (Lopsided(), "symmetry"),
    (WrongDiagonal(), "diagonal"),
    (WrongTrace(), "the program of k"),
    (NoInputGradient(), "the derivative in x"),
    (WrongParameterGradient(), "the derivative in length_scale"),
    (Coarse(), "float32 is close to float64"),
    (Widening(), "float32 in, float32 out"),
    (UnprotectedRoot(), "finite gradients where rows coincide"),
    (Forgetful(scale=2.0), "repr evaluates back"),
    (ByIdentity(), "gives an equal kernel"),
    (DependsOnTheSample(), "block of k"),
    (Callable(lambda x, z: float("nan")), "is nan"),
]


@pytest.mark.parametrize(("kernel", "law"), BROKEN, ids=lambda value: type(value).__name__)
def test_a_broken_kernel_is_noticed_and_the_law_named(kernel, law):
    with pytest.raises((AssertionError, ValueError), match=law):
        check_kernel(kernel)
