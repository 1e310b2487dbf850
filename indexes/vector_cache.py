"""The index of one encoder's vectors: in memory, on file, and never more than a cache of the truth."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexes import cache_file
from indexes.errors import CollectionError, FingerprintError
from indexes.faiss_index import FLAT, FaissIndex, auto_factory
from indexes.ledger import Ledger
from indexes.protocol import VectorIndex
from indexes.records import EncoderRecord
from indexes.shared_lock import SharedLock
from indexes.vectors import VectorTable

AUTO = "auto"
_SMALL = 5000  # allowed vectors; so many are scored exactly rather than looked for in an approximate index
_MORE = 4  # candidates of an approximate index for each result, to be scored exactly,
_FEWEST = 100  # and never fewer than so many: coarse codes tell near ones apart badly
_FEW_CHANGES = 1000  # never a reason to rebuild
_MOST_WASTED = 0.5

_Stamp = tuple[int, str]


class VectorCache:
    """The index of one encoder's vectors, stamped with the generation that it shows and that one's token.

    A token tells one history from another: where a backup was restored, the same number has another token.

    Args:
        folder: of the collection.
        table: the truth.
        encoder: whose vectors.
    """

    def __init__(self, folder: Path, table: VectorTable, encoder: EncoderRecord) -> None:
        self._file = file_of(folder, encoder.id)
        self._table = table
        self._encoder = encoder
        self._lock = SharedLock()
        self._index: VectorIndex | None = None
        self._ledger = Ledger()
        self._stamp: _Stamp | None = None
        self._setting = AUTO
        self._saved: tuple[_Stamp, str] | None = None

    def __len__(self) -> int:
        """Count the vectors."""
        return len(self._ledger)

    @property
    def generation(self) -> int:
        """The generation that the index shows; -1 before the first `sync`."""
        return -1 if self._stamp is None else self._stamp[0]

    @property
    def factory(self) -> str:
        """The kind of index, as an index-factory string."""
        return FLAT if self._index is None else self._index.factory

    def sync(self) -> None:
        """Bring the index up to the generation that this thread sees: by the difference, or by a rebuild."""
        if self._stamp == self._table.newest():
            return
        pinned = self._table.in_snapshot
        with self._lock.writing(), self._table.snapshot():
            newest = self._table.newest()
            if pinned and self._stamp is not None and self._stamp[0] > newest[0]:
                return  # another thread, without a snapshot, has gone ahead
            if self._stamp is None:
                self._load()
            if self._stamp != newest:
                if self._must_rebuild():
                    self._rebuild(FLAT if self._table.factory() == AUTO else self._table.factory())
                else:
                    self._take_difference()
                self._stamp = newest

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> list[tuple[int, float]]:
        """Return the k nearest documents as (id, cosine in [-1, 1]), best first, equal ones by id.

        Args:
            vector: float32 (d,), L2-normalised.
            k: how many; fewer come back only where fewer are there.
            allowed: ids, int64 (n,), of the documents to choose from; None for all.

        Raises:
            FingerprintError: the vector has another dimension than the index.
        """
        vector = np.asarray(vector, np.float32)
        if vector.shape != (self._encoder.dimension,):
            raise FingerprintError(
                f"The query's vector has shape {vector.shape} and the collection's {self._encoder.pooling} vectors "
                f"have dimension {self._encoder.dimension}: search with the encoder that made them"
            )
        with self._lock.reading():
            if self._index is None:
                return []
            chosen = None if allowed is None else self._ledger.among(allowed)
            wanted = min(k, len(self._ledger) if chosen is None else len(chosen))
            if wanted < 1:
                return []
            ids, scores = self._nearest(self._index, vector, wanted, chosen)
        order = np.lexsort((ids, -scores))[:wanted]
        return list(zip(ids[order].tolist(), np.clip(scores[order], -1, 1).astype(float).tolist(), strict=True))

    def save(self) -> None:
        """Write the index to its file, as the kind that its size calls for; for the writer only."""
        with self._lock.writing(), self._table.snapshot():
            if self._stamp is None or self._index is None:
                return
            setting = self._table.factory()
            if setting == AUTO and self._index.factory.partition(",")[0] != self._auto().partition(",")[0]:
                self._rebuild(self._auto())
            if self._saved == (self._stamp, self._index.factory):
                return
            ledger = self._ledger.to_bytes()
            cache_file.write(self._file, self._header(), ledger + self._index.to_bytes())
            self._saved = (self._stamp, self._index.factory)

    def problem(self) -> str | None:
        """Say what is wrong with the index file, seen from the truth; None also where there is no file.

        For a cache that has read nothing yet.
        """
        if not self._file.exists():
            return None
        with self._lock.writing(), self._table.snapshot():
            self._load()
            if self._stamp is None or self._index is None:
                return "is damaged, or belongs to another history or encoder"
            self._take_difference()
            truth = Ledger()
            for ids, vectors in self._table.since(-1):
                truth.add(ids, vectors)
            held = self._contents(self._index)
            if len(self._index) != len(truth) or not (held.same_as(truth) and self._ledger.same_as(truth)):
                return f"holds other vectors than the collection ({len(self._index)} against {len(truth)})"
        return None

    def _nearest(
        self, index: VectorIndex, vector: NDArray[np.float32], wanted: int, chosen: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if index.exact:
            return index.search(vector, wanted, chosen)
        if chosen is not None and len(chosen) <= max(_SMALL, wanted):
            return self._score(vector, chosen, wanted)
        found, _ = index.search(vector, max(_FEWEST, _MORE * wanted), chosen)
        if len(found) < wanted:
            found = self._ledger.ids if chosen is None else chosen
        return self._score(vector, found, wanted)

    def _score(
        self, vector: NDArray[np.float32], ids: NDArray[np.int64], wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Score vectors exactly, from the truth; a batch at a time, so that many need no more memory."""
        best, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        for batch, vectors in self._table.fetch(ids):
            best = np.concatenate([best, batch])
            scores = np.concatenate([scores, vectors @ vector])
            order = np.lexsort((best, -scores))[:wanted]
            best, scores = best[order], scores[order]
        return best, scores

    def _must_rebuild(self) -> bool:
        if self._index is None or self._stamp is None or self._setting != self._table.factory():
            return True
        if self._table.token(self._stamp[0]) != self._stamp[1]:
            return True  # another history, or ahead of this one
        if isinstance(self._index, FaissIndex) and self._index.wasted > _MOST_WASTED:
            return True
        return self._table.changes_since(self._stamp[0]) > max(_FEW_CHANGES, len(self._ledger) // 2)

    def _take_difference(self) -> None:
        """Apply what was written since the stamp; harmless when it was applied in part before."""
        if self._index is None or self._stamp is None:
            return
        self._drop(self._index, self._table.tombstones_since(self._stamp[0]))
        for ids, vectors in self._table.since(self._stamp[0]):
            self._drop(self._index, ids)
            self._index.add(ids, vectors)
            self._ledger.add(ids, vectors)

    def _drop(self, index: VectorIndex, ids: NDArray[np.int64]) -> None:
        index.remove(ids)
        self._ledger.remove(ids)

    def _auto(self) -> str:
        return auto_factory(self._table.count())

    def _rebuild(self, factory: str) -> None:
        """Build the index anew from the truth; as a flat one while there is too little to learn from."""
        index = FaissIndex(self._encoder.dimension, factory)
        count = self._table.count()
        if index.training_size > count:
            index = FaissIndex(self._encoder.dimension, FLAT)
        elif index.training_size:
            index.train(self._sample(index.sample_size))
        ledger = Ledger()
        for ids, vectors in self._table.since(-1):
            index.add(ids, vectors)
            ledger.add(ids, vectors)
        self._index, self._ledger, self._setting = index, ledger, self._table.factory()

    def _sample(self, size: int) -> NDArray[np.float32]:
        ids = self._table.ids()
        spread = ids[:: max(1, len(ids) // size)]
        return np.concatenate([vectors for _, vectors in self._table.fetch(spread)])

    def _header(self) -> dict[str, Any]:
        generation, token = self._stamp or (-1, "")
        return {
            "generation": generation,
            "token": token,
            "encoder": _digest(self._encoder),
            "dimension": self._encoder.dimension,
            "setting": self._setting,
            "factory": self.factory,
            "count": len(self._ledger),
        }

    def _load(self) -> None:
        """Read the file, where it is whole and shows an earlier state of this very history."""
        read = cache_file.read(self._file)
        if read is None:
            return
        header, payload = read
        if header["encoder"] != _digest(self._encoder) or header["dimension"] != self._encoder.dimension:
            return
        if self._table.token(header["generation"]) != header["token"]:
            return
        end = 16 * header["count"]
        try:
            index = FaissIndex.from_bytes(self._encoder.dimension, header["factory"], payload[end:])
        except CollectionError:
            return
        self._index = index
        self._ledger = Ledger.from_bytes(payload[:end])
        self._stamp = (header["generation"], header["token"])
        self._setting = header["setting"]
        self._saved = (self._stamp, index.factory)

    def _contents(self, index: VectorIndex) -> Ledger:
        """Return what a flat index really holds; what was noted of another one."""
        held = index.contents() if isinstance(index, FaissIndex) else None
        if held is None:
            return self._ledger
        ledger = Ledger()
        ledger.add(*held)
        return ledger


def file_of(folder: Path, encoder_id: int) -> Path:
    """Return where an encoder's index file stands."""
    return folder / f"vectors-{encoder_id}.faiss"


def remove_files(folder: Path, keep: set[int]) -> None:
    """Remove the index files of all encoders but some."""
    wanted = {file_of(folder, encoder_id) for encoder_id in keep}
    for file in folder.glob("vectors-*.faiss*"):
        if file not in wanted:
            file.unlink(missing_ok=True)


def _digest(encoder: EncoderRecord) -> str:
    text = json.dumps([encoder.pooling, encoder.fingerprint, encoder.dimension], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
