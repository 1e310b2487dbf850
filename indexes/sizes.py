"""How much a collection holds, in counts and bytes."""

from pathlib import Path
from typing import Any

from indexes.database import Database
from indexes.vector_cache import file_of


def measure(folder: Path, database: Database) -> dict[str, Any]:
    """Return bytes by kind.

    `database` is the SQLite file with its log, `text` the documents' UTF-8, `fulltext` the full-text index,
    `vectors`, `evidence`, `scales`, `spans` and `index` (the index file) stand in `encoders` by pooling and, where
    it is not the active one, its number; there `ratio` is vectors, evidence, scales and spans to the text.
    """
    with database.snapshot():
        text = int(database.value("SELECT coalesce(sum(text_bytes), 0) FROM documents"))
        fulltext = database.value(
            "SELECT (SELECT coalesce(sum(length(block)), 0) FROM fulltext_data) "
            "+ (SELECT coalesce(sum(length(sz)), 0) FROM fulltext_docsize)"
        )
        encoders = {
            pooling if active else f"{pooling} ({encoder_id})": _encoder(folder, database, encoder_id)
            for encoder_id, pooling, active in database.rows("SELECT id, pooling, active FROM encoders ORDER BY id")
        }
    for kinds in encoders.values():
        stored = sum(kinds[kind] for kind in ("vectors", "evidence", "scales", "spans"))
        kinds["ratio"] = round(stored / text, 4) if text else 0.0
    files = ("collection.sqlite", "collection.sqlite-wal")
    return {
        "database": sum(_size(folder / name) for name in files),
        "text": text,
        "fulltext": int(fulltext),
        "encoders": encoders,
    }


def count(database: Database) -> dict[str, Any]:
    """Return counts: documents, by kind and by source, pages, characters, failures, and each encoder's documents.

    `encoders` has, by encoder number, `pooling`, `active`, `documents`, `tokens`, `truncated` and
    `evidence` (vectors).
    """
    with database.snapshot():
        documents, pages, characters = database.rows(
            "SELECT count(*), coalesce(sum(pages), 0), coalesce(sum(characters), 0) FROM documents"
        )[0]
        encoders = database.rows(
            "SELECT e.id, e.pooling, e.active, count(v.document_id), coalesce(sum(v.tokens), 0), "
            "coalesce(sum(v.truncated), 0), "
            "(SELECT coalesce(sum(length(scales)), 0) / 4 FROM evidence WHERE encoder_id = e.id) "
            "FROM encoders e LEFT JOIN vectors v ON v.encoder_id = e.id GROUP BY e.id ORDER BY e.id"
        )
        return {
            "documents": documents,
            "pages": pages,
            "characters": characters,
            "kinds": dict(database.rows("SELECT kind, count(*) FROM documents GROUP BY kind ORDER BY kind")),
            "sources": dict(database.rows("SELECT source, count(*) FROM documents GROUP BY source ORDER BY source")),
            "failures": database.value("SELECT count(*) FROM failures"),
            "generation": database.value("SELECT max(number) FROM generations"),
            "encoders": {
                row[0]: {
                    "pooling": row[1],
                    "active": bool(row[2]),
                    "documents": row[3],
                    "tokens": row[4],
                    "truncated": row[5],
                    "evidence": row[6],
                }
                for row in encoders
            },
        }


def _encoder(folder: Path, database: Database, encoder_id: int) -> dict[str, Any]:
    vectors = database.value("SELECT coalesce(sum(length(vector)), 0) FROM vectors WHERE encoder_id = ?", (encoder_id,))
    evidence, scales, spans = database.rows(
        "SELECT coalesce(sum(length(vectors)), 0), coalesce(sum(length(scales)), 0), coalesce(sum(length(spans)), 0) "
        "FROM evidence WHERE encoder_id = ?",
        (encoder_id,),
    )[0]
    index = _size(file_of(folder, encoder_id))
    return {"vectors": vectors, "evidence": evidence, "scales": scales, "spans": spans, "index": index}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
