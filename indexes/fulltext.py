"""BM25 over whole documents, by SQLite's FTS5."""

from collections.abc import Iterable, Sequence

from indexes.database import Database
from indexes.filters import Filter
from indexes.query import clean, count_terms, identifier_parts, query_terms
from indexes.records import PAGE_SEPARATOR

__all__ = ["CREATE_FULLTEXT", "TOKENIZER", "add", "holding", "query_terms", "rebuild", "remove", "search", "strongest"]

# Contentless: the text stands in `pages` already. What is removed must be given to FTS5 once more, word for word,
# so that a change to `_entry` needs a migration that rebuilds the table. The column `parts` lets the parts of an
# identifier be found ("2119" in "RFC2119").
TOKENIZER = "porter unicode61 remove_diacritics 2"
CREATE_FULLTEXT = (
    f"CREATE VIRTUAL TABLE fulltext USING fts5(title, body, parts, content = '', tokenize = '{TOKENIZER}')"
)
MOST_TERMS = 64
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


def search(
    database: Database, query: str | Sequence[str], k: int, filter: Filter | None = None
) -> list[tuple[int, float]]:
    """Return the k best documents as (id, score), best first; a document needs one of the query's terms."""
    terms = strongest(database, query) if isinstance(query, str) else query
    if not terms or k < 1:
        return []
    condition, parameters = (filter or Filter()).to_sql()
    # The plus keeps SQLite from running the whole query once for every document that is allowed.
    allowed = f"AND +rowid IN (SELECT id FROM documents WHERE {condition})" if filter else ""
    found = database.rows(
        f"SELECT rowid, bm25(fulltext) AS score FROM fulltext WHERE fulltext MATCH ? {allowed} "
        "ORDER BY score, rowid LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), *(parameters if filter else ()), k),
    )
    return [(document_id, -score) for document_id, score in found]


def strongest(database: Database, query: str) -> list[str]:
    """Return a query's terms; of a long query the `MOST_TERMS` that are frequent in it and rare in the collection."""
    counted = count_terms(query)
    if len(counted) <= MOST_TERMS:
        return list(counted)
    documents = max(1, database.value("SELECT count(*) FROM documents"))
    candidates = counted.most_common(_MOST_CANDIDATES)
    weighted = [
        (-count * (1 + documents / found) ** 0.5, term)
        for (term, count), found in zip(candidates, holding(database, [term for term, _ in candidates]), strict=True)
        if found
    ]
    return [term for _, term in sorted(weighted)[:MOST_TERMS]]


def holding(database: Database, terms: Iterable[str], document_id: int | None = None) -> list[int]:
    """Count for each term the documents that hold it, 1,000 at most; of one document, whether it does (1 or 0)."""
    chosen, parameters = ("", ()) if document_id is None else ("AND rowid = ?", (document_id,))
    counting = f"SELECT count(*) FROM (SELECT 1 FROM fulltext WHERE fulltext MATCH ? {chosen} LIMIT ?)"
    return [int(database.value(counting, (f'"{term}"', *parameters, _COMMON))) for term in terms]


def _entry(title: str, text: str) -> tuple[str, str, str]:
    title, text = clean(title), clean(text)
    return title, text, identifier_parts(f"{title}\n{text}")


def _text(database: Database, document_id: int) -> str:
    pages = database.rows("SELECT text FROM pages WHERE document_id = ? ORDER BY number", (document_id,))
    return PAGE_SEPARATOR.join(row[0] for row in pages)
