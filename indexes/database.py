"""One SQLite connection a thread, read snapshots, and errors that a user can act on."""

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from indexes.errors import CollectionError

BUSY_SECONDS = 30.0
_decode = partial(str, encoding="utf-8", errors="surrogatepass")  # called once a text: without a frame of Python


class _Handle:
    """A thread's connection; closed when the thread ends, or with the database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.depth = 0  # of nested snapshots
        self.writing = False
        self.close = weakref.finalize(self, connection.close)


class Database:
    """An SQLite file in WAL mode, usable from any thread.

    Args:
        file: the database file.
        name: how to call it in an error.
        create: make the file when it is missing.
    """

    def __init__(self, file: Path, name: str, *, create: bool = False) -> None:
        self._file = file
        self._name = name
        self._mode = "rwc" if create else "rw"
        self._local = threading.local()
        self._handles: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection, in autocommit mode."""
        return self._handle().connection

    @property
    def in_snapshot(self) -> bool:
        """Whether this thread reads inside `snapshot()`."""
        return self._handle().depth > 0

    @property
    def writing(self) -> bool:
        """Whether this thread has a write transaction open."""
        return self._handle().writing

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        with self.errors():
            return self.connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run a statement and return its first row."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - what the column holds
        """Run a statement that gives one row of one column and return that value."""
        return self.rows(sql, parameters)[0][0]

    def change(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement that writes, and return how many rows it changed."""
        with self.errors():
            return self.connection.execute(sql, parameters).rowcount

    def insert(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run an INSERT and return the new row's id."""
        with self.errors():
            return self.connection.execute(sql, parameters).lastrowid or 0

    def change_many(self, sql: str, parameters: Iterator[Sequence[Any]]) -> None:
        """Run a statement that writes once for each row of parameters."""
        with self.errors():
            self.connection.executemany(sql, parameters)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Hold one state of the database for all that this thread reads inside; nests."""
        handle = self._handle()
        outermost = handle.depth == 0 and not handle.writing
        if outermost:
            with self.errors():
                handle.connection.execute("BEGIN")
        handle.depth += 1
        try:
            if outermost:  # SQLite takes the snapshot at the first read, not at BEGIN
                self.rows("SELECT count(*) FROM sqlite_master")
            yield
        finally:
            handle.depth -= 1
            if outermost:
                handle.connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside, or, when it raises, nothing."""
        handle = self._handle()
        if handle.writing or handle.depth:
            raise CollectionError("A write transaction cannot be opened inside a snapshot or another transaction")
        with self.errors():
            handle.connection.execute("BEGIN IMMEDIATE")
        handle.writing = True
        try:
            yield
            with self.errors():
                handle.connection.execute("COMMIT")
        except BaseException:
            if handle.connection.in_transaction:
                handle.connection.execute("ROLLBACK")
            raise
        finally:
            handle.writing = False

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            self._closed = True
            for handle in list(self._handles):
                handle.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what SQLite raises into a `CollectionError`."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise CollectionError(f"The collection at {self._name} is damaged ({error})") from error
        except sqlite3.OperationalError as error:
            raise CollectionError(f"The collection at {self._name} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.ProgrammingError | sqlite3.NotSupportedError):
                raise
            raise CollectionError(
                f"The collection at {self._name} is damaged ({error}): run `lmk-rag verify --repair`, or make it "
                "again from the files"
            ) from error

    def _handle(self) -> _Handle:
        handle: _Handle | None = getattr(self._local, "handle", None)
        if handle is None or self._closed:
            handle = self._open()
            self._local.handle = handle
        return handle

    def _open(self) -> _Handle:
        with self._lock:
            if self._closed:
                raise CollectionError(f"The collection at {self._name} has been closed")
            connection = _connect(self._file, self._mode, self._name)
            handle = _Handle(connection)
            self._handles.add(handle)
            return handle


def _connect(file: Path, mode: str, name: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # closed from another thread; used from one only
        )
    except sqlite3.Error as error:
        raise CollectionError(f"{file} cannot be opened: {error}") from error
    try:
        connection.text_factory = _decode
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA application_id")  # the first to read the file
    except sqlite3.Error as error:
        connection.close()
        if "not a database" in str(error):
            raise CollectionError(
                f"{file} is not an SQLite database, so {name} is not a collection, or it is damaged: restore it, "
                "or make it again from the files"
            ) from error
        hint = ": restore it, or make it again from the files" if "malformed" in str(error) else ""
        hint = ": its folder must be writable, for readers too" if "unable to open" in str(error) else hint
        raise CollectionError(f"The collection at {name} cannot be opened: {error}{hint}") from error
    return connection
