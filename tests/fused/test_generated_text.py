"""Nothing that a user or a file wrote reaches the text that is run: it is generated names, numbers and calls."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("triton")

from mercer.core.arrays import Points, as_points
from mercer.core.errors import MercerError, NotTraceable
from mercer.formula.simplify import reduced
from mercer.kernels import (
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Subspace,
    from_dict,
)
from mercer.operators.backends.fused.grammar import HEADER, checked
from mercer.operators.backends.fused.layout import layout
from mercer.operators.backends.fused.profile import profile
from mercer.operators.backends.fused.source import Featurewise, Products, functions, source
from mercer.testing.compositions import random_kernel

HOSTILE = [
    "__import__('os').system('true')",
    'q0"; import os #',
    "x\nimport os\n",
    "{__class__}",
    "c0 = open('f', 'w')",
    "\u2028import os",
    "tl.load",
]


def text_of(kernel, d=3, names=None):
    """The texts of a kernel over d features: from products, in chunks, and feature by feature."""
    points = as_points(np.zeros((1, d)))
    bound = kernel.bind(names)
    body = profile(reduced(bound.program(Points(points.values, None))))
    inputs = len(body.units)
    found = []
    for item in (
        Products(layout(d, "fast"), 0),
        Featurewise(d, 0, 0, 0, True, "l2"),
        Featurewise(40, 0, 0, 0, False, "l1"),
    ):
        found.append(source(body, (item,) * inputs, 64))
    return found


@pytest.mark.parametrize("word", HOSTILE)
def test_column_names_are_positions_before_any_text_is_made(word):
    kernel = Gaussian(1.0) + Subspace(Laplace(2.0), [word, "b"])
    plain = Gaussian(1.0) + Subspace(Laplace(2.0), ["a", "b"])
    found, expected = text_of(kernel, names=[word, "b", "c"]), text_of(plain, names=["a", "b", "c"])
    assert found == expected
    assert word == "tl.load" or all(word not in text for text in found)


@pytest.mark.parametrize("word", HOSTILE)
def test_names_of_classes_and_functions_are_not_part_of_the_text(word):
    one = type(word.replace("\0", ""), (Kernel,), {"of": lambda self, pair: (1.0 + pair.inner()) ** 2})()
    assert text_of(one) == text_of(Polynomial(2, 1.0)) or all(word not in text for text in text_of(one))


@pytest.mark.parametrize("word", [*HOSTILE, "1.0", "nan"])
def test_words_in_place_of_numbers_are_refused_before_any_text_is_made(word):
    for make in (
        lambda: Gaussian(word),
        lambda: Gaussian((1.0, word)),
        lambda: Matern(word),
        lambda: Polynomial(word),
        lambda: word * Linear(),
        lambda: Linear() ** word,
        lambda: from_dict({"class": "Gaussian", "params": {"length_scale": word}}),
        lambda: from_dict({"class": "Periodic", "params": {"length_scale": 1.0, "period": [word]}}),
        lambda: from_dict({"class": word, "params": {}}),
    ):
        with pytest.raises((MercerError, TypeError)):
            make()

    class Formula(Kernel):
        def of(self, pair):
            return (1.0 + pair.inner()) ** word

    if word not in ("1.0", "nan"):
        with pytest.raises((MercerError, ValueError)):
            text_of(Formula())


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(1e-300),
        Gaussian(1e300),
        1e300 * Matern(1.5, 1e-100),
        Periodic(1.0, 1e-200) + Linear(1e200),
        Polynomial(7, 1e-320),
    ],
    ids=repr,
)
def test_numbers_of_any_size_are_not_part_of_the_text(kernel):
    try:
        texts = text_of(kernel)
    except NotTraceable:
        return
    for text in texts:
        assert checked(text) == text
        assert not re.search(r"\binf\b|\bnan\b", text)


def test_a_power_beyond_the_numbers_is_not_fused():
    with pytest.raises(NotTraceable, match="too large"):
        text_of(RationalQuadratic(length_scale=1e3, alpha=200.0))


def test_the_texts_of_random_compositions_are_what_may_be_run():
    made = 0
    for seed in range(60):
        try:
            texts = text_of(random_kernel(np.random.default_rng(seed), 3))
        except NotTraceable:
            continue
        for text in texts:
            assert checked(text) == text
            made += 1
    assert made > 60


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "from os import system",
        "x = __import__('os')",
        "x = open('file')",
        "x = eval(y)",
        "x = 'text'",
        "x = b'bytes'",
        "x = f'{y}'",
        "x = y.__class__",
        "x = tl.__loader__",
        "x = tl.load.__globals__",
        "x = triton.runtime",
        "x = [y for y in z]",
        "x = lambda: 1",
        "x = tl.load(y)(z)",
        "x = (tl.load)(y).store",
        "x = __builtins__",
        "x = 1j",
        "global x",
        "with y: pass",
        "class X: pass",
        "while 1: pass",
        "try:\n    x = 1\nexcept y:\n    x = 2",
        "del x",
        "assert x",
        "x: int = 1",
        "(x := 1)",
        "@open\ndef f(x): return x",
        "async def f(): return 1",
        "x = y if z else w",
        "x = True",
        "x = ...",
        "x = {}",
        "x = [1]",
        "x = {**y}",
        "x = *y, z",
        "'a docstring'",
    ],
)
def test_anything_but_arithmetic_and_triton_is_refused(line):
    with pytest.raises(NotTraceable, match="its generated text"):
        checked(f"{HEADER}\n{line}\n")
    with pytest.raises(NotTraceable, match="its generated text"):
        functions(f"{HEADER}\n{line}\n")


def test_text_with_another_beginning_is_refused():
    with pytest.raises(NotTraceable, match="another beginning"):
        functions("import os\n")
