"""What `new_matrix` promises; the other functions of the module are tested where they are used."""

from __future__ import annotations

import pytest
import torch

from mercer.core.arrays import LARGE_PAGE, new_matrix


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (7, 5), (3001, 501)])
def test_a_new_matrix_can_be_written_from_end_to_end(shape, dtype):
    matrix = new_matrix(*shape, dtype, torch.device("cpu"))
    assert (matrix.shape, matrix.dtype) == (shape, dtype)
    assert matrix.is_contiguous()
    matrix.fill_(2.0)
    assert float(matrix.sum()) == 2.0 * shape[0] * shape[1]
    assert matrix.numpy().flags.writeable


def test_a_large_matrix_begins_where_a_large_page_does():
    assert new_matrix(3001, 501, torch.float64, torch.device("cpu")).data_ptr() % LARGE_PAGE == 0
