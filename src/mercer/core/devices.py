"""Where and in which precision to compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def choose_device(device: Any = "auto", like: Any = None) -> torch.device:
    """The device to compute on: "auto" is that of `like` when it is a tensor, else the GPU when there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device is None or (isinstance(device, str) and device == "auto"):
        if isinstance(like, Tensor):
            return like.device
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not isinstance(device, str | torch.device):
        raise InputTypeError(f'device={device!r}: expected "auto", "cpu", "cuda" or a torch.device.')
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(f'device={device!r}: expected "auto", "cpu", "cuda", "cuda:0" ...') from None
    if chosen.type not in ("cpu", "cuda"):
        raise InputError(f'device={device!r}: mercer computes on "cpu" and "cuda".')
    if chosen.type == "cuda":
        _check_cuda(chosen)
        if chosen.index is None:
            return torch.device("cuda", torch.cuda.current_device())  # as tensors name it, so that devices compare
    return chosen


def choose_dtype(dtype: Any = "auto", like: Any = None) -> torch.dtype:
    """The precision to compute in: "auto" is float32 when `like` (an array or tensor) is, else float64.

    >>> choose_dtype("auto", torch.ones(2, dtype=torch.float32))
    torch.float32
    >>> choose_dtype("float64")
    torch.float64
    """
    if dtype is None or (isinstance(dtype, str) and dtype == "auto"):
        single = getattr(like, "dtype", None) in (torch.float32, np.float32)
        return torch.float32 if single else torch.float64
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    if isinstance(dtype, torch.dtype) and dtype in DTYPES.values():
        return dtype
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None)  # np.float32, np.dtype("float32")
    if not isinstance(dtype, torch.dtype) and name in DTYPES:
        return DTYPES[name]
    kind = InputError if isinstance(dtype, str | torch.dtype | type | np.dtype) else InputTypeError
    raise kind(f'dtype={dtype!r}: expected "auto", "float32", "float64" or one of these torch dtypes.')


def _check_cuda(device: torch.device) -> None:
    if not torch.cuda.is_available():
        raise InputError(
            f'device="{device}" was requested, but torch finds no CUDA device; use device="cpu" or "auto".'
        )
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        raise InputError(f'device="{device}" was requested, but there are {count} CUDA devices.')
