"""BM25 over whole documents: FTS5 counts, the weights are ours.

FTS5 has a `bm25()` of its own, whose idf is cut to nothing for a word in more than half of the documents and whose k1
is fixed at 1.2. Asked for one term at a time, it tells how often the term stands in a document against the document's
length, and from that any other BM25 can be computed.
"""

import math
from collections.abc import Iterator

from indexes.database import Database
from indexes.filters import Filter
from indexes.inflections import inflections
from indexes.query import Words

K1 = 3.0
"""Documents are long: a word's tenth occurrence still says something. Chosen, as the weights, on a development split:
see docs/benchmarks.md."""
INFLECTED = 0.25
"""What another form of a word counts."""
PAIR = 0.4
"""What two words of the query count, beside their own weight, where they follow each other in a document."""
_FTS5_K1 = 1.2
_MOST_INFLECTED = 16  # a longer query says enough


def search(database: Database, words: Words, k: int, filter: Filter | None = None) -> list[tuple[int, float]]:
    """Find the documents that hold a term of the query, or another form of one.

    A term's weight is ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N documents, times (K1 + 1) f / (f + K1 l) for f
    occurrences in a document of relative length l = 0.25 + 0.75 * tokens / average (Robertson and Zaragoza 2009; the
    idf as in Lucene). Another form of a word counts `INFLECTED` as much, and never more than the word itself would;
    pairs of neighbours count `PAIR` (as in Metzler and Croft's sequential dependence, 2005).

    Args:
        database: the collection's.
        words: what is looked for.
        k: how many at most.
        filter: only documents that it lets through.

    Returns:
        (document id, score), best first, equal ones by id; scores are above 0, without an upper bound.
    """
    documents = int(database.value("SELECT count(*) FROM documents"))
    weighted = list(_weighted(database, words, documents))
    if not weighted or k < 1:
        return []
    # With x = f / (f + 1.2 l), which FTS5 gives, f / (f + K1 l) is x / (x + c - c x), c = K1 / 1.2.
    one = "SELECT rowid, ? / (? - ? / bm25(fulltext)) FROM fulltext WHERE fulltext MATCH ?"
    parameters: list[object] = []
    for term, weight, holding in weighted:
        c = K1 / _FTS5_K1
        theirs = _fts5_idf(documents, holding) * (_FTS5_K1 + 1)
        parameters += [weight * _idf(documents, holding) * (K1 + 1), 1 - c, c * theirs, f'"{term}"']
    condition, allowed = filter.to_sql() if filter else ("", ())
    # The plus keeps SQLite from running each part once for every document that is allowed.
    chosen = f"WHERE +id IN (SELECT id FROM documents WHERE {condition})" if filter else ""
    found = database.rows(  # materialised, since bm25() works in a query of its own alone
        f"WITH found (id, score) AS MATERIALIZED ({' UNION ALL '.join([one] * len(weighted))}) "
        f"SELECT id, sum(score) AS total FROM found {chosen} GROUP BY id ORDER BY total DESC, id LIMIT ?",
        (*parameters, *allowed, k),
    )
    return [(document_id, score) for document_id, score in found]


def _weighted(database: Database, words: Words, documents: int) -> Iterator[tuple[str, float, int]]:
    """Yield what is looked for, its weight beside the idf, and how many documents hold it: those that some do."""
    expanded = words.loose if len(words.terms) <= _MOST_INFLECTED else ()
    for term in words.terms:
        holding = _holding(database, term)
        if holding:
            yield term, 1.0, holding
        for form in inflections(database, term) if term in expanded else ():
            if form in words.terms:
                continue
            of_form = _holding(database, form)
            most = _idf(documents, holding) / _idf(documents, of_form)
            yield form, INFLECTED * min(1.0, most), of_form
    for pair in words.pairs:
        holding = _holding(database, pair)
        if holding:
            yield pair, PAIR, holding


def _holding(database: Database, term: str) -> int:
    return int(database.value("SELECT count(*) FROM fulltext WHERE fulltext MATCH ?", (f'"{term}"',)))


def _idf(documents: int, holding: int) -> float:
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def _fts5_idf(documents: int, holding: int) -> float:
    """As FTS5 computes it: https://www.sqlite.org/fts5.html, section 6.4.1."""
    idf = math.log((documents - holding + 0.5) / (holding + 0.5))
    return idf if idf > 0 else 1e-6
