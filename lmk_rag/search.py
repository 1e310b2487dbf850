"""A query becomes hits: dense and BM25 find candidates, evidence weighs them, fusion ranks, passages point."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from indexes.collection import Collection
from indexes.errors import CollectionError
from indexes.filters import Filter
from indexes.fulltext import query_terms
from indexes.records import EncoderRecord
from lmk_rag.evidence import maxsim, similarities
from lmk_rag.fusion import fuse
from lmk_rag.indexing import Settings, load_encoder
from lmk_rag.passages import Passage, from_evidence, from_terms

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Encoder

FloatArray = npt.NDArray[np.float32]

MODES = ("hybrid", "dense", "bm25")
SCORE_KINDS = {"hybrid": "fusion", "dense": "cosine", "bm25": "bm25"}
"""What a hit's score means, by mode, higher being better:

- ``fusion``: a weighted sum of standardised scores; 0 is the average candidate, there are no bounds;
- ``cosine``: in [-1, 1]; with evidence, the mean of the document's cosine and its evidence's;
- ``bm25``: above 0, without an upper bound.
"""

_CANDIDATES = 100
"""Documents taken from each list before evidence and fusion, at least."""
_PASSAGES = 3


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    Attributes:
        rank: counts from 1.
        id: the document's id in its collection.
        path: the file's absolute path (the external id of a document without a file).
        title: as its reader found it.
        score: higher is better; ``Results.score_kind`` says what it is.
        kind: pdf, html, text ...
        pages: number of pages.
        passages: where the document matches, best first.
    """

    rank: int
    id: int
    path: str
    title: str
    score: float
    kind: str
    pages: int
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """What a search found.

    Attributes:
        query: as it was asked.
        mode: hybrid, dense or bm25, as it was done.
        pooling: whose vectors were searched, None where none were.
        score_kind: what the hits' scores are, see :data:`SCORE_KINDS`.
        hits: best first.
        notes: what the user should know, one sentence each.
    """

    query: str
    mode: str
    pooling: str | None
    score_kind: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


class Searcher:
    """Searches one collection; encoders are loaded at their first use. Threads may share it."""

    def __init__(self, collection: Collection, device: str = "auto") -> None:
        """Take an open collection and the device for its encoders."""
        self.collection = collection
        self.device = device
        self._encoders: dict[int, Encoder] = {}
        self._lacking: dict[int, tuple[int, int]] = {}
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
        filter: Filter | None = None,
    ) -> Results:
        """Find the documents that match a query best.

        Args:
            query: any text; double quotes mean phrases, for the lexical part.
            k: how many hits, at least 1; fewer come back only where fewer documents match.
            mode: hybrid, dense or bm25 (which needs no model).
            pooling: whose vectors; None for lmk if indexed, else the collection's first.
            evidence: whether evidence vectors take part in the ranking and show the passages.
            filter: only documents that it lets through are looked at.

        Raises:
            ValueError: for a k below 1 or an unknown mode.
            CollectionError: where the pooling is not indexed.
            FingerprintError: where the model that made the vectors is not the one that is installed.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}.")
        if mode not in MODES:
            raise ValueError(f"Mode {mode!r} is not known: choose {', '.join(MODES)}.")
        if not query.strip():
            return Results(query, mode, None, SCORE_KINDS[mode], (), ("The query is empty.",))
        with self.collection.snapshot():
            if mode == "bm25":
                return self._search_bm25(query, k, filter)
            record = self._record(pooling)
            if record is None:
                note = f"{self.collection.path} has no vectors of this program's encoders: searched by BM25 alone."
                return self._search_bm25(query, k, filter, (note,))
            return self._search_vectors(query, k, mode, record, evidence, filter)

    def _search_bm25(self, query: str, k: int, filter: Filter | None, notes: tuple[str, ...] = ()) -> Results:
        scores = dict(self.collection.fulltext(query, k, filter))
        return Results(query, "bm25", None, SCORE_KINDS["bm25"], self._hits(scores, k, query), notes)

    def _search_vectors(
        self, query: str, k: int, mode: str, record: EncoderRecord, evidence: bool, filter: Filter | None
    ) -> Results:
        asked = self.encoder(record).encode_queries([query])[0]
        depth = max(_CANDIDATES, k)
        allowed = None if filter is None else self.collection.allowed(filter)
        dense = dict(self.collection.index(record).search(asked.vector, depth, allowed))
        lexical = dict(self.collection.fulltext(query, depth, filter)) if mode == "hybrid" else {}
        cosines: dict[int, FloatArray] = {}
        for document in {*dense, *lexical}:
            stored = self.collection.embedding(record.id, document)
            if stored is None:
                continue
            dense[document] = float(np.clip(stored.vector @ asked.vector, -1, 1))
            if evidence and len(stored.evidence) and len(asked.evidence):
                cosines[document] = similarities(asked.evidence, stored)
        if len(lexical) < depth:  # all that hold a word of the query: BM25 scores the others 0
            lexical = dict.fromkeys(dense, 0.0) | lexical
        best = {document: maxsim(each) for document, each in cosines.items()}
        if mode == "hybrid":
            scores = fuse({"bm25": lexical, "dense": dense, "evidence": best})
        else:
            scores = {document: (score + best.get(document, score)) / 2 for document, score in dense.items()}
        spans = {document: each.max(axis=0) for document, each in cosines.items()}
        hits = self._hits(scores, k, query, record, spans)
        missing = self._missing(record)
        note = f"{missing} documents have no {record.pooling} vector yet: `lmk-rag reindex` makes them."
        return Results(query, mode, record.pooling, SCORE_KINDS[mode], hits, (note,) if missing else ())

    def _hits(
        self,
        scores: Mapping[int, float],
        k: int,
        query: str,
        record: EncoderRecord | None = None,
        cosines: Mapping[int, FloatArray] | None = None,
    ) -> tuple[Hit, ...]:
        best = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:k]
        found = [(self.collection.get(document), score) for document, score in best]
        terms = query_terms(query)
        hits = []
        for rank, (document, score) in enumerate(((d, s) for d, s in found if d is not None), start=1):
            passages = self._passages(document.id, terms, record, (cosines or {}).get(document.id))
            hits.append(
                Hit(rank, document.id, document.path, document.title, score, document.kind, document.pages, passages)
            )
        return tuple(hits)

    def _passages(
        self, document: int, terms: list[str], record: EncoderRecord | None, cosines: FloatArray | None
    ) -> tuple[Passage, ...]:
        pages = self.collection.page_texts(document)
        stored = self.collection.embedding(record.id, document) if record and cosines is not None else None
        if stored is None or cosines is None:
            return tuple(from_terms(pages, terms, _PASSAGES))
        return tuple(from_evidence(pages, stored.spans, cosines, terms, _PASSAGES))

    def _record(self, pooling: str | None) -> EncoderRecord | None:
        """Choose whose vectors to search: the one asked for, else lmk, else the first; a complete one goes first."""
        records = {record.pooling: record for record in self.collection.encoders() if "base" in record.fingerprint}
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
