"""Principal components in the features of the kernel are those of its Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from mercer import KernelPCA, load
from mercer.kernels import Gaussian, Linear, Polynomial

X = np.random.default_rng(0).normal(size=(80, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + 5.0


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, scale=0.01)], ids=["linear", "polynomial"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("count", [2, None, 30])
def test_they_are_those_of_the_gram_matrix(kernel, center, count) -> None:
    own = KernelPCA(count, kernel, center=center).fit(X)
    dense = KernelPCA(count, kernel, center=center, solver="dense").fit(X)
    assert own.solver_report_.solver == "primal"
    size = own.eigenvalues_[0]
    assert len(own.eigenvalues_) == len(dense.eigenvalues_)
    np.testing.assert_allclose(own.eigenvalues_, dense.eigenvalues_, atol=1e-12 * size)
    np.testing.assert_allclose(own.explained_variance_ratio_, dense.explained_variance_ratio_, atol=1e-12)
    np.testing.assert_allclose(own.transform(X[:9])[:, :3], dense.transform(X[:9])[:, :3], atol=1e-8 * size**0.5)
    np.testing.assert_allclose(own.fit_transform(X), own.transform(X), atol=1e-10 * size**0.5)


def test_a_linear_kernel_has_the_components_of_pca(tmp_path) -> None:
    model, expected = KernelPCA(3, Linear()).fit(X), PCA(3).fit(X).components_
    signs = np.sign((model.components_ * expected).sum(1, keepdims=True))
    np.testing.assert_allclose(signs * model.components_, expected, atol=1e-10)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(again.components_, model.components_, atol=1e-10)
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-10)
    with pytest.raises(AttributeError, match="explicit features"):
        _ = KernelPCA(2, Gaussian(2.0)).fit(X).components_


def test_data_far_from_zero_keep_their_digits_and_files_too(tmp_path) -> None:
    near, far = KernelPCA(3, Linear()).fit(X), KernelPCA(3, Linear()).fit(X + 1e6)
    np.testing.assert_allclose(far.transform(X + 1e6), near.transform(X), atol=1e-7)
    far.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").transform(X + 1e6), far.transform(X + 1e6))
