"""Checks of a collection, from SQLite's own pages to the index files, and repairs of what can be made anew."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from indexes import fulltext, rows
from indexes.database import Database
from indexes.errors import CollectionError
from indexes.records import PAGE_SEPARATOR, EncoderRecord, encode_text
from indexes.transaction import Transaction
from indexes.vector_cache import file_of

if TYPE_CHECKING:
    from indexes.collection import Collection

_BATCH = 64  # embeddings held at a time


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, whether a repair can mend it, and whether one did."""

    what: str
    repairable: bool
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class _Finding:
    what: str
    repair: Callable[[Transaction], object] | None = None


def verify(collection: "Collection", database: Database, *, repair: bool) -> list[Problem]:
    """Check a collection, and repair what can be.

    A repair rebuilds the full text from the pages and the index files from the vectors, and removes rows that
    belong to nothing and embeddings that are damaged, so that these count as missing. Damaged text is only
    reported: the file has to be read again.

    Raises:
        LockedError: `repair` is wanted while another writer works.
    """
    if not repair:
        return [Problem(found.what, found.repair is not None) for found in _find(collection, database)]
    with nullcontext() if collection.writing else collection.write("verify --repair"):
        findings = list(_find(collection, database))
        problems = [Problem(found.what, found.repair is not None) for found in findings]
        if not any(found.repair for found in findings):
            return problems
        with collection.transaction() as transaction:
            for found in findings:
                if found.repair is not None:
                    found.repair(transaction)
        collection.persist_caches()
    return [replace(problem, repaired=problem.repairable) for problem in problems]


def _find(collection: "Collection", database: Database) -> Iterator[_Finding]:
    sound = True
    for finding in _sqlite(database):
        sound = False
        yield finding
    if not sound:
        return
    yield from _fulltext(database)
    with database.snapshot():
        yield from _orphans(database)
        for document in collection.documents():
            what = _text_problem(database, document.id, document.pages, document.text_sha256)
            if what:
                yield _Finding(f"Document {document.id} ({document.path}): {what}: remove it and ingest it again")
        for encoder in collection.encoders(active_only=False):
            damaged = list(_embeddings(database, encoder))
            yield from damaged
            if encoder.active and not damaged:
                yield from _cache(collection, encoder)


def _sqlite(database: Database) -> Iterator[_Finding]:
    try:
        found = [row[0] for row in database.rows("PRAGMA integrity_check(10)")]
    except CollectionError as error:
        yield _Finding(str(error))
        return
    for line in found:
        if line != "ok" and "fulltext" not in line:  # newer SQLite looks into FTS5 as well; that comes next
            yield _Finding(f"The database file is damaged: {line}: make the collection again from the files")


def _fulltext(database: Database) -> Iterator[_Finding]:
    def rebuild(_: Transaction) -> None:
        fulltext.rebuild(database)

    try:
        database.change("INSERT INTO fulltext (fulltext) VALUES ('integrity-check')")
    except CollectionError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError):  # the check wants the write lock for a moment
            raise
        yield _Finding(f"The full-text index is damaged: {error.__cause__}", rebuild)
        return
    differing = database.value(
        "SELECT (SELECT count(*) FROM (SELECT id FROM documents EXCEPT SELECT id FROM fulltext_docsize)) "
        "+ (SELECT count(*) FROM (SELECT id FROM fulltext_docsize EXCEPT SELECT id FROM documents))"
    )
    if differing:
        yield _Finding(f"Documents in which the full-text index and the texts differ: {differing}", rebuild)


def _orphans(database: Database) -> Iterator[_Finding]:
    gone = {
        "document": "document_id NOT IN (SELECT id FROM documents)",
        "encoder": "encoder_id NOT IN (SELECT id FROM encoders)",
        "vector": "(encoder_id, document_id) NOT IN (SELECT encoder_id, document_id FROM vectors)",
    }
    for table, parents in (
        ("pages", ("document",)),
        ("vectors", ("document", "encoder")),
        ("evidence", ("document", "encoder", "vector")),
        ("tombstones", ("encoder",)),
    ):
        for parent in parents:
            count = database.value(f"SELECT count(*) FROM {table} WHERE {gone[parent]}")
            if count:
                told = f"Rows of {table} that belong to no {parent}: {count}"
                yield _Finding(told, _deletion(database, table, gone[parent]))


def _deletion(database: Database, table: str, condition: str) -> Callable[[Transaction], None]:
    def delete(transaction: Transaction) -> None:
        if table == "vectors":  # an index file may hold them
            database.change(
                "INSERT OR REPLACE INTO tombstones SELECT encoder_id, document_id, ? FROM vectors "
                f"WHERE {condition} AND encoder_id IN (SELECT id FROM encoders)",
                (transaction.generation,),
            )
        database.change(f"DELETE FROM {table} WHERE {condition}")

    return delete


def _text_problem(database: Database, document_id: int, pages: int, sha256: str) -> str | None:
    try:
        found = database.rows("SELECT text FROM pages WHERE document_id = ? ORDER BY number", (document_id,))
    except CollectionError as error:
        return f"its text cannot be read ({error.__cause__})"
    if len(found) != pages:
        return f"the number of its pages is {len(found)} in place of {pages}"
    digest = hashlib.sha256()
    for number, (page,) in enumerate(found):
        digest.update(encode_text(page if number == 0 else f"{PAGE_SEPARATOR}{page}"))
    return None if digest.hexdigest() == sha256 else "its text is not what was stored"


def _embeddings(database: Database, encoder: EncoderRecord) -> Iterator[_Finding]:
    last = 0
    while found := database.rows(
        f"SELECT v.document_id, d.characters, e.document_id, {rows.EMBEDDING_COLUMNS} FROM vectors v "
        "JOIN documents d ON d.id = v.document_id LEFT JOIN evidence e USING (encoder_id, document_id) "
        "WHERE v.encoder_id = ? AND v.document_id > ? ORDER BY v.document_id LIMIT ?",
        (encoder.id, last, _BATCH),
    ):
        for row in found:
            what = _embedding_problem(row, encoder)
            if what:
                yield _Finding(
                    f"The {encoder.pooling} embedding of document {row[0]} is damaged: {what}",
                    _removal(row[0], encoder.id),
                )
        last = found[-1][0]


def _removal(document_id: int, encoder_id: int) -> Callable[[Transaction], None]:
    return lambda transaction: transaction.remove_embedding(document_id, encoder_id)


def _embedding_problem(row: tuple[Any, ...], encoder: EncoderRecord) -> str | None:
    _, characters, evidence, *columns = row
    if evidence is None:
        return "its evidence is gone"
    try:
        embedding = rows.embedding(tuple(columns))
    except ValueError as error:  # the length of a blob
        return str(error)
    return rows.embedding_problem(embedding, encoder.dimension, characters)


def _cache(collection: "Collection", encoder: EncoderRecord) -> Iterator[_Finding]:
    what = collection.fresh_cache(encoder).problem()
    if what:
        file = file_of(collection.path, encoder.id)
        yield _Finding(f"The index file {file.name} {what}", lambda _: collection.forget_cache(encoder))
