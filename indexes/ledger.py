"""Which vectors an index holds: ids, and a checksum of each vector."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)


def checksums(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return a checksum of each row, uint64 (n,): a sum of its bits, weighted by odd numbers, modulo 2**64."""
    bits = np.ascontiguousarray(vectors, "<f4").view("<u4").astype(np.uint64)
    weights = _ODD * (2 * np.arange(bits.shape[1], dtype=np.uint64) + np.uint64(1))
    total: NDArray[np.uint64] = (bits * weights).sum(axis=1, dtype=np.uint64)
    return total


class Ledger:
    """The ids, ascending, and the checksums of an index's vectors."""

    def __init__(self) -> None:
        self.ids = np.empty(0, np.int64)
        self.checksums = np.empty(0, np.uint64)

    def __len__(self) -> int:
        """Count the vectors."""
        return len(self.ids)

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Note vectors, float32 (n, d), under ids (n,) that are not there yet."""
        every = np.concatenate([self.ids, ids])
        order = np.argsort(every, kind="stable")
        self.ids = every[order]
        self.checksums = np.concatenate([self.checksums, checksums(vectors)])[order]

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Forget these ids."""
        kept = np.ones(len(self.ids), np.bool_)
        kept[self._places(ids)] = False
        self.ids, self.checksums = self.ids[kept], self.checksums[kept]

    def among(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some ids that are there, ascending, each once."""
        return self.ids[self._places(ids)]

    def _places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return where those of some ids that are there stand; a search a wanted id, however many are there."""
        wanted = np.unique(ids)
        places = np.searchsorted(self.ids, wanted)
        places, wanted = places[places < len(self.ids)], wanted[places < len(self.ids)]
        found: NDArray[np.intp] = places[self.ids[places] == wanted]
        return found

    def same_as(self, other: "Ledger") -> bool:
        """Whether two ledgers note the same vectors under the same ids."""
        return np.array_equal(self.ids, other.ids) and np.array_equal(self.checksums, other.checksums)

    def to_bytes(self) -> bytes:
        """Return ids and checksums, 16 bytes a vector."""
        return self.ids.astype("<i8").tobytes() + self.checksums.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Self:
        """Read what `to_bytes` wrote."""
        self = cls()
        half = len(data) // 2
        self.ids = np.frombuffer(data[:half], "<i8").astype(np.int64)
        self.checksums = np.frombuffer(data[half:], "<u8").astype(np.uint64)
        return self
