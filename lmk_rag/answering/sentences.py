"""The sentences of the best passages, each scored by how well it answers a question.

Offsets are exact: ``page_text[start:end] == sentence.text``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sentencex import get_sentence_boundaries

from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.search import Hit, Results, Searcher

TERMS_WEIGHT = 0.5
"""What holding all of a question's terms adds to a sentence's cosine."""
_AROUND = 300
"""Code points looked at on each side of a passage to find where its first and last sentence begin and end."""
_LONGEST = 500
"""Code points of a sentence, at most: tables and code have no full stops."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_STOP = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"')\]\u201d\u2019\xbb]*$")
_LEADERS = re.compile(r"(?:\.[ \t]?){4,}")
"""Dots that lead to a page number, in a table of contents."""
_FEWEST_WORDS, _FEWEST_WORDS_WITH_STOP = 6, 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a hit.

    Attributes:
        hit: the document that it stands in.
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        text: ``page_text[start:end]``.
        cosine: with the question, in [-1, 1]; None where the collection has no vectors.
        share: of the question's terms, rare ones counting more, in [0, 1].
    """

    hit: Hit
    page: int
    start: int
    end: int
    text: str
    cosine: float | None
    share: float

    @property
    def score(self) -> float:
        """How well it answers, higher is better: cosine and share blended, or the share alone."""
        return self.share if self.cosine is None else self.cosine + TERMS_WEIGHT * self.share


def score_sentences(
    searcher: Searcher, results: Results, pages: Mapping[int, Sequence[str]], terms: QuestionTerms
) -> list[Sentence]:
    """Split the passages of the hits into sentences and score each, best first; no text comes twice.

    Args:
        searcher: has the encoder that made the collection's vectors.
        results: of the question.
        pages: the texts of each hit's pages, by the document's id.
        terms: the question's.
    """
    places: dict[str, tuple[Hit, int, int, int, str]] = {}
    for hit in results.hits:
        for passage in hit.passages:
            page = pages[hit.id][passage.page - 1]
            for start, end in sentences_of(page, passage.start, passage.end):
                text = page[start:end]
                places.setdefault(" ".join(text.split()).casefold(), (hit, passage.page, start, end, text))
    found = list(places.values())
    cosines = _cosines(searcher, results, [each[-1] for each in found])
    scored = [Sentence(*each, cosine, terms.share(each[-1])) for each, cosine in zip(found, cosines, strict=True)]
    return sorted(scored, key=lambda each: -each.score)


def sentences_of(page: str, start: int, end: int) -> list[tuple[int, int]]:
    """List the borders of the sentences that a piece [start, end) of a page touches.

    Headings and crumbs are left out, unless there is nothing else.
    """
    low, high = max(start - _AROUND, 0), min(end + _AROUND, len(page))
    found: list[tuple[int, int]] = []
    for each in get_sentence_boundaries("en", page[low:high]):
        first, last = low + each["start_index"], low + each["end_index"]
        whole = (first > low or low == 0) and (last < high or high == len(page))
        if whole and first < end and last > start:
            found += _pieces(page, first, last)
    found = found or list(_pieces(page, start, end))  # no border is near
    found = [each for each in found if not _LEADERS.search(page[slice(*each)])]
    return [each for each in found if _says_something(page[slice(*each)])] or found


def _pieces(page: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Trim a sentence of white space; one that is too long is cut between words."""
    while start < end:
        while start < end and page[start].isspace():
            start += 1
        stop = end if end - start <= _LONGEST else max(page.rfind(" ", start, start + _LONGEST), start + _LONGEST // 2)
        trimmed = start + len(page[start:stop].rstrip())
        if trimmed > start:
            yield start, trimmed
        start = stop


def _says_something(text: str) -> bool:
    fewest = _FEWEST_WORDS_WITH_STOP if _STOP.search(text) else _FEWEST_WORDS
    return len(_WORD.findall(text)) >= fewest


def _cosines(searcher: Searcher, results: Results, texts: Sequence[str]) -> list[float | None]:
    record = searcher.collection.encoder(results.pooling) if results.pooling else None
    if record is None or not texts:
        return [None] * len(texts)
    encoder = searcher.encoder(record)
    asked = encoder.encode_queries([results.query])[0].vector
    vectors = np.stack([each.vector for each in encoder.encode_documents([" ".join(text.split()) for text in texts])])
    return [float(cosine) for cosine in np.clip(vectors @ asked, -1, 1)]
