"""Where a document answers a query: its passages with the query's terms marked, and the heat of all its evidence."""

from collections.abc import Sequence
from dataclasses import replace

from indexes.collection import Collection
from indexes.highlight import highlight
from indexes.records import PAGE_SEPARATOR
from lmk_rag.candidates import Question
from lmk_rag.evidence import similarities
from lmk_rag.passages import Passage, from_evidence, from_terms, page_starts
from lmk_rag.results import StripCell


def passages(collection: Collection, document_id: int, question: Question, count: int) -> list[Passage]:
    """Find where a document matches, best first: by its evidence vectors, where there are some, else by the terms."""
    pages = collection.page_texts(document_id)
    if question.record is not None and len(question.evidence):
        stored = collection.embedding(question.record.id, document_id)
        if stored is not None and len(stored.evidence):
            cosines = similarities(question.evidence, stored).max(axis=0)
            return from_evidence(pages, stored.spans, cosines, question.words.terms, count)
    return from_terms(pages, question.words.terms, count)


def mark(found: Sequence[Sequence[Passage]], terms: Sequence[str]) -> list[tuple[Passage, ...]]:
    """Mark a query's terms in the passages of several documents."""
    marked = iter(highlight([passage.text for passages in found for passage in passages], terms))
    return [tuple(replace(passage, marks=next(marked)) for passage in passages) for passages in found]


def strip(collection: Collection, document_id: int, question: Question) -> tuple[StripCell, ...]:
    """Compare all evidence of a document with the query, in reading order; a span over several pages is cut there."""
    stored = collection.embedding(question.record.id, document_id) if question.record else None
    if stored is None or not len(stored.evidence) or not len(question.evidence):
        return ()
    pages = collection.page_texts(document_id)
    starts = page_starts(pages)
    cosines = similarities(question.evidence, stored).max(axis=0)
    cells = []
    page = 0
    for (start, end), cosine in zip(stored.spans.tolist(), cosines.tolist(), strict=True):
        while page + 1 < len(pages) and starts[page] + len(pages[page]) + len(PAGE_SEPARATOR) <= start:
            page += 1
        for number in range(page, len(pages)):
            if starts[number] >= end:
                break
            first, last = max(start - starts[number], 0), min(end - starts[number], len(pages[number]))
            if first < last:
                cells.append(StripCell(number + 1, first, last, cosine))
    return tuple(cells)
