"""An index of document vectors by FAISS, of any kind that its factory makes."""

import math
import os
import sys
import warnings
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from indexes.errors import CollectionError, FingerprintError, MissingLibraryError

FLAT = "Flat"
LARGEST_FLAT = 100_000
"""Vectors; with more, "auto" means IVF."""

_POINTS_PER_CENTROID = 39  # with fewer, FAISS warns that it learns badly
_SAMPLE_PER_CENTROID = 64
_DEAD = -1
FaissObject = Any  # the classes of its generated wrapper have no types


def load_faiss() -> ModuleType:
    """Import FAISS.

    Raises:
        MissingLibraryError: it is not installed, or cannot be loaded.
    """
    if sys.platform == "darwin":
        # There torch and FAISS each bring an OpenMP of their own, and the second to start ends the process.
        os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of its generated wrapper, under Python 3.12
            import faiss
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            'FAISS is not installed: `pip install "lmk-rag[cpu]"` mends that (or "lmk-rag[gpu]")'
        ) from error
    except ImportError as error:
        raise MissingLibraryError(
            f'FAISS cannot be loaded ({error}): `pip install --force-reinstall "lmk-rag[cpu]"` mends that'
        ) from error
    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)  # two thread pools at work crash
    return faiss  # type: ignore[no-any-return, unused-ignore]


def auto_factory(count: int) -> str:
    """Return the kind of index for a number of vectors: exact while that is quick, then IVF."""
    if count <= LARGEST_FLAT:
        return FLAT
    return f"IVF{2 ** round(math.log2(4 * math.sqrt(count)))},Flat"


def check_factory(dimension: int, factory: str) -> None:
    """Refuse an index-factory string that FAISS does not know, or that does not go with the dimension.

    Raises:
        CollectionError: with what FAISS says.
    """
    FaissIndex(dimension, factory)


class FaissIndex:
    """Vectors under ids in a FAISS index by inner product; see `indexes.protocol.VectorIndex`.

    Flat and IVF kinds keep ids and remove by themselves. The others (HNSW and its like) count what they hold by
    slot and cannot remove: the id of each slot is kept here, and a removed one is passed over in the search.

    Args:
        dimension: of the vectors.
        factory: an index-factory string of FAISS, such as `Flat`, `IVF256,Flat`, `HNSW32`, `IVF256,RaBitQ`.

    Raises:
        CollectionError: FAISS cannot make it.
    """

    def __init__(self, dimension: int, factory: str = FLAT) -> None:
        faiss = load_faiss()
        try:
            index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        except Exception as error:  # FAISS raises RuntimeError, its wrapper others
            raise _refused(dimension, factory, error) from error
        self._adopt(dimension, factory, faiss.IndexIDMap2(index) if factory == FLAT else index)

    def _adopt(self, dimension: int, factory: str, index: FaissObject) -> None:
        self._faiss = load_faiss()
        self._index = index
        self._ivf = self._faiss.try_extract_index_ivf(index)
        self._slots = np.empty(0, np.int64)
        self.dimension = dimension
        self.factory = factory
        self.exact = factory == FLAT
        self._by_slot = self._ivf is None and not self.exact

    def __len__(self) -> int:
        """Count the vectors that a search can find."""
        return int((self._slots != _DEAD).sum()) if self._by_slot else int(self._index.ntotal)

    @property
    def wasted(self) -> float:
        """The share of removed vectors among those that it holds, 0 to 1."""
        return 1 - len(self) / max(1, int(self._index.ntotal))

    @property
    def training_size(self) -> int:
        """How many vectors it wants to learn from at least; 0 where it learns nothing."""
        return 0 if self._index.is_trained else _POINTS_PER_CENTROID * self._centroids

    @property
    def sample_size(self) -> int:
        """How many vectors are enough to learn from."""
        return _SAMPLE_PER_CENTROID * self._centroids

    @property
    def _centroids(self) -> int:
        lists = int(self._ivf.nlist) if self._ivf is not None else 0
        return lists if self.factory.endswith(FLAT) and lists else max(lists, 256)  # 256: a byte of a quantiser

    def train(self, sample: NDArray[np.float32]) -> None:
        """Learn from a sample of the vectors, float32 (n, d), where the kind needs it."""
        try:
            self._index.train(np.ascontiguousarray(sample, np.float32))
        except RuntimeError as error:
            raise _refused(self.dimension, self.factory, error) from error

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, float32 (n, d), under ids (n,) that are not there yet."""
        vectors = np.ascontiguousarray(vectors, np.float32)
        try:
            if self._by_slot:
                self._index.add(vectors)
                self._slots = np.concatenate([self._slots, ids])
            else:
                self._index.add_with_ids(vectors, np.ascontiguousarray(ids, np.int64))
        except RuntimeError as error:
            raise _refused(self.dimension, self.factory, error) from error

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove the vectors with these ids; ids that are not there are passed over."""
        if not len(ids):
            return
        if self._by_slot:
            self._slots[np.isin(self._slots, ids)] = _DEAD
        else:
            self._index.remove_ids(self._faiss.IDSelectorBatch(np.ascontiguousarray(ids, np.int64)))

    def search(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return up to k ids (m,), among the allowed ones, and their scores (m,), best first.

        Raises:
            FingerprintError: the query's dimension is another one.
        """
        if query.shape != (self.dimension,):
            raise FingerprintError(
                f"The query's vector has shape {query.shape} and the index holds vectors of dimension "
                f"{self.dimension}: search with the encoder that the collection was made with"
            )
        k = min(k, int(self._index.ntotal))
        if k < 1:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        found, scores = self._search_by_slot(query, k, allowed) if self._by_slot else self._run(query, k, allowed)
        kept = found >= 0
        return found[kept], scores[kept]

    def to_bytes(self) -> bytes:
        """Return the whole index as bytes."""
        data: bytes = self._faiss.serialize_index(self._index).tobytes()
        return len(data).to_bytes(8, "little") + data + self._slots.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, dimension: int, factory: str, data: bytes | memoryview) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            CollectionError: the bytes hold something else.
        """
        faiss = load_faiss()
        data = memoryview(data)
        end = 8 + int.from_bytes(data[:8], "little")
        try:
            index = faiss.deserialize_index(np.frombuffer(data[8:end], np.uint8))
            slots = np.frombuffer(data[end:], "<i8").astype(np.int64)
        except (RuntimeError, ValueError) as error:
            raise CollectionError(f"An index of kind {factory} cannot be read: {error}") from error
        self = cls.__new__(cls)
        self._adopt(dimension, factory, index)
        self._slots = slots
        if index.d != dimension or (self._by_slot and len(slots) != index.ntotal):
            raise CollectionError(f"An index of kind {factory} does not hold what it should")
        return self

    def contents(self) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return ids (n,) and vectors (n, d) of a flat index, None for the other kinds."""
        if not self.exact:
            return None
        ids = self._faiss.vector_to_array(self._index.id_map).astype(np.int64)
        inner = self._faiss.downcast_index(self._index.index)
        return ids, inner.reconstruct_n(0, int(inner.ntotal)).reshape(-1, self.dimension)

    def _search_by_slot(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        usable = self._slots != _DEAD
        if allowed is not None:
            usable &= np.isin(self._slots, allowed)
        slots, scores = self._run(query, k, None if usable.all() else np.flatnonzero(usable))
        kept = (slots >= 0) & usable[slots]  # a kind without selectors gives back others too
        return self._slots[slots[kept]], scores[kept]

    def _run(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        row = np.ascontiguousarray(query[np.newaxis], np.float32)
        selector = None if allowed is None else self._faiss.IDSelectorBatch(np.ascontiguousarray(allowed, np.int64))
        try:
            scores, found = self._index.search(row, k, params=self._parameters(k, selector))
        except RuntimeError:  # PQ and NSG take no parameters
            scores, found = self._index.search(row, k)
        return found[0], scores[0]

    def _parameters(self, k: int, selector: FaissObject) -> FaissObject:
        chosen = {} if selector is None else {"sel": selector}
        if self._ivf is not None:
            return self._faiss.SearchParametersIVF(nprobe=max(16, int(self._ivf.nlist) // 16), **chosen)
        if "HNSW" in self.factory:
            return self._faiss.SearchParametersHNSW(efSearch=max(64, 2 * k), **chosen)
        return self._faiss.SearchParameters(**chosen)


def _refused(dimension: int, factory: str, error: Exception) -> CollectionError:
    said = str(error).split("Error: ")[-1].strip() or type(error).__name__
    return CollectionError(
        f"FAISS cannot keep vectors of dimension {dimension} in an index {factory!r} ({said}): choose another, "
        "such as 'Flat' or 'HNSW32', or 'auto'"
    )
