"""The other forms of a word that stand in a collection, "certificates" for "certificate"."""

import unicodedata
from functools import lru_cache

import snowballstemmer

from indexes.database import Database

MOST_FORMS = 4
_SHORTEST_STEM = 3
_END = "\U0010ffff"


def inflections(database: Database, word: str) -> list[str]:
    """Return the commonest words of the full-text index that have this word's stem, without the word itself.

    Stems are English (Snowball's), whatever the documents' language: a word of another one seldom has other forms then.

    Args:
        database: the collection's.
        word: lower case.

    Returns:
        `MOST_FORMS` at most, without diacritics, as the index holds them.
    """
    plain = _fold(word)
    own = stem(plain)
    beginning = own.removesuffix("i")  # "studi" is the stem of "study"
    if not plain.isalpha() or len(beginning) < _SHORTEST_STEM:
        return []
    near = database.rows(
        "SELECT term FROM vocabulary WHERE term >= ? AND term < ? ORDER BY doc DESC, term",
        (beginning, beginning + _END),
    )
    return [term for (term,) in near if term != plain and stem(term) == own][:MOST_FORMS]


def _fold(word: str) -> str:
    apart = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the English stem of a word in lower case, without diacritics."""
    stemmed: str = snowballstemmer.stemmer("english").stemWord(word)  # one a call: a stemmer is not for two threads
    return stemmed
