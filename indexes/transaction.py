"""Writing: what is done inside one transaction becomes visible at once, as one generation."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from indexes import fulltext, rows
from indexes.database import Database
from indexes.errors import CollectionError, FingerprintError
from indexes.records import Document, EncoderRecord, Failure, StoredEmbedding, encode_text
from indexes.times import now

_INSERT_DOCUMENT = """INSERT INTO documents (source, external_id, title, kind, pages, characters, text_bytes,
    metadata, sha256, text_sha256, size, mtime_ns, language, warnings, added, updated, generation)
    VALUES (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_UPDATE_DOCUMENT = """UPDATE documents SET title = CAST(? AS TEXT), kind = ?, pages = ?, characters = ?,
    text_bytes = ?, metadata = ?, sha256 = ?, text_sha256 = ?, size = ?, mtime_ns = ?, language = ?,
    warnings = ?, updated = ?, generation = ? WHERE id = ?"""


class Transaction:
    """The writer's handle; `Collection.transaction()` gives it, commits it or rolls it back."""

    def __init__(self, database: Database, generation: int) -> None:
        self._database = database
        self.generation = generation

    def put(
        self, document: Document, embeddings: Mapping[int, StoredEmbedding]
    ) -> tuple[int, Literal["indexed", "updated"]]:
        """Store a document, or replace the one with the same source and external id; a known failure is forgotten.

        Args:
            document: its text is kept as it is, NUL and lone surrogates included.
            embeddings: by encoder id; embeddings that a replaced document had are dropped.

        Returns:
            The document's id, which a replaced document keeps, and whether it is new or replaced.

        Raises:
            CollectionError: an embedding does not fit its encoder or the text, or the metadata is not JSON.
        """
        old = self._database.row(
            "SELECT id FROM documents WHERE source = CAST(? AS TEXT) AND external_id = CAST(? AS TEXT)",
            (encode_text(document.source), encode_text(document.external_id)),
        )
        document_id = self._insert(document) if old is None else self._replace(old[0], document)
        self._put_pages(document_id, document)
        for encoder_id, embedding in embeddings.items():
            self.put_embedding(document_id, encoder_id, embedding)
        if document.source == "file":
            self.forget_failure(document.external_id)
        return document_id, "indexed" if old is None else "updated"

    def put_embedding(self, document_id: int, encoder_id: int, embedding: StoredEmbedding) -> None:
        """Store a document's embedding by one encoder, in place of an older one.

        Raises:
            CollectionError: no such document or encoder, or the embedding does not fit them.
        """
        encoder = self._encoder(encoder_id)
        found = self._database.row("SELECT characters FROM documents WHERE id = ?", (document_id,))
        if found is None:
            raise CollectionError(f"There is no document {document_id} in the collection")
        rows.check_embedding(embedding, encoder, found[0])
        self._database.change(
            "INSERT OR REPLACE INTO vectors (encoder_id, document_id, generation, tokens, truncated, vector) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                encoder_id,
                document_id,
                self.generation,
                int(embedding.tokens),
                int(embedding.truncated),
                embedding.vector.astype(rows.VECTOR, copy=False).tobytes(),
            ),
        )
        self._database.change(
            "INSERT OR REPLACE INTO evidence (encoder_id, document_id, generation, spans, scales, vectors) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                encoder_id,
                document_id,
                self.generation,
                embedding.spans.astype(rows.SPAN, copy=False).tobytes(),
                embedding.scales.astype(rows.VECTOR, copy=False).tobytes(),
                embedding.evidence.astype(rows.EVIDENCE, copy=False).tobytes(),
            ),
        )

    def touch(self, document_id: int, *, size: int | None, mtime_ns: int | None, sha256: str | None) -> None:
        """Note that a document's file has the same bytes as before under another time stamp."""
        self._database.change(
            "UPDATE documents SET size = ?, mtime_ns = ?, sha256 = ?, generation = ? WHERE id = ?",
            (size, mtime_ns, sha256, self.generation, document_id),
        )

    def remove(self, document_id: int) -> bool:
        """Remove a document with everything that belongs to it; return whether there was one."""
        self._bury(document_id)
        fulltext.remove(self._database, document_id)
        return self._database.change("DELETE FROM documents WHERE id = ?", (document_id,)) > 0

    def remove_embedding(self, document_id: int, encoder_id: int) -> None:
        """Remove a document's embedding by one encoder, so that it counts as missing."""
        self._database.change(
            "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (encoder_id, document_id, self.generation)
        )
        for table in ("vectors", "evidence"):
            self._database.change(
                f"DELETE FROM {table} WHERE encoder_id = ? AND document_id = ?", (encoder_id, document_id)
            )

    def fail(self, failure: Failure) -> None:
        """Note that a file could not be indexed, in place of an older note."""
        self._database.change(
            f"INSERT OR REPLACE INTO failures ({rows.FAILURE_COLUMNS}, generation) "
            "VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?, ?, ?)",
            (
                encode_text(failure.path),
                encode_text(failure.reason),
                failure.sha256,
                failure.size,
                failure.mtime_ns,
                failure.at,
                self.generation,
            ),
        )

    def forget_failure(self, path: str) -> None:
        """Drop the note about a file, where there is one."""
        self._database.change("DELETE FROM failures WHERE path = CAST(? AS TEXT)", (encode_text(path),))

    def add_encoder(
        self, pooling: str, fingerprint: Mapping[str, Any], dimension: int, *, active: bool = True
    ) -> EncoderRecord:
        """Add an encoder; one that is there with the same fingerprint and state is returned as it is.

        Args:
            pooling: a pooling has at most one active encoder.
            fingerprint: JSON-able; what makes two encoders give the same vectors.
            dimension: of its vectors.
            active: False for one that is being filled, and that `activate` puts in the other's place.

        Raises:
            FingerprintError: another active encoder has this pooling.
        """
        text = json.dumps(dict(fingerprint), sort_keys=True, allow_nan=False)
        for row in self._database.rows(
            f"SELECT {rows.ENCODER_COLUMNS} FROM encoders WHERE pooling = ? AND active = ?", (pooling, active)
        ):
            found = rows.encoder(row)
            if found.fingerprint == json.loads(text) and found.dimension == dimension:
                return found
            if active:
                raise FingerprintError(
                    f"The collection has a {pooling} encoder already (number {found.id}, {found.fingerprint}): "
                    f"{text} can only take its place, by `lmk-rag reindex`"
                )
        encoder_id = self._database.insert(
            "INSERT INTO encoders (pooling, fingerprint, dimension, active, generation) VALUES (?, ?, ?, ?, ?)",
            (pooling, text, dimension, active, self.generation),
        )
        return self._encoder(encoder_id)

    def activate(self, encoder_id: int) -> None:
        """Make an encoder the active one of its pooling; the one before is dropped with its vectors."""
        pooling = self._encoder(encoder_id).pooling
        for (other,) in self._database.rows(
            "SELECT id FROM encoders WHERE pooling = ? AND active AND id != ?", (pooling, encoder_id)
        ):
            self.drop_encoder(other)
        self._database.change(
            "UPDATE encoders SET active = 1, generation = ? WHERE id = ?", (self.generation, encoder_id)
        )

    def drop_encoder(self, encoder_id: int) -> None:
        """Remove an encoder and all its vectors."""
        self._database.change("DELETE FROM encoders WHERE id = ?", (encoder_id,))

    def set_index(self, factory: str) -> None:
        """Choose the index of document vectors: "auto", or an index-factory string of FAISS.

        Raises:
            CollectionError: FAISS does not know it.
        """
        if factory != "auto":
            from indexes.faiss_index import check_factory  # FAISS is wanted only where it is used

            for (dimension,) in self._database.rows("SELECT DISTINCT dimension FROM encoders"):
                check_factory(dimension, factory)
        self._database.change("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (factory,))

    def set_evidence_ratio(self, ratio: float) -> None:
        """Choose how many bytes of evidence are kept for each byte of text, at most; for what is embedded from now on.

        Raises:
            CollectionError: it is not above 0.
        """
        if not 0 < ratio < float("inf"):
            raise CollectionError(f"The evidence ratio must be above 0, not {ratio}: 1.6 keeps pairs of landmarks")
        self._database.change("INSERT OR REPLACE INTO meta VALUES ('evidence_ratio', ?)", (str(float(ratio)),))

    def _encoder(self, encoder_id: int) -> EncoderRecord:
        row = self._database.row(f"SELECT {rows.ENCODER_COLUMNS} FROM encoders WHERE id = ?", (encoder_id,))
        if row is None:
            raise CollectionError(f"There is no encoder {encoder_id} in the collection")
        return rows.encoder(row)

    def _insert(self, document: Document) -> int:
        at = now()
        return self._database.insert(
            _INSERT_DOCUMENT,
            (
                encode_text(document.source),
                encode_text(document.external_id),
                *_columns(document),
                at,
                at,
                self.generation,
            ),
        )

    def _replace(self, document_id: int, document: Document) -> int:
        self._bury(document_id)
        fulltext.remove(self._database, document_id)
        for table in ("vectors", "evidence", "pages"):
            self._database.change(f"DELETE FROM {table} WHERE document_id = ?", (document_id,))
        self._database.change(_UPDATE_DOCUMENT, (*_columns(document), now(), self.generation, document_id))
        return document_id

    def _put_pages(self, document_id: int, document: Document) -> None:
        self._database.change_many(
            "INSERT INTO pages (document_id, number, generation, text) VALUES (?, ?, ?, CAST(? AS TEXT))",
            (
                (document_id, number, self.generation, encode_text(page))
                for number, page in enumerate(document.pages, start=1)
            ),
        )
        fulltext.add(self._database, document_id, document.title, document.text)

    def _bury(self, document_id: int) -> None:
        """Leave a tombstone for every vector of a document."""
        self._database.change(
            "INSERT OR REPLACE INTO tombstones (encoder_id, document_id, generation) "
            "SELECT encoder_id, document_id, ? FROM vectors WHERE document_id = ?",
            (self.generation, document_id),
        )


def _columns(document: Document) -> tuple[Any, ...]:
    text = document.text
    return (
        encode_text(document.title),
        document.kind,
        len(document.pages),
        len(text),
        len(encode_text(text)),
        rows.to_json(document.metadata, f"The metadata of {document.external_id!r}"),
        document.sha256,
        document.text_sha256,
        document.size,
        document.mtime_ns,
        document.language,
        json.dumps(document.warnings),
    )
