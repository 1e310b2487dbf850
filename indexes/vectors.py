"""One encoder's document vectors in SQLite, read in bulk and by generation."""

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexes.database import Database
from indexes.errors import CollectionError
from indexes.records import EncoderRecord
from indexes.rows import VECTOR

Batch = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Document ids (n,) and their vectors (n, d)."""

_BATCH = 4096
_LAST_ID = 2**63 - 1


def id_list(ids: Iterable[int]) -> str:
    """Write ids as the JSON that `json_each` takes: one bound parameter however many there are."""
    return json.dumps([int(i) for i in ids])


class VectorTable:
    """The vectors of one encoder, and the tombstones of those that are gone."""

    def __init__(self, database: Database, encoder: EncoderRecord) -> None:
        self._database = database
        self._encoder = encoder

    @property
    def in_snapshot(self) -> bool:
        """Whether this thread sees a state that may be older than the newest."""
        return self._database.in_snapshot

    def snapshot(self) -> AbstractContextManager[None]:
        """Hold one state of the collection for everything that this thread reads inside."""
        return self._database.snapshot()

    def newest(self) -> tuple[int, str]:
        """Return the newest generation and its token."""
        number, token = self._database.rows("SELECT number, token FROM generations ORDER BY number DESC LIMIT 1")[0]
        return number, token

    def token(self, generation: int) -> str | None:
        """Return the token of a generation, None where this history has no such generation."""
        row = self._database.row("SELECT token FROM generations WHERE number = ?", (generation,))
        return None if row is None else str(row[0])

    def factory(self) -> str:
        """Return the setting of the collection's index."""
        return str(self._database.value("SELECT value FROM meta WHERE key = 'index'"))

    def count(self) -> int:
        """Count the vectors."""
        return int(self._database.value("SELECT count(*) FROM vectors WHERE encoder_id = ?", (self._encoder.id,)))

    def ids(self) -> NDArray[np.int64]:
        """Return the ids of the documents that have a vector, ascending."""
        found = self._database.rows(
            "SELECT document_id FROM vectors WHERE encoder_id = ? ORDER BY document_id", (self._encoder.id,)
        )
        return np.fromiter((row[0] for row in found), np.int64, len(found))

    def changes_since(self, generation: int) -> int:
        """Count the vectors that were written, and those that went, after a generation."""
        parameters = (self._encoder.id, generation)
        return sum(
            self._database.value(f"SELECT count(*) FROM {table} WHERE encoder_id = ? AND generation > ?", parameters)
            for table in ("vectors", "tombstones")
        )

    def since(self, generation: int) -> Iterator[Batch]:
        """Yield the vectors that were written after a generation, oldest first; -1 gives all."""
        last = (generation, _LAST_ID)
        while found := self._database.rows(
            "SELECT document_id, vector, generation FROM vectors WHERE encoder_id = ? "
            "AND (generation, document_id) > (?, ?) ORDER BY generation, document_id LIMIT ?",
            (self._encoder.id, *last, _BATCH),
        ):
            yield self._batch(found)
            last = (found[-1][2], found[-1][0])

    def tombstones_since(self, generation: int) -> NDArray[np.int64]:
        """Return the ids of the documents whose vector went after a generation."""
        found = self._database.rows(
            "SELECT document_id FROM tombstones WHERE encoder_id = ? AND generation > ?",
            (self._encoder.id, generation),
        )
        return np.fromiter((row[0] for row in found), np.int64, len(found))

    def fetch(self, ids: NDArray[np.int64]) -> Iterator[Batch]:
        """Yield the vectors of some documents; those that have none are left out."""
        for start in range(0, len(ids), _BATCH):
            found = self._database.rows(
                "SELECT document_id, vector FROM vectors WHERE encoder_id = ? "
                "AND document_id IN (SELECT value FROM json_each(?))",
                (self._encoder.id, id_list(ids[start : start + _BATCH])),
            )
            if found:
                yield self._batch(found)

    def _batch(self, found: list[tuple[Any, ...]]) -> Batch:
        ids = np.fromiter((row[0] for row in found), np.int64, len(found))
        width = self._encoder.dimension * VECTOR.itemsize
        for row in found:
            if len(row[1]) != width:
                raise CollectionError(
                    f"The {self._encoder.pooling} vector of document {row[0]} is damaged: run `lmk-rag verify --repair`"
                )
        data = b"".join(row[1] for row in found)
        return ids, np.frombuffer(data, VECTOR).reshape(len(found), self._encoder.dimension)
