"""The one table of what formulas are made of: each operation on numbers and tensors, its slopes, its fused text.

A new operation is one entry here, which formulas call by its name, ``maths.apply(name, x)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.errors import NotTraceable
from mercer.formula.bessel import matern_profile

Slopes = tuple[int | None, ...]


class Steps(Protocol):
    """Where derivatives are written down: see `Builder`."""

    def put(self, op: str, *args: int, value: float | None = None) -> int: ...
    def apply(self, op: str, args: tuple[int, ...], literal: float | None = None) -> int: ...
    def constant(self, value: float) -> int: ...
    def add(self, a: int, b: int) -> int: ...
    def mul(self, a: int, b: int) -> int: ...


@dataclass(frozen=True)
class Operation:
    """One operation. The literal that a step carries (an exponent, an order) is the last argument where there is one.

    Attributes
    ----------
    number : callable
        Value from floats.
    tensor : callable
        Value from tensors, differentiable, with finite derivatives at coincident points.
    write : callable or None
        Value from tensors into a buffer, ``write(*args, out=...)``; by default `tensor`, copied.
    slopes : callable
        Derivative by each argument as steps, from the places of the value and of the arguments, and the literal.
    fused : callable or None
        Value in the text of a fused loop: ``fused(writer, *values)``; None where there is none.
    """

    number: Callable[..., float]
    tensor: Callable[..., Tensor]
    slopes: Callable[[Steps, int, tuple[int, ...], float], Slopes]
    write: Callable[..., Tensor] | None = None
    fused: Callable[..., Any] | None = None

    @property
    def into(self) -> Callable[..., Tensor]:
        """The value of tensors and floats, ``into(*args, out=...)``, written to `out` if there is one."""
        if self.write is not None:
            return self.write
        tensor = self.tensor

        def copied(*args: Any, out: Tensor | None) -> Tensor:
            value = tensor(*args)
            return value if out is None else out.copy_(value)

        return copied


def operation(name: str) -> Operation:
    """The operation of that name."""
    try:
        return OPERATIONS[name]
    except KeyError:
        raise NotTraceable(f"formulas have no operation {name!r}") from None


def _root(x: Tensor) -> Tensor:
    """The square root, with derivative zero at zero."""
    if not x.requires_grad:
        return torch.sqrt(x)
    zero = x == 0
    return torch.sqrt(x.masked_fill(zero, 1.0)).masked_fill(zero, 0.0)


def _power(x: Tensor, exponent: float | Tensor) -> Tensor:
    """A power of a number that is not negative, with derivative zero at zero."""
    if not (x.requires_grad or isinstance(exponent, Tensor)):
        return torch.pow(x, exponent)
    zero = x == 0
    return torch.pow(x.masked_fill(zero, 1.0), exponent).masked_fill(zero, 0.0)


def _half_power(a: Tensor, exponent: float) -> Tensor:
    """a^exponent; of -3/2 and -5/2, which slopes of kernels have, by reciprocal roots, three times as fast."""
    if exponent not in (-1.5, -2.5):
        return torch.pow(a, exponent)
    root = torch.rsqrt(a)
    cube = root * root * root
    return cube if exponent == -1.5 else cube * root * root


def _where_positive(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function where x > 0, else zero."""

    def of(x: Tensor, *literal: float) -> Tensor:
        positive = x > 0
        return torch.where(positive, function(torch.where(positive, x, 1.0), *literal), 0.0)

    return of


def _inside(function: Callable[[Tensor], Tensor], lowest: float, highest: float) -> Callable[[Tensor], Tensor]:
    """The function on an interval, held beyond its ends, with derivative zero from there on."""

    def of(x: Tensor) -> Tensor:
        if not x.requires_grad:
            return function(x.clamp(lowest, highest))
        outside = (x <= lowest) | (x >= highest)
        value = function(x.masked_fill(outside, 0.5 * (lowest + highest)))
        return torch.where(outside, function(x.detach().clamp(lowest, highest)), value)

    return of


def _write_angle(h: Tensor, out: Tensor | None = None) -> Tensor:
    return torch.mul(h, 0.5, out=out).clamp_(0.0, 1.0).sqrt_().asin_().mul_(2.0)


def _write_versine_sine(h: Tensor, out: Tensor | None = None) -> Tensor:
    return torch.addcmul(h, h, h, value=-0.5, out=out).mul_(2.0).clamp_(min=0.0).sqrt_()


def _where(chosen: Tensor, a: Any, b: Any) -> Tensor:
    return torch.where(chosen > 0, a, b)


def _write_where(chosen: Tensor, a: Any, b: Any, out: Tensor | None = None) -> Tensor:
    """Without a tile of truth values: the weights are one and zero, for which this is exact."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.lerp(*torch.broadcast_tensors(b, a, chosen), out=out)
    return torch.where(chosen > 0, a, b, out=out)


def _held(x: float, lowest: float, highest: float) -> float:
    return min(max(x, lowest), highest)


def _versine_slope(steps: Steps, h: int) -> int:
    """1 / sqrt(h (2 - h)), zero at both ends."""
    rest = steps.add(steps.constant(2.0), steps.mul(steps.constant(-1.0), h))
    return steps.put("reciprocal_sqrt", steps.mul(h, rest))


def _versine_sine_slope(steps: Steps, _: int, args: tuple[int, ...], __: float) -> Slopes:
    (h,) = args
    cosine = steps.add(steps.constant(1.0), steps.mul(steps.constant(-1.0), h))
    return (steps.mul(cosine, _versine_slope(steps, h)),)


def _asin_slope(steps: Steps, _: int, args: tuple[int, ...], __: float) -> Slopes:
    (x,) = args
    rest = steps.add(steps.constant(1.0), steps.mul(steps.constant(-1.0), steps.mul(x, x)))
    return (steps.put("reciprocal_sqrt", rest),)


def _where_slopes(steps: Steps, _: int, args: tuple[int, ...], __: float) -> Slopes:
    chosen = args[0]
    return None, chosen, steps.add(steps.constant(1.0), steps.mul(steps.constant(-1.0), chosen))


def _minimum(x: Any, z: Any, out: Tensor | None = None) -> Tensor:
    if isinstance(z, Tensor):
        return torch.minimum(x, z, out=out)
    return torch.clamp(x, max=z, out=out)


def _power_slope(steps: Steps, _: int, args: tuple[int, ...], exponent: float) -> Slopes:
    whole = exponent == int(exponent) and exponent >= 1
    slope = steps.apply("pow" if whole else "safe_pow", args, exponent - 1.0)
    return (steps.mul(steps.constant(exponent), slope),)


def _minimum_slopes(steps: Steps, _: int, args: tuple[int, ...], __: float) -> Slopes:
    first = steps.put("less", *args)
    return first, steps.add(steps.constant(1.0), steps.mul(steps.constant(-1.0), first))


def _matern_slope(steps: Steps, value: int, args: tuple[int, ...], nu: float) -> Slopes:
    """d/du M_nu(u) = -u M_(nu-1)(u) / (2 nu - 2), or -M_nu at nu = 1/2, which does not cancel near zero."""
    (u,) = args
    if nu == 0.5:
        return (steps.mul(steps.constant(-1.0), value),)
    if nu > 1.0:
        inner = steps.mul(u, steps.put("matern", u, value=nu - 1.0))
        return (steps.mul(steps.constant(-1.0 / (2.0 * nu - 2.0)), inner),)
    return (steps.put("matern_slope", u, value=nu),)


def _matern_derivative(u: Tensor, nu: float) -> Tensor:
    with torch.enable_grad():
        inside = u if u.requires_grad else u.detach().requires_grad_()
        (slope,) = torch.autograd.grad(matern_profile(inside, nu).sum(), inside, create_graph=u.requires_grad)
    return slope


def _bessel_function(_: Any, __: Any, nu: float) -> Any:
    raise NotTraceable(f"a Matern kernel of order nu={nu:g} needs a Bessel function")


def _no_slope(*_: Any) -> Slopes:
    raise NotTraceable("this formula has no second derivative as a program")


def _flat(_: Steps, __: int, args: tuple[int, ...], ___: float) -> Slopes:
    return (None,) * len(args)


OPERATIONS: dict[str, Operation] = {
    "copy": Operation(
        number=float,
        tensor=torch.clone,
        slopes=lambda steps, *_: (steps.constant(1.0),),
        fused=lambda text, a: a,
    ),
    "add": Operation(
        number=lambda a, b: a + b,
        tensor=lambda a, b: a + b,
        write=torch.add,
        slopes=lambda steps, *_: (steps.constant(1.0), steps.constant(1.0)),
        fused=lambda text, a, b: text.add(a, b),
    ),
    "mul": Operation(
        number=lambda a, b: a * b,
        tensor=lambda a, b: a * b,
        write=torch.mul,
        slopes=lambda steps, _, args, __: (args[1], args[0]),
        fused=lambda text, a, b: text.mul(a, b),
    ),
    "pow": Operation(
        number=lambda a, exponent: a**exponent,
        tensor=_power,
        write=torch.pow,
        slopes=_power_slope,
        fused=lambda text, a, exponent: text.power(a, exponent),
    ),
    "exp": Operation(
        number=math.exp,
        tensor=torch.exp,
        write=torch.exp,
        slopes=lambda steps, value, *_: (value,),
        fused=lambda text, a: text.exp(a),
    ),
    "exp2": Operation(
        number=lambda a: 2.0**a,
        tensor=torch.exp2,
        write=torch.exp2,
        slopes=lambda steps, value, *_: (steps.mul(steps.constant(math.log(2.0)), value),),
    ),
    "log2": Operation(
        number=lambda a: math.log2(a) if a > 0 else -math.inf,
        tensor=torch.log2,
        write=torch.log2,
        slopes=lambda steps, _, args, __: (
            steps.mul(steps.constant(1.0 / math.log(2.0)), steps.put("safe_pow", args[0], value=-1.0)),
        ),
    ),
    "sqrt": Operation(
        number=math.sqrt,
        tensor=_root,
        write=torch.sqrt,
        slopes=lambda steps, _, args, __: (steps.mul(steps.constant(0.5), steps.put("reciprocal_sqrt", args[0])),),
        fused=lambda text, a: text.power(a, 0.5),
    ),
    "minimum": Operation(
        number=min,
        tensor=_minimum,
        write=_minimum,
        slopes=_minimum_slopes,
        fused=lambda text, a, b: text.new(f"tl.minimum({text.whole(a)}, {text.whole(b)})"),
    ),
    "angle": Operation(  # of the versine h = 1 - cos t
        number=lambda h: 2.0 * math.asin(math.sqrt(_held(0.5 * h, 0.0, 1.0))),
        tensor=_inside(lambda h: 2.0 * torch.asin(torch.sqrt(0.5 * h)), 0.0, 2.0),
        write=_write_angle,
        slopes=lambda steps, _, args, __: (_versine_slope(steps, args[0]),),
        fused=lambda text, h: text.new(f"angle({text.whole(h)}, POLY)"),
    ),
    "versine_sine": Operation(  # sin t of the versine h = 1 - cos t
        number=lambda h: math.sqrt(max(h * (2.0 - h), 0.0)),
        tensor=_inside(lambda h: torch.sqrt(h * (2.0 - h)), 0.0, 2.0),
        write=_write_versine_sine,
        slopes=_versine_sine_slope,
        fused=lambda text, h: text.new(f"versine_sine({text.whole(h)}, POLY)"),
    ),
    "asin": Operation(
        number=lambda x: math.asin(_held(x, -1.0, 1.0)),
        tensor=_inside(torch.asin, -1.0, 1.0),
        write=lambda x, out: torch.clamp(x, -1.0, 1.0, out=out).asin_(),
        slopes=_asin_slope,
        fused=lambda text, x: text.new(f"arcsine({text.whole(x)}, POLY)"),
    ),
    "where": Operation(  # the second value where the first is one, else the third
        number=lambda chosen, a, b: a if chosen > 0 else b,
        tensor=_where,
        write=_write_where,
        slopes=_where_slopes,
        fused=lambda text, chosen, a, b: text.new(
            f"tl.where({text.whole(chosen)} > 0.0, {text.whole(a)}, {text.whole(b)})"
        ),
    ),
    "matern": Operation(
        number=lambda u, nu: float(matern_profile(torch.tensor(u, dtype=torch.float64), nu)),
        tensor=matern_profile,
        slopes=_matern_slope,
        fused=_bessel_function,
    ),
    "matern_slope": Operation(
        number=lambda u, nu: float(_matern_derivative(torch.tensor(u, dtype=torch.float64), nu)),
        tensor=_matern_derivative,
        slopes=_no_slope,
    ),
    "log": Operation(  # zero at zero: it only ever multiplies a power of the same zero
        number=lambda a: math.log(a) if a > 0 else 0.0,
        tensor=_where_positive(torch.log),
        slopes=lambda steps, _, args, __: (steps.put("safe_pow", args[0], value=-1.0),),
        fused=lambda text, a: text.log(a),
    ),
    "reciprocal_sqrt": Operation(  # zero at zero
        number=lambda a: a**-0.5 if a > 0 else 0.0,
        tensor=_where_positive(torch.rsqrt),
        slopes=lambda steps, _, args, __: (
            steps.mul(steps.constant(-0.5), steps.put("safe_pow", args[0], value=-1.5)),
        ),
        fused=lambda text, a: text.power(a, -0.5, safe=True),
    ),
    "safe_pow": Operation(  # zero at zero
        number=lambda a, exponent: a**exponent if a > 0 else 0.0,
        tensor=_where_positive(_half_power),
        slopes=lambda steps, _, args, exponent: (
            steps.mul(steps.constant(exponent), steps.put("safe_pow", args[0], value=exponent - 1.0)),
        ),
        fused=lambda text, a, exponent: text.power(a, exponent, safe=True),
    ),
    "less": Operation(  # one where the first value is smaller
        number=lambda a, b: float(a < b),
        tensor=lambda a, b: torch.lt(a, b).to(a),
        write=lambda a, b, out: torch.lt(a, b).to(a) if out is None else torch.lt(a, b, out=out),
        slopes=_flat,
        fused=lambda text, a, b: text.new(f"tl.where({text.whole(a)} < {text.whole(b)}, 1.0, 0.0)"),
    ),
}
