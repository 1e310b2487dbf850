"""Candidates of a query: the best documents of the dense and the lexical list, each scored by all lists."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from indexes.collection import Collection
from indexes.filters import Filter
from indexes.query import Words
from indexes.records import EncoderRecord, StoredEmbedding
from lmk_rag.evidence import maxsim, similarities
from lmk_rag.fusion import WEIGHTS, fuse, learned_weights, reciprocal, without_words
from lmk_rag.query_features import query_features

FloatArray = npt.NDArray[np.float32]

_AT_ONCE = 16  # embeddings in memory: a long document's evidence is as large as its text


@dataclass(frozen=True, slots=True)
class Question:
    """A query, ready to be asked.

    Attributes:
        words: what BM25 looks for; of a long query the strongest.
        record: whose vectors are searched, None for BM25 alone.
        vector: float32 (d,), length 1, where there is a record.
        evidence: vectors that are compared with evidence vectors, float32 (q, d); q is 0 where evidence is not wanted.
    """

    words: Words
    record: EncoderRecord | None
    vector: FloatArray
    evidence: FloatArray


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates and what was found out about them.

    Attributes:
        scores: by document, higher is better.
        complete: whether no document that matches is missing, however deep one looks.
        lists: what was fused: bm25, dense and evidence scores, where they took part.
        vectors: the candidates' vectors, float32 (d,), of those that have one.
        features: of the query, where its weights were learned.
    """

    scores: Mapping[int, float]
    complete: bool
    lists: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    vectors: Mapping[int, FloatArray] = field(default_factory=dict)
    features: tuple[float, ...] = ()

    def best(self) -> list[tuple[int, float]]:
        """List ids and scores, best first, equal ones by id."""
        return sorted(self.scores.items(), key=lambda each: (-each[1], each[0]))


def by_words(collection: Collection, question: Question, depth: int, filter: Filter | None) -> Ranking:
    """Rank by BM25 alone; the vectors are those of the collection's first encoder, if it has any."""
    scores = dict(collection.fulltext(question.words, depth, filter))
    encoder = next(iter(collection.encoders()), None)
    return Ranking(scores, len(scores) < depth, {"bm25": scores}, _vectors(collection, encoder, scores))


def by_vector(collection: Collection, question: Question, depth: int, filter: Filter | None) -> Ranking:
    """Rank by the cosine of the documents' vectors alone."""
    assert question.record is not None
    allowed = None if filter is None else collection.allowed(filter)
    scores = dict(collection.index(question.record).search(question.vector, depth, allowed))
    return Ranking(scores, len(scores) < depth, {"dense": scores}, _vectors(collection, question.record, scores))


def by_all(
    collection: Collection, question: Question, mode: str, depth: int, filter: Filter | None, fusion: str
) -> Ranking:
    """Take the best documents of each list, let each list score those of the other too, and join the scores.

    Args:
        collection: what is searched.
        question: what is asked; without evidence vectors, evidence takes no part.
        mode: hybrid, or dense for no BM25.
        depth: documents taken from each list.
        filter: only documents that it lets through.
        fusion: how hybrid joins the lists: weighted, learned or reciprocal.
    """
    assert question.record is not None
    allowed = None if filter is None else collection.allowed(filter)
    dense = dict(collection.index(question.record).search(question.vector, depth, allowed))
    words = dict(collection.fulltext(question.words, depth, filter)) if mode == "hybrid" else {}
    complete = max(len(dense), len(words)) < depth
    evidence: dict[int, float] = {}
    vectors: dict[int, FloatArray] = {}
    for document, stored in _embeddings(collection, question.record, sorted({*dense, *words})):
        vectors[document] = stored.vector
        dense[document] = float(np.clip(stored.vector @ question.vector, -1, 1))
        if len(stored.evidence) and len(question.evidence):
            evidence[document] = maxsim(similarities(question.evidence, stored))
    if mode == "dense":
        return Ranking(without_words(dense, evidence), complete, {"dense": dense, "evidence": evidence}, vectors)
    if len(words) < depth:  # all that hold a word of the query: BM25 scores the others 0
        words = dict.fromkeys(dense, 0.0) | words
    lists = {"bm25": words, "dense": dense, "evidence": evidence}
    features = query_features(collection, question.words.terms, lists) if fusion == "learned" else ()
    if fusion == "reciprocal":
        scores = reciprocal(lists)
    else:
        scores = fuse(lists, learned_weights(features) if features else WEIGHTS)
    return Ranking(scores, complete, lists, vectors, features)


def _embeddings(
    collection: Collection, record: EncoderRecord, documents: Sequence[int]
) -> Iterator[tuple[int, StoredEmbedding]]:
    for start in range(0, len(documents), _AT_ONCE):
        yield from collection.embeddings(record.id, documents[start : start + _AT_ONCE]).items()


def _vectors(collection: Collection, record: EncoderRecord | None, documents: Iterable[int]) -> dict[int, FloatArray]:
    if record is None:
        return {}
    batches = collection.vectors(record).fetch(np.array(list(documents), np.int64))
    return {document: row for ids, rows in batches for document, row in zip(ids.tolist(), rows, strict=True)}
