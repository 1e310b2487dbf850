"""The tables of a collection, and the numbered steps from an empty file to the newest schema."""

import secrets
import sqlite3
from collections.abc import Callable

from indexes.database import Database
from indexes.errors import CollectionError, SchemaError
from indexes.fulltext import CREATE_FULLTEXT, CREATE_VOCABULARY, rebuild
from indexes.times import now

APPLICATION_ID = 0x4C4D4B52  # "LMKR", in the file's header: tells a collection from any other SQLite file

_FIRST = [
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE generations (number INTEGER PRIMARY KEY, token TEXT NOT NULL, at TEXT NOT NULL)",
    # AUTOINCREMENT: the id of a removed document is never given to another one.
    """CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL,
        external_id TEXT NOT NULL,
        title TEXT NOT NULL,
        kind TEXT NOT NULL,
        pages INTEGER NOT NULL,
        characters INTEGER NOT NULL,
        text_bytes INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        sha256 TEXT,
        text_sha256 TEXT NOT NULL,
        size INTEGER,
        mtime_ns INTEGER,
        language TEXT,
        warnings TEXT NOT NULL,
        added TEXT NOT NULL,
        updated TEXT NOT NULL,
        generation INTEGER NOT NULL,
        UNIQUE (source, external_id))""",
    "CREATE INDEX documents_by_text ON documents (text_sha256)",
    """CREATE TABLE pages (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (document_id, number))""",
    """CREATE TABLE encoders (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        pooling TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        active INTEGER NOT NULL,
        generation INTEGER NOT NULL)""",
    "CREATE UNIQUE INDEX one_active_encoder ON encoders (pooling) WHERE active",
    # Evidence has a table of its own: it is a hundred times larger than the vectors, which are read in bulk.
    """CREATE TABLE vectors (
        encoder_id INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        generation INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        truncated INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (encoder_id, document_id))""",
    "CREATE INDEX vectors_by_generation ON vectors (encoder_id, generation, document_id)",
    "CREATE INDEX vectors_by_document ON vectors (document_id)",
    """CREATE TABLE evidence (
        encoder_id INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        generation INTEGER NOT NULL,
        spans BLOB NOT NULL,
        scales BLOB NOT NULL,
        vectors BLOB NOT NULL,
        PRIMARY KEY (encoder_id, document_id))""",
    "CREATE INDEX evidence_by_document ON evidence (document_id)",
    """CREATE TABLE tombstones (
        encoder_id INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
        document_id INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (encoder_id, document_id)) WITHOUT ROWID""",
    "CREATE INDEX tombstones_by_generation ON tombstones (encoder_id, generation)",
    """CREATE TABLE failures (
        path TEXT PRIMARY KEY,
        reason TEXT NOT NULL,
        sha256 TEXT,
        size INTEGER,
        mtime_ns INTEGER,
        at TEXT NOT NULL,
        generation INTEGER NOT NULL) WITHOUT ROWID""",
    CREATE_FULLTEXT,
]


def _first(database: Database) -> None:
    for statement in _FIRST:
        database.change(statement)


def _words_as_written(database: Database) -> None:
    """Until now words stood in the full-text index as stems."""
    rebuild(database)
    database.change(CREATE_VOCABULARY)


MIGRATIONS: list[Callable[[Database], None]] = [_first, _words_as_written]
"""Step i leads from schema i to schema i + 1."""

SCHEMA_VERSION = len(MIGRATIONS)


def new_generation(connection: sqlite3.Connection, at: str) -> int:
    """Add a generation with a random token, inside the transaction that is open, and return its number."""
    (number,) = connection.execute("SELECT coalesce(max(number) + 1, 0) FROM generations").fetchone()
    connection.execute("INSERT INTO generations VALUES (?, ?, ?)", (number, secrets.token_hex(16), at))
    return int(number)


def prepare(database: Database, name: str, *, create: bool) -> None:
    """Check that the file is a collection of a schema that this version knows, and bring it up to date.

    Args:
        database: the file, newly opened.
        name: how to call the collection in an error.
        create: make the tables where the file is empty.

    Raises:
        CollectionError: the file is something else.
        SchemaError: a newer version wrote it.
    """
    connection = database.connection
    version = _version(connection, name, create=create)
    if version == SCHEMA_VERSION:
        return
    if version == 0:
        connection.execute("PRAGMA journal_mode = WAL")  # kept in the file
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, name, create=create)  # another process may have done it meanwhile
        for step in MIGRATIONS[version:]:
            step(database)
        if version == 0:
            _fill(connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, name: str, *, create: bool) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and not (create and tables == 0 and application == version == 0):
        raise CollectionError(f"{name} holds an SQLite file that is not a collection of lmk-rag: choose another folder")
    if version > SCHEMA_VERSION:
        raise SchemaError(
            f"The collection at {name} has schema {version} and this version of lmk-rag reads schemas up to "
            f"{SCHEMA_VERSION}: upgrade lmk-rag"
        )
    return int(version)


def _fill(connection: sqlite3.Connection) -> None:
    at = now()
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [("created", at), ("index", "auto")])
    new_generation(connection, at)
