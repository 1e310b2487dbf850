"""A map of a collection: document vectors brought down to two dimensions by their principal components."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


def project(vectors: FloatArray) -> FloatArray:
    """Project vectors onto the two directions in which they differ most.

    The same vectors give the same map: of each direction's two signs, the one is taken under which its largest
    component is positive.

    Args:
        vectors: float32 (n, d), any n and d from 0.

    Returns:
        float32 (n, 2), centred on 0; a direction that the vectors do not have is 0.
    """
    count, dimension = vectors.shape
    if count < 2 or dimension == 0:
        return np.zeros((count, 2), np.float32)
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)  # d x d, however many documents there are
    axes = directions[:, ::-1][:, :2]  # eigh gives the largest last
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
    flat = np.zeros((count, 2), np.float32)
    flat[:, : axes.shape[1]] = centred @ axes
    return flat
