"""The sentences of the best passages, each scored by how well it answers a question.

Offsets are exact: ``page_text[start:end] == sentence.text``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sentencex import get_sentence_boundaries

from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.passages import Passage
from lmk_rag.search import Hit, Results, Searcher

TERMS_WEIGHT = 0.5
"""What holding all of a question's terms adds to a sentence's cosine."""
_NO_STATEMENT = 0.1
"""What a heading, a row of a table or code loses against a sentence that says something."""
_NUMBER = 0.1
"""What a number adds where one is asked for."""
_DEFINITION = 0.2
"""What saying what a thing is adds where that is asked."""
_AROUND = 300
"""Code points looked at on each side of a passage to find where its first and last sentence begin and end."""
_LONGEST = 500
"""Code points of a sentence, at most: tables and code have no full stops."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_BARS = re.compile(r"^[ \t|]*[-=_*~+]{4,}[ \t|]*$|^[ \t]*\|(?=[ \t\n]|$)", re.MULTILINE)
"""What frames a text: bars at the beginning of its lines, ruled lines."""
_BLANK = re.compile(r"\n[ \t]*\n")
_SIGNATURE = re.compile(
    r"(?:(?:abstractmethod|async|class|classmethod|coroutine|def|exception|staticmethod) +)*"
    r"@?[^\W\d][\w.]*\(.*\)(?:\s*(?:->|→)\s*\S+)?:?",
    re.DOTALL,
)
"""How a function is called: no quote by itself, but what a description of it begins with."""
_STATEMENT = re.compile(
    r"[\"'(\u201c\u2018@]?\w(?:(?!>>>|\|[^|\n]*\|).)*[.!?\u3002\uff01\uff1f][\"')\]\u201d\u2019\xbb]*", re.DOTALL
)
_REFERS = re.compile(
    r"(?:\W*(?:please |also )?(?:see|refer to|consult|compare)\b|for (?:\w+ ){0,4}(?:details|information|more),? )",
    re.IGNORECASE,
)
"""What sends the reader elsewhere."""
_DIGIT = re.compile(r"(?<![\[\w.-])\d")
_STOP = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"')\]\u201d\u2019\xbb]*$")
_LEADERS = re.compile(r"(?:\.[ \t]?){4,}")
"""Dots that lead to a page number, in a table of contents."""
_FEWEST_PLAIN = 0.75
"""The share of letters, digits and white space in a sentence."""
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
        share: of the question's terms in it and in the document's title, rare ones counting more, in [0, 1].
        bonus: what its form adds to the score: below 0 for no statement or a mere reference, above for a number
            or a definition that is asked for.
    """

    hit: Hit
    page: int
    start: int
    end: int
    text: str
    cosine: float | None
    share: float
    bonus: float = 0.0

    @property
    def score(self) -> float:
        """How well it answers, higher is better: cosine and share blended, or the share alone, and the bonus."""
        return self.bonus + (self.share if self.cosine is None else self.cosine + TERMS_WEIGHT * self.share)


def score_sentences(
    searcher: Searcher,
    results: Results,
    passages: Mapping[int, Sequence[Passage]],
    pages: Mapping[int, Sequence[str]],
    terms: QuestionTerms,
) -> list[Sentence]:
    """Split the passages of the hits into sentences and score each, best first; no text comes twice.

    Args:
        searcher: has the encoder that made the collection's vectors.
        results: of the question.
        passages: of each hit, by the document's id.
        pages: the texts of each hit's pages, by the document's id.
        terms: the question's.
    """
    places: dict[str, tuple[Hit, int, int, int, str]] = {}
    for hit in results.hits:
        for passage in passages[hit.id]:
            page = pages[hit.id][passage.page - 1]
            for start, end in sentences_of(page, passage.start, passage.end):
                text = page[start:end]
                places.setdefault(plain(text).casefold(), (hit, passage.page, start, end, text))
    found = list(places.values())
    cosines = _cosines(searcher, results, [each[-1] for each in found])
    scored = [
        Sentence(*each, cosine, terms.share(f"{each[0].title} {each[-1]}"), _bonus(each[-1], terms))
        for each, cosine in zip(found, cosines, strict=True)
    ]
    return sorted(scored, key=lambda each: -each.score)


def plain(text: str) -> str:
    """Put a quote on one line, without the bars that frame it."""
    return " ".join(_BARS.sub("", text).split())


def _bonus(text: str, terms: QuestionTerms) -> float:
    said = plain(text)
    if not _STATEMENT.fullmatch(said) or _REFERS.match(said):
        return -_NO_STATEMENT
    if terms.definition and terms.definition.begins(said):
        return _DEFINITION
    return _NUMBER if terms.wants_number and _DIGIT.search(text) else 0.0


def sentences_of(page: str, start: int, end: int) -> list[tuple[int, int]]:
    """List the borders of the sentences that a piece [start, end) of a page touches.

    A description begins with the signature above it. Headings and crumbs are left out, unless there is nothing else.
    """
    low, high = max(start - _AROUND, 0), min(end + _AROUND, len(page))
    text = _BARS.sub(lambda bars: " " * len(bars[0]), page[low:high])
    found: list[tuple[int, int]] = []
    for first, last in _described(text, low > 0, high < len(page)):
        if low + first < end and low + last > start:
            found += [(low + a, low + b) for a, b in _pieces(text, first, last)]
    found = found or list(_pieces(page, start, end))  # no border is near
    found = [each for each in found if not _is_listing(page[slice(*each)])]
    return [each for each in found if _says_something(page[slice(*each)])] or found


def _described(text: str, cut_before: bool, cut_after: bool) -> Iterator[tuple[int, int]]:
    """List the whole sentences of a text, each signature joined with the sentence that follows."""
    signature: int | None = None
    for first, last in _split(text):
        piece = text[first:last].strip()
        if not piece or (cut_before and first == 0) or (cut_after and last == len(text)):
            continue
        if _SIGNATURE.fullmatch(piece):
            signature = first
            continue
        yield (first if signature is None or last - signature > _LONGEST else signature), last
        signature = None


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Split a text at the ends of its sentences and at lines that are blank."""
    first = 0
    for each in get_sentence_boundaries("en", text):
        last = each["end_index"]
        if text[last - 1] == "." and text[last : last + 1].strip():
            continue  # "collections.Counter" is one word
        for blank in _BLANK.finditer(text, first, last):
            yield first, blank.start()
            first = blank.end()
        yield first, last
        first = last


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


def _is_listing(text: str) -> bool:
    """Whether it is a line of a table of contents, or names between marks: ``__all__ = ['dump', 'dumps', 'load']``."""
    plain_ones = sum(each.isalnum() or each.isspace() for each in text)
    return _LEADERS.search(text) is not None or plain_ones < _FEWEST_PLAIN * len(text)


def _says_something(text: str) -> bool:
    fewest = _FEWEST_WORDS_WITH_STOP if _STOP.search(text) else _FEWEST_WORDS
    return len(_WORD.findall(text)) >= fewest


def _cosines(searcher: Searcher, results: Results, texts: Sequence[str]) -> list[float | None]:
    record = searcher.collection.encoder(results.pooling) if results.pooling else None
    if record is None or not texts:
        return [None] * len(texts)
    encoder = searcher.encoder(record)
    asked = encoder.encode_queries([results.query])[0].vector
    vectors = np.stack([each.vector for each in encoder.encode_documents([plain(text) for text in texts])])
    return [float(cosine) for cosine in np.clip(vectors @ asked, -1, 1)]
