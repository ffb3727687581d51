"""`conditional_independence_test`: do two things still have to do with each other once a third is known?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.seeding import as_seed
from mercer.kernels import Gaussian, resolve
from mercer.kernels.pair import DensePair
from mercer.stats.combining import p_value
from mercer.stats.dials import PERMUTED_AT_ONCE, SUSPECT
from mercer.stats.families import column_scales, given_kernels
from mercer.stats.regress_out import RegressedOut, features, gram_matrices_of_z, near_in_z, regressed_out
from mercer.stats.resampling import signs
from mercer.stats.results import KernelFinding, TestResult
from mercer.stats.sides import Side, check_paired, side
from mercer.stats.two_sample import check_count


def conditional_independence_test(
    X: Any,
    Y: Any,
    Z: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    kernel_z: Any = None,
    *,
    n_resamples: int = 500,
    random_state: Any = None,
    memory_budget: Any = None,
) -> ConditionalIndependenceResult:
    r"""Test whether X and Y are independent given Z, by what is left of them after regressions on Z,

    .. math:: T = \frac{1}{n (n - 1)} \sum_{i \ne j} \langle r_i, r_j \rangle \langle s_i, s_j \rangle k(z_i, z_j),
        \qquad r_i = \varphi(x_i) - \hat{\mathbb E}[\varphi(X) \mid z_i].

    Kernel ridge regressions of the features of X and of Y on Z are chosen by leave-one-out errors, and each error r_i
    comes from the other rows. A regression is imperfect, and its mistakes are alike at rows close to each other, which
    looks like dependence. So resamples repeat the mistake: errors of X with random signs, which have nothing to do with
    Y, are regressed on Z like X was, and T is found again. That corrects what data splitting corrects in SplitKCI, with
    all rows in the test. The regressions try smooth kernels, rough ones, and smooth ones within the leaves of trees, so
    that X and Y may jump at the same Z. What remains is bias where both are wrong at the same places; where errors of
    both sides clearly depend on Z still, a warning says so.

    Parameters
    ----------
    X, Y, Z : table, array or list
        Samples with one row for each observation; see `independence_test`.
    kernel_x, kernel_y, kernel_z : kernel or name, optional
        None for a Gaussian kernel of median width, with each column in units of its deviation. The regressions on Z try
        several Gaussian and Laplace kernels and leaves of trees, or only the one given.
    n_resamples : int
        How often rows are drawn anew for the p-value.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Returns
    -------
    ConditionalIndependenceResult

    References
    ----------
    Zhang et al., *Kernel-based conditional independence test*, 2011; Pogodin et al., *Practical kernel tests of
    conditional independence*, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=100)
    >>> X, Y = Z + 0.5 * rng.normal(size=100), Z**2 + 0.5 * rng.normal(size=100)
    >>> conditional_independence_test(X, Y, Z).pvalue > 0.05
    True
    >>> conditional_independence_test(X, Y + X - Z, Z).pvalue < 0.01
    True
    """
    check_count(n_resamples)
    seed = as_seed(random_state)
    x, y, z = (_one_kernel(*given, seed) for given in ((X, "X", kernel_x), (Y, "Y", kernel_y), (Z, "Z", kernel_z)))
    check_paired(x, y, z)
    n = len(x)
    if n < 10:
        raise InputError(f"There are {n} rows; a test given Z needs at least ten, since it regresses on Z.")
    require(8 * 8 * n * n, resolve_budget(memory_budget), f"a conditional test of {n:,} rows")
    K_z = _gram(z)
    left_x, left_y = (_left(s, z, None if kernel_z is None else K_z) for s in (x, y))
    N = (left_y.errors @ left_y.errors.T) * K_z
    N.fill_diagonal_(0.0)
    observed = _form(N, left_x.errors)
    null = _repeated(N, left_x, n_resamples, seed)
    scale = 1.0 / (n * (n - 1))
    p = p_value(observed, null, 1e-12 * float(N.abs().sum()))
    K_near = near_in_z(z.points) if z.n_columns else K_z
    still = tuple(_depends_on(left, K_near, seed) for left in (left_x, left_y))
    if max(still) <= SUSPECT:
        warnings.warn(
            "The residuals of X and Y after regression on Z still depend on Z, so the test may find dependence that "
            "is due to Z. Use more rows, or a kernel_z that fits better.",
            stacklevel=2,
        )
    found = (KernelFinding((x.kernels[0], y.kernels[0], z.kernels[0]), observed * scale, p, 1.0),)
    how = f"KCI with errors left out, {n_resamples:,} repeated regressions"
    return ConditionalIndependenceResult(
        observed * scale, p, (null * scale).numpy(), how, found,
        n_rows=n, explained=(left_x.explained, left_y.explained), still_dependent=still,  # type: ignore[arg-type]
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalIndependenceResult(TestResult):
    """The result of `conditional_independence_test`: a `TestResult` that also says how good the regressions are.

    Attributes
    ----------
    explained : tuple[float, float]
        The shares of the variance of the features of X and of Y that Z explains, at rows left out.
    still_dependent : tuple[float, float]
        p-values of the hypotheses that what is left of X, and of Y, no longer depends on Z. Where both are small, the
        test may find what is due to Z.
    """

    n_rows: int = field(kw_only=True)
    explained: tuple[float, float] = field(kw_only=True)
    still_dependent: tuple[float, float] = field(kw_only=True)

    def _finding(self) -> str:
        n = f"{self.n_rows:,} rows"
        if self.pvalue <= 0.05:
            return f"X and Y depend on each other given Z, in {n}"
        return f"No dependence of X and Y given Z found in {n}"


def _one_kernel(X: Any, name: str, kernel: Any, seed: int) -> Side:
    if kernel is not None:
        kernels = given_kernels(kernel)
        if kernels is None or len(kernels) != 1:
            raise InputError(f"One kernel is needed for {name}.")
        return side(X, name, kernel, seed)
    found = side(X, name, None, seed)
    if found.n_columns == 0:
        return Side(name, found.points, (found.kernels[0],), found.labels)
    scales = column_scales(found.points.values)
    width = resolve(Gaussian("median"), type(found.points)(found.points.values.double().cpu() / scales), seed=seed)
    return Side(name, found.points, (Gaussian(tuple((width.length_scale * scales).tolist())),))


def _gram(s: Side) -> Tensor:
    n = len(s)
    if s.kernels[0].domain == "matrix":
        result: Tensor = s.points.values.double().cpu()
        return result
    return torch.as_tensor(s.kernels[0].on(DensePair(s.points))).double().expand(n, n).cpu()


def _left(s: Side, z: Side, given: Tensor | None) -> RegressedOut:
    C = features(s.kernels[0], s.points)
    plain = given is None and z.n_columns > 0
    return regressed_out(C, gram_matrices_of_z(z.points, C) if plain else iter([_gram(z) if given is None else given]))


def _form(N: Tensor, R: Tensor) -> float:
    return float(((N @ R) * R).sum())


def _repeated(N: Tensor, left: RegressedOut, count: int, seed: int) -> Tensor:
    """T where the errors have random signs and went through the regression once more."""
    W, E = signs(len(N), count, seed).double(), left.noise
    found = []
    for some in W.split(PERMUTED_AT_ONCE, 1):
        noise = (some.unsqueeze(2) * E.unsqueeze(1)).reshape(len(N), -1)
        errors = left.smoother @ noise
        found.append(((N @ errors) * errors).sum(0).reshape(some.shape[1], -1).sum(1))
    return torch.cat(found)


def _depends_on(left: RegressedOut, K: Tensor, seed: int, count: int = 200) -> float:
    """The p-value of the same statistic with nothing in place of Y."""
    N = K.clone()
    N.fill_diagonal_(0.0)
    return p_value(_form(N, left.errors), _repeated(N, left, count, seed + 1))
