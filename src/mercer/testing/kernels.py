"""The laws of a kernel: run `check_kernel` on one of your own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

import mercer.kernels
from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError, NotTraceable
from mercer.kernels import Kernel, from_dict, resolve, to_dict
from mercer.kernels.pair import DensePair
from mercer.operators import gram
from mercer.testing.programs import run_program
from mercer.testing.samples import column_names_of, leaves, sample_for


@dataclass(frozen=True, eq=False)
class _Case:
    """A kernel with the samples its laws are tried on."""

    kernel: Kernel
    X: Any
    Z: Any
    rng: np.random.Generator

    @property
    def x(self) -> Points:
        return self.kernel.points(self.X)

    @property
    def is_table(self) -> bool:
        return self.x.is_tensor

    @property
    def is_matrix(self) -> bool:
        return self.kernel.domain == "matrix"

    @cached_property
    def rounded_from(self) -> float:
        """The size of the numbers whose difference the values are, zero where they are none."""
        before = self.kernel.uncancelled()
        return 0.0 if before is self.kernel else float(np.abs(before.diag(self.X)).max(initial=0.0))

    def need(self, holds: bool, law: str, detail: str = "") -> None:
        if not holds:
            raise AssertionError(f"{law} fails for {self.kernel!r}{': ' if detail else ''}{detail}")

    def close(self, a: Any, b: Any, tolerance: float, law: str) -> None:
        """Need a and b to agree within `tolerance` of the largest number, or of what it is a difference of."""
        a, b = (np.asarray(v.detach().cpu() if isinstance(v, Tensor) else v, dtype=np.float64) for v in (a, b))
        self.need(a.shape == b.shape, law, f"shapes {a.shape} and {b.shape}")
        if a.size:
            scale = max(np.abs(a).max(), np.abs(b).max(), self.rounded_from, 1e-300)
            error = np.abs(a - b).max() / scale
            self.need(bool(error <= tolerance), law, f"relative error {error:.1e} above {tolerance:.0e}")


def check_kernel(kernel: Kernel, X: Any = None, Z: Any = None, seed: int = 0) -> None:
    """Assert the laws every kernel keeps, on a sample of its own or on X and Z.

    Symmetry, positive semi-definiteness, Cauchy-Schwarz, the diagonal, shapes and dtypes, numpy and torch, float32
    against float64, tiles, derivatives against finite differences for inputs and parameters, pickle, equality and
    hash, repr that evaluates back, parameters, saving, and the traced program and lazy Gram matrices against the dense
    formula. Pass X (some twenty different points) for a kernel of objects of your own. A failure is an AssertionError
    that names the law.

    >>> from mercer.kernels import Gaussian, Linear
    >>> check_kernel(Gaussian(0.7) + Linear() ** 2)
    """
    rng = np.random.default_rng(seed)
    names = column_names_of(kernel)
    if names and X is None:
        kernel = kernel.bind([*names, *(f"_{i}" for i in range(len(names), 3))])
    if X is None:
        X = sample_for(kernel, 21, rng)
    kernel = kernel.bind(kernel.points(X).names)
    if kernel.domain == "matrix":
        Z = X[:5]
    elif Z is None:
        X, Z = X[::2], X[1::2]
    X, Z = _plain(kernel, X), _plain(kernel, Z)
    kernel = resolve(kernel, X)
    case = _Case(kernel, X, Z, rng)
    for law in LAWS:
        law(case)
    if case.is_table and not case.is_matrix:
        repeated = _Case(kernel, np.concatenate([case.x.values, case.x.values[:3]]), Z, rng)
        for law in (is_positive_semi_definite, has_its_diagonal, has_finite_gradients):
            law(repeated)
        for scale in (0.1, 0.3, 3.0):  # a function may be positive definite on points far apart and not on near ones
            is_positive_semi_definite(_Case(kernel, scale * case.x.values.numpy(), Z, rng))


def gives_the_right_shapes(case: _Case) -> None:
    """k(X) is (n, n), k(X, Z) is (n, m), k.diag(X) is (n,), all finite numbers of the input's kind and dtype."""
    n = len(case.x)
    m = len(case.kernel.points(case.Z))
    for result, shape in ((case.kernel(case.X), (n, n)), (case.kernel.diag(case.X), (n,))):
        case.need(isinstance(result, np.ndarray), "numpy in, numpy out", f"got {type(result).__name__}")
        case.need(result.shape == shape, "shape", f"got {result.shape}, expected {shape}")
        case.need(bool(np.isfinite(result).all()), "finite values")
        case.need(result.dtype == np.float64, "float64 in, float64 out", f"got {result.dtype}")
    cross = case.kernel(*(_cross(case)))
    case.need(cross.shape == (m, n) if case.is_matrix else cross.shape == (n, m), "shape of k(X, Z)", f"{cross.shape}")


def is_symmetric(case: _Case) -> None:
    """k(x, z) = k(z, x)."""
    K = case.kernel(case.X)
    case.close(K, K.T, 1e-12, "symmetry of k(X)")
    if not case.is_matrix:
        case.close(case.kernel(case.X, case.Z), case.kernel(case.Z, case.X).T, 1e-12, "k(X, Z) = k(Z, X)^T")


def is_positive_semi_definite(case: _Case) -> None:
    """No eigenvalue of a Gram matrix is negative."""
    eigenvalues = np.linalg.eigvalsh(case.kernel(case.X))
    smallest, largest = eigenvalues[0], max(np.abs(eigenvalues).max(), case.rounded_from)
    holds = bool(smallest >= -1e-10 * largest)
    case.need(holds, "positive semi-definiteness", f"smallest eigenvalue {smallest:.2e}, largest {largest:.2e}")


def obeys_cauchy_schwarz(case: _Case) -> None:
    """k(x, z)^2 <= k(x, x) k(z, z), also between two samples."""
    if case.is_matrix:
        K, a, b = case.kernel(case.X), case.kernel.diag(case.X), case.kernel.diag(case.X)
    else:
        K, a, b = case.kernel(case.X, case.Z), case.kernel.diag(case.X), case.kernel.diag(case.Z)
    bound = np.sqrt(np.outer(a, b))
    excess = float((np.abs(K) - bound).max(initial=0.0))
    case.need(
        bool(excess <= 1e-10 * max(bound.max(initial=1e-300), case.rounded_from)),
        "Cauchy-Schwarz",
        f"exceeded by {excess:.1e}",
    )


def has_its_diagonal(case: _Case) -> None:
    """k.diag(X) is the diagonal of k(X) and not negative."""
    diagonal = case.kernel.diag(case.X)
    case.close(diagonal, np.diagonal(case.kernel(case.X)), 1e-10, "diag(X) = diagonal of k(X)")
    case.need(bool((diagonal >= 0).all()), "k(x, x) >= 0", f"smallest {diagonal.min(initial=0.0):.2e}")


def agrees_on_tiles(case: _Case) -> None:
    """Rows a and columns b of k(X), evaluated alone, are that block of k(X); two samples are a block of their union."""
    K = case.kernel.on(DensePair(case.x))
    a, b = torch.arange(0, len(case.x), 2), torch.arange(1, len(case.x), 3)
    tile = case.kernel.on(DensePair(case.x.take(a), case.x.take(b), (a, b)))
    case.close(tile, K[a][:, b], 1e-10, "a tile is a block of k(X)")
    if case.is_matrix:
        return
    z = case.kernel.points(case.Z)
    union = torch.cat([case.x.values, z.values]) if case.is_table else [*case.x.values, *z.values]
    whole = case.kernel.on(DensePair(Points(union, case.x.names)))
    block = whole[: len(case.x), len(case.x) :]
    case.close(case.kernel.on(DensePair(case.x, z)), block, 1e-9, "k(X, Z) is a block of k(X and Z)")


def agrees_in_torch(case: _Case) -> None:
    """Torch in, torch out, in its dtype and with the numbers of numpy."""
    if not case.is_table:
        return
    x = case.x.values.detach()
    for result, expected in ((case.kernel(x), case.kernel(case.X)), (case.kernel.diag(x), case.kernel.diag(case.X))):
        case.need(isinstance(result, Tensor) and result.dtype == x.dtype, "torch in, torch out")
        case.close(result, expected, 1e-10, "torch and numpy agree")


def agrees_in_float32(case: _Case) -> None:
    """float32 stays float32 and is close to float64, relative to sqrt(k(x, x) k(z, z))."""
    if not case.is_table:
        return
    single = case.x.values.detach().to(torch.float32)
    result, exact = case.kernel(single), case.kernel(single.to(torch.float64))
    case.need(result.dtype == torch.float32, "float32 in, float32 out", f"got {result.dtype}")
    size = case.kernel.diag(single.to(torch.float64)).clamp(min=0).sqrt()
    scale = size.unsqueeze(1) * size + 1e-10 * case.rounded_from + 1e-300
    error = float(((result - exact).abs() / scale).max()) if len(single) else 0.0
    case.need(error <= 5e-5, "float32 is close to float64", f"relative error {error:.1e}")


def differentiates_inputs(case: _Case) -> None:
    """Derivatives with respect to x and z equal finite differences."""
    if not case.is_table or case.is_matrix:
        return
    x, z = case.x, case.kernel.points(case.Z)
    weight = torch.from_numpy(case.rng.normal(size=(len(x), len(z))))

    def of_x(values: Tensor) -> Tensor:
        return (weight * case.kernel.on(DensePair(Points(values, x.names), z))).sum()

    def of_z(values: Tensor) -> Tensor:
        return (weight * case.kernel.on(DensePair(x, Points(values, z.names)))).sum()

    def of_diagonal(values: Tensor) -> Tensor:
        result: Tensor = (weight[:, 0] * case.kernel.diag(values)).sum()
        return result

    try:
        of_x(x.values.clone().requires_grad_())
    except InputTypeError:
        return  # a function of the user without gradients, which the kernel refuses to differentiate
    for function, values, name in ((of_x, x, "x"), (of_z, z, "z"), (of_diagonal, x, "x on the diagonal")):
        _check_derivative(case, function, values.values, f"the derivative in {name}")


def differentiates_parameters(case: _Case) -> None:
    """Derivatives with respect to every tunable parameter equal finite differences."""
    weight = torch.from_numpy(case.rng.normal(size=(len(case.x), len(case.x))))
    for path, start in case.kernel.tunable().items():

        def function(value: Tensor, path: str = path) -> Tensor:
            return (weight * case.kernel.replace(**{path: value}).on(DensePair(case.x))).sum()

        value = torch.tensor(start, dtype=torch.float64)
        _check_derivative(case, function, value, f"the derivative in {path}", relative=True)


def has_finite_gradients(case: _Case) -> None:
    """Derivatives of k(X) are finite where rows coincide."""
    x = case.x.values.clone().requires_grad_()
    try:
        value = case.kernel(x).sum()
    except InputTypeError:
        return  # a function of the user without gradients, which the kernel refuses to differentiate
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, x)
        case.need(bool(gradient.isfinite().all()), "finite gradients where rows coincide")


def is_a_value(case: _Case) -> None:
    """Kernels are frozen; equal ones have equal hashes; pickles, copies and parameters give the kernel back."""
    kernel = case.kernel
    copy = kernel.replace(**kernel.get_params(deep=False))
    case.need(copy == kernel and hash(copy) == hash(kernel), "replace(get_params()) gives an equal kernel")
    for path, value in kernel.get_params().items():
        case.need(kernel.replace(**{path: value}) == kernel, "replace of one parameter by itself", path)
    case.need(kernel != 2.0 * kernel and kernel != "kernel", "different kernels are not equal")
    try:
        setattr(kernel, fields(kernel)[0].name if fields(kernel) else "name", 1.0)
    except FrozenInstanceError:
        pass
    else:
        case.need(False, "kernels are frozen")
    if not _holds_functions(kernel):
        loaded = pickle.loads(pickle.dumps(kernel))
        case.need(loaded == kernel and hash(loaded) == hash(kernel), "pickle gives an equal kernel")


def prints_as_algebra(case: _Case) -> None:
    """repr evaluates back to an equal kernel; what can be saved comes back from plain data."""
    if _holds_functions(case.kernel):
        return
    classes = {type(leaf).__name__: type(leaf) for leaf in leaves(case.kernel)}
    again = eval(repr(case.kernel), {**vars(mercer.kernels), **classes})
    case.need(again == case.kernel, "repr evaluates back to an equal kernel", repr(again))
    try:
        data = to_dict(case.kernel)
    except InputError:
        return  # a class of the user
    case.need(from_dict(data) == case.kernel, "saved data give the kernel back", str(data))


def traces_to_its_formula(case: _Case) -> None:
    """The traced program computes what the formula computes."""
    try:
        program = case.kernel.program(case.x)
    except NotTraceable:
        return
    one, two = run_program(program, case.x), run_program(program, case.x, case.kernel.points(case.Z))
    case.close(one, case.kernel(case.X), 1e-9, "the program of k(X)")
    case.close(two, case.kernel(case.X, case.Z), 1e-9, "the program of k(X, Z)")


def multiplies_as_its_matrix(case: _Case) -> None:
    """Lazy Gram matrices, which rewrite the formula, have the entries of k(X) and k(X, Z); in float32 too."""
    X, Z = _cross(case)
    exact = case.kernel(case.X), case.kernel(X, Z)
    case.close(gram(case.kernel, case.X).dense(), exact[0], 1e-9, "gram(k, X) = k(X)")
    case.close(gram(case.kernel, X, Z).dense(), exact[1], 1e-9, "gram(k, X, Z) = k(X, Z)")
    if case.is_table and not case.is_matrix:
        x = case.x.values.to(torch.float32)
        case.close(gram(case.kernel, x).dense(), case.kernel(x.double()), 5e-5, "gram(k, X) = k(X) in float32")


LAWS: tuple[Callable[[_Case], None], ...] = (
    gives_the_right_shapes,
    is_symmetric,
    is_positive_semi_definite,
    obeys_cauchy_schwarz,
    has_its_diagonal,
    agrees_on_tiles,
    agrees_in_torch,
    agrees_in_float32,
    differentiates_inputs,
    differentiates_parameters,
    is_a_value,
    prints_as_algebra,
    traces_to_its_formula,
    multiplies_as_its_matrix,
)
"""What every kernel must satisfy."""


def _plain(kernel: Kernel, X: Any) -> Any:
    """Tables as float64 arrays, other objects as they are."""
    points = kernel.points(X)
    return points.values.detach().cpu().to(torch.float64).numpy() if points.is_tensor else X


def _check_derivative(
    case: _Case, function: Callable[[Tensor], Tensor], at: Tensor, law: str, *, relative: bool = False
) -> None:
    """Compare the derivative in a random direction with a central difference; `relative` steps suit parameters."""
    at = at.detach().to(torch.float64)
    start = at.clone().requires_grad_()
    value = function(start)
    slope = torch.zeros_like(at)
    if value.requires_grad:
        slope = torch.autograd.grad(value, start, allow_unused=True, materialize_grads=True)[0]
    direction = torch.from_numpy(np.asarray(case.rng.normal(size=at.shape)))
    step = 1e-6 * (at.abs() if relative else 1.0)
    with torch.no_grad():
        expected = float(function(at + step * direction) - function(at - step * direction)) / 2e-6
    terms = slope * direction * (at.abs() if relative else 1.0)
    found = float(terms.sum())
    size = max(abs(expected), float(terms.abs().sum()), 1e-3 * max(abs(float(value.detach())), case.rounded_from))
    error = abs(found - expected)
    case.need(bool(error <= 1e-5 * size + 1e-8), law, f"{found:.8g} against {expected:.8g} by differences")


def _cross(case: _Case) -> tuple[Any, Any]:
    """Two samples for a cross Gram matrix; for a ready matrix the test rows come first."""
    return (case.Z, case.X) if case.is_matrix else (case.X, case.Z)


def _holds_functions(kernel: Kernel) -> bool:
    """Whether a kernel has a function of the user among its parameters."""
    return any(callable(value) and not isinstance(value, Kernel) for value in kernel.get_params().values())
