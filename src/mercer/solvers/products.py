"""A system as the iterative solvers see it: products and rows come in float64, whatever precision the system has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.memory import resolve_budget
from mercer.operators.dials import PART_NUMBERS
from mercer.solvers.dials import ENTRIES
from mercer.solvers.scaling import powers_of_two
from mercer.solvers.system import System


@dataclass(frozen=True, eq=False)
class Products:
    """Products and rows of a symmetric system, in float64; only `diag`, `matmul` and, where it has it, `rows` are used.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = Products.of(MatrixSystem(torch.tensor([[2.0, 1.0], [1.0, 2.0]])))
    >>> A.rows(torch.tensor([1]))
    tensor([[1., 2.]], dtype=torch.float64)
    """

    system: Any
    diag: Tensor
    dtype: torch.dtype

    @classmethod
    def of(cls, A: System) -> Products:
        """The system, with its diagonal checked."""
        n, m = A.shape
        if n != m or n == 0:
            raise InputError(f"A system needs a square matrix with at least one row, got shape {(n, m)}.")
        given = torch.as_tensor(A.diag())
        diag = given.to(torch.float64)
        check_finite(diag, "The diagonal of the Gram matrix")
        if bool((diag < 0).any()):
            raise NotPositiveDefiniteError(
                f"The Gram matrix has the diagonal entry {float(diag.min()):.3g}: the kernel is not positive "
                "semi-definite. Test it with mercer.testing.check_kernel."
            )
        return cls(A, diag, given.dtype)

    @property
    def n(self) -> int:
        return len(self.diag)

    @property
    def device(self) -> torch.device:
        return self.diag.device

    @property
    def precision(self) -> float:
        """The relative rounding error of one product."""
        return torch.finfo(self.dtype).eps

    @property
    def entry_precision(self) -> float:
        """The relative rounding error of the entries, which may have been rounded before they came."""
        return float(getattr(self.system, "precision", self.precision))

    @property
    def precision_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @cached_property
    def memory_budget(self) -> int:
        """Bytes that may be used beside the data: those of the operator, or half of what is free."""
        return resolve_budget(getattr(self.system, "memory_budget", None), self.device)

    @property
    def rows_at_once(self) -> int:
        """How many rows to ask for at a time: up to a quarter of the budget."""
        return max(1, min(PART_NUMBERS, self.memory_budget // (4 * 8)) // self.n)

    def matmul(self, V: Tensor) -> Tensor:
        """A V for V of shape (n, t); in lower precision each column is first brought near one by a power of two."""
        return in_precision(self.system.matmul, V, self.dtype)

    def unseen(self, V: Tensor) -> Tensor:
        r"""What residuals of coarse products do not see: the norm of :math:`\Delta v` for each column v of V.

        Entries are rounded independently, by at most :math:`\epsilon (a_{ii} a_{jj})^{1/2}`, so that its mean square is
        at most :math:`\epsilon^2 \sum_i a_{ii} \sum_j a_{jj} v_j^2`.
        """
        if self.dtype == torch.float64:
            return V.new_zeros(V.shape[1])
        return ENTRIES * self.precision * (self.diag.sum() * (self.diag @ V.square())).sqrt()

    def rows(self, index: Tensor) -> Tensor:
        """The rows at `index`, of shape (b, n)."""
        if hasattr(self.system, "rows"):
            return torch.as_tensor(self.system.rows(index)).to(torch.float64)
        unit = torch.zeros(self.n, len(index), dtype=self.dtype, device=self.device)
        unit[index, torch.arange(len(index), device=self.device)] = 1.0
        return torch.as_tensor(self.system.matmul(unit)).to(torch.float64).T.contiguous()

    def rows_matmul(self, index: Tensor, V: Tensor) -> Tensor:
        """The product of some rows with V (n, t), in float64; a system's own `rows_matmul` is used where it has one."""
        if hasattr(self.system, "rows_matmul"):
            return in_precision(lambda scaled: self.system.rows_matmul(index, scaled), V, self.dtype)
        return torch.cat([self.rows(part) @ V for part in index.split(self.rows_at_once)])


def in_precision(matmul: Any, V: Tensor, dtype: torch.dtype) -> Tensor:
    """matmul(V) in float64 from a product in `dtype`, with columns scaled by powers of two so that none underflows."""
    if dtype == torch.float64:
        return torch.as_tensor(matmul(V)).to(torch.float64)
    scale = powers_of_two(V)
    return torch.as_tensor(matmul((V / scale).to(dtype))).to(torch.float64) * scale
