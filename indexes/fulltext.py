"""The full-text index over whole documents, by SQLite's FTS5: what goes in, and what a query looks for in it."""

from collections import Counter
from collections.abc import Iterable

from indexes.database import Database
from indexes.query import Words, adjacent_pairs, clean, count_terms, identifier_parts, loose_words, query_terms
from indexes.records import PAGE_SEPARATOR

__all__ = ["CREATE_FULLTEXT", "CREATE_VOCABULARY", "add", "holding", "parse", "query_terms", "rebuild", "remove"]

# Words stand in it as they are written (a stemmed index ranks worse; `inflections` finds other forms). Contentless: the
# text stands in `pages` already. What is removed must be given to FTS5 once more, word for word, so that a change to
# `_entry` needs a migration that rebuilds the table. The column `parts` lets the parts of an identifier be found
# ("2119" in "RFC2119").
CREATE_FULLTEXT = (
    "CREATE VIRTUAL TABLE fulltext USING fts5(title, body, parts, content = '', "
    "tokenize = 'unicode61 remove_diacritics 2')"
)
CREATE_VOCABULARY = "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(fulltext, row)"
MOST_TERMS = 64
MOST_PAIRS = 200  # SQLite joins 500 searches at most: these, the terms, and what other forms of words there are
_COMMON = 1000  # documents; a term in more than these counts as common, however many more
_MOST_CANDIDATES = 2000  # terms of a long query that are looked up


def add(database: Database, document_id: int, title: str, text: str) -> None:
    """Index a document."""
    database.change(
        "INSERT INTO fulltext (rowid, title, body, parts) VALUES (?, ?, ?, ?)", (document_id, *_entry(title, text))
    )


def remove(database: Database, document_id: int) -> None:
    """Take a document out; its row and its pages must still be there, as they were when it was added."""
    found = database.row("SELECT title FROM documents WHERE id = ?", (document_id,))
    if found is not None:
        database.change(
            "INSERT INTO fulltext (fulltext, rowid, title, body, parts) VALUES ('delete', ?, ?, ?, ?)",
            (document_id, *_entry(found[0], _text(database, document_id))),
        )


def rebuild(database: Database) -> None:
    """Make the table anew from the pages."""
    database.change("DROP TABLE fulltext")
    database.change(CREATE_FULLTEXT)
    for document_id, title in database.rows("SELECT id, title FROM documents ORDER BY id"):
        add(database, document_id, title, _text(database, document_id))


def parse(database: Database, query: str) -> Words:
    """Return what BM25 looks for; of a long query the `MOST_TERMS` frequent in it and rare in the collection.

    Of their neighbourhoods, the `MOST_PAIRS` that are commonest in the query.
    """
    counted = count_terms(query)
    terms = list(counted) if len(counted) <= MOST_TERMS else _strongest(database, counted)
    kept, loose = set(terms), loose_words(query)
    pairs = {
        pair: count
        for pair, count in adjacent_pairs(query).items()
        if pair not in kept and kept.issuperset(pair.split())
    }
    return Words(
        tuple(terms),
        tuple(term for term in terms if term in loose),
        tuple(pair for pair, _ in Counter(pairs).most_common(MOST_PAIRS)),
    )


def holding(database: Database, terms: Iterable[str], document_id: int | None = None) -> list[int]:
    """Count for each term the documents that hold it, 1,000 at most; of one document, whether it does (1 or 0)."""
    chosen, parameters = ("", ()) if document_id is None else ("AND rowid = ?", (document_id,))
    counting = f"SELECT count(*) FROM (SELECT 1 FROM fulltext WHERE fulltext MATCH ? {chosen} LIMIT ?)"
    return [int(database.value(counting, (f'"{term}"', *parameters, _COMMON))) for term in terms]


def _strongest(database: Database, counted: Counter[str]) -> list[str]:
    documents = max(1, database.value("SELECT count(*) FROM documents"))
    candidates = counted.most_common(_MOST_CANDIDATES)
    weighted = [
        (-count * (1 + documents / found) ** 0.5, term)
        for (term, count), found in zip(candidates, holding(database, [term for term, _ in candidates]), strict=True)
        if found
    ]
    return [term for _, term in sorted(weighted)[:MOST_TERMS]]


def _entry(title: str, text: str) -> tuple[str, str, str]:
    title, text = clean(title), clean(text)
    return title, text, identifier_parts(f"{title}\n{text}")


def _text(database: Database, document_id: int) -> str:
    pages = database.rows("SELECT text FROM pages WHERE document_id = ? ORDER BY number", (document_id,))
    return PAGE_SEPARATOR.join(row[0] for row in pages)
