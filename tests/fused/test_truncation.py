"""What tensor cores truncate, simulated on the CPU, and what gives it back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.operators.backends.fused.dials import CHUNK
from mercer.operators.backends.fused.layout import layout
from mercer.operators.backends.fused.samples import _what_truncation_takes


def truncated(values: np.ndarray, bits: int = 25) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)


def terms(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hi = values.astype(np.float16).astype(float)
    return hi, (values - hi).astype(np.float16).astype(float)


def inner_products(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Sums as the loops over chunks form them: hi.lo, lo.hi and hi.hi, each partial sum of 16 columns truncated."""
    (hi, lo), (other_hi, other_lo) = terms(x), terms(z)
    total = np.zeros((len(x), len(z)))
    for start in range(0, x.shape[1], CHUNK):
        for a, b in ((hi, other_lo), (lo, other_hi), (hi, other_hi)):
            for at in range(start, min(start + CHUNK, x.shape[1]), 16):
                total = truncated(total + a[:, at : at + 16] @ b[:, at : at + 16].T)
    return total


@pytest.mark.parametrize("d", [300, 784])
@pytest.mark.parametrize("falling", [0.0, 6.0])
def test_features_are_scaled_by_what_their_sums_lose(d: int, falling: float) -> None:
    rng = np.random.default_rng(0)
    spread = np.exp(-falling * np.arange(d) / d) / d**0.5
    x, z = (5.0 * spread * rng.normal(size=(n, d)) for n in (80, 120))
    gain = _what_truncation_takes(layout(d, "bare"), torch.device("cpu"))
    assert isinstance(gain, torch.Tensor)
    exact = x @ z.T
    without, one_for_all, each = (
        np.linalg.norm(inner_products(x, z * factor) - exact) for factor in (1.0, float(gain.mean()), gain.numpy())
    )
    assert each < 0.35 * without
    assert each < 0.6 * one_for_all
