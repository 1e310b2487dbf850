"""What an index of document vectors must do; FAISS is one of them."""

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray


class VectorIndex(Protocol):
    """Finds the nearest of L2-normalised vectors by inner product, under ids that it keeps."""

    factory: str
    """What kind it is, in the words of its engine."""

    exact: bool
    """Whether `search` finds every nearest vector, with its exact score, under any restriction."""

    def __len__(self) -> int:
        """Count the vectors that a search can find."""
        ...

    def train(self, sample: NDArray[np.float32]) -> None:
        """Learn from a sample of the vectors, float32 (n, d), where the kind needs it."""
        ...

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, float32 (n, d), under ids (n,) that are not there yet."""
        ...

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove the vectors with these ids; ids that are not there are passed over."""
        ...

    def search(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return up to k ids (m,), among the allowed ones, and their scores (m,), best first.

        An index that is not exact may give back fewer than there are.
        """
        ...

    def to_bytes(self) -> bytes:
        """Return the whole index as bytes."""
        ...

    @classmethod
    def from_bytes(cls, dimension: int, factory: str, data: bytes | memoryview) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            CollectionError: the bytes hold something else.
        """
        ...
