"""Laws of fitted functions as sums of kernels at points."""

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.functions.sums import KernelSum
from mercer.kernels import Gaussian, resolve
from mercer.operators.dials import FORMULA_NUMBERS
from mercer.operators.placement import Placement
from mercer.testing.examples import VECTOR_KERNELS
from mercer.testing.samples import sample_for

PLACE = Placement(torch.device("cpu"), torch.float64)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
def test_few_rows_have_the_values_that_they_have_among_many(kernel):
    rng = np.random.default_rng(0)
    Z, X = sample_for(kernel, 90, rng), sample_for(kernel, 800, rng)
    X[:5] = Z[:5]
    rows, centres = torch.from_numpy(X).float(), Points(torch.from_numpy(Z).float())
    assert 20 * len(Z) < FORMULA_NUMBERS < len(X) * len(Z)
    function = KernelSum(resolve(kernel, Z), centres, torch.from_numpy(rng.normal(size=(90, 2))))
    few, many = function.values(Points(rows[:20]), PLACE), function.values(Points(rows), PLACE)[:20]
    torch.testing.assert_close(few, many, rtol=1e-10, atol=1e-12 * float(many.abs().max()) + 1e-300)


@pytest.mark.parametrize("n", [1, FORMULA_NUMBERS])
def test_rows_with_other_columns_are_an_error(n):
    function = KernelSum(Gaussian(), Points(torch.zeros(3, 2).double()), torch.ones(3, 1).double())
    with pytest.raises(InputError, match="columns"):
        function.values(Points(torch.zeros(n, 4).double()), PLACE)
