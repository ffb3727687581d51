"""Ridge regression in the features of a kernel that has finitely many: exact, and linear in the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mercer.solvers.registry import register
from mercer.solvers.traits import OWN_FEATURES, Traits


@register("primal")
@dataclass(frozen=True)
class Primal:
    r"""A fit in the features of the kernel itself, :math:`k(x, z) = \varphi(x) \cdot \varphi(z)`, by sums of these,

    .. math:: (\Phi^T W \Phi + \alpha I)\, \beta = \Phi^T W y, \qquad f(x) = \varphi(x) \cdot \beta,

    the same function as that of (K + alpha / W) c = y, by p x p numbers for p features instead of n x n.

    References: Saunders, Gammerman and Vovk, *Ridge Regression Learning Algorithm in Dual Variables*, 1998.
    """

    traits: ClassVar[Traits] = Traits(OWN_FEATURES, matrices=7, merges=True)
