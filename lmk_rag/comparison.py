"""One query by several poolings, side by side: what each ranks where, and how documents moved against the first."""

from collections.abc import Sequence
from dataclasses import dataclass

from indexes.filters import Filter
from lmk_rag.search import Hit, Searcher

BM25 = "bm25"
"""The name of the column that is no pooling."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A hit in one column, seen from the others.

    Attributes:
        hit: with its rank in this column.
        before: its rank in the first column; None where that does not have it. A near copy counts as the document: of
            two copies, each column may have another one on top.
        missing: the other columns that have neither it nor a copy, though they have its vector.
    """

    hit: Hit
    before: int | None
    missing: tuple[str, ...]

    @property
    def moved(self) -> int | None:
        """Places that it stands higher than in the first column (lower: below 0); None where that lacks it."""
        return None if self.before is None else self.before - self.hit.rank


@dataclass(frozen=True, slots=True)
class Column:
    """What one pooling, or BM25, found.

    Attributes:
        name: of the pooling, or ``bm25``.
        score_kind: what the scores are, see ``lmk_rag.search.SCORE_KINDS``.
        placed: best first.
        notes: what the user should know, one sentence each.
    """

    name: str
    score_kind: str
    placed: tuple[Placed, ...]
    notes: tuple[str, ...] = ()


def compare(
    searcher: Searcher, query: str, names: Sequence[str], k: int = 10, filter: Filter | None = None
) -> tuple[Column, ...]:
    """Let each pooling answer a query by its document vectors alone, so that nothing but the pooling differs.

    Args:
        searcher: over the collection.
        query: any text.
        names: poolings of the collection, or ``bm25``; the first is what the others are compared with.
        k: hits a column, at least 1.
        filter: only documents that it lets through are looked at.

    Returns:
        A column a name, in the order given.

    Raises:
        CollectionError: where a pooling is not indexed.
    """
    found = {
        name: searcher.search(query, k, BM25, filter=filter)
        if name == BM25
        else searcher.search(query, k, "dense", name, evidence=False, filter=filter)
        for name in names
    }
    ranks = {name: {each: hit.rank for hit in results.hits for each in _ids(hit)} for name, results in found.items()}

    lacking = {name: _lacking(searcher, name) for name in names}

    def rank(hit: Hit, name: str) -> int | None:
        return min((ranks[name][each] for each in _ids(hit) if each in ranks[name]), default=None)

    def misses(name: str, hit: Hit) -> bool:
        return rank(hit, name) is None and hit.id not in lacking[name]

    return tuple(
        Column(
            name,
            results.score_kind,
            tuple(
                Placed(hit, rank(hit, names[0]), tuple(other for other in found if misses(other, hit)))
                for hit in results.hits
            ),
            results.notes,
        )
        for name, results in found.items()
    )


def _lacking(searcher: Searcher, name: str) -> frozenset[int]:
    """Give the documents that have no vector of a pooling yet, of which it can say nothing."""
    record = searcher.collection.encoder(name) if name != BM25 else None
    return frozenset(searcher.collection.missing(record.id)) if record else frozenset()


def _ids(hit: Hit) -> tuple[int, ...]:
    """Give the documents that a hit stands for: itself and its near copies."""
    return (hit.id, *(copy.id for copy in hit.folded))
