"""Where in a document the evidence stands: spans that match become passages on one page, grown to whole sentences.

A passage's offsets are exact: ``page_text[start:end] == passage.text``. Passages point and give context; they are
never the unit of retrieval.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from sentencex import get_sentence_boundaries

from indexes.records import PAGE_SEPARATOR
from lmk_rag.occurrences import occurrences

_LONGEST = 700
"""Code points of a passage, at most: what a reader takes in at a glance."""
_AROUND = 400
"""Code points looked at on each side of a span to find where its sentences begin and end."""
_TERMS_WEIGHT = 0.3
"""What finding all of a query's terms in a passage adds to its cosine, when passages are ranked."""
_MARGIN = 40
"""Code points beside a span in which its cut words are looked for."""
_GROWN = 8
"""Spans that are grown to passages, for each passage that is wanted, before the best of them are kept, at most."""
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one page that answers or matches a query.

    Attributes:
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        text: ``page_text[start:end]``.
        score: the cosine of the evidence that it grew from with the query, in [-1, 1]; where a document has no
            evidence vectors, the share of the query's terms that stand together there, rare ones counting more,
            in [0, 1].
        marks: where the query's terms stand, [start, end) in ``text``, ascending and apart.
    """

    page: int
    start: int
    end: int
    text: str
    score: float
    marks: tuple[tuple[int, int], ...] = ()


def from_evidence(
    pages: Sequence[str],
    spans: npt.NDArray[np.int32],
    cosines: npt.NDArray[np.float32],
    terms: Sequence[str],
    count: int,
) -> list[Passage]:
    """Turn the evidence that matches a query best into passages, best first, none overlapping another.

    Args:
        pages: the texts of the document's pages.
        spans: code points [start, end) in the document's text, int32 (n, 2).
        cosines: each span's best cosine with the query, float32 (n,).
        terms: the query's terms; between spans of like cosine the one that holds more of them goes first.
        count: how many passages are wanted.
    """
    text = PAGE_SEPARATOR.join(pages)
    words = _Words(text, terms)
    likeliest = np.argsort(-cosines, kind="stable")[: max(10 * count, 50)]
    likeliest = np.union1d(likeliest, _spans_with_words(spans, words))
    # A span may begin or end inside a word that counts: looked at with a margin, then as the passage it grows to.
    shares = words.shares(spans[likeliest, 0] - _MARGIN, spans[likeliest, 1] + _MARGIN)
    likeliest = likeliest[_best_first(cosines[likeliest], shares)[: _GROWN * count]]
    starts = page_starts(pages)
    grown = [_grow(pages, starts, int(spans[at, 0]), int(spans[at, 1]), float(cosines[at])) for at in likeliest]
    inside = np.array([_in_document(passage, starts) for passage in grown], np.int64).reshape(-1, 2)
    order = _best_first(cosines[likeliest], words.shares(inside[:, 0], inside[:, 1]))
    return _distinct([grown[at] for at in order], count)


def from_terms(pages: Sequence[str], terms: Sequence[str], count: int) -> list[Passage]:
    """Find passages where a query's terms stand closest together: for documents without evidence vectors.

    Args:
        pages: the texts of the document's pages.
        terms: the query's terms.
        count: how many passages are wanted.

    Returns:
        Passages, best first; the document's beginning where no term occurs.
    """
    words = _Words(PAGE_SEPARATOR.join(pages), terms)
    places = np.arange(len(words.starts))
    # Each window begins with a place and ends with one; a phrase with a wide gap may be longer than a window.
    firsts = np.minimum(np.searchsorted(words.starts, words.ends - _AROUND), places)
    begins = words.starts[firsts]
    shares = words.shares(begins, words.ends)
    best = np.lexsort((begins, firsts - places, -shares))[: 50 * count]
    windows = [(int(begins[at]), int(words.ends[at]), float(shares[at])) for at in best] or [(0, 1, 0.0)]
    starts = page_starts(pages)
    return _distinct((_grow(pages, starts, start, end, share) for start, end, share in windows), count)


class _Words:
    """Where a query's terms stand in a document, and how much each of them says there: the rarer, the more.

    Attributes:
        starts: where a term begins, int64 (n,), ascending; a place that several terms share comes once.
        ends: where it ends.
    """

    def __init__(self, text: str, terms: Sequence[str]) -> None:
        found = [places for places in occurrences(text, list(dict.fromkeys(terms))) if places]
        self._places = [np.array(places, np.int64) for places in found]
        self._weights = [1 / (1 + math.log(len(places))) for places in found]
        # A term that the document lacks counts like one that it has once. Added in the order of `shares`, so that all
        # make exactly 1.
        self._all = float(np.cumsum([*self._weights, len(set(terms)) - len(found)])[-1])
        self.starts, self.ends = np.array(sorted({*chain.from_iterable(found)}), np.int64).reshape(-1, 2).T

    def shares(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Tell how much of the query stands in each of many stretches [start, end) of the document, 0 to 1."""
        total = np.zeros(len(starts))
        for weight, places in zip(self._weights, self._places, strict=True):
            # The first place from a stretch's start on: those of one term end in the order in which they begin.
            first = np.searchsorted(places[:, 0], starts)
            total += weight * (np.append(places[:, 1], _NEVER)[first] <= ends)
        return np.minimum(total / self._all, 1.0) if self._all else total


def _spans_with_words(spans: npt.NDArray[np.int32], words: _Words) -> npt.NDArray[np.int64]:
    """List the spans that hold the start of a term."""
    places = np.unique(np.searchsorted(spans[:, 0], words.starts, side="right") - 1)
    return places[places >= 0]


def _best_first(cosines: npt.NDArray[np.float32], shares: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    return np.argsort(-(cosines + _TERMS_WEIGHT * shares), kind="stable")


def _distinct(passages: Iterable[Passage | None], count: int) -> list[Passage]:
    """Keep the first ``count`` passages that overlap none before and hold a word: a ruled line tells nothing."""
    kept: list[Passage] = []
    for passage in passages:
        if passage is None or not any(map(str.isalnum, passage.text)):
            continue
        if not any(_overlap(passage, other) for other in kept):
            kept.append(passage)
        if len(kept) == count:
            break
    return kept


def page_starts(pages: Sequence[str]) -> list[int]:
    """Tell where each page begins in the document's text."""
    starts, position = [], 0
    for page in pages:
        starts.append(position)
        position += len(page) + len(PAGE_SEPARATOR)
    return starts


def _in_document(passage: Passage | None, starts: Sequence[int]) -> tuple[int, int]:
    """Tell where a passage stands in the document's text."""
    if passage is None:
        return 0, 0
    before = starts[passage.page - 1]
    return before + passage.start, before + passage.end


def _grow(pages: Sequence[str], starts: Sequence[int], start: int, end: int, score: float) -> Passage | None:
    """Cut a span to the page that holds most of it, then grow it to whole sentences there, as far as there is room."""
    first = max(bisect_right(starts, start) - 1, 0)
    last = max(bisect_right(starts, max(end - 1, start)) - 1, first)
    clipped = [
        (number, max(start - starts[number], 0), min(end - starts[number], len(pages[number])))
        for number in range(first, last + 1)
    ]
    number, begin, stop = max(clipped, key=lambda each: each[2] - each[1])
    if stop <= begin:
        return None
    begin, stop = _to_sentences(pages[number], begin, stop)
    text = pages[number][begin:stop]
    return Passage(number + 1, begin, stop, text, score) if text else None


def _to_sentences(page: str, start: int, end: int) -> tuple[int, int]:
    """Move borders out to the sentences' own, as far as a passage may be long, and in from white space."""
    low, high = max(start - _AROUND, 0), min(end + _AROUND, len(page))
    sentences = [
        (low + each["start_index"], low + each["end_index"]) for each in get_sentence_boundaries("en", page[low:high])
    ]
    begin = max((a for a, _ in sentences if a <= start and (a > low or low == 0)), default=start)
    stop = min((b for _, b in sentences if b >= end and (b < high or high == len(page))), default=end)
    if stop - begin > _LONGEST:
        begin = start if start - begin > stop - end else begin
        stop = end if stop - begin > _LONGEST else stop
    begin, stop = _to_words(page, begin, stop)
    while begin < stop and page[begin].isspace():
        begin += 1
    while stop > begin and page[stop - 1].isspace():
        stop -= 1
    return begin, stop


def _to_words(page: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and page[start - 1].isalnum() and page[start : start + 1].isalnum():
        start -= 1
    while end < len(page) and page[end].isalnum() and page[end - 1].isalnum():
        end += 1
    return start, end


def _overlap(one: Passage, other: Passage) -> bool:
    return one.page == other.page and one.start < other.end and other.start < one.end
