"""On CUDA a kernel gives the numbers it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.kernels import resolve
from mercer.testing.examples import FUNCTION_KERNELS, VECTOR_KERNELS
from mercer.testing.samples import sample_for

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("kernel", [k for k in VECTOR_KERNELS + FUNCTION_KERNELS if "numpy" not in repr(k)], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cuda_agrees_with_the_cpu(kernel, dtype):
    rng = np.random.default_rng(0)
    x, z = (torch.from_numpy(sample_for(kernel, n, rng)).to(dtype) for n in (30, 20))
    kernel = resolve(kernel, x)
    tolerance = 1e-10 if dtype == torch.float64 else 5e-5
    for found, expected in (
        (kernel(x.cuda()), kernel(x)),
        (kernel(x.cuda(), z.cuda()), kernel(x, z)),
        (kernel(x.numpy(), z.cuda()), kernel(x, z)),
        (kernel.diag(x.cuda()), kernel.diag(x)),
    ):
        assert found.device.type == "cuda"
        assert found.dtype == dtype
        assert float((found.cpu() - expected).abs().max()) <= tolerance * float(expected.abs().max())
