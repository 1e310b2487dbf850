"""Reading a collection's rows."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from indexes import rows
from indexes.database import Database
from indexes.filters import Filter
from indexes.records import PAGE_SEPARATOR, EncoderRecord, Failure, StoredDocument, StoredEmbedding, encode_text
from indexes.vectors import VectorTable, id_list

_BATCH = 500  # rows held at a time while documents stream


class Reader:
    """Documents, pages, failures, encoders and embeddings as the calling thread sees them now."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def generation(self) -> int:
        """The number of the newest generation; 0 for a new collection."""
        return int(self._database.value("SELECT max(number) FROM generations"))

    @property
    def created(self) -> str:
        """When the collection was made, ISO 8601 in UTC."""
        return str(self._database.value("SELECT value FROM meta WHERE key = 'created'"))

    @property
    def index_factory(self) -> str:
        """The index of document vectors: "auto" or an index-factory string of FAISS."""
        return str(self._database.value("SELECT value FROM meta WHERE key = 'index'"))

    @property
    def evidence_ratio(self) -> float | None:
        """Bytes of evidence kept for each byte of text, at most, where the collection has a limit of its own."""
        row = self._database.row("SELECT value FROM meta WHERE key = 'evidence_ratio'")
        return None if row is None else float(row[0])

    def get(self, document_id: int) -> StoredDocument | None:
        """Return the document with an id, any whole number."""
        if not 0 < document_id < 2**63:  # more than SQLite's integers hold
            return None
        row = self._database.row(f"SELECT {rows.DOCUMENT_COLUMNS} FROM documents WHERE id = ?", (int(document_id),))
        return None if row is None else rows.document(row)

    def get_all(self, ids: Iterable[int]) -> dict[int, StoredDocument]:
        """Return the documents with some ids, by id; those that are not there are left out."""
        found = self._database.rows(
            f"SELECT {rows.DOCUMENT_COLUMNS} FROM documents WHERE id IN (SELECT value FROM json_each(?))",
            (id_list(ids),),
        )
        return {document.id: document for document in map(rows.document, found)}

    def find(self, external_id: str, source: str = "file") -> StoredDocument | None:
        """Return the document with a path, or with another source's external id."""
        row = self._database.row(
            f"SELECT {rows.DOCUMENT_COLUMNS} FROM documents "
            "WHERE source = CAST(? AS TEXT) AND external_id = CAST(? AS TEXT)",
            (encode_text(source), encode_text(external_id)),
        )
        return None if row is None else rows.document(row)

    def documents(self, filter: Filter | None = None) -> Iterator[StoredDocument]:
        """Yield the documents that a filter lets through, by id; memory stays flat."""
        condition, parameters = (filter or Filter()).to_sql()
        last = 0
        while batch := self._database.rows(
            f"SELECT {rows.DOCUMENT_COLUMNS} FROM documents WHERE id > ? AND ({condition}) ORDER BY id LIMIT ?",
            (last, *parameters, _BATCH),
        ):
            yield from map(rows.document, batch)
            last = batch[-1][0]

    def count(self, filter: Filter | None = None) -> int:
        """Count the documents that a filter lets through."""
        condition, parameters = (filter or Filter()).to_sql()
        return int(self._database.value(f"SELECT count(*) FROM documents WHERE {condition}", parameters))

    def allowed(self, filter: Filter) -> NDArray[np.int64]:
        """Return the ids of the documents that a filter lets through: int64 (n,), ascending."""
        condition, parameters = filter.to_sql()
        found = self._database.rows(f"SELECT id FROM documents WHERE {condition} ORDER BY id", parameters)
        return np.fromiter((row[0] for row in found), np.int64, len(found))

    def page_texts(self, document_id: int) -> list[str]:
        """Return the texts of a document's pages; empty where there is no such document."""
        return [
            row[0]
            for row in self._database.rows(
                "SELECT text FROM pages WHERE document_id = ? ORDER BY number", (int(document_id),)
            )
        ]

    def text(self, document_id: int) -> str:
        """Return a document's text: its pages, joined by `PAGE_SEPARATOR`."""
        return PAGE_SEPARATOR.join(self.page_texts(document_id))

    def failures(self) -> list[Failure]:
        """Return the notes about files that could not be indexed, by path."""
        return [
            rows.failure(row)
            for row in self._database.rows(f"SELECT {rows.FAILURE_COLUMNS} FROM failures ORDER BY path")
        ]

    def failure(self, path: str) -> Failure | None:
        """Return the note about one file."""
        row = self._database.row(
            f"SELECT {rows.FAILURE_COLUMNS} FROM failures WHERE path = CAST(? AS TEXT)", (encode_text(path),)
        )
        return None if row is None else rows.failure(row)

    def encoders(self, active_only: bool = True) -> list[EncoderRecord]:
        """Return the encoders, in the order in which they were added."""
        return [
            rows.encoder(row)
            for row in self._database.rows(
                f"SELECT {rows.ENCODER_COLUMNS} FROM encoders WHERE active OR NOT ? ORDER BY id", (active_only,)
            )
        ]

    def encoder(self, pooling: str) -> EncoderRecord | None:
        """Return the active encoder of a pooling."""
        return next((encoder for encoder in self.encoders() if encoder.pooling == pooling), None)

    def embedding(self, encoder_id: int, document_id: int) -> StoredEmbedding | None:
        """Return a document's embedding by one encoder."""
        return self.embeddings(encoder_id, [document_id]).get(document_id)

    def embeddings(self, encoder_id: int, ids: Iterable[int]) -> dict[int, StoredEmbedding]:
        """Return the embeddings of some documents by one encoder; those without one are left out."""
        found = self._database.rows(
            f"SELECT v.document_id, {rows.EMBEDDING_COLUMNS} FROM vectors v "
            "LEFT JOIN evidence e USING (encoder_id, document_id) "
            "WHERE v.encoder_id = ? AND v.document_id IN (SELECT value FROM json_each(?))",
            (encoder_id, id_list(ids)),
        )
        return {row[0]: rows.embedding(row[1:]) for row in found}

    def embedding_of_text(self, encoder_id: int, text_sha256: str) -> StoredEmbedding | None:
        """Return the embedding of any document that has this text, so that no text is embedded twice."""
        row = self._database.row(
            "SELECT id FROM documents JOIN vectors v ON v.document_id = id "
            "WHERE text_sha256 = ? AND v.encoder_id = ? LIMIT 1",
            (text_sha256, encoder_id),
        )
        return None if row is None else self.embedding(encoder_id, row[0])

    def missing(self, encoder_id: int) -> list[int]:
        """Return the ids of the documents that have no embedding by an encoder, ascending."""
        return [
            row[0]
            for row in self._database.rows(
                "SELECT id FROM documents WHERE NOT EXISTS "
                "(SELECT 1 FROM vectors WHERE encoder_id = ? AND document_id = documents.id) ORDER BY id",
                (encoder_id,),
            )
        ]

    def vectors(self, encoder: EncoderRecord) -> VectorTable:
        """Return the vectors of one encoder, to be read in bulk."""
        return VectorTable(self._database, encoder)
