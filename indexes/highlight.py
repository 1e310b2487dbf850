"""Where a query's terms stand in a piece of text, as the full-text index cuts it into words."""

import re
import sqlite3
from collections.abc import Iterable, Sequence

from indexes.query import clean, split_identifiers

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # noncharacters: Unicode keeps them for a program's own use
_BRACKETS = re.compile(f"[{_OPEN}{_CLOSE}]")

_TOKENIZER = "porter unicode61 remove_diacritics 2"  # as the full-text index's, and stems, so that other forms match

Marks = tuple[tuple[int, int], ...]


def highlight(texts: Sequence[str], terms: Sequence[str]) -> list[Marks]:
    """Find a query's terms in texts: as written, inflected, with other accents, and as parts of identifiers.

    Args:
        texts: a few, short: they are tokenised for each call.
        terms: words and phrases, as `indexes.query.query_terms` gives them.

    Returns:
        For each text the [start, end) of what matches, in code points, ascending and apart.
    """
    if not texts or not terms:
        return [()] * len(texts)
    plain = [_BRACKETS.sub("\N{REPLACEMENT CHARACTER}", clean(text)) for text in texts]
    found = [set(_inside(text)) for text in _marked(plain, terms)]
    split = {number: split_identifiers(text) for number, text in enumerate(plain)}
    split = {number: (apart, places) for number, (apart, places) in split.items() if apart != plain[number]}
    for number, text in zip(split, _marked([apart for apart, _ in split.values()], terms), strict=True):
        places = split[number][1]
        found[number].update(places[at] for at in _inside(text))
    return [_runs(places - {-1}) for places in found]


def _marked(texts: Sequence[str], terms: Sequence[str]) -> list[str]:
    """Put brackets around the terms in texts."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{_TOKENIZER}')")
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
        found = connection.execute(
            f"SELECT rowid, highlight(texts, 0, '{_OPEN}', '{_CLOSE}') FROM texts WHERE texts MATCH ?",
            (" OR ".join(f'"{term}"' for term in terms),),
        )
        bracketed = dict(found.fetchall())
    finally:
        connection.close()
    return [bracketed.get(number, text) for number, text in enumerate(texts)]


def _inside(text: str) -> Iterable[int]:
    """Yield the places between brackets, counted without the brackets."""
    place, inside = 0, False
    for character in text:
        if character in (_OPEN, _CLOSE):
            inside = character == _OPEN
        else:
            if inside:
                yield place
            place += 1


def _runs(places: Iterable[int]) -> Marks:
    """Join places that follow each other."""
    runs: list[tuple[int, int]] = []
    for place in sorted(places):
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return tuple(runs)
