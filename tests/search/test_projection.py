"""The map's two directions, against scikit-learn's principal components."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lmk_rag.projection import project


def test_it_is_the_first_two_principal_components() -> None:
    rng = np.random.default_rng(3)
    vectors = (rng.normal(size=(200, 16)) * np.linspace(5, 0.1, 16) + 7).astype(np.float32)
    expected = PCA(2, svd_solver="full").fit_transform(vectors)
    found = project(vectors)
    assert found.shape == (200, 2)
    assert found.dtype == np.float32
    for axis in range(2):
        same = np.abs(found[:, axis] - expected[:, axis]).max()
        turned = np.abs(found[:, axis] + expected[:, axis]).max()
        assert min(same, turned) < 1e-3
    assert np.array_equal(found, project(vectors))


@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (5, 0), (3, 1)])
def test_few_vectors_or_dimensions(shape: tuple[int, int]) -> None:
    flat = project(np.ones(shape, np.float32))
    assert flat.shape == (shape[0], 2)
    assert not flat.any()
