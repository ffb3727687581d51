"""What fits should give, written again with numpy in float64: kernels, ridge, processes and duals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, gammaln, kv, xlogy

Array = np.ndarray


class Unknown(Exception):
    """The reference does not know this case."""


def _differences(X: Array, Z: Array, length_scale: Any) -> Array:
    return (X[:, None, :] - Z[None, :, :]) / np.asarray(length_scale, dtype=float)


def _distance(X: Array, Z: Array, k: Any) -> Array:
    return np.sqrt(np.square(_differences(X, Z, k.length_scale)).sum(-1))


def _laplace(k: Any, X: Array, Z: Array) -> Array:
    if k.metric == "l2":
        return np.exp(-_distance(X, Z, k))
    return np.exp(-np.abs(_differences(X, Z, k.length_scale)).sum(-1))


def _matern(k: Any, X: Array, Z: Array) -> Array:
    r, nu = _distance(X, Z, k), float(k.nu)
    if np.isinf(nu):
        return np.exp(-0.5 * r**2)
    u = np.sqrt(2 * nu) * r
    closed = {0.5: np.exp(-u), 1.5: (1 + u) * np.exp(-u), 2.5: (1 + u + u**2 / 3) * np.exp(-u)}
    if nu in closed:
        return closed[nu]
    value = np.exp((1 - nu) * np.log(2) - gammaln(nu)) * u**nu * kv(nu, u)
    return np.where(u < 1e-8, 1.0, np.nan_to_num(value))


def _periodic(k: Any, X: Array, Z: Array) -> Array:
    waves = np.sin(np.pi * _differences(X, Z, k.period)) / np.asarray(k.length_scale, dtype=float)
    return np.exp(-2 * np.square(waves).sum(-1))


def _subspace(k: Any, X: Array, Z: Array) -> Array:
    columns = list(k.columns)
    return kernel_matrix(k.kernel, X[:, columns], Z[:, columns])


KERNELS: dict[str, Callable[[Any, Array, Array], Array]] = {
    "Gaussian": lambda k, X, Z: np.exp(-0.5 * _distance(X, Z, k) ** 2),
    "Laplace": _laplace,
    "ExponentialPower": lambda k, X, Z: np.exp(-(_distance(X, Z, k) ** k.power)),
    "Matern": _matern,
    "RationalQuadratic": lambda k, X, Z: (1 + _distance(X, Z, k) ** 2 / (2 * k.alpha)) ** -k.alpha,
    "InverseMultiquadric": lambda k, X, Z: (1 + _distance(X, Z, k) ** 2) ** -k.power,
    "Periodic": _periodic,
    "Brownian": lambda k, X, Z: np.minimum(X[:, None, :], Z[None, :, :]).prod(-1),
    "Linear": lambda k, X, Z: X @ Z.T + k.bias,
    "Polynomial": lambda k, X, Z: (k.scale * (X @ Z.T) + k.offset) ** k.degree,
    "AllSubsets": lambda k, X, Z: (1 + X[:, None, :] * Z[None, :, :]).prod(-1),
    "Constant": lambda k, X, Z: np.full((len(X), len(Z)), float(k.constant_value)),
    "WhiteNoise": lambda k, X, Z: k.noise_level * np.eye(len(X)) if X is Z else np.zeros((len(X), len(Z))),
    "Sum": lambda k, X, Z: kernel_matrix(k.k1, X, Z) + kernel_matrix(k.k2, X, Z),
    "Product": lambda k, X, Z: kernel_matrix(k.k1, X, Z) * kernel_matrix(k.k2, X, Z),
    "Scaled": lambda k, X, Z: k.factor * kernel_matrix(k.kernel, X, Z),
    "Power": lambda k, X, Z: kernel_matrix(k.kernel, X, Z) ** k.exponent,
    "Subspace": _subspace,
}


def kernel_matrix(kernel: Any, X: Array, Z: Array) -> Array:
    """The Gram matrix by the textbook formula; X and Z that are one object are one sample."""
    name = type(kernel).__name__
    if name not in KERNELS:
        raise Unknown(name)
    with np.errstate(all="ignore"):
        return KERNELS[name](kernel, X, Z)


def rounding(kernel: Any, X: Array, single: bool = False) -> float:
    """How much kernel values move, relative to the largest, when the last digits of the rows do."""
    digit = 1e-7 if single else 1e-15
    moved = X * (1.0 + digit * np.random.default_rng(0).choice([-1, 1], X.shape))
    K = kernel_matrix(kernel, X, X + 0.0)
    change = np.abs(kernel_matrix(kernel, moved, X) - K).max(initial=0.0)
    return (100 * digit) + change / max(np.abs(K).max(initial=0.0), 1e-300)


@dataclass(frozen=True)
class Prediction:
    """Values and a bound of what rounding may change in them, or in those of any backward stable solver."""

    values: Array
    uncertainty: Array

    def usable(self, spread: float) -> bool:
        """Whether the values are known well enough to judge others by them."""
        return bool(np.isfinite(self.values).all() and (self.uncertainty <= 1e-4 * spread).all())


@np.errstate(over="ignore")
def ridge(
    kernel: Any, X: Array, y: Array, w: Array, alpha: float, new: Array, single: bool, intercept: bool = False
) -> Prediction:
    r"""Predictions of ridge regression at new rows, by the dense system of rows of positive weight.

    An intercept is one more unknown, and the equation that the coefficients add up to zero.

    An error r of the system (S K S + alpha) b = S y moves f(x) by at most sqrt(k(x, x)) |r| / (2 sqrt(alpha)).
    """
    rows, S = X[w > 0], np.sqrt(w[w > 0])
    K, cross = kernel_matrix(kernel, rows, rows), kernel_matrix(kernel, new, rows)
    own = np.array([kernel_matrix(kernel, x[None], x[None])[0, 0] for x in new])
    A = S[:, None] * K * S + alpha * np.eye(len(rows))
    if not (np.isfinite(A).all() and np.isfinite(cross).all() and alpha > 0):
        raise Unknown("values overflow")
    b, constant = np.linalg.solve(A, S * y[w > 0]), 0.0
    if intercept:
        from_one = np.linalg.solve(A, S)
        constant = S @ b / (S @ from_one)
        b = b - constant * from_one
    error = rounding(kernel, np.r_[rows, new], single)
    residual = len(rows) * error * (np.abs(A).max() * np.linalg.norm(b) + np.linalg.norm(S * y[w > 0]))
    reach = np.sqrt(np.abs(own)) / (2 * np.sqrt(alpha)) * residual
    return Prediction(
        constant + cross @ (S * b),
        (1 + intercept) * reach + len(rows) * error * np.abs(cross).max() * np.abs(S * b).sum(),
    )


@np.errstate(over="ignore")
def process(
    kernel: Any, X: Array, y: Array, noise: Any, mean: Any, new: Array
) -> tuple[Prediction, Prediction, float | None]:
    """Mean and latent variance at new rows, and the log marginal likelihood where it is well known."""
    K, cross = kernel_matrix(kernel, X, X), kernel_matrix(kernel, new, X)
    own = np.array([kernel_matrix(kernel, x[None], x[None])[0, 0] for x in new])
    A = K + np.diag(np.broadcast_to(noise, len(X)))
    if not (np.isfinite(A).all() and np.isfinite(cross).all()):
        raise Unknown("values overflow")
    values = np.linalg.eigvalsh(A)
    if values[0] <= 0 or (condition := values[-1] / values[0]) > 1e9:
        raise Unknown("ill-conditioned")
    bases = {"constant": lambda X: np.ones((len(X), 1)), "linear": lambda X: np.c_[np.ones(len(X)), X - centre]}
    centre = X.mean(0)
    offset, beta = 0.0 if isinstance(mean, str) else float(mean), None
    if mean in ("constant", "linear"):
        H, H_new = bases[mean](X), bases[mean](new)
        if np.linalg.matrix_rank(H, tol=1e-6 * np.abs(H).max()) < H.shape[1]:
            raise Unknown("mean is not determined")
        beta = np.linalg.solve(H.T @ np.linalg.solve(A, H), H.T @ np.linalg.solve(A, y))
    left = y - offset - (H @ beta if beta is not None else 0.0)
    m = offset + cross @ np.linalg.solve(A, left) + (H_new @ beta if beta is not None else 0.0)
    variance = own - np.einsum("ij,ji->i", cross, np.linalg.solve(A, cross.T))
    error = condition * len(X) * rounding(kernel, np.r_[X, new])
    evidence = -0.5 * (left @ np.linalg.solve(A, left) + np.log(values).sum() + len(X) * np.log(2 * np.pi))
    size = np.abs(y).max() + np.abs(m).max()
    known = error * (abs(left @ np.linalg.solve(A, left)) + len(X)) < 1e-4 * max(1.0, abs(evidence))
    return (
        Prediction(m, error * size + 4e-16 * size * np.abs(np.linalg.solve(A, cross.T)).sum(0)),  # of y less its mean
        Prediction(variance, np.full(len(m), error * np.abs(own).max())),
        evidence if known else None,
    )


DUALS: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "squared": (lambda y, f, _: (y - f) ** 2, lambda y, v, _: v * y - v**2 / 4),
    "huber": (
        lambda y, f, t: np.where(np.abs(y - f) <= t, (y - f) ** 2, t * (2 * np.abs(y - f) - t)),
        lambda y, v, t: np.where(np.abs(v) <= 2 * t * (1 + 1e-9), v * y - v**2 / 4, -np.inf),
    ),
    "epsilon_insensitive": (
        lambda y, f, t: np.maximum(np.abs(y - f) - t, 0.0),
        lambda y, v, t: np.where(np.abs(v) <= 1 + 1e-9, v * y - t * np.abs(v), -np.inf),
    ),
    "quantile": (
        lambda y, f, t: np.maximum(t * (y - f), (t - 1) * (y - f)),
        lambda y, v, t: np.where((v <= t + 1e-9) & (v >= t - 1 - 1e-9), v * y, -np.inf),
    ),
    "hinge": (
        lambda y, f, _: np.maximum(1 - y * f, 0.0),
        lambda y, v, _: np.where((v * y >= -1e-9) & (v * y <= 1 + 1e-9), v * y, -np.inf),
    ),
    "squared_hinge": (
        lambda y, f, _: np.maximum(1 - y * f, 0.0) ** 2,
        lambda y, v, _: np.where(v * y >= -1e-9, v * y - v**2 / 4, -np.inf),
    ),
    "logistic": (
        lambda y, f, _: np.logaddexp(0.0, -y * f),
        lambda y, v, _: np.where(
            (v * y >= -1e-9) & (v * y <= 1 + 1e-9),
            -xlogy(np.clip(v * y, 0, 1), np.clip(v * y, 0, 1))
            - xlogy(np.clip(1 - v * y, 0, 1), np.clip(1 - v * y, 0, 1)),
            -np.inf,
        ),
    ),
}
"""Losses and minus their conjugates at -v, where the coefficient of a row is c = w v / (2 alpha)."""


SLOPES: dict[str, Callable[..., Array]] = {
    "squared": lambda y, f, _: 2 * (y - f),
    "huber": lambda y, f, t: 2 * np.clip(y - f, -t, t),
    "squared_hinge": lambda y, f, _: 2 * y * np.maximum(1 - y * f, 0.0),
    "logistic": lambda y, f, _: y * expit(-y * f),
}
"""Minus the derivatives of smooth losses."""


@np.errstate(all="ignore")
def duality_gap(loss: str, setting: float, K: Array, c: Array, y: Array, w: Array, alpha: float) -> tuple[float, float]:
    """The objective of coefficients without an intercept and its distance from the least value, bounded by the dual.

    Every v bounds it: that of the coefficients, and of a smooth loss its slopes, which also hold where K is singular.
    """
    value, conjugate = DUALS[loss]
    f = K @ c
    primal = float((w * value(y, f, setting)).sum() + alpha * c @ f)
    bounds = [2 * alpha * c / w, *(slope(y, f, setting) for name, slope in SLOPES.items() if name == loss)]
    duals = [(w * conjugate(y, v, setting)).sum() - (w * v) @ K @ (w * v) / (4 * alpha) for v in bounds]
    return primal, primal - float(np.nanmax(duals))
