"""A collection: one folder, its SQLite file the truth, its index files a cache of it."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from indexes import bm25, fulltext, schema, sizes, verify
from indexes.database import Database
from indexes.errors import CollectionError
from indexes.filters import Filter
from indexes.lock import writer_lock
from indexes.query import Words
from indexes.reading import Reader
from indexes.records import EncoderRecord
from indexes.times import now
from indexes.transaction import Transaction
from indexes.vector_cache import VectorCache, file_of, remove_files

DATABASE_FILE = "collection.sqlite"


class Collection(Reader):
    """Documents, pages, full text and vectors in one folder; any thread may read, one writer may write.

    `Collection.open` makes one.
    """

    def __init__(self, path: Path, database: Database) -> None:
        super().__init__(database)
        self.path = path
        self._caches: dict[int, VectorCache] = {}
        self._lock = threading.Lock()
        self._writer: int | None = None  # the thread inside write()

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False) -> Self:
        """Open the collection in a folder.

        Args:
            path: the folder.
            create: make the folder and the collection where they are missing.

        Raises:
            CollectionError: there is no collection, or the folder holds something else.
            SchemaError: a newer version of the program wrote it.
        """
        path = Path(path)
        file = path / DATABASE_FILE
        if path.exists() and not path.is_dir():
            raise CollectionError(f"{path} is a file, and a collection is a folder: choose another path")
        if create:
            path.mkdir(parents=True, exist_ok=True)
        elif not file.exists():
            raise CollectionError(
                f"There is no collection at {path}: make one with `lmk-rag ingest PATH --collection {path}`"
            )
        database = Database(file.absolute(), str(path), create=create)
        try:
            with database.errors():
                schema.prepare(database, str(path), create=create)
        except BaseException:
            database.close()
            raise
        return cls(path.absolute(), database)

    def close(self) -> None:
        """Close the connections of all threads."""
        self._database.close()

    def __enter__(self) -> Self:
        """Return the collection itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the collection."""
        self.close()

    # Searching

    def fulltext(self, query: str | Words, k: int, filter: Filter | None = None) -> list[tuple[int, float]]:
        """Return the best documents by BM25, whatever the query holds.

        Args:
            query: words, and phrases in double quotes, or what `parse` makes of them; a document needs one.
            k: how many at most.
            filter: only documents that it lets through.

        Returns:
            (document id, score), best first; scores are above 0, without an upper bound.
        """
        return bm25.search(self._database, self.parse(query) if isinstance(query, str) else query, k, filter)

    def parse(self, query: str) -> Words:
        """Return the words and phrases that `fulltext` looks for: all of a query's, of a long one the strongest."""
        return fulltext.parse(self._database, query)

    def holding(self, terms: Iterable[str], document_id: int | None = None) -> list[int]:
        """Count for each term the documents that hold it, 1,000 at most; of one document, whether it does (1 or 0)."""
        return fulltext.holding(self._database, terms, document_id)

    def index(self, encoder: EncoderRecord) -> VectorCache:
        """Return the index of one encoder's vectors, brought up to the generation that this thread sees.

        Raises:
            CollectionError: inside `transaction()`, or without FAISS.
        """
        if self._database.writing:
            raise CollectionError("The index cannot be used inside a transaction: use it after the commit")
        with self._lock:
            cache = self._caches.get(encoder.id)
            if cache is None:
                cache = self.fresh_cache(encoder)
                self._caches[encoder.id] = cache
        cache.sync()
        return cache

    def fresh_cache(self, encoder: EncoderRecord) -> VectorCache:
        """Return a cache of one encoder's vectors that has read nothing yet and is used by nobody else."""
        return VectorCache(self.path, self.vectors(encoder), encoder)

    def forget_cache(self, encoder: EncoderRecord) -> None:
        """Drop one encoder's index, in memory and on file; the next use builds it anew."""
        with self._lock:
            self._caches.pop(encoder.id, None)
        file_of(self.path, encoder.id).unlink(missing_ok=True)

    def snapshot(self) -> AbstractContextManager[None]:
        """Hold one state of the collection for everything that this thread reads inside; nests."""
        return self._database.snapshot()

    # Care

    def sizes(self) -> dict[str, Any]:
        """Return bytes by kind; see `indexes.sizes.measure`."""
        return sizes.measure(self.path, self._database)

    def stats(self) -> dict[str, Any]:
        """Return counts; see `indexes.sizes.count`."""
        return sizes.count(self._database)

    def verify(self, repair: bool = False) -> list[verify.Problem]:
        """Check the collection; see `indexes.verify`.

        Raises:
            LockedError: `repair` is wanted while another writer works.
        """
        return verify.verify(self, self._database, repair=repair)

    # Writing

    @property
    def writing(self) -> bool:
        """Whether this thread is inside `write()`."""
        return self._writer == threading.get_ident()

    @contextmanager
    def write(self, purpose: str) -> Iterator[Self]:
        """Hold the writer's lock.

        Args:
            purpose: one or two words, for the message that a second writer gets.

        Raises:
            LockedError: another writer holds it, in this process or another.
        """
        with writer_lock(self.path, purpose):
            self._writer = threading.get_ident()
            try:
                yield self
            finally:
                self._writer = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Write what is done inside as one new generation, or, when it raises, nothing.

        Raises:
            CollectionError: this thread is not inside `write()`.
        """
        if not self.writing:
            raise CollectionError("transaction() works only inside write(), in the same thread")
        with self._database.transaction():
            with self._database.errors():
                generation = schema.new_generation(self._database.connection, now())
            yield Transaction(self._database, generation)

    def persist_caches(self) -> None:
        """Write the index files of the active encoders; at the end of a writer's work.

        Raises:
            CollectionError: this thread is not inside `write()`.
        """
        if not self.writing:
            raise CollectionError("persist_caches() works only inside write(), in the same thread")
        encoders = self.encoders()
        for encoder in encoders:
            self.index(encoder).save()
        remove_files(self.path, keep={encoder.id for encoder in encoders})
