"""Memory of large results: whole, aligned, and never shown twice at a time."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import torch

from mercer.core import blocks
from mercer.core.blocks import LARGE_PAGE, new_matrix

CPU = torch.device("cpu")
SHAPE = (3001, 501)


@pytest.fixture(autouse=True)
def nothing_free(monkeypatch):
    monkeypatch.setattr(blocks, "_free", [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (7, 5), SHAPE])
def test_a_new_matrix_can_be_written_from_end_to_end(shape, dtype):
    for _ in range(2):
        matrix = new_matrix(*shape, dtype, CPU)
        assert (matrix.shape, matrix.dtype) == (shape, dtype)
        assert matrix.is_contiguous()
        matrix.fill_(2.0)
        assert float(matrix.sum()) == 2.0 * shape[0] * shape[1]
        assert matrix.numpy().flags.writeable


def test_a_large_matrix_begins_where_a_large_page_does():
    for _ in range(2):
        assert new_matrix(*SHAPE, torch.float64, CPU).data_ptr() % LARGE_PAGE == 0


def test_memory_that_nobody_shows_is_used_again():
    place = new_matrix(*SHAPE, torch.float64, CPU).data_ptr()
    assert len(blocks._free) == 1
    smaller = new_matrix(2001, 501, torch.float64, CPU)
    assert smaller.data_ptr() == place
    assert not blocks._free


@pytest.mark.parametrize(
    "shown",
    [
        lambda matrix: matrix,
        lambda matrix: matrix[5:7],
        lambda matrix: matrix.numpy(),
        lambda matrix: matrix.T.numpy()[3:, ::2],
        lambda matrix: np.asarray(matrix.numpy()[1:3].T),
        lambda matrix: memoryview(matrix.numpy()),
        lambda matrix: torch.from_dlpack(matrix),
        lambda matrix: matrix.view(torch.int64),
    ],
)
def test_memory_is_kept_apart_as_long_as_anything_shows_it(shown):
    matrix = new_matrix(*SHAPE, torch.float64, CPU).fill_(1.0)
    part = shown(matrix)
    before = bytes(np.asarray(part).tobytes())
    del matrix
    gc.collect()
    assert not blocks._free
    new_matrix(*SHAPE, torch.float64, CPU).fill_(7.0)
    assert np.asarray(part).tobytes() == before
    del part
    gc.collect()
    assert len(blocks._free) == 1


@pytest.mark.parametrize("shape", [(8192, 1200), (3201, 501), (1101, 501)])
def test_blocks_that_are_too_small_or_much_larger_than_needed_are_let_go(shape):
    new_matrix(8192, 1200, torch.float64, CPU)
    assert not blocks._free  # beyond the limit
    new_matrix(*SHAPE, torch.float64, CPU)
    held = weakref.ref(blocks._free[0])
    new = new_matrix(*shape, torch.float64, CPU)
    assert not blocks._free
    assert held() is None
    assert float(new.fill_(1.0).sum()) == shape[0] * shape[1]


def test_threads_do_not_share_a_block():
    wrong = []

    def work(value):
        for _ in range(40):
            matrix = new_matrix(1201, 501, torch.float64, CPU).fill_(value)
            if not bool((matrix == value).all()):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
