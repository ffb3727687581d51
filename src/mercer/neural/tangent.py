"""The tangent kernel of a network as it is, from its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import jacrev, jvp, vjp, vmap

from mercer.core.arrays import Points, as_points, restore
from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import resolve_budget
from mercer.core.values import as_values
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair, vectors
from mercer.kernels.properties import Properties
from mercer.neural.arguments import check
from mercer.neural.dials import LARGEST_SHARE, ROWS_AT_ONCE
from mercer.neural.modules import Outputs


def empirical_ntk(
    module: nn.Module,
    X: Any,
    Z: Any = None,
    *,
    full: bool = False,
    shape: tuple[int, ...] | None = None,
    memory_budget: Any = None,
) -> Any:
    r"""The inner products of a network's gradients by the parameters that require them,

    .. math:: H(x, z) = \sum_j \langle \nabla f_j(x), \nabla f_j(z) \rangle,

    the trace over the outputs, of shape (n, m); with `full` the inner products of all pairs of outputs, of shape
    (n, t, m, t). Rows are taken as the module takes them, a tensor of any shape (n, ...); rows of a table are
    reshaped to `shape`. Jacobians of some rows at a time are held, within the memory budget. What depends on
    other rows or on chance, batch normalisation and dropout in training mode, is refused.

    References: Jacot, Gabriel and Hongler, *Neural tangent kernel*, 2018.

    >>> module = torch.nn.Linear(2, 1)
    >>> empirical_ntk(module, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[2., 2.],
            [2., 6.]])
    """
    check(full=full, module=module)
    x, z = _inputs(X, shape), None if Z is None else _inputs(Z, shape, "Z")
    outputs = Outputs.of(module, x)
    budget = resolve_budget(memory_budget, outputs.like.device)
    value = _contracted(outputs, outputs.rows(x), None if z is None else outputs.rows(z), full, budget)
    return restore(value, X if isinstance(X, Tensor) else Z)


def ntk_product(module: nn.Module, X: Any, Z: Any, V: Any, *, shape: tuple[int, ...] | None = None) -> Any:
    r"""The product of the full tangent kernel with V, :math:`\sum_j H(x_i, z_j)\, v_j`, for V of shape (m, t).

    J(X) (J(Z)^T V): a backward and a forward pass. No Jacobian is stored, only numbers for each parameter.

    >>> module = torch.nn.Linear(2, 1)
    >>> X = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
    >>> ntk_product(module, X, X, torch.ones(2, 1))
    tensor([[4.],
            [8.]])
    """
    check(module=module)
    x, z, v = _inputs(X, shape), _inputs(Z, shape, "Z"), as_values(V, "V", 1, 2)
    if len(v) != len(z):
        raise InputError(f"V has {len(v)} rows but Z has {len(z)}; each row of Z needs one.")
    outputs = Outputs.of(module, x)
    x, z, v = outputs.rows(x), outputs.rows(z), outputs.rows(v)
    v = v.reshape(len(v), -1)
    gradient = {name: torch.zeros_like(p) for name, p in outputs.parameters.items()}
    for rows, weights in zip(z.split(ROWS_AT_ONCE), v.split(ROWS_AT_ONCE), strict=True):
        value, back, *_ = vjp(lambda p, rows=rows: outputs(p, rows), outputs.parameters)
        if value.shape != weights.shape:
            raise InputError(f"V must have a row of {value.shape[1]} outputs for each row of Z, got {tuple(v.shape)}.")
        for name, part in back(weights)[0].items():
            gradient[name] += part
    parts = [_pushed(outputs, gradient, rows) for rows in x.split(ROWS_AT_ONCE)]
    return restore(torch.cat(parts), X if isinstance(X, Tensor) else V)


@dataclass(frozen=True, eq=False, repr=False)
class EmpiricalNTK(Kernel):
    r"""The tangent kernel of a network as it is, for every estimator: see `empirical_ntk`.

    Rows are reshaped to `shape` for modules of images. For several outputs it is the trace, over them.

    >>> EmpiricalNTK(torch.nn.Linear(2, 1))([[1.0, 0.0], [1.0, 2.0]])
    array([[2., 2.],
           [2., 6.]])
    """

    module: Any
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise InputTypeError(f"EmpiricalNTK(module={type(self.module).__name__}): give a torch.nn.Module.")
        check(shape=self.shape)
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))

    def __repr__(self) -> str:
        size = sum(p.numel() for p in self.module.parameters())
        return f"EmpiricalNTK(module=<{type(self.module).__name__}, {size:,} parameters>, shape={self.shape})"

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, self._diag)

    def _gram(self, pair: DensePair) -> Tensor:
        x = self._rows(pair.x)
        outputs = Outputs.of(self.module, x)
        z = None if pair.z is None or pair.one_sample else outputs.rows(self._rows(pair.z))
        return _contracted(outputs, outputs.rows(x), z, False, resolve_budget(None, x.device))

    def _diag(self, points: Points) -> Tensor:
        x = self._rows(points)
        outputs = Outputs.of(self.module, x)
        step = _rows_of_jacobian(outputs, outputs.rows(x[:1]), resolve_budget(None, x.device))
        return torch.cat([_jacobian(outputs, rows).square().sum((1, 2)) for rows in outputs.rows(x).split(step)])

    def _rows(self, points: Points) -> Tensor:
        return shaped(vectors(points), self.shape)

    @property
    def properties(self) -> Properties:
        return Properties()


def _inputs(X: Any, shape: tuple[int, ...] | None, name: str = "X") -> Tensor:
    if isinstance(X, Tensor) and X.ndim > 2:
        return X
    x = as_points(X, name).values
    if not len(x):
        raise InputError(f"{name} has no rows: give at least one.")
    return shaped(x, shape)


def shaped(x: Tensor, shape: tuple[int, ...] | None) -> Tensor:
    """Rows as a module takes them."""
    if shape is None:
        return x
    check(shape=shape)
    if x[0].numel() != torch.Size(shape).numel():
        raise InputError(f"shape={shape} is of {torch.Size(shape).numel()} numbers, but rows have {x[0].numel()}.")
    return x.reshape(len(x), *shape)


def _contracted(outputs: Outputs, x: Tensor, z: Tensor | None, full: bool, budget: int) -> Tensor:
    """J(x) J(z)^T, tile by tile; of one sample the part below the diagonal mirrors the part above it."""
    step = _rows_of_jacobian(outputs, x[:1], budget)
    blocks, others = x.split(step), (x if z is None else z).split(step)
    strips: list[list[Tensor]] = []
    for i, rows in enumerate(blocks):
        left = _jacobian(outputs, rows)
        before = [_mirrored(strips[j][i]) for j in range(i)] if z is None else []
        first = [_tile(left, left, full)] if z is None else []
        rest = others[i + 1 :] if z is None else others
        strips.append([*before, *first, *(_tile(left, _jacobian(outputs, some), full) for some in rest)])
    return torch.cat([torch.cat(row, dim=2 if full else 1) for row in strips])


def _tile(left: Tensor, right: Tensor, full: bool) -> Tensor:
    return torch.einsum("itp,jsp->itjs" if full else "itp,jtp->ij", left, right)


def _mirrored(tile: Tensor) -> Tensor:
    return tile.permute(2, 3, 0, 1) if tile.ndim == 4 else tile.T


def _jacobian(outputs: Outputs, x: Tensor) -> Tensor:
    """The gradients of all outputs at some rows, (n, t, parameters)."""
    parts = vmap(jacrev(outputs.of_row), in_dims=(None, 0))(outputs.parameters, x)
    return torch.cat([part.flatten(2) for part in parts.values()], dim=2)


def _rows_of_jacobian(outputs: Outputs, row: Tensor, budget: int) -> int:
    with torch.no_grad():
        n_outputs = outputs(outputs.parameters, row).shape[1]
    each = outputs.size * n_outputs * outputs.like.element_size()
    return max(1, min(ROWS_AT_ONCE, budget // (LARGEST_SHARE * each)))


def _pushed(outputs: Outputs, gradient: dict[str, Tensor], x: Tensor) -> Tensor:
    """The derivative of the outputs at x in a direction of the parameters."""
    pushed: Tensor = jvp(lambda p: outputs(p, x), (outputs.parameters,), (gradient,))[1]
    return pushed
