"""HTML manuals as data sets: title, first paragraph and section headings lead to pages, or to sections."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from lmk_rag.evaluation.beir import Dataset
from lmk_rag.evaluation.sources.markup import Manual
from lmk_rag.evaluation.sources.rfc import Section

_ABSTRACT_WORDS = 15
"""A first paragraph of fewer words says too little to be a query."""
_LEAST_WORDS = 60


def pages(name: str, manuals: Sequence[tuple[str, Manual]], *, limit: int | None = None) -> Dataset:
    """Whole pages as documents.

    A page's title and its first paragraph, the two queries for the whole, are taken out of its text; a third
    query is one section heading that stands on this page only.

    Args:
        name: of the data set.
        manuals: (id, page), ids unique.
        limit: a fixed draw of so many pages; all by default.
    """
    counts = Counter(part.heading.lower() for _, manual in manuals for part in manual.sections)
    queries: dict[str, tuple[str, str, str]] = {}
    corpus: dict[str, str] = {}
    for key, manual in _drawn(manuals, limit):
        abstract, body = without_front(manual)
        text = Manual(title="", sections=body).text
        if len(text.split()) < _LEAST_WORDS:
            continue
        corpus[key] = text
        headings = [
            part.heading for part in body if counts[part.heading.lower()] == 1 and len(part.heading.split()) > 1
        ]
        heading = random.Random(key).choice(headings) if headings else ""
        for kind, query in (("title", manual.title), ("abstract", abstract), ("heading", heading)):
            if query:
                queries[f"{key}-{kind}"] = (query, kind, key)
    return _dataset(name, corpus, queries)


def sections(name: str, manuals: Sequence[tuple[str, Manual]], *, limit: int | None = None) -> Dataset:
    """Sections as documents, each asked for by its heading, which is taken out; headings that occur once only."""
    counts = Counter(part.heading.lower() for _, manual in manuals for part in manual.sections)
    found = [
        (f"{key}-{at}", part)
        for key, manual in manuals
        for at, part in enumerate(manual.sections)
        if counts[part.heading.lower()] == 1
        and len(part.heading.split()) > 1
        and len(part.text.split()) >= _LEAST_WORDS
    ]
    corpus = {}
    queries = {}
    for key, part in _drawn(found, limit):
        corpus[key] = part.text
        queries[f"{key}-heading"] = (part.heading, "heading", key)
    return _dataset(name, corpus, queries)


def without_front(manual: Manual) -> tuple[str, tuple[Section, ...]]:
    """The first paragraph long enough to be an abstract, and the sections without it and without the title."""
    parts = list(manual.sections)
    parts = [Section(heading="" if part.heading == manual.title else part.heading, text=part.text) for part in parts]
    first = next((at for at, part in enumerate(parts) if part.text), None)
    if first is None:
        return "", tuple(parts)
    paragraphs = parts[first].text.split("\n\n")
    for at, paragraph in enumerate(paragraphs[:4]):
        if len(paragraph.split()) >= _ABSTRACT_WORDS:
            rest = "\n\n".join(paragraphs[:at] + paragraphs[at + 1 :])
            parts[first] = Section(heading=parts[first].heading, text=rest)
            return re.sub(r"\s+", " ", paragraph).strip(), tuple(parts)
    return "", tuple(parts)


_Item = TypeVar("_Item")


def _drawn(items: Sequence[_Item], limit: int | None) -> list[_Item]:
    if limit is None or limit >= len(items):
        return list(items)
    return [items[at] for at in sorted(random.Random(limit).sample(range(len(items)), limit))]


def _dataset(name: str, corpus: dict[str, str], queries: dict[str, tuple[str, str, str]]) -> Dataset:
    return Dataset(
        name=name,
        corpus=corpus,
        queries={key: query for key, (query, _, _) in queries.items()},
        qrels={key: {document: 1} for key, (_, _, document) in queries.items()},
        kinds={key: kind for key, (_, kind, _) in queries.items()},
    )
