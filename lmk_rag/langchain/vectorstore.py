"""A collection as LangChain's `VectorStore`."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from indexes.collection import Collection
from indexes.filters import Filter
from indexes.records import StoredDocument
from lmk_rag.langchain import documents as convert
from lmk_rag.langchain.filters import as_filter
from lmk_rag.langchain.vectors import FloatArray, unit, vectors_of

Filters = Mapping[str, Any] | str | None
"""A mapping on metadata or an expression of the command line; see `lmk_rag.langchain.filters.as_filter`."""

_FEW_CHANGES = 1000
"""Documents that are always written without renewing the index files, which are a cache."""


class LMKVectorStore(VectorStore):
    """A store over a collection: documents stay whole, one vector each.

    It finds everything in the collection, files that were ingested too: their id is their path. Searches are dense,
    by cosine; vectors of other embeddings are brought to length 1. Such an embedding is noted at the first write,
    and from then on the collection takes no other. Text and metadata come back as they were given.

    Threads may share a store, and the async methods leave the event loop free. A second writer, such as an ingest in
    another process, is refused by `indexes.errors.LockedError`.
    """

    def __init__(self, collection: str | Path, embedding: Embeddings | None = None) -> None:
        """Open a collection.

        Args:
            collection: its folder, made where it is missing.
            embedding: any embedding of LangChain; None for the one that made the collection, or the default.

        Raises:
            CollectionError: it is a file, or a collection that is damaged or was written by a newer version.
            OSError: the folder cannot be made.
        """
        self.collection = Collection.open(Path(collection).expanduser(), create=True)
        self._vectors = vectors_of(self.collection, embedding)
        self._lock = threading.Lock()
        self._changes = 0

    @property
    def embeddings(self) -> Embeddings:
        """What embeds."""
        return self._vectors.embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        collection: str | Path = "lmk-collection",
        **_: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Self:
        """Open a collection and add texts, of which there may be none.

        Args:
            texts: any strings.
            embedding: as in the class.
            metadatas: one a text.
            ids: one a text; see `add_texts`.
            collection: its folder, made where it is missing.
        """
        store = cls(collection, embedding)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,  # noqa: ANN401 - LangChain's signature; `index` gives a batch size
    ) -> list[str]:
        """Add texts, or replace those with the same ids: all of them, or, when it raises, none.

        Args:
            texts: any strings; they are not cleaned.
            metadatas: one a text, JSON-able.
            ids: one a text; a missing one, or None among them, becomes a UUID.

        Returns:
            The ids, in the order of the texts.

        Raises:
            ValueError: the numbers of texts, metadatas and ids differ, or metadata would not come back as it is.
            FingerprintError: the collection's vectors were made by another embedding.
            LockedError: another writer is at work.
        """
        texts = list(texts)
        metadatas = list(metadatas or [{}] * len(texts))
        ids = list(ids or [None] * len(texts))
        if not len(texts) == len(metadatas) == len(ids):
            raise ValueError(
                f"{len(texts)} texts came with {len(metadatas)} metadatas and {len(ids)} ids: give one of each a text."
            )
        names = [convert.new_id() if each is None else str(each) for each in ids]
        made = [convert.to_collection(*each) for each in zip(names, texts, metadatas, strict=True)]
        if made:
            self._vectors.write(made, self._writing)
        return names

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:  # noqa: ANN401 - as above
        """Add documents, or replace those with the same ids; ``ids`` goes before the documents' own.

        Returns and raises what `add_texts` does.
        """
        ids = kwargs.pop("ids", None) or [document.id for document in documents]
        texts = [document.page_content for document in documents]
        return self.add_texts(texts, [document.metadata for document in documents], ids=ids, **kwargs)

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:  # noqa: ANN401 - as above
        """Delete documents; an id that is not there is passed over.

        Args:
            ids: which; None for all that were added through LangChain (files that were ingested stay).

        Returns:
            True: what was named is not there any more.

        Raises:
            LockedError: another writer is at work.
        """
        with self._writing(self.collection.count() if ids is None else len(ids)):
            if ids is None:
                found = list(self.collection.documents(Filter.from_dict({"source": convert.SOURCE})))
            else:
                found = [stored for each in ids if (stored := convert.find(self.collection, str(each)))]
            if found:
                with self.collection.transaction() as transaction:
                    for stored in found:
                        transaction.remove(stored.id)
        return True

    # Reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in their order; those that are not there are left out."""
        with self.collection.snapshot():
            found = (convert.find(self.collection, str(each)) for each in ids)
            return [convert.to_langchain(self.collection, stored) for stored in found if stored is not None]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: Filters = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> list[Document]:
        """Return the k documents nearest to a query, best first.

        Raises:
            FilterError: the filter cannot be read.
            FingerprintError: the collection's vectors were made by another embedding.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filters = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> list[tuple[Document, float]]:
        """Return the k documents nearest to a query with their cosines, in [-1, 1], best first."""
        if self._vectors.record() is None:
            return []
        return self.similarity_search_with_score_by_vector(self._vectors.query(query), k, filter)

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Filters = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> list[Document]:
        """Return the k documents nearest to a vector of any length, best first."""
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, filter)]

    def similarity_search_with_score_by_vector(
        self,
        embedding: list[float] | FloatArray,
        k: int = 4,
        filter: Filters = None,
    ) -> list[tuple[Document, float]]:
        """Return the k documents nearest to a vector with their cosines, in [-1, 1], best first.

        Raises:
            ValueError: the vector is zero or not finite.
        """
        with self.collection.snapshot():
            found = self._nearest(unit(np.asarray([embedding]))[0], k, filter)
            return [(convert.to_langchain(self.collection, stored), score) for stored, score in found]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filters = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> list[Document]:
        """Return k of the ``fetch_k`` documents nearest to a query, chosen to be near to it and unlike each other.

        Args:
            query: any text.
            k: how many come back.
            fetch_k: how many are chosen from.
            lambda_mult: 1 looks at nearness alone, 0 at difference alone.
            filter: only documents that it lets through.
        """
        if self._vectors.record() is None:
            return []
        vector = self._vectors.query(query).tolist()
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filters = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> list[Document]:
        """Do the same as `max_marginal_relevance_search` for a vector."""
        vector = unit([embedding])[0]
        with self.collection.snapshot():
            found = [stored for stored, _ in self._nearest(vector, fetch_k, filter)]
            known = self._stored_vectors([stored.id for stored in found])
            vectors = [known[stored.id] for stored in found]
            chosen = maximal_marginal_relevance(vector, vectors, lambda_mult=lambda_mult, k=k)
            return [convert.to_langchain(self.collection, found[place]) for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Take a cosine as the relevance; 0 for one below 0, which says no more than "unrelated"."""
        return lambda cosine: min(max(cosine, 0.0), 1.0)

    def _nearest(self, vector: FloatArray, k: int, filter: Filters) -> list[tuple[StoredDocument, float]]:
        """Return documents with their cosines; inside a snapshot."""
        record = self._vectors.record()
        if record is None:
            return []
        read = as_filter(filter)
        allowed = None if read is None else self.collection.allowed(read)
        found = self.collection.index(record).search(vector, k, allowed)
        # The index may show what another thread has written since this one's snapshot was taken.
        return [(stored, score) for each, score in found if (stored := self.collection.get(each)) is not None]

    def _stored_vectors(self, ids: Sequence[int]) -> dict[int, list[float]]:
        record = self._vectors.record()
        if record is None:
            return {}
        batches = self.collection.vectors(record).fetch(np.array(ids, np.int64))
        return {each: row for found, rows in batches for each, row in zip(found.tolist(), rows.tolist(), strict=True)}

    @contextmanager
    def _writing(self, changes: int) -> Iterator[None]:
        """Hold the writer's lock for some changes; the threads of this store wait for each other.

        The index files are renewed once so much has changed that reading them would save little.
        """
        with self._lock, self.collection.write("LangChain"):
            yield
            self._changes += changes
            if self._changes > max(_FEW_CHANGES, self.collection.count() // 2):
                self.collection.persist_caches()
                self._changes = 0
