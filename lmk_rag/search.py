"""A query becomes hits: dense and BM25 find candidates, evidence weighs them, fusion ranks, passages point."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from indexes.collection import Collection
from indexes.errors import CollectionError, FilterError
from indexes.filters import Filter
from indexes.query import Words
from indexes.records import EncoderRecord, StoredDocument
from lmk_rag.candidates import FloatArray, Question, Ranking, by_all, by_vector, by_words
from lmk_rag.evidence import query_vectors
from lmk_rag.fusion import FUSIONS
from lmk_rag.indexing import Settings, load_encoder, own_records
from lmk_rag.near_duplicates import Found, NearDuplicates
from lmk_rag.passages import Passage
from lmk_rag.pointing import mark, passages, strip
from lmk_rag.results import MODES, SCORE_KINDS, FoldedHit, Hit, Results, StripCell
from lmk_rag.wording import count

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Embedding, Encoder

__all__ = ["FUSIONS", "MODES", "SCORE_KINDS", "FoldedHit", "Hit", "Ranking", "Results", "Searcher", "StripCell"]

Filtering = Filter | Mapping[str, Any] | str | None

_CANDIDATES = 100
"""Documents taken from each list before evidence and fusion, at least."""
_DEEPEST = 2**31
"""More documents than a collection holds: what SQLite is asked for at most, however large a k is."""
_DEEPER = 4
"""How many times as many are taken when near copies leave too few."""
_PASSAGES = 3
_QUERIES_KEPT = 64
_NOTHING: FloatArray = np.empty((0, 0), np.float32)


class Searcher:
    """Searches one collection; encoders are loaded at their first use. Threads may share it."""

    def __init__(self, collection: Collection, device: str = "auto") -> None:
        """Take an open collection and the device for its encoders."""
        self.collection = collection
        self.device = device
        self._encoders: dict[int, Encoder] = {}
        self._asked: dict[tuple[int, str], Embedding] = {}
        self._lacking: dict[int, tuple[int, int]] = {}
        self._copies = NearDuplicates(collection.text)
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | Path, device: str = "auto") -> Self:
        """Open the collection in a folder.

        Raises:
            CollectionError: where there is none, or it cannot be read.
        """
        return cls(Collection.open(path), device)

    def search(
        self,
        query: str,
        k: int = 10,
        mode: str = "hybrid",
        pooling: str | None = None,
        evidence: bool = True,
        filter: Filtering = None,
        fusion: str = "weighted",
    ) -> Results:
        """Find the documents that match a query best; near copies are folded under the first of them.

        Args:
            query: any text; double quotes mean phrases, for the lexical part.
            k: how many hits, at least 1; fewer come back only where fewer distinct documents match.
            mode: hybrid, dense or bm25 (which needs no model).
            pooling: whose vectors; None for lmk if indexed, else the collection's first.
            evidence: whether evidence vectors take part in the ranking and show the passages.
            filter: only documents that it lets through are looked at; a mapping is read by :meth:`Filter.from_dict`,
                an expression such as ``type=pdf`` by :meth:`Filter.parse`.
            fusion: how hybrid joins its lists: weighted, learned or reciprocal.

        Raises:
            ValueError: for a k that is no whole number or below 1, an unknown mode or an unknown fusion.
            FilterError: for what is no filter, or a filter that can have no meaning.
            CollectionError: where the pooling is not indexed.
            FingerprintError: where the model that made the vectors is not the one that is installed.
        """
        _check(k, mode, fusion)
        chosen = _filter(filter)
        if not query.strip():
            return Results(query, mode, None, SCORE_KINDS[mode], (), ("The query is empty.",))
        with self.collection.snapshot():
            record = None if mode == "bm25" else self._record(pooling)
            question = self._question(query, record, evidence)
            found = self.distinct(self._ranker(question, mode, chosen, fusion), k)
            done = mode if record else "bm25"
            notes = self._notes(record) if record else () if mode == done else (self._no_vectors(),)
            pooled = record.pooling if record else None
            return Results(query, done, pooled, SCORE_KINDS[done], self._hits(found, question), notes)

    def rank(
        self,
        query: str,
        k: int = 100,
        mode: str = "hybrid",
        pooling: str | None = None,
        evidence: bool = True,
        filter: Filtering = None,
        fusion: str = "weighted",
    ) -> Ranking:
        """Rank documents by their scores alone: near copies are among them, and no passages are looked for.

        Arguments and errors are those of :meth:`search`; more than k documents may come back.
        """
        _check(k, mode, fusion)
        if not query.strip():
            return Ranking({}, True)
        with self.collection.snapshot():
            question = self._question(query, None if mode == "bm25" else self._record(pooling), evidence)
            return self._ranker(question, mode, _filter(filter), fusion)(_depth(k))

    def more_like(self, document_id: int, k: int = 10, pooling: str | None = None, filter: Filtering = None) -> Results:
        """Find the documents that are most like one; its own near copies are no hits but the results' ``folded``.

        Args:
            document_id: the document's id.
            k: how many hits, at least 1.
            pooling: whose vectors; None for lmk if indexed, else the collection's first. A collection without vectors
                is asked by BM25 for the document's strongest words.
            filter: as for :meth:`search`.

        Raises:
            ValueError: for a k that is no whole number or below 1.
            FilterError: for what is no filter, or a filter that can have no meaning.
            CollectionError: where there is no such document, or it has no vector of that pooling.
        """
        _check(k)
        chosen = _filter(filter)
        with self.collection.snapshot():
            document = self._document(document_id)
            record = self._record(pooling)
            if record is None:
                question = self._question(self.collection.text(document_id), None, False)
            else:
                vector = self._vector(document_id, record)
                question = Question(Words(()), record, vector, vector[None])
            mode = "dense" if record else "bm25"
            notes = self._notes(record) if record else (self._no_vectors(),)

            def ranked(depth: int) -> Ranking:
                return (by_vector if record else by_words)(self.collection, question, depth, chosen)

            itself, *others = self.distinct(ranked, k + 1, document)
            hits = self._hits(others, question)
            asked, pooled = document.title or document.path, record.pooling if record else None
            return Results(asked, mode, pooled, SCORE_KINDS[mode], hits, notes, _folded(itself))

    def find(self, document_id: int, query: str, k: int = 10, pooling: str | None = None) -> tuple[Passage, ...]:
        """Find the passages of one document that match a query.

        Args:
            document_id: the document's id.
            query: as for :meth:`search`.
            k: how many passages, at least 1.
            pooling: whose evidence; None for lmk if indexed, else the collection's first. Without evidence vectors,
                passages are where the query's terms stand together.

        Returns:
            Passages that do not overlap, best first; none for an empty query.

        Raises:
            ValueError: for a k that is no whole number or below 1.
            CollectionError: where there is no such document, or the pooling is not indexed.
        """
        _check(k)
        with self.collection.snapshot():
            self._document(document_id)
            if not query.strip():
                return ()
            question = self._question(query, self._record(pooling), True)
            return mark([passages(self.collection, document_id, question, k)], question.words.terms)[0]

    def strip(self, document_id: int, query: str, pooling: str | None = None) -> tuple[StripCell, ...]:
        """Compare all evidence of one document with a query, from its first page to its last.

        Args:
            document_id: the document's id.
            query: as for :meth:`search`.
            pooling: whose evidence; None for lmk if indexed, else the collection's first.

        Returns:
            In reading order; none where the document has no evidence vectors (cls, lasttoken, max), or for an empty
            query.

        Raises:
            CollectionError: where there is no such document, or the pooling is not indexed.
        """
        with self.collection.snapshot():
            self._document(document_id)
            if not query.strip():
                return ()
            return strip(self.collection, document_id, self._question(query, self._record(pooling), True))

    def _question(self, query: str, record: EncoderRecord | None, evidence: bool) -> Question:
        words = self.collection.parse(query)
        if record is None:
            return Question(words, None, _NOTHING.ravel(), _NOTHING)
        asked = self._embedding(record, query)
        return Question(words, record, asked.vector, query_vectors(asked.evidence) if evidence else _NOTHING)

    def _embedding(self, record: EncoderRecord, query: str) -> "Embedding":
        """Embed a query; the last ones are kept, since a page asks for hits and then for strips."""
        with self._lock:
            known = self._asked.get((record.id, query))
        if known is None:
            known = self.encoder(record).encode_queries([query])[0]
            with self._lock:
                self._asked[record.id, query] = known
                while len(self._asked) > _QUERIES_KEPT:
                    del self._asked[next(iter(self._asked))]
        return known

    def _ranker(self, question: Question, mode: str, filter: Filter | None, fusion: str) -> Callable[[int], Ranking]:
        """Give what ranks candidates, that many from each list."""
        if question.record is None:
            return lambda depth: by_words(self.collection, question, depth, filter)
        return lambda depth: by_all(self.collection, question, mode, depth, filter, fusion)

    def distinct(self, ranked: Callable[[int], Ranking], k: int, first: StoredDocument | None = None) -> list[Found]:
        """Rank and fold, deeper and deeper until k distinct documents are found or there are no more.

        Args:
            ranked: ranks that many candidates.
            k: how many, at least 1.
            first: a document to put in front of the ranking.

        Returns:
            At most k documents, best first, each with its near copies.
        """
        depth = _depth(k)
        while True:
            ranking = ranked(depth)
            rows = self.collection.get_all(ranking.scores)  # an index may be ahead of what this thread sees
            found = [(rows[document], score) for document, score in ranking.best() if document in rows]
            if first is not None:
                found = [(first, 1.0), *(each for each in found if each[0].id != first.id)]
            folded = self._copies.fold(found, k, ranking.vectors, ranking.lists.get("bm25", {}))
            if len(folded) == k or ranking.complete:
                return folded
            depth *= _DEEPER

    def _hits(self, found: Sequence[Found], question: Question) -> tuple[Hit, ...]:
        pointed = [passages(self.collection, each.document.id, question, _PASSAGES) for each in found]
        marked = zip(found, mark(pointed, question.words.terms), strict=True)
        return tuple(
            Hit(
                rank,
                each.document.id,
                each.document.path,
                each.document.title,
                each.score,
                each.document.kind,
                each.document.pages,
                where,
                _folded(each),
            )
            for rank, (each, where) in enumerate(marked, start=1)
        )

    def _document(self, document_id: int) -> StoredDocument:
        found = self.collection.get(document_id)
        if found is None:
            raise CollectionError(
                f"There is no document {document_id} in {self.collection.path}: `lmk-rag list` gives the ids."
            )
        return found

    def _vector(self, document_id: int, record: EncoderRecord) -> FloatArray:
        stored = self.collection.embedding(record.id, document_id)
        if stored is None:
            raise CollectionError(
                f"Document {document_id} has no {record.pooling} vector yet: `lmk-rag reindex` makes it."
            )
        return stored.vector

    def _record(self, pooling: str | None) -> EncoderRecord | None:
        """Choose whose vectors to search: the one asked for, else lmk, else the first; a complete one goes first."""
        records = {record.pooling: record for record in own_records(self.collection)}
        if pooling is None:
            wanted = sorted(records.values(), key=lambda record: record.pooling != "lmk")
            complete = (record for record in wanted if not self._missing(record))
            return next(complete, next(iter(wanted), None))
        if pooling not in records:
            raise CollectionError(
                f"{self.collection.path} has no {pooling} vectors (it has {', '.join(records) or 'none'}): add them "
                f"with `lmk-rag ingest PATH --pooling {pooling} --collection {self.collection.path}`."
            )
        return records[pooling]

    def _no_vectors(self) -> str:
        return f"{self.collection.path} has no vectors of this program's encoders: searched by BM25 alone."

    def _notes(self, record: EncoderRecord) -> tuple[str, ...]:
        missing = self._missing(record)
        lacking = count(missing, "document")
        note = f"No {record.pooling} vector yet for {lacking}: `lmk-rag reindex` makes what is missing."
        return (note,) if missing else ()

    def _missing(self, record: EncoderRecord) -> int:
        """Count the documents without a vector of an encoder, once a generation: it takes a look at all of them."""
        generation = self.collection.generation
        known = self._lacking.get(record.id)
        if known is None or known[0] != generation:
            known = self._lacking[record.id] = (generation, len(self.collection.missing(record.id)))
        return known[1]

    def encoder(self, record: EncoderRecord) -> "Encoder":
        """Give the encoder that made a collection's vectors, loaded once.

        Raises:
            FingerprintError: where it cannot be had in the same state any more.
        """
        with self._lock:
            if record.id not in self._encoders:
                self._encoders[record.id] = load_encoder(self.collection, record.pooling, Settings(device=self.device))
            return self._encoders[record.id]

    def close(self) -> None:
        """Close the collection."""
        self.collection.close()


def _check(k: int, mode: str = "hybrid", fusion: str = "weighted") -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise ValueError(f"k must be a whole number, not {k!r}.")
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}.")
    if mode not in MODES:
        raise ValueError(f"Mode {mode!r} is not known: choose {', '.join(MODES)}.")
    if fusion not in FUSIONS:
        raise ValueError(f"Fusion {fusion!r} is not known: choose {', '.join(FUSIONS)}.")


def _depth(k: int) -> int:
    return max(_CANDIDATES, int(min(k, _DEEPEST)))


def _filter(filter: Filtering) -> Filter | None:
    if filter is None or isinstance(filter, Filter):
        return filter
    if isinstance(filter, str):
        return Filter.parse(filter)
    if isinstance(filter, Mapping):
        return Filter.from_dict(filter)
    raise FilterError(
        f"A filter is an expression, a mapping or a Filter, and not of type {type(filter).__name__}: write for "
        "example 'type=pdf' or {'type': 'pdf'}, and join several expressions with Filter.all"
    )


def _folded(found: Found) -> tuple[FoldedHit, ...]:
    return tuple(
        FoldedHit(document.id, document.path, document.title, score, similarity)
        for document, score, similarity in found.folded
    )
