"""The prior covariance of a kernel of one distance as a function of hyperparameters, with slopes in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
from mercer.formula.derivatives import by_input
from mercer.formula.plans import Plan, plans
from mercer.formula.symbols import Program
from mercer.kernels import Kernel
from mercer.kernels.algebra import Scaled
from mercer.kernels.dials import MEND_RADIUS
from mercer.operators.backends.cuts import slices
from mercer.operators.backends.statistics import Places, TileInput
from mercer.operators.backends.steps import Steps
from mercer.operators.backends.traced import spelling
from mercer.operators.dials import TILE_NUMBERS
from mercer.operators.placement import Placement
from mercer.operators.pull_back import Weight
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.prior_matrix import PriorMatrix

CPU = torch.device("cpu")


class RadialMatrix:
    r"""K = c k(s) with :math:`s = \sum_k (x_k - z_k)^2 / \ell_k^2`, and the chain rule through it.

    With weights W, G = c W * k'(s) and rows x that are centred,

    .. math:: \frac{\partial}{\partial \log \ell_k} \sum_{ij} W_{ij} K_{ij}
        = \frac{4}{\ell_k^2} \sum_i x_{ik} \big( (G x)_{ik} - (G 1)_i\, x_{ik} \big).

    k and k' are the kernel's own formula and its derivative as programs, run on blocks of rows in buffers of their own.
    Where rows lie so far apart that near ones need care, `PriorMatrix` answers.

    >>> from mercer.kernels import Gaussian
    >>> place = Placement(CPU, torch.float64)
    >>> hyper = Hyperparameters.of(Gaussian(), noise=0.0, learn_noise=False)
    >>> K = RadialMatrix.of(hyper, Points(torch.tensor([[0.0], [1.0]]).double()), place).at(hyper.start)
    >>> W = torch.ones(2, 2).double()
    >>> K.gradient(lambda i, j: W[i, j], 0.0).round(4)  # of the sum of K, 2 + 2 exp(-1 / (2 l^2)), in log l
    array([1.2131])
    """

    def __init__(self, hyperparameters: Hyperparameters, X: Points, place: Placement, program: Program) -> None:
        slope = by_input(program, 0)
        assert slope is not None
        self.hyperparameters, self.X, self.place = hyperparameters, X, place
        rows = X.values.to(torch.float64).numpy()
        self.operands = _Operands(rows - rows.mean(0))
        n = len(rows)
        self.height = max(1, min(n, TILE_NUMBERS["cpu"] // max(1, n)))
        self.value, self.slope = (_Profile(part, n * self.height) for part in (program, slope))
        self.path = next(path for path in hyperparameters.kernel.tunable() if path.endswith("length_scale"))
        self.scaled = isinstance(hyperparameters.kernel, Scaled)
        self.theta = hyperparameters.start
        self._general: PriorMatrix | None = None
        self._tile: Tensor | None = None

    @classmethod
    def of(cls, hyperparameters: Hyperparameters, X: Points, place: Placement) -> RadialMatrix | None:
        """None where the kernel is not of this form, or the data are not float64 numbers on a CPU."""
        plain = X.is_tensor and place.device.type == "cpu" and place.dtype == torch.float64
        program = _program(hyperparameters.kernel, X) if plain and not X.values.requires_grad else None
        return None if program is None else cls(hyperparameters, X, place, program)

    def at(self, theta: np.ndarray) -> RadialMatrix | PriorMatrix:
        """The same matrix at other parameters."""
        self.theta, found, self._tile = theta, self.hyperparameters.split(theta), None
        self.factor = found.get("factor", 1.0)
        with np.errstate(over="ignore"):  # such rows are too far apart for this way
            weights = np.power(found[self.path], -2.0)
        if not self.operands.weigh(weights) <= MEND_RADIUS:
            self._general = self._general or PriorMatrix(self.hyperparameters, self.X, self.place)
            return self._general.at(theta)
        return self

    def values(self) -> Tensor:
        """K, a new float64 matrix."""
        n = len(self.operands.rows)
        K = torch.empty(n, n, dtype=torch.float64)
        for rows, tile in self._tiles(self.value):
            torch.mul(tile, self.factor, out=K[rows])
            self._tile = tile if self.height == n else None
        return K

    def gradient(self, slope: Weight, noise_slope: float) -> np.ndarray:
        """The derivative in theta of what has these derivatives in K, tiles of a symmetric matrix, and in the noise."""
        of, total = self.operands, 0.0
        whole = slice(0, len(of.rows))
        for rows, tile in self._tiles(self.slope):
            image = (tile.mul_(slope(rows, whole)) @ of.with_ones).numpy()
            total += (of.rows[rows] * image[:, :-1]).sum(0) - image[:, -1] @ of.squares[rows]
        by_log = {self.path: 4.0 * self.factor * of.weights * total}
        if self.scaled:
            again = self._tiles(self.value) if self._tile is None else [(whole, self._tile)]
            sums = [float(torch.vdot(tile.view(-1), slope(rows, whole).reshape(-1))) for rows, tile in again]
            by_log["factor"] = np.array([self.factor * sum(sums)])
        return self.hyperparameters.joined(by_log, noise_slope, self.theta)

    def _tiles(self, profile: _Profile) -> Iterator[tuple[slice, Tensor]]:
        left, right = self.operands.left, self.operands.right.T
        for rows in slices(0, len(left), self.height):
            yield rows, profile.tile(left[rows], right, rows)


class _Operands:
    """Centred rows as factors of a matrix product that gives squared distances: [-2 w x, w x^2, 1] . [z, 1, w z^2].

    What is as long as a row or a column is numpy's, whose calls take a third of torch's.
    """

    def __init__(self, rows: np.ndarray) -> None:
        n, d = rows.shape
        self.rows, self.squares, self.weights = rows, np.square(rows), np.ones(d)
        left, right = np.ones((n, d + 2)), np.column_stack([rows, np.ones((n, 2))])
        self._weighted, self._lengths = left[:, :d], (left[:, d], right[:, d + 1])
        self.left, self.right = torch.from_numpy(left), torch.from_numpy(right)
        self.with_ones = torch.from_numpy(right[:, : d + 1].copy())

    def weigh(self, weights: np.ndarray) -> float:
        """Take these weights w of the columns, one or one for each; gives the largest squared length of a row."""
        self.weights[:] = weights
        np.multiply(self.rows, -2.0 * self.weights, out=self._weighted)
        lengths = self.squares @ self.weights
        for place in self._lengths:
            place[:] = lengths
        return float(lengths.max())


class _Profile(TileInput):
    """A formula of one squared distance on buffers; the distance is a matrix product of operands."""

    def __init__(self, program: Program, cells: int) -> None:
        super().__init__(program.inputs[0], torch.float64)
        self.program = program
        self.plan: Plan = plans(program, one_sample=False, spelling=spelling(CPU)).off_diagonal
        self.times = float(self.plan.factors.get(0, 1.0))
        self.buffers = [torch.empty(cells, dtype=torch.float64) for _ in range(self.plan.n_buffers)]
        self.steps: dict[int, Steps] = {}
        self.start = 0

    def tile(self, left: Tensor, right: Tensor, rows: slice) -> Tensor:
        """The values for some rows; the next call overwrites them."""
        height, width = len(left), right.shape[1]
        if height not in self.steps:
            tiles = [buffer[: height * width].view(height, width) for buffer in self.buffers]
            self.steps[height] = Steps(self.program, self.plan, [self], tiles, None)
        self.start = rows.start
        return self.steps[height]([left], [right], None)

    def fill(self, left: Tensor, right: Tensor, out: Tensor, wide: Tensor | None, same: Places | None) -> Tensor:
        torch.addmm(out, left, right, beta=0.0, alpha=self.times, out=out)
        out.clamp_(min=0.0) if self.times > 0 else out.clamp_(max=0.0)
        out.numpy().ravel()[self.start :: out.shape[1] + 1] = 0.0
        return out

    def left(self, points: Points, place: slice | Tensor) -> Tensor:
        raise NotImplementedError("operands are those of a `RadialMatrix`")

    right = left


def _program(kernel: Kernel, X: Points) -> Program | None:
    """The formula of a kernel without its factor, where it is one of a plain distance with a length scale to learn."""
    inner = kernel.kernel if isinstance(kernel, Scaled) else kernel
    if set(inner.tunable()) != {"length_scale"}:
        return None
    try:
        program = inner.program(X)
    except NotTraceable:
        return None
    statistics: Sequence = program.inputs
    plain = len(statistics) == 1 and statistics[0].kind == "squared_distance" and not statistics[0].warps
    return program if plain and not program.exact else None


def prior_matrix(hyperparameters: Hyperparameters, X: Points, place: Placement) -> RadialMatrix | PriorMatrix:
    """The prior covariance of data, in closed form where there is one."""
    return RadialMatrix.of(hyperparameters, X, place) or PriorMatrix(hyperparameters, X, place)
