"""A pair of points (x, z) as kernels see it: they ask for a distance or an inner product and get numbers or symbols.

The same formula therefore gives the Gram matrix (`DensePair`), its diagonal (`DiagonalPair`) and a
straight-line program for fast back ends (`SymbolicPair`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp, check_finite
from mercer.core.errors import InputError, InputTypeError, NotTraceable
from mercer.formula.maths import sqrt
from mercer.formula.symbols import Statistic, Symbol, Tape
from mercer.kernels.dials import MEND_RADIUS
from mercer.kernels.distances import l1_distances, squared_distances

LengthScale = Any  # a float, one per column, or a tensor of either


class Pair(ABC):
    """What a kernel may ask about x and z."""

    @abstractmethod
    def warped(self, warp: Warp) -> Pair:
        """The pair (warp(x), warp(z))."""

    @abstractmethod
    def squared_distance(self, length_scale: LengthScale = 1.0, *, exact: bool = False) -> Any:
        """|(x - z) / length_scale|^2; `exact` for formulas that magnify errors near zero."""

    @abstractmethod
    def squared_sum(self) -> Any:
        """|x + z|^2, accurate also where x and -z nearly coincide."""

    @abstractmethod
    def l1_distance(self, length_scale: LengthScale = 1.0) -> Any:
        """Sum over columns of |x - z| / length_scale."""

    @abstractmethod
    def inner(self) -> Any:
        """The inner product x.z."""

    @abstractmethod
    def same(self) -> Any:
        """One where x and z are the same row of one sample, else zero."""

    @abstractmethod
    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Any, Any]:
        """function(x) and function(z), for a function from rows (n, d) to numbers (n,)."""

    @abstractmethod
    def columns(self) -> int:
        """Number of columns after the warps so far."""

    @abstractmethod
    def matrix(self, gram: Callable[[DensePair], Tensor], diag: Callable[[Points], Tensor]) -> Any:
        """gram(pair) or diag(sample), for kernels that are evaluated on whole samples and not from vectors."""

    def distance(self, length_scale: LengthScale = 1.0) -> Any:
        """|(x - z) / length_scale|, accurate also where x and z nearly coincide."""
        return sqrt(self.squared_distance(length_scale, exact=True))


class DensePair(Pair):
    """All pairs of rows of two samples: values are (n, m) tensors. Without `z` the sample is paired with itself.

    `ids` gives the places of the rows of x and of z in one sample, for tiles of a symmetric Gram matrix.
    """

    def __init__(self, x: Points, z: Points | None = None, ids: tuple[Tensor, Tensor] | None = None) -> None:
        self.x, self.z, self.ids = x, z, ids

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.x if self.z is None else self.z)

    @property
    def one_sample(self) -> bool:
        """Whether rows and columns are the same points, in the same order."""
        return self.z is None or (self.ids is not None and torch.equal(*self.ids))

    def warped(self, warp: Warp) -> DensePair:
        return DensePair(warp(self.x), None if self.z is None else warp(self.z), self.ids)

    def squared_distance(self, length_scale: LengthScale = 1.0, *, exact: bool = False) -> Tensor:
        x, z = self._scaled(length_scale)
        return self._zero_where_same(squared_distances(x, z, exact=exact))

    def squared_sum(self) -> Tensor:
        x, z = self._vectors()
        return squared_distances(x, -z, exact=True)

    def l1_distance(self, length_scale: LengthScale = 1.0) -> Tensor:
        x, z = self._scaled(length_scale)
        return l1_distances(x, z)

    def inner(self) -> Tensor:
        x, z = self._vectors()
        return x @ z.T

    def same(self) -> Tensor:
        like = _like(self.x)
        if self.ids is not None:
            return (self.ids[0].unsqueeze(1) == self.ids[1].unsqueeze(0)).to(like)
        return torch.eye(len(self.x)).to(like) if self.z is None else like.new_zeros(self.shape)

    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        left = row_values(function, self.x)
        right = left if self.z is None else row_values(function, self.z)
        return left.unsqueeze(1), right.unsqueeze(0)

    def columns(self) -> int:
        return self._vectors()[0].shape[1]

    def matrix(self, gram: Callable[[DensePair], Tensor], diag: Callable[[Points], Tensor]) -> Tensor:
        return gram(self)

    def _vectors(self) -> tuple[Tensor, Tensor]:
        x = vectors(self.x)
        z = x if self.z is None else vectors(self.z)
        if x.shape[1] != z.shape[1]:
            raise InputError(f"X has {x.shape[1]} columns but Z has {z.shape[1]}; both need the same features.")
        return x, z

    def _scaled(self, length_scale: LengthScale) -> tuple[Tensor, Tensor]:
        """Both samples divided by the length scale after a common shift, which keeps large offsets exact."""
        x, z = self._vectors()
        scale = as_scale(length_scale, x)
        unit: float | Tensor = 1.0
        if isinstance(scale, Tensor) and scale.requires_grad:  # its square, in the derivative, may not be a number
            unit = scale.detach().log2().floor().exp2()
            scale = scale / unit

        def around(centre: Tensor) -> tuple[Tensor, Tensor]:
            a = (x - centre) / unit / scale
            return a, a if z is x else (z - centre) / unit / scale

        if not len(z):
            return around(z.new_zeros(z.shape[1]))
        found = around(z.detach().mean(0, dtype=torch.float64).to(z.dtype))
        if any(_far_out(rows) for rows in (found[:1] if z is x else found)):
            found = around(z.detach().median(0).values)  # a row far out must not move the centre of the others
            check_scaled(all(bool(rows.detach().isfinite().all()) for rows in found), length_scale, x.dtype)
        return found

    def _zero_where_same(self, s: Tensor) -> Tensor:
        if self.ids is not None:
            return s.masked_fill(self.ids[0].unsqueeze(1) == self.ids[1].unsqueeze(0), 0.0)
        if self.z is not None:
            return s
        if s.requires_grad:
            return s.masked_fill(torch.eye(len(s), dtype=torch.bool, device=s.device), 0.0)
        return s.fill_diagonal_(0.0)


class DiagonalPair(Pair):
    """Each row of one sample paired with itself: values are (n,) tensors."""

    def __init__(self, x: Points) -> None:
        self.x = x

    @property
    def shape(self) -> tuple[int]:
        return (len(self.x),)

    def warped(self, warp: Warp) -> DiagonalPair:
        return DiagonalPair(warp(self.x))

    def squared_distance(self, length_scale: LengthScale = 1.0, *, exact: bool = False) -> Tensor:
        x = vectors(self.x)
        as_scale(length_scale, x)
        return x.new_zeros(len(x))

    def squared_sum(self) -> Tensor:
        return 4.0 * self.inner()

    def l1_distance(self, length_scale: LengthScale = 1.0) -> Tensor:
        return self.squared_distance(length_scale)

    def inner(self) -> Tensor:
        return vectors(self.x).square().sum(1)

    def same(self) -> Tensor:
        return _like(self.x).new_ones(len(self.x))

    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        values = row_values(function, self.x)
        return values, values

    def columns(self) -> int:
        return vectors(self.x).shape[1]

    def matrix(self, gram: Callable[[DensePair], Tensor], diag: Callable[[Points], Tensor]) -> Tensor:
        return diag(self.x)


class SymbolicPair(Pair):
    """A pair that records what is asked of it on a `Tape`; `sample` tells the shape of the data after warps."""

    def __init__(self, tape: Tape, sample: Points, warps: tuple[Warp, ...] = ()) -> None:
        self.tape, self.sample, self.warps = tape, sample, warps

    def warped(self, warp: Warp) -> SymbolicPair:
        return SymbolicPair(self.tape, warp(self.sample), (*self.warps, warp))

    def squared_distance(self, length_scale: LengthScale = 1.0, *, exact: bool = False) -> Symbol:
        statistic = Statistic("squared_distance", self.warps, self._plain(length_scale))
        return self.tape.input(statistic, exact=exact)

    def squared_sum(self) -> Symbol:
        vectors(self.sample)
        return self.tape.input(Statistic("squared_sum", self.warps), exact=True)

    def l1_distance(self, length_scale: LengthScale = 1.0) -> Symbol:
        return self.tape.input(Statistic("l1_distance", self.warps, self._plain(length_scale)))

    def inner(self) -> Symbol:
        vectors(self.sample)
        return self.tape.input(Statistic("inner", self.warps))

    def same(self) -> Symbol:
        return self.tape.input(Statistic("same"))

    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Symbol, Symbol]:
        row_values(function, self.sample)
        left = self.tape.input(Statistic("left", self.warps, function=function))
        return left, self.tape.input(Statistic("right", self.warps, function=function))

    def columns(self) -> int:
        return vectors(self.sample).shape[1]

    def matrix(self, gram: Callable[[DensePair], Tensor], diag: Callable[[Points], Tensor]) -> Symbol:
        raise NotTraceable("this kernel is evaluated on whole samples")

    def _plain(self, length_scale: LengthScale) -> float | tuple[float, ...]:
        as_scale(length_scale, vectors(self.sample))
        result: float | tuple[float, ...] = length_scale
        return result


def vectors(points: Points) -> Tensor:
    """The rows as a tensor, or an error that says which kernels take objects."""
    if not points.is_tensor:
        raise InputTypeError(
            "A kernel of rows of numbers was given other objects; pass a table (a two-dimensional array or a "
            "frame), or use a kernel of objects such as Callable or Spectrum."
        )
    result: Tensor = points.values
    return result


def as_scale(length_scale: LengthScale, x: Tensor, name: str = "length_scale") -> float | Tensor:
    """A length scale that divides the columns of x, or an error when their numbers differ."""
    if isinstance(length_scale, str):
        raise InputError(
            f"{name}={length_scale!r} is found from data: fit an estimator, or call mercer.kernels.resolve(kernel, X)."
        )
    if isinstance(length_scale, float | int):
        return float(length_scale)
    scale = torch.as_tensor(length_scale, dtype=x.dtype, device=x.device)
    if scale.ndim > 1 or (scale.ndim == 1 and len(scale) != x.shape[1]):
        raise InputError(f"{name} has {scale.numel()} entries but X has {x.shape[1]} columns.")
    return scale


def check_scaled(finite: bool, length_scale: LengthScale, dtype: torch.dtype) -> None:
    """Raise an error where rows divided by the length scale are not finite."""
    if not finite:
        name = str(dtype).removeprefix("torch.")
        other = "pass X as float64, or give" if dtype == torch.float32 else "give"
        raise InputError(
            f"X / length_scale overflows {name} with length_scale={length_scale!r:.60}: {other} a larger one."
        )


def row_values(function: Callable[[Tensor], Any], points: Points) -> Tensor:
    """function(rows) as a vector, or an error that names the function."""
    x = vectors(points)
    values = call_on_rows(function, x)
    if values.shape != (len(x),):
        raise InputError(
            f"{function_name(function)} must map (n, d) rows to (n,) numbers; it gave shape "
            f"{tuple(values.shape)} for {len(x)} rows."
        )
    return values


def call_on_rows(function: Callable[[Tensor], Any], x: Tensor) -> Tensor:
    """What a user's function makes of the rows x, as a finite tensor like x."""
    name = function_name(function)
    no_gradient = InputTypeError(
        f"{name} uses numpy, so it has no gradient, but X requires one; write it with torch, or pass X.detach()."
    )
    if x.requires_grad and isinstance(function, np.ufunc):
        raise no_gradient
    try:
        values = function(x.detach().cpu().numpy()) if isinstance(function, np.ufunc) else function(x)
    except RuntimeError as error:
        if "requires grad" in str(error):
            raise no_gradient from error
        raise
    if x.requires_grad and not isinstance(values, Tensor):
        raise no_gradient
    try:
        output = torch.as_tensor(values).to(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputTypeError(f"{name} must return an array of numbers, got {type(values).__name__}.") from None
    check_finite(output, f"The result of {name}")
    return output


def function_name(function: Callable[..., Any]) -> str:
    """What to call a function in messages."""
    return getattr(function, "__name__", repr(function))


def _far_out(rows: Tensor) -> bool:
    """Whether a row is so far from the centre that digits of the others may be lost."""
    return not bool((rows.detach().square().sum(1) <= MEND_RADIUS).all())


def _like(points: Points) -> Tensor:
    """A tensor whose dtype and device results should have."""
    return points.values if points.is_tensor else torch.empty(0, dtype=torch.float64)
