"""What is to be known of a solver before it starts."""

from __future__ import annotations

from dataclasses import dataclass

OWN_FEATURES = "own features"
"""What a sum over the features of the kernel itself is a sum of."""


@dataclass(frozen=True)
class Traits:
    """Facts of a solver, which the chooser and estimators read.

    Attributes
    ----------
    sums_of : str
        What the fitted function is a sum of: "rows" (a coefficient for every row), "landmarks", "features" that are
        drawn, or "own features" of the kernel.
    matrices : float
        float64 matrices at its peak, of n x n numbers, or for landmarks and features of m x m; 0 where none is stored.
        A matrix of the rows is made, and room to evaluate it counts.
    spectral : bool
        One decomposition serves every alpha, and so a path.
    iterates : bool
        Needs a tolerance, multiplies again and again in the precision of the data, and stops at a tolerance.
    stops_early : bool
        Without a ridge it stops where rows held out are predicted best, and has no closed leave-one-out.
    zero_alpha : bool
        Takes alpha = 0.
    path : bool
        Can be asked for with the name of a criterion that searches a path of alphas.
    ridge : bool
        Takes an alpha; else it is zero.
    merges : bool
        Further rows can join a finished fit.
    """

    sums_of: str = "rows"
    matrices: float = 0.0
    spectral: bool = False
    iterates: bool = False
    stops_early: bool = False
    zero_alpha: bool = True
    path: bool = True
    ridge: bool = True
    merges: bool = False

    @property
    def exact(self) -> bool:
        """Whether it solves the system of all rows as it stands."""
        return self.sums_of == "rows"

    @property
    def keeps_rows(self) -> bool:
        """Whether the fitted function is one of all rows, which a model then keeps."""
        return self.sums_of in ("rows", OWN_FEATURES)
