"""Sheets of covariances on their way through all layers of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from mercer.neural.covariances import HERE, End, Ends, Found, Known, Sheet, Sheets, Shift
from mercer.neural.layers import Activation, AveragePool, Layer, all_layers, through

Given = Callable[[], Ends]
"""Ends for the activations of a stage, anew for each sheet."""


def stages(layers: Iterable[Any]) -> Iterator[tuple[list[Any], AveragePool | None]]:
    """Layers that sheets pass alone, and the pooling layer after them; None after the last."""
    some: list[Any] = []
    for layer in layers:
        if isinstance(layer, AveragePool) and layer.size > 1:
            yield some, layer
            some = []
        else:
            some.append(layer)
    yield some, None


def output(layers: Iterable[Any], sheets: Sheets, given: Sequence[Given]) -> Sheet:
    """What comes out of the layers, of which each stage has its ends."""
    for (some, pool), ends in zip(stages(layers), given, strict=True):
        sheets = _after(some, sheets, ends, pool)
    return sheets(HERE)


def variances(layers: Iterable[Any], sheets: Sheets) -> list[list[End]]:
    """The ends for each activation of each stage, from the sheets of images with themselves."""
    found: list[list[End]] = []
    for some, pool in stages(layers):
        here = Found()
        if any(isinstance(layer, Activation) for layer in all_layers(some)):
            through(some, sheets(HERE), here)
        found.append(here.all)
        sheets = _after(some, sheets, partial(Known, here.all, here.all), pool)
    return found


def _after(layers: Iterable[Layer], sheets: Sheets, ends: Given, pool: AveragePool | None) -> Sheets:
    def passed(shift: Shift) -> Sheet:
        return through(layers, sheets(shift), ends())

    return passed if pool is None else pool.pooled(passed)
